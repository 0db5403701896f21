"""Continuing an experiment with other settings: what it becomes, or why it cannot be continued.

Rules: what its search has decided stays, so nothing may change that those decisions depend on; the trial of a search of
one trial takes the constants that were changed. Everything is checked before anything is written.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tenax.config.master import PoolSettings
from tenax.config.resolve import Layers, PoolLayer, ResolvedExperiment, parse_experiment, stored_experiment
from tenax.errors import InvalidInput, NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.trial import TrialState
from tenax.master.store.experiments.continuing import Continued, EndedTrial
from tenax.search.config import Const, Map


def overlaid(stored: JsonObject, override: str, pool: PoolSettings) -> ResolvedExperiment:
    """``override`` (YAML text) over a stored configuration. Raises InvalidInput with all problems.

    CPU-bound: call it in a thread.
    """
    # Name and seed are there already: nothing is drawn.
    below = Layers(template=stored, pool=PoolLayer(name=pool.name))
    return parse_experiment(override, rng=random.Random(0), layers=below)


def continued(
    experiment_id: int, stored: JsonObject, resolved: ResolvedExperiment, pool: PoolSettings, trials: list[EndedTrial]
) -> Continued:
    """What to write. Raises InvalidInput, NotNow."""
    before = stored_experiment(stored)
    _check_same_search(before, resolved)
    chosen = _chosen(experiment_id, before, trials)
    space = resolved.search.hyperparameters
    changed = space != before.search.hyperparameters
    resources = resolved.experiment.resources
    return Continued(
        config=resolved.document,
        name=resolved.name,
        description=resolved.experiment.description or "",
        labels=tuple(resolved.experiment.labels),
        pool=pool.name,
        priority=resources.priority or pool.scheduler.default_priority,
        weight=resources.weight,
        max_slots=resources.max_slots,
        time_limit_s=resources.time_limit,
        hparams={trial.id: _taken_over(space, trial.hparams) if changed else trial.hparams for trial in chosen},
        at_once=before.search.method.most_at_once(),
    )


def check_offered(experiment_id: int, stored: JsonObject) -> None:
    """Raises NotNow for a search whose decisions cannot be taken back."""
    if not stored_experiment(stored).search.method.continuable:
        raise NotNow(
            f"experiment {experiment_id} is a search that stops trials early, and what it stopped stays so: "
            f"create a new experiment from it instead of continuing it (tenax experiment fork {experiment_id})"
        )


def _check_same_search(before: ResolvedExperiment, after: ResolvedExperiment) -> None:
    same = replace(after.search, hyperparameters=before.search.hyperparameters)
    if same != before.search or after.seed != before.seed:
        raise InvalidInput(
            "overrideConfig: the search and its seed cannot change when an experiment goes on: create a new experiment "
            "from it instead"
        )
    if not before.search.method.one_trial and after.search.hyperparameters != before.search.hyperparameters:
        raise InvalidInput(
            "overrideConfig: hyperparameters from which trials are drawn cannot change when a search goes on: create "
            "a new experiment from it instead"
        )


def _chosen(experiment_id: int, before: ResolvedExperiment, trials: list[EndedTrial]) -> list[EndedTrial]:
    """The trials that go on: the newest of a search of one, else all that did not complete."""
    if before.search.method.one_trial:
        return [trial for trial in trials[-1:] if trial.state is not TrialState.ACTIVE]
    if trials and all(trial.state is TrialState.COMPLETED for trial in trials):
        raise NotNow(
            f"all trials of experiment {experiment_id} have completed: none is left to continue; create a new "
            "experiment from it"
        )
    return [trial for trial in trials if trial.state in (TrialState.CANCELED, TrialState.ERROR)]


def _taken_over(space: Map, drawn: JsonObject, at: str = "hyperparameters") -> JsonObject:
    """The hyperparameters of a trial, with constants as they are now."""
    taken: JsonObject = {}
    for name, child in space.children.items():
        old = drawn.get(name)
        if isinstance(child, Const):
            taken[name] = child.value
        elif isinstance(child, Map):
            taken[name] = _taken_over(child, old if isinstance(old, dict) else {}, f"{at}.{name}")
        elif name in drawn:
            taken[name] = old
        else:
            raise InvalidInput(
                f"overrideConfig: {at}.{name} must be a constant: a trial that goes on is not drawn again"
            )
    return taken
