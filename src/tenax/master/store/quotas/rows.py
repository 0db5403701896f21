"""Quotas that were applied, what was used, and what both say of the jobs that are open.

Rules: the newest row holds. Use is added up from what was held, by the loop that schedules, and read by everyone else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.config.quotas import NamedIds
from tenax.errors import InvalidInput
from tenax.ids import AllocationId, JobId
from tenax.jsonvalue import Json, JsonObject, as_list, as_object
from tenax.master.store.database.queries import load
from tenax.scheduler.quotas import Association, LimitKey, Quota, QuotaRules, Quotas, Use, rules_for

Q = load("quotas")

_OTHERS = "all other workspaces"


@dataclass(frozen=True, slots=True)
class AppliedQuotas:
    """Those that hold."""

    quotas: Quotas
    #: As they were written.
    source: str
    applied_by: str
    applied_at: datetime


async def current(conn: Connection) -> AppliedQuotas | None:
    """None: there are no quotas."""
    row = await conn.fetchrow(Q.current)
    if row is None or row["document"] is None:
        return None
    return AppliedQuotas(_from_json(as_object(row["document"])), row["source"], row["applied_by"], row["applied_at"])


async def apply(conn: Connection, quotas: Quotas | None, source: str, user_id: int) -> None:
    """Quotas that hold from now on; None: none do."""
    await conn.execute(Q.lock)
    await conn.execute(Q.apply, source, None if quotas is None else _to_json(quotas), user_id)
    if quotas is not None:
        await add_up_use(conn, quotas)


async def ids_of(conn: Connection, users: Iterable[str], workspaces: Iterable[str], groups: Iterable[str]) -> NamedIds:
    """Of those that there are."""
    return NamedIds(
        *[
            # PostgreSQL takes no name with a NUL: there is nobody of that name.
            {row["name"]: row["id"] for row in await conn.fetch(query, [n.lower() for n in names if "\0" not in n])}
            for query, names in ((Q.users, users), (Q.workspaces, workspaces), (Q.groups, groups))
        ]
    )


async def open_associations(conn: Connection) -> set[Association]:
    """Those with a job that is open."""
    return {(row["owner_id"], row["workspace_id"]) for row in await conn.fetch(Q.associations_of_open_jobs)}


async def all_names(conn: Connection, kind: str) -> list[str]:
    """Of users, workspaces or groups: for whoever misspelled one."""
    query = {"users": Q.all_users, "workspaces": Q.all_workspaces, "groups": Q.all_groups}[kind]
    return [row["name"] for row in await conn.fetch(query)]


async def add_up_use(conn: Connection, quotas: Quotas) -> None:
    """What each has used, as of now."""
    await conn.execute(Q.lock)
    await conn.execute(Q.forget_use)
    await conn.execute(Q.add_up_use, quotas.half_life_s / math.log(2))


async def use(conn: Connection) -> dict[Association, Use]:
    """As of when it was last added up."""
    return {
        (row["user_id"], row["workspace_id"]): Use(row["recent"], row["this_month"]) for row in await conn.fetch(Q.use)
    }


async def held(conn: Connection) -> dict[Association, int]:
    """Slots that each holds now."""
    return {(row["user_id"], row["workspace_id"]): row["slots"] for row in await conn.fetch(Q.held)}


async def memberships(conn: Connection) -> dict[int, frozenset[int]]:
    """The groups of each user who is in one."""
    return {row["user_id"]: frozenset(row["groups"]) for row in await conn.fetch(Q.memberships)}


async def names_of(conn: Connection, keys: Iterable[LimitKey]) -> dict[LimitKey, str]:
    """Whose each limit is, for people; what is gone is not there."""
    listed = list(keys)
    users = {number for kind, number, _ in listed if kind in ("user", "association")}
    workspaces = {number for kind, number, _ in listed if kind == "workspace"}
    workspaces |= {workspace for kind, _, workspace in listed if kind == "association"}
    groups = {number for kind, number, _ in listed if kind == "group"}
    rows = await conn.fetch(Q.names, list(users), list(workspaces), list(groups))
    named: dict[tuple[str, int], str] = {(row["kind"], row["id"]): row["name"] for row in rows}
    result: dict[LimitKey, str] = {}
    for kind, number, workspace in listed:
        if kind == "everyone":
            result[kind, number, workspace] = "everyone else"
            continue
        if (kind, number) == ("workspace", 0):
            result[kind, number, workspace] = _OTHERS
            continue
        who = named.get(("user" if kind == "association" else kind, number))
        where = named.get(("workspace", workspace)) if workspace else _OTHERS
        if who is None or (kind == "association" and where is None):
            continue
        special = {"user": who, "association": f"{who} in {where}"}
        result[kind, number, workspace] = special.get(kind, f"the {kind} {who}")
    return result


async def rules_of_jobs(conn: Connection, also: Mapping[JobId, Association] = {}) -> QuotaRules | None:
    """What quotas say of the jobs that are open, and of those that would be; None: there are no quotas."""
    applied = await current(conn)
    if applied is None:
        return None
    associations = {
        JobId(row["job_id"]): (row["owner_id"], row["workspace_id"])
        for row in await conn.fetch(Q.associations_of_open_jobs)
    } | dict(also)
    charged = {
        AllocationId(row["allocation_id"]): (row["user_id"], row["workspace_id"]) for row in await conn.fetch(Q.charged)
    }
    groups = await memberships(conn)
    those = {*associations.values(), *charged.values()}
    keys = {key for who in those for key in applied.quotas.of(who, groups.get(who[0], ()))}
    return rules_for(applied.quotas, await use(conn), associations, groups, await names_of(conn, keys), charged)


@dataclass(frozen=True, slots=True)
class Admission:
    """What quotas make of a new job."""

    priority: int
    #: For its owner: where it is not as they may expect.
    notices: tuple[str, ...] = ()


async def admit(
    conn: Connection, user_id: int, workspace_id: int, *, wished: int | None, usual: int, slots: int
) -> Admission:
    """A new job, each of whose requests asks for ``slots``: of the priority that is wished, else of the usual one, or
    the most urgent that is allowed. Raises InvalidInput for a wish of its own beyond that."""
    bound = await _bound(conn, user_id, workspace_id)
    notices: list[str] = []
    priority = usual if wished is None else wished
    ceiling = _most_urgent(bound)
    if ceiling is not None and priority < ceiling[0]:
        whose = (await names_of(conn, [ceiling[1]])).get(ceiling[1], ceiling[1][0])
        if wished is not None and wished != usual:
            raise _too_urgent(priority, whose, ceiling[0])
        notices.append(f"its priority is {ceiling[0]}, not {usual}: the quota of {whose} allows no more urgent one")
        priority = ceiling[0]
    for key, quota in bound.items():
        if quota.max_slots is not None and slots > quota.max_slots:
            whose = (await names_of(conn, [key])).get(key, key[0])
            notices.append(
                f"it can never start as it is: the quota of {whose} is {quota.max_slots} "
                f"{'slot' if quota.max_slots == 1 else 'slots'}, and this needs {slots}"
            )
    return Admission(priority, tuple(notices))


async def check_priority(conn: Connection, user_id: int, workspace_id: int, priority: int) -> None:
    """Raises InvalidInput where quotas do not allow it to someone's job."""
    ceiling = _most_urgent(await _bound(conn, user_id, workspace_id))
    if ceiling is not None and priority < ceiling[0]:
        raise _too_urgent(priority, (await names_of(conn, [ceiling[1]])).get(ceiling[1], ceiling[1][0]), ceiling[0])


