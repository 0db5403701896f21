"""Quotas: whose turn it is by what each has used, and how much people may hold together.

Rules:
- An association is a user in a workspace. Workspaces come in the order of their use, divided by their weight, the least
  first; in a workspace its associations likewise. Who has used as much as another for its weight has the same turn.
- Workspaces that no quota names are one among them, and in it what a person has used in all of them counts: nobody
  comes first by a workspace made for it.
- Use is what was held, in slot seconds, each second counting half after a half-life. What runs counts until now.
- A limit is of a workspace, a user, a group, or an association: what its jobs hold together, in all pools, and what
  they may use in a calendar month. It binds what would start; nobody is asked to leave for it.
- What runs counts for those whom it counted for when it started, wherever its job is filed by now.
- Of several limits each binds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tenax.ids import AllocationId, JobId, PoolName
from tenax.scheduler.holdings import limits_of
from tenax.scheduler.snapshot import Phase, PoolJob, PoolPlan, PoolSnapshot, SlotLimit, SlotRequest

#: A user in a workspace, by their numbers.
Association = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Quota:
    """What one of them may have; None: it is not limited."""

    #: Against others of its kind; None: of an association, that of the user; else 1.
    weight: float | None = None
    max_slots: int | None = None
    #: The most urgent priority that its jobs may have.
    priority: int | None = None
    #: In a calendar month.
    slot_hours: float | None = None


_PLAIN = Quota()
#: What was used a week ago counts half, where nothing else is said.
HALF_LIFE_S = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Quotas:
    """All that were applied. By number; what is not named has a weight of 1 and no limits."""

    half_life_s: float = HALF_LIFE_S
    workspaces: Mapping[int, Quota] = field(default_factory=dict)
    users: Mapping[int, Quota] = field(default_factory=dict)
    groups: Mapping[int, Quota] = field(default_factory=dict)
    associations: Mapping[Association, Quota] = field(default_factory=dict)
    #: Of each user that is not named.
    everyone: Quota = _PLAIN

    def workspace(self, workspace_id: int) -> Quota:
        return self.workspaces.get(workspace_id, _PLAIN)

    def user(self, user_id: int) -> Quota:
        return self.users.get(user_id, self.everyone)

    def sharing(self, association: Association) -> Association:
        """As whom it takes its turn: a user in a workspace that is named, or in all others, which are 0."""
        return association if association[1] in self.workspaces else (association[0], 0)

    def weight_of(self, association: Association) -> float:
        """Within its workspace: its own there, else the user's."""
        own = self.associations.get(association)
        return (own.weight if own is not None else None) or self.user(association[0]).weight or 1.0

    def of(self, association: Association, groups: Iterable[int]) -> dict[LimitKey, Quota]:
        """All that bind the jobs of an association, whose user is in these groups."""
        named = ((key, self.quota_of(key)) for key in keys_of(association, sorted(groups)))
        return {key: quota for key, quota in named if quota is not None}

    def quota_of(self, key: LimitKey) -> Quota | None:
        """None: it is not named, and neither is everyone."""
        kind, number, workspace_id = key
        if kind == "everyone":
            return self.everyone
        if kind == "user":
            return self.user(number)
        if kind == "association":
            return self.associations.get((number, workspace_id))
        return (self.workspaces if kind == "workspace" else self.groups).get(number)


#: user, workspace, group, association or everyone; its number; of an association its workspace's.
LimitKey = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Use:
    """What an association has used, in slot seconds."""

    #: Halved every half-life.
    recent: float = 0.0
    this_month: float = 0.0


_NOTHING = Use()


def shared_use(quotas: Quotas, use: Mapping[Association, Use]) -> dict[Association, Use]:
    """Use by those who take turns."""
    result: dict[Association, Use] = {}
    for association, used in use.items():
        sharing = quotas.sharing(association)
        before = result.get(sharing, _NOTHING)
        result[sharing] = Use(before.recent + used.recent, before.this_month + used.this_month)
    return result


