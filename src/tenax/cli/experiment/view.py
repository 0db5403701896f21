"""Experiments and trials as tables and in detail."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Sequence, Tuple

from tenax.cli.console import output
from tenax.cli.console.output import TableColumn

if TYPE_CHECKING:
    from tenax.client.experiments import Experiment
    from tenax.client.trials import Trial

#: Who has reported nothing for so long while it ran could say how far it is.
_SILENT_S = 30.0
#: A reason of so many characters takes lines of its own in a table.
_LONG_REASON = 40
_LIST: output.Columns[Experiment] = (
    (TableColumn("ID", right=True), lambda experiment: str(experiment.id)),
    (TableColumn("NAME", cuts=True), lambda experiment: experiment.name),
    (TableColumn("STATE", state=True), lambda experiment: experiment.state),
    (TableColumn("PROGRESS", right=True), lambda experiment: output.percent(experiment.progress)),
    (TableColumn("TRIALS", right=True), lambda experiment: str(experiment.trial_count)),
    (TableColumn("BEST", right=True), lambda experiment: output.number(experiment.best_metric)),
    (TableColumn("OWNER", cuts=True), lambda experiment: experiment.owner),
    (TableColumn("SEARCHER", spare=True), lambda experiment: experiment.searcher),
    (TableColumn("STARTED", spare=True), lambda experiment: output.moment(experiment.started)),
    (TableColumn("TOOK", right=True, spare=True), output.ran),
    (TableColumn("WAITED", right=True, spare=True), output.waited),
    (TableColumn("REASON", wraps=True), lambda experiment: experiment.reason),
)


def show_list(experiments: Sequence[Experiment], as_json: bool, as_csv: bool) -> None:
    """Print a list of experiments; the last column of the table says why one waits."""
    columns = _LIST if as_csv or any(experiment.reason for experiment in experiments) else _LIST[:-1]
    output.records(columns, experiments, as_json, as_csv)


def overview(experiment: Experiment, trials: Sequence[Trial]) -> None:
    """Print what is known about an experiment."""
    rows = [
        ("experiment", f"{experiment.id}  {experiment.name}"),
        ("state", output.state(experiment.state)),
    ]
    if experiment.reason:
        rows.append(("why", experiment.reason))
    if experiment.description:
        rows.append(("description", experiment.description))
    rows += [
        ("progress", progress_line(experiment, trials)),
        ("search", f"{experiment.searcher}, {_direction(experiment)}"),
        ("trials", f"{experiment.trial_count}  {counts(trials)}".rstrip()),
        ("best", best_line(experiment)),
        ("owner", experiment.owner),
        ("pool", experiment.pool),
        ("labels", ", ".join(experiment.labels)),
        ("started", output.moment(experiment.started)),
        ("ended", output.moment(experiment.ended)),
        ("took", output.ran(experiment)),
        ("waited", output.waited(experiment)),
    ]
    output.pairs([row for row in rows if row[1]])
    warning = missing_metric(experiment, trials)
    if warning:
        output.warn(warning)


def progress_line(experiment: Experiment, trials: Sequence[Trial]) -> str:
    """``34 %, about 5m20s left``; where nobody says how far it is, what to call."""
    hint = progress_hint(experiment, trials)
    return f"{progress(experiment) or '0 %'}: {hint}" if hint else progress(experiment)


def progress(experiment: Experiment) -> str:
    """``34 %, about 5m20s left``, without a word where nobody says how far it is."""
    known = output.percent(experiment.progress)
    left = output.duration(experiment.left_s)
    return f"{known}, about {left} left" if left else known


def progress_hint(experiment: Experiment, trials: Sequence[Trial]) -> str:
    """What to call, where nobody says how far it is."""
    if experiment.progress or experiment.has_ended:
        return ""
    reported = any(trial.steps for trial in trials)
    long_enough = any((trial.ran_s or 0.0) >= _SILENT_S for trial in trials)
    silent = not reported and long_enough
    if experiment.needs_progress and (reported or silent):
        return "the script can say how far it is with train.report_progress(0.5), or max_length"
    unit = experiment.length_metric
    validated = [trial.validation_metrics for trial in trials if trial.validation_metrics]
    if unit and reported and (validated or long_enough) and not any(unit in metrics for metrics in validated):
        return (
            f"no validation reports {unit!r}, which searcher.max_length counts; "
            "train.report_progress(0.5) says how far it is, too"
        )
    if silent:
        return "no step was reported yet; train.report_training_metrics(step, metrics) says how far it is"
    return ""


def missing_metric(experiment: Experiment, trials: Sequence[Trial]) -> str:
    """A warning where trials validate and none has the searcher's metric: its name is mistyped, as a rule."""
    # Validations without the searcher's metric are no trial's latest or best.
    names = sorted({name for trial in trials for name in trial.validation_metrics})
    if not names or experiment.metric in names or experiment.best_metric is not None:
        return ""
    near = difflib.get_close_matches(experiment.metric, names, n=1)
    return f"searcher.metric is {experiment.metric!r}, which no validation has: they report {', '.join(names)}." + (
        f" Did you mean {near[0]!r}?" if near else ""
    )


def best_line(experiment: Experiment) -> str:
    """``validation_accuracy 0.97 (trial 12)``."""
    if experiment.best_metric is None:
        return ""
    where = f" (trial {experiment.best_trial_id})" if experiment.best_trial_id else ""
    return f"{experiment.metric} {output.number(experiment.best_metric)}{where}"


