"""``tenax master`` and ``tenax version``: the master about itself."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Tuple

import click

from tenax import __version__
from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, name_filter, named, pass_access
from tenax.cli.console.servers import ServerGroup, become
from tenax.cli.local.up import directory_option, state_of
from tenax.local.requirements import refuse_without_servers
from tenax.local.supervise.python import refuse_old_python

if TYPE_CHECKING:
    from tenax.client.cluster import MasterInfo

#: Of the master's log, from the quietest to the loudest.
LEVELS = ("debug", "info", "warning", "error", "critical")


_COLUMNS: output.Columns[MasterInfo] = (
    (TableColumn("ADDRESS"), lambda each: each.address),
    (TableColumn("MACHINE"), lambda each: each.machine),
    (TableColumn("VERSION"), lambda each: each.version),
    (TableColumn("STARTED"), lambda each: output.moment(each.started)),
    (TableColumn("ROLES", spare=True), lambda each: ", ".join(each.roles)),
    (TableColumn("SETTINGS", wraps=True), lambda each: _settings_of(each)),
    (TableColumn("LOOPS", wraps=True), lambda each: ", ".join(each.loops)),
)


def _settings_of(master: MasterInfo) -> str:
    if master.answers:
        return "(this one answers)"
    return f"other {', '.join(master.other_settings)}" if master.other_settings else "the same"


@click.group(
    cls=ServerGroup,
    module="tenax.master",
    help="Show the master; with options of the server, run a master in the foreground (`tenax up` runs one for you): "
    "tenax master --config FILE",
)
def group() -> None:
    pass


@group.command()
@json_option
@pass_access
def info(access: Access, as_json: bool) -> None:
    """Show which master answers, its version and its cluster."""
    from tenax.client.connection.reading import text

    answer = access.session().get("/api/v1/master")
    rows = [
        ("address", access.session().answering),
        ("version", text(answer, "tenaxVersion") or text(answer, "version")),
        ("compatible with", f"Determined {text(answer, 'version')}"),
        ("cluster", text(answer, "clusterName")),
        ("cluster id", text(answer, "clusterId")),
        ("master id", text(answer, "masterId")),
    ]
    output.details(rows, answer, as_json)


@group.command("list")
@name_filter
@click.option("--differing", is_flag=True, help="Only those with other settings than the one that answers.")
@list_options
@pass_access
def list_(access: Access, part: str, differing: bool, as_json: bool, as_csv: bool) -> None:
    """List the masters of the cluster that are there, and which settings of theirs differ."""
    from tenax.client.cluster import masters

    present = named(part, masters(access.session()), lambda each: f"{each.machine} {each.address}")
    listed = [each for each in present if each.other_settings or not differing]
    output.records(_COLUMNS, listed, as_json, as_csv)
    if any(each.other_settings for each in listed):
        output.warn(
            "Masters differ in settings that they must agree on. Loops go by those of the master that runs them, "
            "requests by those of the one that takes them: make their files the same, and restart them (for pools "
            "`tenax master config reload` at each will do)."
        )


@click.group(
    "config",
    cls=LazyGroup,
    invoke_without_command=True,
    help="Show the master's settings, read them again, and change its log level.",
)
@click.pass_context
def config(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        context.invoke(show, as_json=False)


@config.command()
@json_option
@pass_access
def show(access: Access, as_json: bool) -> None:
    """Show the settings of the master that answers, without secrets."""
    from tenax.client.cluster import master_config

    settings = master_config(access.session())
    if as_json:
        output.document(settings)
        return
    from tenax.cli.console import yaml12

    print(yaml12.dump(settings), end="")


@config.command("set")
@click.option("--log-level", "--log.level", "level", type=click.Choice(LEVELS, case_sensitive=False))
@click.option("--log-color", "--log.color", "color", type=click.Choice(["on", "off"]))
@pass_access
def set_(access: Access, level: Optional[str], color: Optional[str]) -> None:
    """Change the level and colour of the master's log until it restarts; its configuration file sets the rest."""
    from tenax.client.cluster import set_master_log

    if level is None and color is None:
        raise click.UsageError("Give at least one change: --log-level or --log-color.")
    set_master_log(access.session(), level=level, color=None if color is None else color == "on")
    print("The master's log settings are changed")
    output.say("This lasts until the master restarts; its configuration file is unchanged.")


