"""``tenax trial``: one sample of hyperparameters, its metrics, output and checkpoints."""

from __future__ import annotations

import datetime
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Tuple, Union

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import LazyCommand, LazyGroup
from tenax.cli.console.log_options import log_options
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of
from tenax.jsonvalue import Json, JsonObject
from tenax.wire.task_names import RUN_BEGINS

if TYPE_CHECKING:
    from tarfile import TarFile

    from tenax.client.connection.session import Session
    from tenax.client.trials import LogFilter, LogLine, Trial

#: By level of a line.
_COLORS = {"ERROR": "red", "CRITICAL": "red", "WARNING": "yellow", "DEBUG": "bright_black", "TRACE": "bright_black"}


#: In a file of its own.
_ENTRIES = {
    "metrics": LazyCommand(
        "tenax.cli.experiment.curves:trial_metrics", "Show the metrics that trials reported, as curves or step by step."
    ),
}


@click.group(cls=LazyGroup, entries=_ENTRIES, help="Show trials: metrics, logs, checkpoints.")
def group() -> None:
    pass


@group.command()
@click.argument("number", metavar="TRIAL", type=int)
@json_option
@pass_access
def describe(access: Access, number: int, as_json: bool) -> None:
    """Show a trial and its checkpoints."""
    trial = _trial(access, number)
    checkpoints = trial.checkpoints()
    health = trial.health()
    there = [checkpoint for checkpoint in checkpoints if checkpoint.state != "DELETED"]
    if as_json:
        output.document(
            {"trial": trial.raw, "health": health, "checkpoints": [checkpoint.raw for checkpoint in checkpoints]}
        )
        return
    output.pairs([row for row in (*_rows(trial), *_findings(health)) if row[1]])
    if there:
        from tenax.cli.checkpoint import show_list

        click.echo()
        show_list(there, "METRIC", False)


def _findings(health: JsonObject) -> List[tuple[str, str]]:
    """The sentence that the page shows first, and what else holds."""
    from tenax.client.connection import reading

    sentences = [reading.text(finding, "sentence") for finding in reading.records(health, "findings")]
    return [("health", "\n".join(sentences))]


def _rows(trial: Trial) -> List[tuple[str, str]]:
    rows = [
        ("trial", str(trial.id)),
        ("experiment", str(trial.experiment_id)),
        ("state", output.state(trial.state)),
        ("why", trial.reason),
        ("steps", str(trial.steps)),
        ("restarts", str(trial.restarts)),
        ("hyperparameters", "\n".join(f"{name}: {output.short(value)}" for name, value in trial.hparams.items())),
    ]
    for name, validation in (("best", trial.best_validation), ("latest", trial.latest_validation)):
        if validation is not None:
            shown = output.assignments(dict(validation.metrics))
            rows.append((f"{name} validation", f"{shown} at step {validation.steps}"))
    return [
        *rows,
        ("started", output.moment(trial.started)),
        ("ended", output.moment(trial.ended)),
        ("took", output.ran(trial)),
        ("waited", output.waited(trial)),
    ]


@group.command("list")
@click.argument("experiment", type=EXPERIMENT)
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only those in this state.")
@click.option("--best", type=click.IntRange(1), metavar="N", help="Only the best N.")
@list_options
@pass_access
def list_(
    access: Access, experiment: int, states: Tuple[str, ...], best: Optional[int], as_json: bool, as_csv: bool
) -> None:
    """List the trials of an experiment."""
    details = experiment_of(access, experiment)
    requested = {state.upper() for state in states}
    trials = [trial for trial in details.trials() if not requested or trial.state in requested]
    if best is not None:
        sign = 1.0 if details.smaller_is_better else -1.0
        ranked = [trial for trial in trials if trial.searcher_metric is not None]
        trials = sorted(ranked, key=lambda trial: sign * (trial.searcher_metric or 0.0))[:best]
    from tenax.cli.experiment.curves import sparklines
    from tenax.cli.experiment.view import trial_cells

    curves = {} if as_csv or as_json else sparklines(details, trials)
    columns, rows = trial_cells(details.metric, trials, for_programs=as_csv, curves=curves)
    output.listing(columns, rows, [trial.raw for trial in trials], as_json, as_csv)


