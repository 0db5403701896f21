"""``tenax experiment plot`` and ``tenax trial metrics``: learning curves, in the terminal and in a file."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, TextIO, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of

if TYPE_CHECKING:
    from tenax.cli.console.plots.curves import Panel
    from tenax.client.connection.session import Session
    from tenax.client.experiments import Experiment
    from tenax.client.trials import Report, Trial
    from tenax.jsonvalue import JsonObject

#: Points of a curve: more than any terminal has dots, and about as many as a picture has columns.
_POINTS = 2000
#: Of the table of a list.
_SPARK_POINTS = 60
#: As many trials as a list asks for at once.
_SPARKS = 200
#: Metrics that are drawn when none is named.
_PANELS = 6
#: Rows of a plot, alone and below others.
_HIGH, _LOW = 18, 9
#: A single one has at least so many rows; so many lines of the terminal are left to a line below and the prompt, or to
#: what led to it where the legend is short.
_LEAST, _BELOW, _MARGIN = 6, 2, 10
_SUFFIXES = (".png", ".svg")

_METRICS = click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="This metric; may be given several times."
)
_LOG = click.option("--log", is_flag=True, help="A logarithmic scale for the values.")


@click.command("plot", cls=StrictCommand)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@_METRICS
@click.option("--group", "group", metavar="NAME", help="Of these reports (default: validation, if it has the metric).")
@click.option(
    "--best", type=click.IntRange(1, 50), default=5, show_default=True, metavar="N", help="The best N trials."
)
@click.option(
    "--trial", "trials", type=int, multiple=True, metavar="ID", help="This trial; may be given several times."
)
@_LOG
@click.option(
    "--save", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write a .png or .svg file instead."
)
@pass_access
def plot(
    access: Access,
    number: int,
    metrics: Tuple[str, ...],
    group: Optional[str],
    best: int,
    trials: Tuple[int, ...],
    log: bool,
    file: Optional[Path],
) -> None:
    """Draw the learning curves of the best trials of an experiment: of the searcher's metric, or of others."""
    from tenax.cli.experiment.view import best_first, share
    from tenax.client.trials import groups_with, names_of_experiment

    if file is not None:
        check_picture(file)
    experiment = experiment_of(access, number)
    every = experiment.trials()
    unknown = set(trials) - {trial.id for trial in every}
    if unknown:
        raise click.UsageError(
            f"Experiment {number} has no trial {min(unknown)}: tenax experiment list-trials {number}"
        )
    chosen = [trial for trial in every if trial.id in trials] or best_first(experiment, every)[:best]
    names = tuple(dict.fromkeys(metrics or (experiment.metric,)))
    groups = dict.fromkeys(names, group) if group else groups_with(names_of_experiment(access.session(), number), names)
    panels = [panel_of(access.session(), chosen, name, of, log) for name, of in groups.items()]
    if file is not None:
        save_picture(file, f"Experiment {number}  {experiment.name}", panels)
        print(file)
        return
    show(panels, sys.stdout)
    if not trials and len(every) > len(chosen):
        output.say(f"{share(experiment, chosen, len(every))}: --best N shows more, --trial ID others.")


