"""What an outcome was like for people: how long they waited, when their jobs were done, who fared how."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tenax.ids import JobId
from tenax.scheduler.simulation.replay import ReplayOutcome, Served


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """Times are seconds."""

    name: str
    attempts: int
    #: From request to start, that after having been asked to leave included.
    waited_mean_s: float
    waited_median_s: float
    #: Of a hundred, ninety-five waited no longer.
    waited_p95_s: float
    #: Of jobs: from their first request to their last end.
    completion_mean_s: float
    #: From the first request to the last end of all.
    span_s: float
    #: The part of all slot seconds of that span that was held.
    used: float | None
    #: None, these two: of what happened it is not known.
    preemptions: int | None
    #: Jain's index of how much longer than its work each user's took: 1 where all fared alike, 1/n where one of n bore
    #: it all. Source: Jain, Chiu and Hawe, DEC-TR-301 (1984).
    fairness: float
    #: What never ran to its end.
    unserved: int


#: What waits can be told apart by.
GROUPS: Mapping[str, Callable[[Served], str]] = {
    "user": lambda served: served.attempt.user,
    "workspace": lambda served: served.attempt.workspace,
    "pool": lambda served: served.attempt.pool,
    "slots": lambda served: str(served.attempt.slots),
}


def summary(outcome: ReplayOutcome) -> ReplaySummary:
    """The figures of an outcome; all 0 where nothing ran."""
    served = outcome.served
    waits = sorted(each.waited_s for each in served)
    span_s = _span(served)
    held = sum(each.attempt.slots * each.held_s for each in served)
    return ReplaySummary(
        outcome.name,
        len(served),
        fmean(waits) if waits else 0.0,
        quantile(waits, 0.5),
        quantile(waits, 0.95),
        fmean(_completions(served).values()) if served else 0.0,
        span_s,
        held / (outcome.slots * span_s) if outcome.slots and span_s and not outcome.happened else None,
        None if outcome.happened else sum(each.preemptions for each in served),
        _fairness(served),
        len(outcome.unserved),
    )


def waits_by(outcome: ReplayOutcome, group: str) -> dict[str, float]:
    """Mean seconds that attempts waited, by one of `GROUPS`."""
    key = GROUPS[group]
    waits: dict[str, list[float]] = {}
    for each in outcome.served:
        waits.setdefault(key(each), []).append(each.waited_s)
    return {name: fmean(seconds) for name, seconds in waits.items()}


def waiting_slots(outcome: ReplayOutcome, moments: Sequence[float]) -> list[int]:
    """For each moment, the slots of all that waited."""
    changes = sorted(
        change
        for each in outcome.served
        for since, until in each.waits()
        for change in ((since, each.attempt.slots), (until, -each.attempt.slots))
    )
    times = [at for at, _ in changes]
    sums = [0]
    for _, slots in changes:
        sums.append(sums[-1] + slots)
    return [sums[bisect_right(times, moment)] for moment in moments]


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value that so much of them does not exceed (nearest rank); 0 of nothing."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else 0.0


def _completions(served: Sequence[Served]) -> dict[JobId, float]:
    first: dict[JobId, float] = {}
    last: dict[JobId, float] = {}
    for each in served:
        job_id = each.attempt.job_id
        first[job_id] = min(first.get(job_id, each.requested_at), each.requested_at)
        last[job_id] = max(last.get(job_id, each.ended_at), each.ended_at)
    return {job_id: last[job_id] - first[job_id] for job_id in first}


def _span(served: Sequence[Served]) -> float:
    if not served:
        return 0.0
    return max(each.ended_at for each in served) - min(each.requested_at for each in served)


def _fairness(served: Sequence[Served]) -> float:
    waited: dict[str, float] = {}
    worked: dict[str, float] = {}
    for each in served:
        user = each.attempt.user
        waited[user] = waited.get(user, 0.0) + each.waited_s
        worked[user] = worked.get(user, 0.0) + max(0.0, each.attempt.ended_at - each.attempt.started_at)
    longer = [(waited[user] + worked[user]) / worked[user] for user in worked if worked[user] > 0]
    return sum(longer) ** 2 / (len(longer) * sum(each**2 for each in longer)) if longer else 1.0