def turns_of(quotas: Quotas, use: Mapping[Association, Use], those: Collection[Association]) -> dict[Association, int]:
    """The turn of each of ``those``, 0 for those who come first; ``use`` is of all there are."""
    shared = shared_use(quotas, use)
    of_workspace: dict[int, float] = {}
    for (_, workspace_id), used in shared.items():
        of_workspace[workspace_id] = of_workspace.get(workspace_id, 0.0) + used.recent

    def key(association: Association) -> tuple[float, float]:
        sharing = quotas.sharing(association)
        weight = quotas.workspace(sharing[1]).weight or 1.0
        used = shared.get(sharing, _NOTHING)
        return of_workspace.get(sharing[1], 0.0) / weight, used.recent / quotas.weight_of(sharing)

    keys = {each: key(each) for each in those}
    places = {each: place for place, each in enumerate(sorted(set(keys.values())))}
    return {each: places[keys[each]] for each in those}


def keys_of(association: Association, groups: Iterable[int]) -> tuple[LimitKey, ...]:
    """All that what an association has counts for; ``groups``: those of the user."""
    user_id, workspace_id = association
    own: tuple[LimitKey, ...] = (
        ("user", user_id, 0),
        ("workspace", workspace_id, 0),
        ("association", user_id, workspace_id),
    )
    return (*own, *(("group", group, 0) for group in groups))


def used_by(use: Mapping[Association, Use], groups: Mapping[int, Collection[int]]) -> dict[LimitKey, Use]:
    """What those whom each limit is of have used together; ``groups``: of each user."""
    result: dict[LimitKey, Use] = {}
    for association, used in use.items():
        for key in keys_of(association, groups.get(association[0], ())):
            before = result.get(key, _NOTHING)
            result[key] = Use(before.recent + used.recent, before.this_month + used.this_month)
    return result


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """What quotas say of the jobs that are open, at one instant."""

    associations: Mapping[JobId, Association]
    turns: Mapping[Association, int]
    #: What binds each association, and what that is.
    limits_of: Mapping[Association, tuple[str, ...]]
    limits: Mapping[str, SlotLimit]
    #: The most urgent priority of each association's jobs.
    most_urgent: Mapping[Association, int] = field(default_factory=dict)
    #: As which association each attempt holds what it holds, where that is not its job's by now.
    charged: Mapping[AllocationId, Association] = field(default_factory=dict)


def rules_for(
    quotas: Quotas,
    use: Mapping[Association, Use],
    associations: Mapping[JobId, Association],
    groups: Mapping[int, Collection[int]],
    names: Mapping[LimitKey, str],
    charged: Mapping[AllocationId, Association] = {},
) -> QuotaRules:
    """``associations``: of each open job; ``groups``: of each user; ``names``: for people; ``charged``: as `QuotaRules`
    has it."""
    there = {*associations.values(), *charged.values()}
    used = used_by(use, groups)
    most_urgent: dict[Association, int] = {}
    limits: dict[str, SlotLimit] = {}
    limits_of: dict[Association, tuple[str, ...]] = {}
    for association in there:
        bound = []
        binding = quotas.of(association, groups.get(association[0], ()))
        most_urgent[association] = max((quota.priority or 1 for quota in binding.values()), default=1)
        for key, quota in binding.items():
            if quota.max_slots is None and quota.slot_hours is None:
                continue
            limit = ":".join(map(str, key))
            bound.append(limit)
            if limit not in limits:
                limits[limit] = _limit(names.get(key, limit), quota, used.get(key, _NOTHING))
        limits_of[association] = tuple(bound)
    return QuotaRules(associations, turns_of(quotas, use, there), limits_of, limits, most_urgent, charged)


def _limit(name: str, quota: Quota, used: Use) -> SlotLimit:
    hours = used.this_month / 3600
    spent = ""
    if quota.slot_hours is not None and hours >= quota.slot_hours:
        spent = f"{figure(hours)} of {number(quota.slot_hours)} slot hours of this month are used"
    return SlotLimit(name, quota.max_slots, spent=spent, closed=quota.slot_hours == 0)


def number(limit: float) -> str:
    """A limit for people, as it was written."""
    return str(int(limit)) if limit == int(limit) else f"{limit:g}"


def figure(hours: float) -> str:
    """Hours for people: whole ones from a hundred on."""
    return f"{hours:.0f}" if hours >= 100 else f"{hours:.3g}"