@click.command("metrics", cls=StrictCommand)
@click.argument("numbers", metavar="TRIAL...", type=int, nargs=-1, required=True)
@_METRICS
@click.option("--group", "kind", metavar="NAME", help="Which reports: training, validation, ... (default: validation).")
@_LOG
@click.option(
    "--plot/--table", "plotted", default=None, help="Curves, or a table step by step (default off a terminal)."
)
@list_options
@pass_access
def trial_metrics(
    access: Access,
    numbers: Tuple[int, ...],
    metrics: Tuple[str, ...],
    kind: Optional[str],
    log: bool,
    plotted: Optional[bool],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show the metrics that trials reported: as curves on a terminal, step by step elsewhere."""
    from tenax.client.trials import get_trial

    if plotted and (as_json or as_csv):
        raise click.UsageError("--plot cannot be combined with --json or --csv.")
    trials = [get_trial(access.session(), number) for number in dict.fromkeys(numbers)]
    wants_curves = sys.stdout.isatty() if plotted is None else plotted
    if wants_curves and not as_json and not as_csv:
        _plot_trials(access.session(), trials, metrics, kind, log)
    else:
        _list_reports(trials, metrics, kind or "validation", as_json, as_csv)


def panel_of(session: Session, trials: Sequence[Trial], metric: str, group: str, log: bool = False) -> Panel:
    """One metric of several trials."""
    from tenax.cli.console.plots.curves import Curve, Panel
    from tenax.cli.experiment.view import searched
    from tenax.client.trials import series_of

    points = series_of(session, [trial.id for trial in trials], metric, group, _POINTS)
    names = searched(trials) if len(trials) > 1 else []
    curves = []
    for trial in trials:
        values = output.assignments({name: trial.hparams[name] for name in names if name in trial.hparams})
        series = points.get(trial.id, [])
        name = f"trial {trial.id} {values}".rstrip()
        curves.append(Curve(name, [point.steps for point in series], [point.value for point in series]))
    shown = [curve for curve in curves if curve.values] or curves[:1]
    return Panel(metric if group == "validation" else f"{group} {metric}", shown, log)


def show(panels: Sequence[Panel], stream: TextIO, height: Optional[int] = None) -> None:
    """Print panels below one another."""
    for line in drawn(panels, stream, height):
        click.echo(line, file=stream)


def drawn(panels: Sequence[Panel], stream: TextIO, height: Optional[int] = None) -> List[str]:
    """The lines of panels, as wide as the terminal; an empty line between two. One alone is never higher than it."""
    from tenax.cli.console.plots.terminal import draw

    room = shutil.get_terminal_size()
    rows = height or (_LOW if len(panels) > 1 else _HIGH)
    if height is None and len(panels) == 1:
        beside = len(draw(panels[0], room.columns, _LEAST)) - _LEAST + _BELOW
        rows = min(_HIGH, max(_LEAST, room.lines - max(beside, _MARGIN)))
    lines: List[str] = []
    for panel in panels:
        lines += [""] if lines else []
        lines += draw(panel, room.columns, rows, braille=shows_braille(stream))
    return lines


def shows_braille(stream: TextIO) -> bool:
    """Whether a stream can show more than ASCII."""
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"


def sparklines(experiment: Experiment, trials: Sequence[Trial]) -> Dict[int, str]:
    """The curve of the searcher's metric of each trial, for a cell of a table; none where it cannot be shown or had."""
    from tenax.cli.console.plots.sparkline import sparkline
    from tenax.client.trials import series_of
    from tenax.errors import TenaxError

    if not trials or not shows_braille(sys.stdout):
        return {}
    numbers = [trial.id for trial in trials if trial.latest_validation is not None][:_SPARKS]
    try:
        series = series_of(experiment.session, numbers, experiment.metric, "validation", _SPARK_POINTS)
    except TenaxError:
        # A list does not fail for its ornament.
        return {}
    return {number: sparkline([point.value for point in points]) for number, points in series.items()}


def check_picture(file: Path) -> None:
    """Raises UsageError for a file that is no picture by its name."""
    if file.suffix.lower() not in _SUFFIXES:
        raise click.UsageError(f"--save writes {' and '.join(_SUFFIXES)}: {file} ends in neither.")


def save_picture(file: Path, title: str, panels: Sequence[Panel]) -> None:
    """Write panels as a picture; its kind is that of the file's name."""
    from tenax.cli.console.plots.picture import lay_out

    picture = lay_out(title, panels)
    if file.suffix.lower() == ".png":
        from tenax.cli.console.plots.png import png

        file.write_bytes(png(picture))
    else:
        from tenax.cli.console.plots.svg import svg

        file.write_text(svg(picture), encoding="utf-8")


def _plot_trials(
    session: Session, trials: Sequence[Trial], metrics: Tuple[str, ...], kind: Optional[str], log: bool
) -> None:
    from tenax.client.trials import groups_with

    names = _names_of(trials)
    shown = kind or next((group for group in ("validation", "training") if names.get(group)), None)
    chosen = metrics or tuple(names.get(shown or "", ()))
    if not chosen:
        output.say(f"{_trials(trials)} reported no {kind or 'validation'} metrics yet.")
        return
    drawn_here = chosen[:_PANELS]
    chosen_group = kind or ("" if metrics else shown)
    where = dict.fromkeys(drawn_here, chosen_group) if chosen_group else groups_with(names, drawn_here)
    show([panel_of(session, trials, name, group, log) for name, group in where.items()], sys.stdout)
    if len(chosen) > len(where):
        output.say(f"Not drawn: {', '.join(chosen[_PANELS:])}. --metric NAME draws one, --table prints all.")


def _list_reports(trials: Sequence[Trial], metrics: Tuple[str, ...], kind: str, as_json: bool, as_csv: bool) -> None:
    reports = [report for trial in trials for report in trial.metrics(kind)]
    if not reports and not as_json and not as_csv:
        output.say(f"{_trials(trials)} reported no {kind} metrics yet.")
        return
    if reports:
        _refuse_unreported(trials, reports, metrics, kind)
    # Always the same order: reports name their metrics in any.
    names = list(metrics) or sorted({name for report in reports for name in report.metrics})
    columns = [output.TableColumn("STEP", right=True), *(output.TableColumn(name, right=True) for name in names)]
    rows = [_row(report, names) for report in reports]
    if len(trials) > 1:
        columns.insert(0, output.TableColumn("TRIAL", right=True))
        rows = [[str(report.trial_id), *row] for report, row in zip(reports, rows)]
    output.listing(columns, rows, [_document(report) for report in reports], as_json, as_csv)


def _refuse_unreported(trials: Sequence[Trial], reports: Sequence[Report], metrics: Sequence[str], kind: str) -> None:
    """Raises NotFound for a metric that none of these reports has, with where it is, or with names like it."""
    from tenax.client.trials import group_with
    from tenax.errors import NotFound

    known = sorted({name for report in reports for name in report.metrics})
    for metric in metrics:
        if metric in known:
            continue
        where = group_with({kind: known, **_names_of(trials)}, metric)
        raise NotFound(f"No {kind} metric {metric!r} was reported; it is among the {where} metrics: --group {where}.")


def _names_of(trials: Sequence[Trial]) -> Dict[str, List[str]]:
    """Group -> the metrics in which these trials reported numbers."""
    from tenax.client.trials import names_of_trial

    names: Dict[str, List[str]] = {}
    for trial in trials:
        for group, of in names_of_trial(trial.session, trial.id).items():
            names[group] = sorted({*names.get(group, []), *of})
    return names


def _document(report: Report) -> JsonObject:
    return {
        "trialId": report.trial_id,
        "steps": report.steps,
        "group": report.group,
        "runId": report.run_id,
        "metrics": report.metrics,
    }


def _row(report: Report, names: List[str]) -> List[str]:
    from tenax.client.connection.reading import real

    cells = []
    for name in names:
        value = report.metrics.get(name)
        number = real(value)
        cells.append(output.number(number) if number is not None else "" if value is None else output.short(value))
    return [str(report.steps), *cells]


def _trials(trials: Sequence[Trial]) -> str:
    return (
        f"Trial {trials[0].id} has"
        if len(trials) == 1
        else f"Trials {', '.join(str(trial.id) for trial in trials)} have"
    )
