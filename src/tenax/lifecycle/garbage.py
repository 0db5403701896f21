"""Which checkpoints of an experiment stay and which go, each with its reasons. Pure.

Rules it keeps:

- A policy is three numbers: the best of the experiment, the best of each trial, the latest of each trial. Whatever one
  of them keeps stays: policies are a union.
- Best is by the searcher's metric at the checkpoint's step. What is not a finite number is worse than any number;
  without a value a checkpoint is never among the best. Among equals the one that was reported first is better.
- Latest is by steps. What a run reported after it was replaced (superseded) is neither: nothing goes on from it.
- Never collected: what is registered, what a trial of another experiment started from, what a live trial would resume
  from, what a live trial may still validate, and what somebody trimmed by hand.
- Collecting step by step leaves what collecting once at the end would leave: what is among the best stays among them
  until something better comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How many checkpoints are kept; each at least 0."""

    experiment_best: int
    trial_best: int
    trial_latest: int

    def __str__(self) -> str:
        return (
            f"the best {self.experiment_best} of the experiment, the best {self.trial_best} and the latest "
            f"{self.trial_latest} of each trial"
        )


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A checkpoint whose files are there."""

    uuid: str
    trial_id: int
    steps: int
    #: The searcher's metric at its step; None: not known.
    metric: float | None
    #: Seconds; only compared with one another.
    reported: float
    #: All its files are there.
    whole: bool = True
    #: Reported by a run that a newer one had replaced.
    superseded: bool = False
    #: Where it is registered, for people; None: nowhere.
    registered: str | None = None
    #: Who of another experiment started from it, for people; None: nobody.
    source_of: str | None = None


@dataclass(frozen=True, slots=True)
class OwningTrial:
    """A trial, as far as its checkpoints go."""

    live: bool
    #: The highest step with a value of the searcher's metric; None: none yet.
    validated_to: int | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of one checkpoint."""

    uuid: str
    keep: bool
    #: At least one: every reason to keep it, or the one why it goes.
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Places, from 1; None: not ranked."""

    experiment: int | None
    trial: int | None
    latest: int | None


def judge(
    policy: RetentionPolicy,
    checkpoints: Iterable[SavedCheckpoint],
    trials: Mapping[int, OwningTrial],
    *,
    metric: str = "the metric",
    smaller_is_better: bool = True,
) -> tuple[Judgement, ...]:
    """The fate of each checkpoint of one experiment, in the order given. ``trials``: one that is missing has ended."""
    listed = tuple(checkpoints)
    ranks = _ranks(listed, smaller_is_better)
    fates = []
    for checkpoint in listed:
        owner = trials.get(checkpoint.trial_id, OwningTrial(live=False))
        kept = _reasons_to_keep(policy, checkpoint, ranks[checkpoint.uuid], owner, metric)
        fates.append(
            Judgement(
                checkpoint.uuid, bool(kept), kept or (_why_it_goes(policy, checkpoint, ranks[checkpoint.uuid], metric),)
            )
        )
    return tuple(fates)


def _reasons_to_keep(
    policy: RetentionPolicy, checkpoint: SavedCheckpoint, ranks: _Ranks, owner: OwningTrial, metric: str
) -> tuple[str, ...]:
    """Every rule that holds."""
    reasons = []
    if checkpoint.registered is not None:
        reasons.append(f"it is {checkpoint.registered}")
    if checkpoint.source_of is not None:
        reasons.append(f"{checkpoint.source_of} started from it")
    if not checkpoint.whole:
        reasons.append("some of its files were deleted by hand: the rest is left to whoever did")
    if ranks.experiment is not None and ranks.experiment <= policy.experiment_best:
        reasons.append(f"{_th(ranks.experiment)} of the experiment by {metric} (of {policy.experiment_best} to keep)")
    if ranks.trial is not None and ranks.trial <= policy.trial_best:
        reasons.append(f"{_th(ranks.trial)} of its trial by {metric} (of {policy.trial_best} to keep)")
    if ranks.latest is not None and ranks.latest <= policy.trial_latest:
        reasons.append(f"{_th(ranks.latest)} latest of its trial (of {policy.trial_latest} to keep)")
    if owner.live and ranks.latest == 1:
        reasons.append(f"trial {checkpoint.trial_id} would resume from it")
    if owner.live and _may_be_validated(policy, checkpoint, ranks, owner):
        reasons.append(f"trial {checkpoint.trial_id} may still report {metric} at its step {checkpoint.steps}")
    return tuple(reasons)


def _may_be_validated(policy: RetentionPolicy, checkpoint: SavedCheckpoint, ranks: _Ranks, owner: OwningTrial) -> bool:
    """Whether its value may come later than the checkpoint did: until the trial has validated beyond its step.

    A trial that has not validated yet may never do so: there only the next one to go is spared.
    """
    if checkpoint.metric is not None or ranks.latest is None or not (policy.experiment_best or policy.trial_best):
        return False
    if owner.validated_to is None:
        return ranks.latest == policy.trial_latest + 1
    return checkpoint.steps > owner.validated_to


def _why_it_goes(policy: RetentionPolicy, checkpoint: SavedCheckpoint, ranks: _Ranks, metric: str) -> str:
    if checkpoint.superseded:
        return "it was reported by a run that a newer one had replaced: nothing goes on from it"
    latest = f"{_th(ranks.latest or 0)} latest of its trial"
    if ranks.trial is None:
        return f"no value of {metric} at its step, and {latest}; kept are {policy}"
    best = f"{_th(ranks.experiment or 0)} of the experiment and {_th(ranks.trial)} of its trial by {metric}"
    return f"{best}, {latest}; kept are {policy}"


def _ranks(checkpoints: tuple[SavedCheckpoint, ...], smaller_is_better: bool) -> dict[str, _Ranks]:
    counting = [checkpoint for checkpoint in checkpoints if _counts(checkpoint)]
    worst_last = _best_first(smaller_is_better)
    best = sorted((checkpoint for checkpoint in counting if checkpoint.metric is not None), key=worst_last)
    newest = sorted(counting, key=_newest_first)
    experiment = {checkpoint.uuid: place for place, checkpoint in enumerate(best, 1)}
    trial, latest = _places_in_trial(best), _places_in_trial(newest)
    return {
        checkpoint.uuid: _Ranks(
            experiment.get(checkpoint.uuid), trial.get(checkpoint.uuid), latest.get(checkpoint.uuid)
        )
        for checkpoint in checkpoints
    }


def _places_in_trial(ordered: Iterable[SavedCheckpoint]) -> dict[str, int]:
    places: dict[str, int] = {}
    count: dict[int, int] = {}
    for checkpoint in ordered:
        count[checkpoint.trial_id] = count.get(checkpoint.trial_id, 0) + 1
        places[checkpoint.uuid] = count[checkpoint.trial_id]
    return places


def _counts(checkpoint: SavedCheckpoint) -> bool:
    return checkpoint.whole and not checkpoint.superseded


def _best_first(smaller_is_better: bool) -> Callable[[SavedCheckpoint], tuple[bool, float, float, str]]:
    sign = 1.0 if smaller_is_better else -1.0

    def key(checkpoint: SavedCheckpoint) -> tuple[bool, float, float, str]:
        value = checkpoint.metric
        finite = value is not None and math.isfinite(value)
        return not finite, sign * value if finite and value is not None else 0.0, checkpoint.reported, checkpoint.uuid

    return key


def _newest_first(checkpoint: SavedCheckpoint) -> tuple[int, float, str]:
    return -checkpoint.steps, -checkpoint.reported, checkpoint.uuid


def _th(place: int) -> str:
    if 10 <= place % 100 <= 20:
        return f"{place}th"
    return f"{place}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th') }"
