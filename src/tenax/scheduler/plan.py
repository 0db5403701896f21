"""The scheduler's one question: given a pool, what starts, what leaves, and why does the rest wait.

A policy is one file and one line in the table here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenax.scheduler.policy import Policy
from tenax.scheduler.priority import Priority
from tenax.scheduler.snapshot import Plan, PolicyName, Request, Snapshot

POLICIES: Mapping[PolicyName, Policy] = {PolicyName.PRIORITY: Priority()}


def plan(snapshot: Snapshot) -> Plan:
    """What to do with this pool now. Deterministic; the same snapshot gives the same plan."""
    return POLICIES[snapshot.rules.policy].plan(snapshot)


def queue(snapshot: Snapshot) -> tuple[Request, ...]:
    """All requests of the pool, in the order in which they come to their turn."""
    return POLICIES[snapshot.rules.policy].order(snapshot)