async def check_move(
    conn: Connection, workspace_id: int, experiment_ids: Iterable[int] = (), project_id: int | None = None
) -> None:
    """Before experiments, or those of a project, are filed in another workspace. Raises InvalidInput for one that is
    more urgent than quotas allow there."""
    for row in await conn.fetch(Q.open_experiments, list(experiment_ids), project_id, workspace_id):
        ceiling = _most_urgent(await _bound(conn, row["owner_id"], workspace_id))
        if ceiling is not None and row["priority"] < ceiling[0]:
            whose = (await names_of(conn, [ceiling[1]])).get(ceiling[1], ceiling[1][0])
            command = f"tenax experiment set priority {row['id']} {ceiling[0]}"
            raise InvalidInput(
                f"experiment {row['id']} has priority {row['priority']}, and there the quota of {whose} allows none "
                f"more urgent than {ceiling[0]}: set that first ({command})"
            )


async def _bound(conn: Connection, user_id: int, workspace_id: int) -> dict[LimitKey, Quota]:
    """All that bind someone's jobs."""
    applied = await current(conn)
    if applied is None:
        return {}
    groups = [row["group_id"] for row in await conn.fetch(Q.groups_of, user_id)]
    return applied.quotas.of((user_id, workspace_id), groups)


def _most_urgent(bound: Mapping[LimitKey, Quota]) -> tuple[int, LimitKey] | None:
    """The most urgent priority that is allowed, and whose quota says so; None: any."""
    return max(((quota.priority, key) for key, quota in bound.items() if quota.priority is not None), default=None)


def _too_urgent(priority: int, whose: str, ceiling: int) -> InvalidInput:
    return InvalidInput(
        f"priority {priority} is more urgent than the quota of {whose} allows: give {ceiling} to 99, or "
        "ask an administrator for another quota"
    )


def _to_json(quotas: Quotas) -> JsonObject:
    def of(quota: Quota) -> JsonObject:
        return {name: value for name, value in asdict(quota).items() if value is not None}

    return {
        "half_life_s": quotas.half_life_s,
        "everyone": of(quotas.everyone),
        "workspaces": {str(number): of(quota) for number, quota in quotas.workspaces.items()},
        "users": {str(number): of(quota) for number, quota in quotas.users.items()},
        "groups": {str(number): of(quota) for number, quota in quotas.groups.items()},
        "associations": [[user, workspace, of(quota)] for (user, workspace), quota in quotas.associations.items()],
    }


def _from_json(document: JsonObject) -> Quotas:
    def of(value: Json) -> Quota:
        return Quota(**as_object(value))  # type: ignore[arg-type]  # as it was written above

    def all_of(name: str) -> dict[int, Quota]:
        return {int(number): of(value) for number, value in as_object(document.get(name)).items()}

    half_life_s = document["half_life_s"]
    assert isinstance(half_life_s, (int, float))
    associations: dict[Association, Quota] = {}
    for item in as_list(document.get("associations")):
        user, workspace, quota = as_list(item)
        assert isinstance(user, int)
        assert isinstance(workspace, int)
        associations[user, workspace] = of(quota)
    workspaces, users, groups = (all_of(name) for name in ("workspaces", "users", "groups"))
    return Quotas(float(half_life_s), workspaces, users, groups, associations, of(document.get("everyone")))
