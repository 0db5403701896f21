"""``tenax``: the root of the command line, and how every command ends."""

from __future__ import annotations

import io
import os
import sys
from typing import List, NoReturn, Optional, TextIO, cast

import click

from tenax import __version__
from tenax.cli.console.lazy import LazyCommand, LazyGroup
from tenax.cli.console.options import Access
from tenax.display.terminal import VisibleStream

#: Groups that Determined's users know keep the short names they have there.
ENTRIES = {
    "up": LazyCommand("tenax.cli.local.up:up", "Start a cluster on this machine."),
    "down": LazyCommand("tenax.cli.local.up:down", "Stop the cluster on this machine."),
    "status": LazyCommand("tenax.cli.local.up:status", "Show the cluster on this machine."),
    "upgrade-database": LazyCommand(
        "tenax.cli.local.upgrade:upgrade_database", "Upgrade the database of the cluster on this machine."
    ),
    "backup": LazyCommand("tenax.cli.local.backup:backup", "Write a copy of the cluster on this machine."),
    "restore": LazyCommand("tenax.cli.local.backup:restore", "Make a cluster from such a copy."),
    "demo": LazyCommand("tenax.cli.local.demo:demo", "Run a small search on a cluster of its own, from start to end."),
    "open": LazyCommand("tenax.cli.local.open:open_page", "Open the web page in the browser, logged in."),
    "dev": LazyCommand("tenax.cli.local.dev:dev", "Serve the web page from its sources."),
    "submit": LazyCommand(
        "tenax.cli.experiment.from_script.commands:submit", "Run a Python script as a trial, without a configuration."
    ),
    "search": LazyCommand(
        "tenax.cli.experiment.from_script.commands:search", "Search the hyperparameters of a Python script, likewise."
    ),
    "experiment": LazyCommand("tenax.cli.experiment.commands:group", "Create, watch and steer experiments.", ("e",)),
    "trial": LazyCommand("tenax.cli.trial:group", "Show trials: metrics, logs, checkpoints.", ("t",)),
    "run": LazyCommand("tenax.cli.run:group", "Find runs across experiments, and act on many of them at once.", ("r",)),
    "track": LazyCommand("tenax.cli.local_runs.track:track", "Run a script here, and track it at the cluster."),
    "local": LazyCommand(
        "tenax.cli.local_runs.runs:group", "Runs by hand on this machine: list, compare, resume, remove."
    ),
    "verify-resume": LazyCommand(
        "tenax.cli.local_runs.verify_resume.command:verify_resume",
        "Show whether a script that was paused goes on as if it had not been.",
    ),
    "sync": LazyCommand("tenax.cli.local_runs.sync:sync", "Send to the cluster what runs by hand left here."),
    "checkpoint": LazyCommand("tenax.cli.checkpoint:group", "List and download checkpoints.", ("c",)),
    "command": LazyCommand("tenax.cli.command:group", "Run programs on the cluster, once each.", ("cmd",)),
    "task": LazyCommand(
        "tenax.cli.task:group", "List everything that is running; create, pause and end generic tasks."
    ),
    "template": LazyCommand(
        "tenax.cli.template:group", "Partial configurations that submissions are merged over.", ("tpl",)
    ),
    "workspace": LazyCommand("tenax.cli.workspace:group", "Manage workspaces, which hold projects and models.", ("w",)),
    "project": LazyCommand("tenax.cli.project:group", "Organise experiments in projects.", ("p",)),
    "model": LazyCommand("tenax.cli.model:group", "Register checkpoints as versions of models.", ("m",)),
    "preview-search": LazyCommand("tenax.cli.experiment.commands:preview_search", "Preview the trials of a search."),
    "queue": LazyCommand("tenax.cli.queue:group", "Show the queue of jobs, and change it.", ("job", "j")),
    "agent": LazyCommand(
        "tenax.cli.agents.agent:group", "List agents, enable and disable them, or run one here.", ("a",)
    ),
    "machine": LazyCommand("tenax.cli.agents.machine:group", "Show rented machines, and what would be done with them."),
    "slot": LazyCommand("tenax.cli.agents.slot:group", "List slots, enable and disable them.", ("s",)),
    "pool": LazyCommand(
        "tenax.cli.pool:group", "List resource pools, and bind them to workspaces.", ("resource-pool", "rp")
    ),
    "quota": LazyCommand(
        "tenax.cli.usage.quotas:group", "Show and apply quotas: who may have how much, and whose turn it is."
    ),
    "simulate": LazyCommand(
        "tenax.cli.usage.simulate:simulate", "Replay past work under other rules, quotas or machines, and compare."
    ),
    "usage": LazyCommand("tenax.cli.usage.commands:group", "Show how slots were used.", ("resources", "res")),
    "user": LazyCommand("tenax.cli.user:group", "Log in and out; list, create and edit users.", ("u",)),
    "group": LazyCommand("tenax.cli.group:group", "Manage groups of users.", ("user-group",)),
    "token": LazyCommand("tenax.cli.token:group", "Manage access tokens, with which programs log in.", ("tkn",)),
    "webhook": LazyCommand("tenax.cli.webhook:group", "Notify other services of events."),
    "master": LazyCommand(
        "tenax.cli.master.commands:group", "Show the master, its settings and its log, or run one here."
    ),
    "completion": LazyCommand(
        "tenax.cli.console.completion:completion", "Print the script that completes commands and ids in a shell."
    ),
    "version": LazyCommand("tenax.cli.master.commands:version", "Show the versions of this client and of the master."),
}


