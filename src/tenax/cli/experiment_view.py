"""How experiments and trials look in tables and in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Sequence

from tenax.cli import output
from tenax.cli.output import Column

if TYPE_CHECKING:
    from tenax.client.experiments import Experiment
    from tenax.client.trials import Trial

_LIST = (
    Column("ID", right=True),
    Column("NAME"),
    Column("STATE", state=True),
    Column("PROGRESS", right=True),
    Column("TRIALS", right=True),
    Column("BEST", right=True),
    Column("OWNER"),
    Column("SEARCHER"),
    Column("STARTED"),
    Column("TOOK", right=True),
    Column("REASON", wraps=True),
)


def list_table(experiments: Sequence[Experiment]) -> None:
    """Print a list of experiments; the last column says why one waits."""
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
    columns = _LIST if any(one.reason for one in experiments) else _LIST[:-1]
    output.table(columns, rows)


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


def trial_columns(metric: str, trials: Sequence[Trial]) -> List[Column]:
    """The columns of a table of trials."""
    columns = [
        Column("TRIAL", right=True),
        Column("STATE", state=True),
        Column("STEPS", right=True),
        Column(f"BEST {metric}", right=True),
        Column(f"LATEST {metric}", right=True),
        Column("RESTARTS", right=True),
        Column("TOOK", right=True),
        Column("HYPERPARAMETERS", wraps=True),
    ]
    return [*columns, Column("REASON", wraps=True)] if any(trial.reason for trial in trials) else columns


def trial_rows(metric: str, trials: Sequence[Trial]) -> List[List[str]]:
    """The rows of a table of trials."""
    reasons = any(trial.reason for trial in trials)
    return [_trial_row(metric, trial, reasons) for trial in trials]


def _trial_row(metric: str, trial: Trial, reasons: bool) -> List[str]:
    latest = trial.latest_validation.metrics.get(metric) if trial.latest_validation is not None else None
    row = [
        str(trial.id),
        trial.state,
        str(trial.steps),
        output.number(best_of(trial, metric)),
        output.number(latest),
        str(trial.restarts),
        output.between(trial.started, trial.ended),
        output.assignments(trial.hparams),
    ]
    return [*row, trial.reason] if reasons else row


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
    output.table(trial_columns(experiment.metric, trials), trial_rows(experiment.metric, trials))


def _direction(experiment: Experiment) -> str:
    return f"{'smallest' if experiment.smaller_is_better else 'largest'} {experiment.metric}"