@group.command()
@click.argument("number", metavar="TRIAL", type=int)
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the trial has ended.")
@click.option("--head", type=click.IntRange(1), metavar="N", help="Only the first N lines.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N lines.")
@log_options
@json_option
@pass_access
def logs(
    access: Access,
    number: int,
    follow: bool,
    head: Optional[int],
    tail: Optional[int],
    as_json: bool,
    where: LogFilter,
) -> int:
    """Print the output of a trial."""
    if head is not None and (follow or tail is not None):
        raise click.UsageError("--head cannot be combined with --follow or --tail.")
    return print_logs(_trial(access, number), follow, head, tail, where, as_json)


def print_logs(
    trial: Trial, follow: bool, head: Optional[int], tail: Optional[int], where: Union[str, LogFilter], as_json: bool
) -> int:
    """Print the output of a trial; the exit code. ``where`` may be a text that the lines hold."""
    from tenax.client.trials import LogFilter

    line_filter = LogFilter(search=where) if isinstance(where, str) else where
    try:
        for line in trial.logs(follow=follow, head=head, tail=tail, where=line_filter):
            if as_json:
                print(json.dumps(_line_document(line), ensure_ascii=False), flush=follow)
            else:
                show_line(line)
    except KeyboardInterrupt:
        output.say(f"\nDetached: trial {trial.id} keeps running. To see how it ends: tenax trial describe {trial.id}")
        return exits.INTERRUPTED
    return exits.OK


def without_configuration(line: LogLine) -> LogLine:
    """The first line of a run without the whole configuration, which the log keeps: it fills a terminal."""
    if RUN_BEGINS not in line.message:
        return line
    return replace(line, message=line.message.partition(": {")[0], log=line.log.partition(": {")[0])


def show_line(line: LogLine) -> None:
    """Print a line of output in the colour of its level: as it is kept, or on a terminal with the time of day alone."""
    if sys.stdout.isatty():
        line = without_configuration(line)
    shown = line.message
    if sys.stdout.isatty() and line.time is not None and line.log:
        rank = f"[rank={line.rank}] " if line.rank else ""
        shown = f"{line.time.astimezone():%H:%M:%S} {rank}{line.log}"
    click.echo(click.style(shown, fg=_COLORS.get(line.level)))


def _line_document(line: LogLine) -> Json:
    return {
        "id": line.id,
        "timestamp": line.time.isoformat() if line.time is not None else None,
        "level": line.level,
        "rank": line.rank,
        "log": line.log,
        "message": line.message,
    }


@group.command()
@click.argument("number", metavar="TRIAL", type=int)
@pass_access
def kill(access: Access, number: int) -> None:
    """End a trial at once; the search goes on without it."""
    trial = _trial(access, number)
    trial.kill()
    print(f"Trial {number} {f'had ended: {trial.state}' if trial.has_ended else 'is being ended'}")


@group.command()
@click.argument("number", metavar="TRIAL", type=int)
@click.option("--latest", is_flag=True, help="The checkpoint with the most steps (default: the best one).")
@click.option("--uuid", metavar="UUID", help="This checkpoint of the trial.")
@click.option("-o", "--output-dir", "target", type=click.Path(path_type=Path), help="A new directory.")
@pass_access
def download(access: Access, number: int, latest: bool, uuid: Optional[str], target: Optional[Path]) -> None:
    """Download a checkpoint of a trial: the best, the latest, or one by its UUID."""
    if latest and uuid:
        raise click.UsageError("--latest and --uuid cannot be combined.")
    trial = _trial(access, number)
    with_files = [checkpoint for checkpoint in trial.checkpoints() if checkpoint.has_files]
    best = uuid or trial.best_checkpoint_uuid
    chosen = with_files if latest or not best else [saved for saved in with_files if saved.uuid.startswith(best)]
    if uuid and len(chosen) > 1:
        raise click.UsageError(f"{uuid} may be any of {len(chosen)} checkpoints of trial {number}: give more of it.")
    if not chosen:
        raise click.UsageError(
            f"Trial {number} has no checkpoint {uuid or 'with files'}: tenax trial describe {number}"
        )
    print(max(chosen, key=lambda checkpoint: checkpoint.steps).download(target))