@config.command("reload")
@json_option
@pass_access
def reload_(access: Access, as_json: bool) -> None:
    """Let the master that answers read its settings again: what it says of pools holds at once.

    Pools and their schedulers, the default pools and `task_container_defaults` change; the rest waits for a restart.
    """
    from tenax.client.cluster import reload_master_config

    done = reload_master_config(access.session())
    if as_json:
        output.document({"changed": [*done.changed], "left": [*done.left]})
        return
    print(f"Changed: {', '.join(done.changed)}" if done.changed else "Nothing has changed")
    if done.left:
        output.warn(f"These change when the master is restarted: {', '.join(done.left)}")


@group.command()
@click.option("-f", "--follow", is_flag=True, help="Follow the log.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last N lines.")
@click.option("--level", type=click.Choice(LEVELS, case_sensitive=False), help="Only lines of this level or above.")
@click.option("--json", "as_json", is_flag=True, help="Print each line as a JSON object.")
@pass_access
def logs(access: Access, follow: bool, tail: Optional[int], level: Optional[str], as_json: bool) -> None:
    """Print the newest lines of the log of the master that answers."""
    from tenax.client.cluster import master_logs

    least = 0 if level is None else LEVELS.index(level.lower())
    for line in master_logs(access.session(), tail=tail, follow=follow):
        severity = line.level.lower()
        if severity in LEVELS[:least]:
            continue
        if as_json:
            at = None if line.time is None else line.time.isoformat()
            record = {"id": line.id, "time": at, "level": severity, "message": line.message}
            print(json.dumps(record, ensure_ascii=False), flush=follow)
        else:
            print(f"{output.moment(line.time)} [{severity}] {line.message}", flush=follow)


@group.command("monitoring")
@click.argument("directory", type=click.Path(file_okay=False))
@click.option("--also", metavar="URL", multiple=True, help="Another master of the cluster; may be repeated.")
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False),
    help="What to check the masters' certificate by (PEM); that of this command where it is not given.",
)
@click.option("--alertmanager", metavar="HOST:PORT", default="", help="Who is told of alerts.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@pass_access
def monitoring_(
    access: Access, directory: str, also: Tuple[str, ...], certificate: Optional[str], alertmanager: str, force: bool
) -> None:
    """Write into DIRECTORY what Prometheus and Grafana need to watch this cluster.

    That is a configuration of Prometheus, rules for its alerts, and a dashboard to import into Grafana.
    """
    from tenax.cli.master import monitoring

    session = access.session()
    checked = certificate or (session.certificate if session.url.startswith("https://") else "")
    checked = os.path.abspath(checked) if checked and checked != "noverify" else ""
    for path in monitoring.write(directory, [*session.urls, *also], checked, alertmanager, force=force):
        print(path)
    token = shlex.quote(os.path.join(directory, monitoring.TOKEN))
    configuration = shlex.quote(os.path.join(directory, monitoring.CONFIGURATION))
    output.say("Prometheus logs in with a token, of a user that needs no rights:")
    output.say("  tenax user create prometheus --remote")
    output.say(f"  (umask 077; tenax token create prometheus -e -1 > {token})")
    output.say(f"  prometheus --config.file {configuration}")


@group.command()
@click.argument("target", type=click.Path(dir_okay=False))
@directory_option
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings file of the master that is invited from, where `tenax up` does not run it.",
)
def invite(target: str, directory: Optional[Path], config: Optional[Path]) -> None:
    """Write into the new file TARGET what another master of this cluster needs.

    Call it where the first one runs. The file has the database's password and the key of the certificate: carry it to
    the other machine on a way that nobody else reads, join there, and remove it.
    """
    refuse_old_python()
    refuse_without_servers()
    from tenax.cli.master import joining

    path = Path(target).expanduser().absolute()
    invitation = joining.invite(joining.settings_of(state_of(directory), config))
    joining.write(invitation, path)
    print(path)
    if joining.serves_one_machine(invitation):
        output.say("It is for your eyes alone. Its database can be reached on this machine alone; here:")
        output.say(f"  tenax master join {shlex.quote(str(path))} --port 0")
    else:
        output.say("It is for your eyes alone. On the other machine, with the same release installed:")
        output.say(f"  tenax master join {path.name} --host 0.0.0.0")