def counts(trials: Sequence[Trial]) -> str:
    """``(3 RUNNING, 1 QUEUED, 12 COMPLETED)``."""
    by_state: dict[str, int] = {}
    for trial in trials:
        state = output.worded(trial.state)
        by_state[state] = by_state.get(state, 0) + 1
    return f"({', '.join(f'{count} {state}' for state, count in by_state.items())})" if by_state else ""


def trial_cells(
    metric: str,
    trials: Sequence[Trial],
    *,
    for_programs: bool = False,
    curves: Optional[Mapping[int, str]] = None,
) -> Tuple[List[TableColumn], List[List[str]]]:
    """Columns and rows of a table of trials; columns that would say nothing are left out.

    ``for_programs``: the columns are always the same. ``curves``: of each trial, as one line of characters.
    """
    names = searched(trials)
    drawn = curves or {}
    reasons = {trial.id: trial.reason for trial in trials} if for_programs else _reasons(trials)
    every: output.Columns[Trial] = [
        (TableColumn("TRIAL", right=True), lambda trial: str(trial.id)),
        (TableColumn("STATE", state=True), lambda trial: trial.state),
        (TableColumn("STEPS", right=True), lambda trial: str(trial.steps)),
        (
            TableColumn("BEST" if for_programs else f"BEST {metric}", right=True),
            lambda trial: output.number(best_of(trial, metric)),
        ),
        (TableColumn("LATEST", right=True, spare=True), lambda trial: output.number(latest_of(trial, metric))),
        (TableColumn("CURVE", spare=True), lambda trial: drawn.get(trial.id, "")),
        (TableColumn("RESTARTS", right=True, spare=True), lambda trial: str(trial.restarts)),
        (TableColumn("TOOK", right=True, spare=True), output.ran),
        (TableColumn("WAITED", right=True, spare=True), output.waited),
        (TableColumn("HYPERPARAMETERS", wraps=True), lambda trial: _values(trial, names)),
        (TableColumn("REASON", wraps=True), lambda trial: reasons[trial.id]),
    ]
    silent = {
        "WAITED": not any(output.waited(trial) for trial in trials),
        "RESTARTS": not any(trial.restarts for trial in trials),
        "REASON": not any(trial.reason for trial in trials),
        "HYPERPARAMETERS": not names,
    }
    left_out = {"CURVE"} if for_programs or not drawn else set()
    left_out |= set() if for_programs else {title for title, is_silent in silent.items() if is_silent}
    shown = [(column, cell) for column, cell in every if column.title not in left_out]
    return output.cells(shown, trials)


def _reasons(trials: Sequence[Trial]) -> Dict[int, str]:
    """Of each trial; what takes lines, and was said of one before, is not said again."""
    first: Dict[str, int] = {}
    for trial in trials:
        first.setdefault(trial.reason, trial.id)
    return {
        trial.id: trial.reason
        if first[trial.reason] == trial.id or len(trial.reason) < _LONG_REASON
        else f"as trial {first[trial.reason]}"
        for trial in trials
    }


def searched(trials: Sequence[Trial]) -> List[str]:
    """The hyperparameters in which trials differ; all of them where there is one trial."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.hparams))
    if len(trials) < 2:
        return names
    return [name for name in names if any(trial.hparams.get(name) != trials[0].hparams.get(name) for trial in trials)]


def _values(trial: Trial, names: Sequence[str]) -> str:
    return output.assignments({name: trial.hparams[name] for name in names if name in trial.hparams})


def latest_of(trial: Trial, metric: str) -> float | None:
    """The searcher's metric at the latest validation."""
    return trial.latest_validation.metrics.get(metric) if trial.latest_validation is not None else None


def best_of(trial: Trial, metric: str) -> float | None:
    """The best value of the searcher's metric that a trial reported."""
    if trial.best_validation is not None:
        value = trial.best_validation.metrics.get(metric)
        if value is not None:
            return value
    return trial.searcher_metric


def rank(experiment: Experiment) -> Tuple[bool, str, float, int]:
    """For a list of the best first: by metric, each by its own direction; those without a value come last."""
    value = experiment.best_metric
    if value is None or value != value:
        return (True, "", 0.0, -experiment.id)
    return (False, experiment.metric, value if experiment.smaller_is_better else -value, -experiment.id)


def best_first(experiment: Experiment, trials: Sequence[Trial]) -> List[Trial]:
    """By the searcher's metric; trials without one come last."""
    sign = 1.0 if experiment.smaller_is_better else -1.0

    def rank(trial: Trial) -> tuple[bool, float, int]:
        value = best_of(trial, experiment.metric)
        return (value is None or value != value, sign * value if value is not None else 0.0, trial.id)

    return sorted(trials, key=rank)


def share(experiment: Experiment, shown: Sequence[Trial], count: int) -> str:
    """What these first ones of `best_first` are among so many trials, for a line beside them."""
    ranked = any(best_of(trial, experiment.metric) is not None for trial in shown)
    return f"The {'best' if ranked else 'first'} {len(shown)} of {count} trials"


def trial_table(experiment: Experiment, trials: Sequence[Trial]) -> None:
    """Print a table of trials."""
    from tenax.cli.experiment.curves import sparklines

    output.table(*trial_cells(experiment.metric, trials, curves=sparklines(experiment, trials)))


def _direction(experiment: Experiment) -> str:
    return f"{'smallest' if experiment.smaller_is_better else 'largest'} {experiment.metric}"
