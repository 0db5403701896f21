"""How experiments and trials look in tables and in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, Sequence, Tuple

from tenax.cli.console import output
from tenax.cli.console.output import Column

if TYPE_CHECKING:
    from tenax.client.experiments import Experiment
    from tenax.client.trials import Trial

_LIST = (
    Column("ID", right=True),
    Column("NAME", cuts=True),
    Column("STATE", state=True),
    Column("PROGRESS", right=True),
    Column("TRIALS", right=True),
    Column("BEST", right=True),
    Column("OWNER", cuts=True),
    Column("SEARCHER", spare=True),
    Column("STARTED", spare=True),
    Column("TOOK", right=True, spare=True),
    Column("REASON", wraps=True),
)


def show_list(experiments: Sequence[Experiment], as_json: bool, as_csv: bool) -> None:
    """Print a list of experiments; the last column of the table says why one waits."""
    rows = [
        [
            str(one.id),
            one.name,
            one.state,
            output.percent(one.progress),
            str(one.trial_count),
            output.number(one.best_metric),
            one.owner,
            one.searcher,
            output.moment(one.started),
            output.between(one.started, one.ended),
            one.reason,
        ]
        for one in experiments
    ]
    columns = _LIST if as_csv or any(one.reason for one in experiments) else _LIST[:-1]
    output.listing(columns, rows, [one.raw for one in experiments], as_json, as_csv)


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
        ("progress", output.percent(experiment.progress)),
        ("search", f"{experiment.searcher}, {_direction(experiment)}"),
        ("trials", f"{experiment.trial_count}  {counts(trials)}".rstrip()),
        ("best", best_line(experiment)),
        ("owner", experiment.owner),
        ("pool", experiment.pool),
        ("labels", ", ".join(experiment.labels)),
        ("started", output.moment(experiment.started)),
        ("ended", output.moment(experiment.ended)),
        ("took", output.between(experiment.started, experiment.ended)),
    ]
    output.pairs([row for row in rows if row[1]])


def best_line(experiment: Experiment) -> str:
    """``validation_accuracy 0.97 (trial 12)``."""
    if experiment.best_metric is None:
        return ""
    where = f" (trial {experiment.best_trial_id})" if experiment.best_trial_id else ""
    return f"{experiment.metric} {output.number(experiment.best_metric)}{where}"


def counts(trials: Sequence[Trial]) -> str:
    """``(3 RUNNING, 1 QUEUED, 12 COMPLETED)``."""
    found: dict[str, int] = {}
    for trial in trials:
        found[trial.state] = found.get(trial.state, 0) + 1
    return f"({', '.join(f'{count} {state}' for state, count in found.items())})" if found else ""


def trial_cells(
    metric: str, trials: Sequence[Trial], *, for_programs: bool = False
) -> Tuple[List[Column], List[List[str]]]:
    """Columns and rows of a table of trials; columns that would say nothing are left out.

    ``for_programs``: the columns are always the same.
    """
    names = searched(trials)
    every: List[Tuple[Column, Callable[[Trial], str]]] = [
        (Column("TRIAL", right=True), lambda one: str(one.id)),
        (Column("STATE", state=True), lambda one: one.state),
        (Column("STEPS", right=True), lambda one: str(one.steps)),
        (
            Column("BEST" if for_programs else f"BEST {metric}", right=True),
            lambda one: output.number(best_of(one, metric)),
        ),
        (Column("LATEST", right=True, spare=True), lambda one: output.number(latest_of(one, metric))),
        (Column("RESTARTS", right=True, spare=True), lambda one: str(one.restarts)),
        (Column("TOOK", right=True, spare=True), lambda one: output.between(one.started, one.ended)),
        (Column("HYPERPARAMETERS", wraps=True), lambda one: _values(one, names)),
        (Column("REASON", wraps=True), lambda one: one.reason),
    ]
    silent = {
        "RESTARTS": not any(one.restarts for one in trials),
        "REASON": not any(one.reason for one in trials),
        "HYPERPARAMETERS": not names,
    }
    shown = [(column, cell) for column, cell in every if for_programs or not silent.get(column.title)]
    return [column for column, _ in shown], [[cell(trial) for _, cell in shown] for trial in trials]


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


def best_first(experiment: Experiment, trials: Sequence[Trial]) -> List[Trial]:
    """By the searcher's metric; trials without one come last."""
    sign = 1.0 if experiment.smaller_is_better else -1.0

    def rank(trial: Trial) -> tuple[bool, float, int]:
        value = best_of(trial, experiment.metric)
        return (value is None or value != value, sign * value if value is not None else 0.0, trial.id)

    return sorted(trials, key=rank)


def trial_table(experiment: Experiment, trials: Sequence[Trial]) -> None:
    """Print a table of trials."""
    output.table(*trial_cells(experiment.metric, trials))


def _direction(experiment: Experiment) -> str:
    return f"{'smallest' if experiment.smaller_is_better else 'largest'} {experiment.metric}"