@group.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    help="New directory of this master (default: ~/.local/state/tenax/master).",
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on (127.0.0.1: this machine alone).")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Port to listen on (that of the first; 0: any free one).",
)
@click.option("--no-start", is_flag=True, help="Only write its settings.")
def join(file: Path, directory: Optional[Path], host: Optional[str], port: Optional[int], no_start: bool) -> None:
    """Run another master of a cluster in the foreground, from an invitation of `tenax master invite`.

    Its settings are written into its directory, from where it is started again; the invitation is not needed any more.
    """
    refuse_old_python()
    refuse_without_servers()
    from tenax.cli.master import joining

    place = directory.expanduser().absolute() if directory is not None else joining.usual_directory()
    settings = joining.join(joining.read(file), place, host, port)
    output.say(f"From now on this master is started with: tenax master --config {shlex.quote(str(settings))}")
    output.say(f"The invitation is not needed any more: rm {shlex.quote(str(file))}")
    if not no_start:
        for name in [name for name in os.environ if name.startswith("TENAX_MASTER_")]:
            # What was checked is what the invitation has: another database would become another cluster.
            del os.environ[name]
        become("tenax.master", ["--config", str(settings)])


@click.group("message", cls=LazyGroup, help="Manage the message that everyone who uses the cluster sees.")
def message() -> None:
    pass


@message.command("get")
@json_option
@pass_access
def get_message(access: Access, as_json: bool) -> None:
    """Show the message, including one that is not shown yet."""
    from tenax.client.cluster import cluster_message
    from tenax.client.connection import reading

    message = cluster_message(access.session())
    if as_json:
        output.document(message)
    elif message is None:
        output.say("There is no message.")
    else:
        start, end = reading.moment(message, "startTime"), reading.moment(message, "endTime")
        until = output.moment(end) or "it is cleared"
        output.pairs([("message", reading.text(message, "message")), ("from", output.moment(start)), ("until", until)])


@message.command("set")
@click.argument("text")
@click.option("-s", "--start", metavar="TIME", help="When it begins (RFC 3339; default: now).")
@click.option("-e", "--end", metavar="TIME", help="When it ends (RFC 3339; default: when it is cleared).")
@click.option("-d", "--duration", help="How long it lasts: 30m, 24h, 2w.")
@pass_access
def set_message(access: Access, text: str, start: Optional[str], end: Optional[str], duration: Optional[str]) -> None:
    """Show TEXT to everyone; it replaces the message before."""
    from tenax.client.cluster import set_cluster_message

    set_cluster_message(access.session(), text, start=start, end=end, duration=duration)
    print("The message is set")


@message.command("clear")
@pass_access
def clear_message(access: Access) -> None:
    """Clear the message."""
    from tenax.client.cluster import clear_cluster_message

    clear_cluster_message(access.session())
    print("The message is cleared")


@group.command("cleanup-logs")
@pass_access
def cleanup_logs(access: Access) -> None:
    """Delete expired logs now, without waiting for the schedule."""
    from tenax.client.cluster import cleanup_logs as clean

    print(f"{clean(access.session())} lines deleted")


group.add_command(config)
group.add_command(message)
group.alias("message", "cluster-message")


@click.command()
@json_option
@pass_access
def version(access: Access, as_json: bool) -> None:
    """Show the versions of this client and of the master."""
    from tenax.client.connection.address import Unreachable
    from tenax.client.connection.reading import text
    from tenax.client.connection.session import Session

    session = Session(access.master, retry_for_s=0.0)
    try:
        answer = session.get_anonymously("/info")
    except Unreachable:
        answer = {}
    master = text(answer, "tenax_version")
    if as_json:
        output.document({"client": __version__, "master": master or None, "url": session.url})
        return
    output.pairs([("client", __version__), ("master", master or f"(none answers at {session.url})")])