@click.command(
    cls=LazyGroup,
    entries=ENTRIES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Tenax: experiments, hyperparameter search and training on your own machines.",
    epilog="Start with: tenax up. The address of another cluster is set with --master or DET_MASTER.",
)
@click.option(
    "-m", "--master", metavar="URL", help="Address of the master (default: DET_MASTER, or what was used last)."
)
@click.option("-u", "--user", metavar="NAME", help="Act as this user (default: DET_USER, or whoever logged in last).")
@click.version_option(__version__, "--version", prog_name="tenax")
@click.pass_context
def cli(context: click.Context, master: Optional[str], user: Optional[str]) -> None:
    context.obj = Access(master, user)


def main(arguments: Optional[List[str]] = None) -> NoReturn:
    """Run a command and end the process with its exit code."""
    code = run(arguments)
    _let_go(sys.stdout)
    _let_go(sys.stderr)
    sys.exit(code)


def _let_go(stream: TextIO) -> None:
    """Write what is left for a reader; one that has enough of it, as `head` has, is no error."""
    try:
        stream.flush()
    except BrokenPipeError:
        # The interpreter would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


def run(arguments: Optional[List[str]] = None) -> int:
    """Run a command; its exit code (`tenax.cli.console.exits`). All that it prints goes through `tenax.display`."""
    _make_printable()
    streams = sys.stdout, sys.stderr
    sys.stdout = cast(TextIO, VisibleStream(sys.stdout))
    sys.stderr = cast(TextIO, VisibleStream(sys.stderr))
    try:
        return _run(arguments)
    finally:
        # Whoever runs this in a process of their own has their streams back; click puts its own there at times.
        if isinstance(sys.stdout, VisibleStream):
            sys.stdout = streams[0]
        if isinstance(sys.stderr, VisibleStream):
            sys.stderr = streams[1]


def _run(arguments: Optional[List[str]]) -> int:
    from tenax.cli.console import exits

    argv = [_readable(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    color = False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None
    try:
        result = cli.main(argv, prog_name="tenax", standalone_mode=False, color=color)
        return result if isinstance(result, int) else exits.OK
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return exits.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return exits.INTERRUPTED
    except SystemExit as ended:
        # click's way to end when whoever read our output has enough: for us that is no failure.
        enough = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")
        return exits.OK if enough else ended.code if isinstance(ended.code, int) else exits.FAILED
    except Exception as error:
        return _report(error)


def _make_printable() -> None:
    """Let no name end a command because a terminal or a file cannot show one of its characters, or is closed."""
    if sys.stdout is None:
        sys.stdout = io.StringIO()
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _readable(argument: str) -> str:
    """An argument as it was typed, also where the locale says nothing of how: it is UTF-8 then."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _report(error: Exception) -> int:
    from tenax.cli.console import exits
    from tenax.cli.console.output import fail
    from tenax.errors import TenaxError

    if os.environ.get("TENAX_DEBUG"):
        import traceback

        traceback.print_exc()
    if isinstance(error, TenaxError):
        fail(str(error))
        return exits.code_of(error)
    if isinstance(error, OSError) and error.strerror:
        fail(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
        return exits.FAILED
    fail(f"internal error: {type(error).__name__}: {error}\nSet TENAX_DEBUG=1 to see where it happened.")
    return exits.BUG


if __name__ == "__main__":
    main()
