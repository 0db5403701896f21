"""``tenax local``: runs by hand on this machine: listed, compared, gone on with, removed."""

from __future__ import annotations

import datetime
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.cli.console.overrides import laid_over
from tenax.cli.local_runs.track import program_of, short_id, track_run
from tenax.errors import InvalidInput, NotNow

if TYPE_CHECKING:
    from tenax.cli.console.plots.curves import Panel
    from tenax.core.local_runs.files import LocalRun
    from tenax.core.local_runs.reading import RunStory
    from tenax.jsonvalue import Json, JsonObject

#: Metrics that are drawn when none is named.
_PANELS = 6
#: What a run says that all runs of its trial say.
_OF_THE_TRIAL = (
    *("name", "description", "labels", "data", "project", "experimentKey", "metric", "smallerIsBetter"),
    "cwd",
)


@click.group("local", cls=LazyGroup, help="Runs by hand on this machine: list, compare, resume, remove.")
def group() -> None:
    pass


@group.command("list")
@click.option("--last", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Only the newest N.")
@list_options
def list_(last: int, as_json: bool, as_csv: bool) -> None:
    """List the runs of scripts that no cluster started, the newest first."""
    from tenax.core.local_runs.files import local_runs, runs_directory
    from tenax.core.local_runs.reading import RunStory

    every = local_runs()
    shown = [(run, RunStory(run)) for run in reversed(every[-last:])]
    if not shown and not as_json and not as_csv:
        output.say(f"There is no local run in {runs_directory()}: a script that uses tenax.core makes one.")
        return
    columns = [
        output.TableColumn("ID"),
        output.TableColumn("STARTED", spare=True),
        output.TableColumn("SCRIPT", cuts=True),
        output.TableColumn("STATE", state=True),
        output.TableColumn("STEPS", right=True),
        output.TableColumn("METRIC", cuts=True),
        output.TableColumn("LAST", right=True, spare=True),
        output.TableColumn("BEST", right=True),
        output.TableColumn("CURVE", spare=True),
        output.TableColumn("CHECKPOINTS", right=True, spare=True),
        output.TableColumn("SENT", cuts=True),
    ]
    rows = [_row(run, story, as_csv) for run, story in shown]
    output.listing(columns, rows, [_document(run, story) for run, story in shown], as_json, as_csv)
    if len(every) > len(shown) and not as_json and not as_csv:
        output.say(f"The newest {len(shown)} of {len(every)}: --last N shows more.")


@group.command()
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="This metric; may be given several times.")
@click.option("--group", "kind", metavar="NAME", help="Which reports: training, validation, ... (default: validation).")
@click.option("--log", is_flag=True, help="A logarithmic scale for the values.")
@click.option(
    "--plot/--table", "plotted", default=None, help="Curves, or a table step by step (default off a terminal)."
)
@click.option(
    "--save", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write a .png or .svg file instead."
)
@list_options
def metrics(
    names: Tuple[str, ...],
    metrics: Tuple[str, ...],
    kind: Optional[str],
    log: bool,
    plotted: Optional[bool],
    file: Optional[Path],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Compare the metrics of local runs: as curves on a terminal, step by step elsewhere. RUN is an ID, or last."""
    from tenax.cli.experiment.curves import check_picture, save_picture, show
    from tenax.core.local_runs.reading import RunStory

    if (plotted or file) and (as_json or as_csv):
        raise click.UsageError("--plot and --save cannot be combined with --json or --csv.")
    if file is not None:
        check_picture(file)
    stories = {run: RunStory(run) for run in _runs(names)}
    if file is None and (as_json or as_csv or not (sys.stdout.isatty() if plotted is None else plotted)):
        _table(stories, metrics, kind or "validation", as_json, as_csv)
        return
    panels = _panels(stories, metrics, kind, log)
    if not panels:
        output.say(f"Nothing to draw: {'these runs' if len(stories) > 1 else 'this run'} reported no metrics.")
    elif file is not None:
        save_picture(file, "Local runs " + ", ".join(short_id(run) for run in stories), panels)
        print(file)
    else:
        show(panels, sys.stdout)


@group.command()
@click.argument("name", metavar="RUN")
@click.argument("program", metavar="[-- PROGRAM [ARGUMENT]...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--hparam",
    "hparams",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change this one; may be given several times.",
)
@click.option("--offline", is_flag=True, help="Keep it here; tenax sync sends it later.")
@pass_access
def resume(access: Access, name: str, program: Tuple[str, ...], hparams: Tuple[str, ...], offline: bool) -> int:
    """Start the script of a local run again, from its latest checkpoint and with its hyperparameters.

    The script finds them in context.latest_checkpoint and context.hparams. A run that a cluster has is tracked again,
    and goes on as the same trial. PROGRAM is started instead of what the run was: what was one of several processes
    cannot start the others, and needs it.
    """
    from tenax.core.local_runs.files import commit_of, find_run, new_card, new_run
    from tenax.core.local_runs.reading import RunStory, startable

    run = find_run(name)
    card, story = run.card, RunStory(run)
    cwd = str(card.get("cwd") or "")
    if run.is_alive():
        raise NotNow(f"Local run {short_id(run)} is still running: it can be resumed when it has ended.")
    if not isinstance(card.get("argv"), list) or not os.path.isdir(cwd):
        raise InvalidInput(f"Local run {short_id(run)} does not say how it was started, or {cwd or 'where'} is gone.")
    if not story.kept and not card.get("checkpoint"):
        again = startable(card)
        raise InvalidInput(
            f"Local run {short_id(run)} saved no checkpoint, so there is nothing to go on from."
            + (f" To run it again: {shlex.join(again)}" if again else "")
        )
    argv = program_of(program, cwd) if program else _again(run, card)
    if card.get("commit") and commit_of(cwd) != card.get("commit"):
        output.warn(f"the code in {cwd} is at another commit than the run that is resumed.")
    new = new_card(argv, **_continued(run, card, story, hparams))
    new["commit"] = commit_of(cwd)
    at = f" (step {story.kept[-1].step})" if story.kept else ""
    output.say(f"Going on from checkpoint {new['checkpoint']}{at} of local run {short_id(run)}.")
    return track_run(access, new_run(), new, offline=offline or not run.sent, cwd=cwd)


def _again(run: LocalRun, card: JsonObject) -> List[str]:
    """The arguments that start it once more. Raises InvalidInput, with what to type."""
    from tenax.core.local_runs.reading import startable, why_not_again

    argv, why = startable(card), why_not_again(card)
    if why:
        line = shlex.join(argv) if argv else "PROGRAM [ARGUMENT]..."
        raise InvalidInput(
            f"Local run {short_id(run)} cannot be started again by itself: {why}. "
            f"Say what starts it: tenax local resume {short_id(run)} -- {line}"
        )
    if shutil.which(argv[0], path=os.environ.get("PATH")) is None:
        raise InvalidInput(
            f"{argv[0]}, which local run {short_id(run)} was started with, is gone. "
            f"Say what starts it: tenax local resume {short_id(run)} -- python {shlex.join(argv[1:])}"
        )
    return argv


def _continued(run: LocalRun, card: JsonObject, story: RunStory, hparams: Tuple[str, ...]) -> JsonObject:
    """What the card of a run says that goes on from ``run``. Raises InvalidInput for what is no hyperparameter."""
    given = card.get("hparams")
    before: JsonObject = {**(given if isinstance(given, dict) else {}), **story.hparams}
    return {
        **{key: card.get(key) for key in _OF_THE_TRIAL},
        "hparams": laid_over(before, hparams, "--hparam"),
        "trialKey": card.get("trialKey") or f"local-{run.name}",
        "resumedFrom": run.name,
        "checkpoint": story.kept[-1].uuid if story.kept else card.get("checkpoint"),
    }


@group.command()
@click.argument("names", metavar="RUN...", nargs=-1, required=True)
@click.option("--keep-checkpoints", is_flag=True, help="Leave the files of its checkpoints.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_access
def rm(access: Access, names: Tuple[str, ...], keep_checkpoints: bool, yes: bool) -> None:
    """Remove local runs, with their checkpoints. What a cluster has of them stays there, but for those files.

    The cluster is told that they are gone, and lists them no longer.
    """
    from tenax.core.local_runs.reading import RunStory
    from tenax.core.local_runs.sending import is_sent

    runs = _runs(names)
    alive = [run for run in runs if run.is_alive() or run.is_alive("sending.lock")]
    if alive:
        raise NotNow(f"Local run {short_id(alive[0])} is still running, or being sent: end it first.")
    saved = {run: [] if keep_checkpoints else _checkpoint_directories(run, RunStory(run)) for run in runs}
    count = sum(map(len, saved.values()))
    unsent = [short_id(run) for run in runs if not is_sent(run)]
    if unsent:
        output.say(f"No cluster has all of {', '.join(unsent)}: tenax sync sends them.")
    if not yes:
        what = f"local run {short_id(runs[0])}" if len(runs) == 1 else f"{len(runs)} local runs"
        also = f", with {count} checkpoint{'s' if count > 1 else ''}" if count else ""
        output.confirm(f"Remove {what}{also}?")
    for run in runs:
        sent = run.sent
        for directory in saved[run]:
            shutil.rmtree(directory)
        shutil.rmtree(run.path)
        print(f"Removed local run {short_id(run)}")
        if sent.get("runId") and saved[run]:
            _tell_cluster(access, sent, [os.path.basename(directory) for directory in saved[run]])


def _tell_cluster(access: Access, sent: JsonObject, uuids: List[str]) -> None:
    """Let the cluster that has a run know that the files of these checkpoints are gone; say what it was not told."""
    from tenax.client.checkpoints import files_are_gone
    from tenax.errors import TenaxError

    try:
        session = access.session()
        if session.get_anonymously("/info").get("cluster_id") != sent.get("clusterId"):
            raise NotNow(f"{session.url} is another one")
        files_are_gone(session, uuids)
    except TenaxError as error:
        what = "its checkpoint" if len(uuids) == 1 else f"its {len(uuids)} checkpoints"
        output.warn(f"The cluster at {sent.get('master')} still lists {what}, since it could not be told: {error}")


def _runs(names: Tuple[str, ...]) -> List[LocalRun]:
    from tenax.core.local_runs.files import find_run

    chosen = {run.path: run for run in map(find_run, names)}
    return list(chosen.values())


def _checkpoint_directories(run: LocalRun, story: RunStory) -> List[str]:
    """Those in this user's directory: what a script saved elsewhere is not ours to remove."""
    root = os.path.join(os.path.dirname(os.path.dirname(run.path)), "checkpoints")
    places = [os.path.join(root, os.path.basename(saved.uuid)) for saved in story.checkpoints.values() if saved.uuid]
    return [place for place in places if os.path.isdir(place)]


def _row(run: LocalRun, story: RunStory, as_csv: bool) -> List[str]:
    document = _document(run, story)
    values = [value for _, value in _points(story, "validation", str(document["metric"]))]
    started = document["started"]
    moment = datetime.datetime.fromtimestamp(started).astimezone() if isinstance(started, (int, float)) else None
    return [
        run.name if as_csv else short_id(run),
        output.moment(moment),
        str(document["script"]),
        str(document["state"]),
        str(story.step),
        str(document["metric"] or ""),
        _number(document["last"]),
        _number(document["best"]),
        "" if as_csv else _spark(values),
        str(document["checkpoints"]),
        _sent(run),
    ]


def _document(run: LocalRun, story: RunStory) -> JsonObject:
    from tenax.core.local_runs.reading import state_of
    from tenax.core.local_runs.sending import chosen_metric, is_sent, script_name

    card = run.card
    state, reason = state_of(run)
    metric, smaller = chosen_metric(card, story.names())
    values = [value for _, value in _points(story, "validation", metric) if value is not None]
    first = story.reports[0].at if story.reports else None
    hparams = story.hparams or card.get("hparams")
    return {
        "id": short_id(run),
        "run": run.name,
        "path": run.path,
        "script": script_name(card),
        "argv": card.get("argv"),
        "started": card.get("started", first),
        "ended": card.get("ended") or (None if state == "RUNNING" else story.last_at),
        "state": state,
        "reason": reason,
        "hparams": hparams,
        "steps": story.step,
        "metric": metric if values else None,
        "last": values[-1] if values else None,
        "best": (min if smaller else max)(values) if values else None,
        "checkpoints": len(story.kept),
        "latestCheckpoint": story.kept[-1].uuid if story.kept else None,
        "resumedFrom": card.get("resumedFrom"),
        "commit": card.get("commit"),
        "host": card.get("host"),
        "sent": is_sent(run),
        "master": run.sent.get("master"),
        "trialId": run.sent.get("trialId"),
        "experimentId": run.sent.get("experimentId"),
    }


def _sent(run: LocalRun) -> str:
    sent = run.sent
    if not sent.get("trialId"):
        return "no"
    return f"trial {sent['trialId']}" + ("" if sent.get("done") else " (in part)")


def _points(story: RunStory, group: str, metric: str) -> List[Tuple[int, Optional[float]]]:
    """Step and value, by step; of a step that was reported again, the later one."""
    points: Dict[int, Optional[float]] = {}
    for report in story.reports:
        if report.group == group and metric in report.metrics:
            points[report.step] = _real(report.metrics[metric])
    return sorted(points.items())


def _panels(stories: Dict[LocalRun, RunStory], metrics: Tuple[str, ...], kind: Optional[str], log: bool) -> List[Panel]:
    from tenax.cli.console.plots.curves import Curve, Panel
    from tenax.client.trials import groups_with

    names: Dict[str, List[str]] = {}
    for story in stories.values():
        for group, of in story.names().items():
            names[group] = sorted({*names.get(group, []), *of})
    shown = kind or next((group for group in ("validation", "training") if names.get(group)), "validation")
    chosen = (metrics or tuple(names.get(shown, ())))[:_PANELS]
    panels = []
    for metric, group in (groups_with(names, chosen) if metrics and not kind else dict.fromkeys(chosen, shown)).items():
        curves = []
        for run, story in stories.items():
            points = _points(story, group, metric)
            title = f"{short_id(run)} {output.assignments(story.hparams)}".rstrip()
            curves.append(Curve(title, [step for step, _ in points], [value for _, value in points]))
        panels.append(Panel(metric if group == "validation" else f"{group} {metric}", curves, log))
    return panels


def _table(stories: Dict[LocalRun, RunStory], metrics: Tuple[str, ...], kind: str, as_json: bool, as_csv: bool) -> None:
    from tenax.client.trials import group_with

    pairs = [(run, report) for run, story in stories.items() for report in story.reports if report.group == kind]
    if not pairs and not as_json and not as_csv:
        output.say(f"No {kind} metrics were reported.")
        return
    known = sorted({name for _, report in pairs for name in report.metrics})
    for name in metrics if pairs else ():
        if name not in known:
            group_with({kind: known}, name)
    names = list(metrics) or known
    columns = [output.TableColumn("RUN"), output.TableColumn("STEP", right=True)]
    columns += [output.TableColumn(name, right=True) for name in names]
    rows = [
        [short_id(run), str(report.step), *(_cell(report.metrics.get(name)) for name in names)] for run, report in pairs
    ]
    documents: List[JsonObject] = [
        {"run": run.name, "steps": report.step, "group": report.group, "metrics": report.metrics}
        for run, report in pairs
    ]
    output.listing(columns, rows, documents, as_json, as_csv)


def _real(value: Json) -> Optional[float]:
    from tenax.client.connection.reading import real

    return real(value)


def _cell(value: Json) -> str:
    number = _real(value)
    return output.number(number) if number is not None else "" if value is None else output.short(value)


def _number(value: Json) -> str:
    return output.number(value) if isinstance(value, (int, float)) else ""


def _spark(values: List[Optional[float]]) -> str:
    from tenax.cli.console.plots.sparkline import sparkline
    from tenax.cli.experiment.curves import shows_braille

    return sparkline(values) if values and shows_braille(sys.stdout) else ""