def with_quotas(snapshot: PoolSnapshot, its: QuotaRules) -> PoolSnapshot:
    """A pool with what quotas say of its jobs; a job that is not known there is as it was."""
    jobs = {job_id: _with_quotas(job, its) for job_id, job in snapshot.jobs.items()}
    requests = tuple(
        replace(request, charged=its.limits_of[its.charged[request.allocation_id]])
        if request.allocation_id in its.charged
        else request
        for request in snapshot.requests
    )
    return replace(snapshot, jobs=jobs, requests=requests if its.charged else snapshot.requests, limits=its.limits)


def _with_quotas(job: PoolJob, its: QuotaRules) -> PoolJob:
    association = its.associations.get(job.id)
    if association is None:
        return job
    turn, limits = its.turns[association], its.limits_of[association]
    return replace(job, turn=turn, limits=limits, most_urgent=its.most_urgent.get(association, 1))


def by_first_asking(snapshots: Iterable[PoolSnapshot]) -> list[PoolSnapshot]:
    """In the order in which pools are planned: who has waited longest for what limits share is served first, so that
    nobody takes from elsewhere what others have just left for."""

    def key(snapshot: PoolSnapshot) -> tuple[float, str]:
        bound = (each for each in _pending(snapshot) if _is_bound(snapshot, each))
        return min((each.requested_at for each in bound), default=math.inf), snapshot.pool

    return sorted(snapshots, key=key)


def share_limits(snapshots: Iterable[PoolSnapshot]) -> bool:
    """Whether requests wait in several pools for what limits leave: else nobody can take it from the others."""
    return sum(any(_is_bound(snapshot, each) for each in _pending(snapshot)) for snapshot in snapshots) > 1


def _pending(snapshot: PoolSnapshot) -> Iterator[SlotRequest]:
    """Those that may wait for a limit."""
    return (each for each in snapshot.requests if each.phase is Phase.PENDING) if snapshot.limits else iter(())


def _is_bound(snapshot: PoolSnapshot, request: SlotRequest) -> bool:
    return bool(request.slots and snapshot.jobs[request.job_id].limits)


class LimitBook:
    """What the jobs of each limit hold in all pools, or were promised there, while one pool after the other is planned.
    Mutable; one pass owns one."""

    def __init__(self, snapshots: Iterable[PoolSnapshot]) -> None:
        self._held: Counter[str] = Counter()
        #: What is kept for requests of pools whose turn has not come.
        self._awaited: dict[PoolName, Counter[str]] = {}
        for snapshot in snapshots:
            self._held.update(_slots_of_limits(snapshot, (each for each in snapshot.requests if _holds(each))))

    def expect(self, snapshot: PoolSnapshot, looked_ahead: PoolPlan) -> None:
        """Keep for a pool, until its turn comes, what is being released for its requests: others were asked to leave
        for them."""
        awaited = (each for each in snapshot.requests if each.allocation_id in looked_ahead.awaited)
        self._awaited[snapshot.pool] = _slots_of_limits(snapshot, awaited)
        self._held.update(self._awaited[snapshot.pool])

    def with_elsewhere(self, snapshot: PoolSnapshot) -> PoolSnapshot:
        """A pool that knows what its limits' jobs hold in the others; its turn has come."""
        if not snapshot.limits:
            return snapshot
        self._held.subtract(self._awaited.pop(snapshot.pool, Counter()))
        here = _slots_of_limits(snapshot, (each for each in snapshot.requests if _holds(each)))
        limits = {
            name: replace(limit, elsewhere=self._held[name] - here[name]) for name, limit in snapshot.limits.items()
        }
        return replace(snapshot, limits=limits)

    def note(self, snapshot: PoolSnapshot, decided: PoolPlan) -> None:
        """What was placed or promised in a pool is nobody else's from now on."""
        taken = decided.placements.keys() | decided.promised
        its = (each for each in snapshot.requests if each.allocation_id in taken)
        self._held.update(_slots_of_limits(snapshot, its))


def _holds(request: SlotRequest) -> bool:
    return request.phase is not Phase.PENDING


def _slots_of_limits(snapshot: PoolSnapshot, requests: Iterable[SlotRequest]) -> Counter[str]:
    slots: Counter[str] = Counter()
    for request in requests if snapshot.limits else ():
        for name in limits_of(snapshot, request):
            slots[name] += request.slots
    return slots
