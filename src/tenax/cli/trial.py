"""``tenax trial``: one sample of hyperparameters, its metrics, output and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional

import click

from tenax.cli import exits, output
from tenax.cli.access import Access, json_option, pass_access
from tenax.cli.lazy import Group
from tenax.jsonvalue import Json

if TYPE_CHECKING:
    from tenax.client.trials import LogLine, Report, Trial

#: By level of a line.
_COLORS = {"ERROR": "red", "CRITICAL": "red", "WARNING": "yellow", "DEBUG": "bright_black", "TRACE": "bright_black"}


@click.group(cls=Group, help="Look at trials: metrics, logs, checkpoints.")
def group() -> None:
    pass


@group.command()
@click.argument("number", metavar="TRIAL", type=int)
@json_option
@pass_access
def describe(access: Access, number: int, as_json: bool) -> None:
    """Show a trial and its checkpoints."""
    from tenax.client.trials import get_trial

    trial = get_trial(access.session(), number)
    checkpoints = trial.checkpoints()
    if as_json:
        output.document({"trial": trial.raw, "checkpoints": [checkpoint.raw for checkpoint in checkpoints]})
        return
    output.pairs([row for row in _rows(trial) if row[1]])
    if checkpoints:
        from tenax.cli.checkpoint import show_list

        click.echo()
        show_list(checkpoints, "METRIC", False)


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
        ("took", output.between(trial.started, trial.ended)),
    ]


@group.command()
@click.argument("number", metavar="TRIAL", type=int)
@click.option("-f", "--follow", is_flag=True, help="Go on until the trial has ended.")
@click.option("--head", type=click.IntRange(1), metavar="N", help="Only the first so many lines.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last so many lines.")
@click.option("--search", default="", help="Only lines that hold this text.")
@json_option
@pass_access
def logs(
    access: Access, number: int, follow: bool, head: Optional[int], tail: Optional[int], search: str, as_json: bool
) -> int:
    """Print the output of a trial."""
    from tenax.client.trials import get_trial

    if (head is not None) + (tail is not None) + follow > 1:
        raise click.UsageError("--follow, --head and --tail exclude each other.")
    return print_logs(get_trial(access.session(), number), follow, head, tail, search, as_json)


def print_logs(trial: Trial, follow: bool, head: Optional[int], tail: Optional[int], search: str, as_json: bool) -> int:
    """Print the output of a trial; the exit code."""
    import json

    try:
        for line in trial.logs(follow=follow, head=head, tail=tail, search=search):
            if as_json:
                print(json.dumps(_line_document(line), ensure_ascii=False), flush=follow)
            else:
                show_line(line)
    except KeyboardInterrupt:
        output.say(f"\nDetached: trial {trial.id} goes on. Its end: tenax trial describe {trial.id}")
        return exits.INTERRUPTED
    return exits.OK


def show_line(line: LogLine) -> None:
    """Print a line of output in the colour of its level."""
    click.echo(click.style(line.message, fg=_COLORS.get(line.level)))


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
@click.option(
    "--group", "kind", default="validation", show_default=True, help="Which reports: training, validation, ..."
)
@json_option
@pass_access
def metrics(access: Access, number: int, kind: str, as_json: bool) -> None:
    """Print the metrics that a trial reported, step by step."""
    from tenax.client.trials import get_trial

    reports = list(get_trial(access.session(), number).metrics(kind))
    if as_json:
        output.document(
            [{"steps": one.steps, "group": one.group, "runId": one.run_id, "metrics": one.metrics} for one in reports]
        )
        return
    if not reports:
        output.say(f"Trial {number} has reported no {kind} metrics yet.")
        return
    names: Dict[str, None] = {name: None for one in reports for name in one.metrics}
    columns = [output.Column("STEP", right=True), *(output.Column(name, right=True) for name in names)]
    output.table(columns, [_metrics_row(one, list(names)) for one in reports])


def _metrics_row(report: Report, names: List[str]) -> List[str]:
    from tenax.client.reading import real

    cells = []
    for name in names:
        value = report.metrics.get(name)
        number = real(value)
        cells.append(output.number(number) if number is not None else "" if value is None else output.short(value))
    return [str(report.steps), *cells]


@group.command()
@click.argument("number", metavar="TRIAL", type=int)
@pass_access
def kill(access: Access, number: int) -> None:
    """End a trial at once; the search goes on without it."""
    from tenax.client.trials import get_trial

    get_trial(access.session(), number).kill()
    print(f"Trial {number} is ended")