@group.group("set", cls=LazyGroup, help="Change the settings of a trial.")
def set_() -> None:
    pass


@set_.command("log-retention")
@click.argument("number", metavar="TRIAL", type=int)
@click.option("--days", type=click.IntRange(-1, 32767), metavar="N", help="Keep its log for N days after its end.")
@click.option("--forever", is_flag=True, help="Never delete its log.")
@pass_access
def log_retention(access: Access, number: int, days: Optional[int], forever: bool) -> None:
    """Set how long the log of a trial is kept."""
    if forever == (days is not None):
        raise click.UsageError("Give either --days N or --forever.")
    _trial(access, number).keep_logs(-1 if days is None else days)
    print(f"The log of trial {number} is kept {'forever' if days in (None, -1) else f'{days} days after its end'}")


@group.command("support-bundle")
@click.argument("number", metavar="TRIAL", type=int)
@click.option(
    "-o",
    "--output-dir",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the archive goes (default: the directory for temporary files).",
)
@pass_access
def support_bundle(access: Access, number: int, directory: Optional[Path]) -> None:
    """Collect what is needed to diagnose a trial in one archive: logs, metrics and configuration.

    It is not written here: this may be the directory of the code, which goes to the cluster with all that is in it.
    """
    import tempfile

    # A directory of its own: what is in it is for nobody else on this machine.
    print(_write_bundle(access.session(), number, directory or Path(tempfile.mkdtemp(prefix="tenax-bundle-"))))


def _write_bundle(session: Session, number: int, directory: Path) -> Path:
    """Write the archive of trial ``number`` into a directory; where it is. Raises NotFound.

    What the caller may not see is not in it; a note says what is missing, and why.
    """
    import tarfile

    from tenax.client.cluster import master_logs
    from tenax.client.experiments import get_experiment
    from tenax.client.trials import get_trial
    from tenax.errors import TenaxError

    trial = get_trial(session, number)
    name = f"tenax-bundle-trial-{number}-{datetime.datetime.now():%Y%m%dT%H%M%S}"
    target = directory / f"{name}.tar.gz"
    parts: Dict[str, Callable[[], str]] = {
        "trial.json": lambda: _json(trial.raw),
        "experiment.json": lambda: _json(get_experiment(session, trial.experiment_id).raw),
        "workloads.json": lambda: _json(list(trial.workloads())),
        "trial_logs.txt": lambda: "".join(f"{line.message}\n" for line in trial.logs()),
        "master_logs.txt": lambda: "".join(
            f"{line.time.isoformat() if line.time else ''} {line.level} {line.message}\n"
            for line in master_logs(session)
        ),
    }
    missing = []
    with tarfile.open(target, "w:gz") as archive:
        for part, make in parts.items():
            try:
                _add(archive, f"{name}/{part}", make())
            except TenaxError as error:
                missing.append(f"{part}: {error}\n")
        if missing:
            _add(archive, f"{name}/missing.txt", "".join(missing))
    return target


def _add(archive: TarFile, path: str, text: str) -> None:
    from tarfile import TarInfo

    data = text.encode("utf-8", "replace")
    entry = TarInfo(path)
    entry.size = len(data)
    entry.mtime = int(datetime.datetime.now().timestamp())
    archive.addfile(entry, io.BytesIO(data))


def _json(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _trial(access: Access, number: int) -> Trial:
    from tenax.client.trials import get_trial

    return get_trial(access.session(), number)
