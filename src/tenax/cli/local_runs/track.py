"""``tenax track``: run a script here, and let a cluster hear of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, pass_access
from tenax.cli.console.overrides import laid_over
from tenax.errors import InvalidInput, TenaxError

if TYPE_CHECKING:
    from tenax.core.local_runs.files import LocalRun
    from tenax.core.local_runs.tracking import Tracker
    from tenax.jsonvalue import JsonObject

#: How long the script waits to be started for the line that says where it is tracked.
_FIRST_WAIT_S = 5.0
#: Of metrics, in one sentence.
_NAMES = 10
_NO_TENAX = "ModuleNotFoundError: No module named 'tenax'"


@click.command(cls=StrictCommand, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENT]...")
@click.option("--name", metavar="NAME", help="Name of the experiment (default: the script's).")
@click.option("--project", metavar="WORKSPACE/PROJECT", help="Put it in this project.")
@click.option(
    "--metric",
    metavar="NAME",
    help="The validation metric that says how good it is (default: by the first validation, a loss before others).",
)
@click.option(
    "--smaller-is-better/--greater-is-better", "smaller", default=None, help="(default: as the metric's name suggests)"
)
@click.option(
    "--hparam",
    "hparams",
    multiple=True,
    metavar="KEY=VALUE",
    help="Lay this over what the script gave core.init(hparams=...); may be given several times.",
)
@click.option("--offline", is_flag=True, help="Keep it here; tenax sync sends it later.")
@pass_access
def track(
    access: Access,
    argv: Tuple[str, ...],
    name: Optional[str],
    project: Optional[str],
    metric: Optional[str],
    smaller: Optional[bool],
    hparams: Tuple[str, ...],
    offline: bool,
) -> int:
    """Run a script on this machine and track it: metrics, output, checkpoints and how it ends.

    It becomes a trial of an unmanaged experiment at your cluster. The script runs as ever, whatever happens to the
    cluster: what cannot be sent is kept, and tenax sync sends it.
    """
    from tenax.core.local_runs.files import new_card, new_run

    program = program_of(argv)
    given: JsonObject = {
        "name": name,
        "project": project,
        "metric": metric,
        "smallerIsBetter": smaller,
        "hparams": laid_over({}, hparams, "--hparam"),
    }
    run = new_run()
    return track_run(access, run, new_card(program, **given), offline=offline)


def track_run(access: Access, run: LocalRun, card: JsonObject, *, offline: bool, cwd: Optional[str] = None) -> int:
    """Run what the card says in the directory of ``run``, and send it; the exit code. Raises InvalidInput."""
    from tenax.cli.local_runs.script import ScriptEnding, run_script
    from tenax.core.local_runs.by_hand import RUN_DIRECTORY, TRACK, ending
    from tenax.local.user_data import VARIABLE

    run.make()
    lock = run.hold()
    run.write_card(card)
    tracker = None if offline else _tracker(access, run)
    environment = {key: value for key, value in os.environ.items() if key != TRACK}
    # The script's checkpoints go where this run is, wherever the script goes.
    environment[VARIABLE] = str(Path(run.path).parent.parent)
    environment[RUN_DIRECTORY] = run.path
    argv = card["argv"]
    assert isinstance(argv, list)
    try:
        result = run_script([str(part) for part in argv], run, environment, cwd)
    except InvalidInput as error:
        result = ScriptEnding("ERROR", str(error), 127)
        output.fail(str(error))
    _note_end(run, card, ending(result.state, result.reason))
    if result.code:
        _say_without_tenax(run)
    _say_unreported(run, card)
    if lock is not None:
        os.close(lock)
    if tracker is not None:
        tracker.finish()
    else:
        output.say(f"Kept as local run {short_id(run)}: tenax local list; tenax sync {short_id(run)} sends it.")
    return result.code


def short_id(run: LocalRun) -> str:
    """The part of a run's name that people type."""
    return run.name.rpartition("-")[2]


def _tracker(access: Access, run: LocalRun) -> Tracker:
    from tenax.client.connection.session import Session
    from tenax.core.local_runs.tracking import READ_S, Tracker

    tracker = Tracker(run, lambda: Session(access.master, user=access.user, retry_for_s=0.0, read_s=READ_S))
    tracker.start()
    tracker.tried(_FIRST_WAIT_S)
    return tracker


def _note_end(run: LocalRun, card: JsonObject, end: JsonObject) -> None:
    try:
        run.write_card({**card, **end})
    except TenaxError as error:
        output.warn(str(error))


def _say_without_tenax(run: LocalRun) -> None:
    """What to do where the script's Python is another one than this and has no tenax."""
    from tenax.cli.local_runs.script import last_line
    from tenax.core.local_runs.files import OUTPUTS

    # On a terminal both outputs are one.
    if any(last_line(run.output_path(name)) == _NO_TENAX for name in OUTPUTS):
        output.warn(
            f"The Python that ran it has no tenax: run the script with {sys.executable}, or install Tenax for that "
            "Python, too (its own `python -m pip install .` in a checkout of Tenax)."
        )


def _say_unreported(run: LocalRun, card: JsonObject) -> None:
    """That the metric which was named is in no validation: everything that ranks runs goes without it."""
    from tenax.core.local_runs.reading import RunStory

    metric, known = card.get("metric"), RunStory(run).names().get("validation", [])
    if metric and metric not in known:
        there = f"; there is {', '.join(known[:_NAMES])}" if known else ""
        output.warn(f"the script reported no validation metric {metric!r}{there}: --metric names one of them.")


def program_of(argv: Tuple[str, ...], cwd: str = ".") -> list[str]:
    """The program to start in a directory, and its arguments. Raises UsageError for what is no program."""
    import shutil

    first = argv[0]
    script = os.path.join(cwd, first)
    if first.endswith(".py") and os.path.isfile(script) and not os.access(script, os.X_OK):
        return [sys.executable, *argv]
    if shutil.which(first) is None:
        raise click.UsageError(
            f"There is no program {first!r}: write it as for a shell, such as tenax track python train.py."
        )
    return list(argv)
