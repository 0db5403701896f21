"""Requests that wait one behind the other and are alike: what is decided of the first is decided of all.

Rules:
- Twins are of one job, and differ in their names, in when they asked and in whether they ran before, at most. Their
  order is the one in which they come to their turn.
- Who shares a limit has none: what waits for it keeps its part of it from the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenax.ids import JobId
from tenax.scheduler.snapshot import PoolJob, SlotRequest


def twins(ordered: Iterable[SlotRequest], jobs: Mapping[JobId, PoolJob]) -> list[list[SlotRequest]]:
    """Pending requests in the same order, those that are alike together."""
    groups: list[list[SlotRequest]] = []
    last: SlotRequest | None = None
    for request in ordered:
        if last is not None and _are_twins(last, request) and not jobs[request.job_id].limits:
            groups[-1].append(request)
        else:
            groups.append([request])
        last = request
    return groups


def _are_twins(first: SlotRequest, second: SlotRequest) -> bool:
    return (
        first.job_id == second.job_id
        and first.slots == second.slots
        and first.single_node == second.single_node
        and first.preemptible == second.preemptible
        and first.blocked_agents == second.blocked_agents
        and first.constraints == second.constraints
        and first.time_limit == second.time_limit
        and first.priority == second.priority
        and first.standing == second.standing
        # Each has a place of its own in the queue.
        and not (first.again or second.again)
    )
