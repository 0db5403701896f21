"""What jobs, and those who share a limit, hold or were promised during one pass; and whether a request may have more.

Rules:
- ``max_slots`` of a job and the limits of quotas bind what would start. What is being released is held until it is
  gone.
- A limit of quotas has nothing to do with requests without slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

from tenax.ids import AllocationId, JobId
from tenax.scheduler import reasons
from tenax.scheduler.snapshot import Phase, PoolSnapshot, SlotRequest


class Holdings:
    """Slots by job and by limit. Mutable; one pass owns one."""

    def __init__(self, snapshot: PoolSnapshot) -> None:
        self._snapshot = snapshot
        self.of_job: Counter[JobId] = Counter()
        self.of_limit: Counter[str] = Counter({name: limit.elsewhere for name, limit in snapshot.limits.items()})
        #: Requests that are in these sums.
        self._counted: set[AllocationId] = set()
        for request in snapshot.requests:
            if request.phase is not Phase.PENDING:
                self.count(request)

    def count(self, request: SlotRequest) -> None:
        """It holds its slots, or was promised them."""
        self._counted.add(request.allocation_id)
        self.of_job[request.job_id] += request.slots
        self.claim(request)

    def claim(self, request: SlotRequest) -> None:
        """Its part of the limits that it shares is nobody else's, though it waits for room."""
        for name in limits_of(self._snapshot, request):
            self.of_limit[name] += request.slots

    def counted_of(self, names: Set[AllocationId]) -> frozenset[AllocationId]:
        """Those of them that hold their slots, or were promised them."""
        return frozenset(self._counted & names)

    def could_ever(self, request: SlotRequest) -> bool:
        """Whether the limits that it shares would let it start, if nobody else held anything of them."""
        limits = (self._snapshot.limits[name] for name in limits_of(self._snapshot, request))
        return all(not each.spent and (each.max_slots is None or request.slots <= each.max_slots) for each in limits)

    def obstacle(self, request: SlotRequest) -> reasons.Capped | reasons.BeyondLimit | None:
        """Why its job may have no more beside what it holds and was promised."""
        if request.allocation_id in self._counted:
            return None
        job = self._snapshot.jobs[request.job_id]
        held = self.of_job[request.job_id]
        if job.max_slots is not None and held + request.slots > job.max_slots:
            return reasons.Capped(held, job.max_slots)
        for name in job.limits if request.slots else ():
            limit = self._snapshot.limits[name]
            most, held = limit.max_slots, self.of_limit[name]
            if limit.spent or (most is not None and held + request.slots > most):
                return reasons.BeyondLimit(limit, held)
        return None


def limits_of(snapshot: PoolSnapshot, request: SlotRequest) -> tuple[str, ...]:
    """The limits that the slots of a request count for."""
    return snapshot.jobs[request.job_id].limits if request.charged is None else request.charged
