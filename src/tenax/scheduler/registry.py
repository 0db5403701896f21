"""Which scheduler policies there are: the one place where a new one is added; and what that of a pool makes of it.

A policy is one file, a class that says what it can (`tenax.scheduler.policy`), and one line in the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from tenax.scheduler.fair_share import FairShare
from tenax.scheduler.least_attained import LeastAttained
from tenax.scheduler.policy import Placer, SchedulingPolicy
from tenax.scheduler.priority import Priority
from tenax.scheduler.quotas import LimitBook, by_first_asking, share_limits
from tenax.scheduler.snapshot import PoolPlan, PoolRules, PoolSnapshot, SlotRequest, applied

#: By the name that the settings of a pool give them, the usual one first.
POLICIES: Mapping[str, SchedulingPolicy] = {
    policy.name: policy for policy in (Priority(), FairShare(), LeastAttained())
}
USUAL = next(iter(POLICIES))


def plan(snapshot: PoolSnapshot) -> PoolPlan:
    """What to do with this pool now. Deterministic; the same snapshot gives the same plan.

    Where somebody is asked to leave, what that makes possible for others, now, is in it.
    """
    return _whole(snapshot, _policy(snapshot).plan(snapshot))


def placer(snapshot: PoolSnapshot) -> Placer:
    """What `plan` places in this pool, and whom it asks to leave, were its agents others; without reasons."""
    first = _policy(snapshot).placer(snapshot)
    return lambda agents: _whole(replace(snapshot, agents=agents), first(agents))


def _whole(snapshot: PoolSnapshot, last: PoolPlan) -> PoolPlan:
    """A first pass, and those that its asking to leave makes possible."""
    policy, whole = _policy(snapshot), last
    while last.preempt:
        snapshot = applied(snapshot, last)
        last = policy.plan(snapshot)
        waiting = {name: whole.waiting.get(name, reason) for name, reason in last.waiting.items()}
        whole = PoolPlan({**whole.placements, **last.placements}, {**whole.preempt, **last.preempt}, waiting)
    return whole


def plan_all(
    snapshots: Iterable[PoolSnapshot], planned: Callable[[PoolSnapshot], PoolPlan] = plan
) -> Iterator[tuple[PoolSnapshot, PoolPlan]]:
    """Pool after pool, each as it was planned: none takes what limits leave to another. ``planned`` plans one."""
    listed = list(snapshots)
    book = LimitBook(listed)
    listed = by_first_asking(listed)
    for snapshot in listed if share_limits(listed) else ():
        book.expect(snapshot, planned(snapshot))
    for snapshot in map(book.with_elsewhere, listed):
        decided = planned(snapshot)
        book.note(snapshot, decided)
        yield snapshot, decided


def queue(snapshot: PoolSnapshot) -> tuple[SlotRequest, ...]:
    """All requests of the pool, in the order in which they come to their turn."""
    return _policy(snapshot).order(snapshot)


def in_turns(policy: str) -> bool:
    """Whether jobs come one after the other under the policy of that name; else they share. Empty: the usual one."""
    return POLICIES[policy or USUAL].in_turns


def changes_at(snapshot: PoolSnapshot) -> float | None:
    """When the plan of a pool would be another by the time alone; None: never."""
    return _policy(snapshot).changes_at(snapshot)


def same_until(snapshot: PoolSnapshot, changes: float | None) -> float:
    """Until when, as ``PoolSnapshot.at``, the plan of a pool stays as it is, to the word, if nothing of it changes.

    Not beyond its own instant where places are reserved until some time, or where it depends on how long jobs have held
    something. ``changes``: its `changes_at`.
    """
    if snapshot.rules.reservation or counts_attained(snapshot.rules.policy):
        return snapshot.at
    return math.inf if changes is None else changes


def counts_attained(policy: str) -> bool:
    """Whether the policy of that name asks for what jobs have held so far. Empty: the usual one."""
    return POLICIES[policy or USUAL].counts_attained


def can_preempt(rules: PoolRules) -> bool:
    """Whether running requests are asked to leave for others under these rules."""
    return rules.preemption or POLICIES[rules.policy or USUAL].always_preempts


def _policy(snapshot: PoolSnapshot) -> SchedulingPolicy:
    return POLICIES[snapshot.rules.policy or USUAL]
