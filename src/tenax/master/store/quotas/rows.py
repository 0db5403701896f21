"""Quotas that were applied, what was used, and what both say of the jobs that are open.

Rules: the newest row holds. Use is added up from what was held, by the loop that schedules, and read by everyone else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.ids import JobId
from tenax.jsonvalue import Json, JsonObject, as_list, as_object
from tenax.master.store.database.queries import load
from tenax.scheduler.quotas import Association, LimitKey, Quota, QuotaRules, Quotas, Use, rules_for

Q = load("quotas")


@dataclass(frozen=True, slots=True)
class AppliedQuotas:
    """Those that hold."""

    quotas: Quotas
    #: As they were written.
    source: str
    applied_by: str
    applied_at: datetime


@dataclass(frozen=True, slots=True)
class NamedIds:
    """Numbers by lower-case name."""

    users: Mapping[str, int]
    workspaces: Mapping[str, int]
    groups: Mapping[str, int]


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
            {row["name"]: row["id"] for row in await conn.fetch(query, [name.lower() for name in names])}
            for query, names in ((Q.users, users), (Q.workspaces, workspaces), (Q.groups, groups))
        ]
    )


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
        who = named.get(("user" if kind == "association" else kind, number))
        where = named.get(("workspace", workspace))
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
    groups = await memberships(conn)
    those = set(associations.values())
    keys = {key for who in those for key in applied.quotas.of(who, groups.get(who[0], ()))}
    return rules_for(applied.quotas, await use(conn), associations, groups, await names_of(conn, keys))


async def priority_for(
    conn: Connection, user_id: int, workspace_id: int, wished: int | None, usual: int
) -> tuple[int, tuple[str, ...]]:
    """The priority of a new job, and notices: what is wished, else the usual one, or the most urgent that is allowed.
    Raises InvalidInput for a wish of its own beyond that."""
    if wished is not None and wished != usual:
        await check_priority(conn, user_id, workspace_id, wished)
        return wished, ()
    ceiling = await most_urgent(conn, user_id, workspace_id)
    if ceiling is None or ceiling[0] <= usual:
        return usual, ()
    notice = f"its priority is {ceiling[0]}, not the usual {usual}: the quota of {ceiling[1]} allows no more urgent one"
    return ceiling[0], (notice,)


async def check_priority(conn: Connection, user_id: int, workspace_id: int, priority: int) -> None:
    """Raises InvalidInput where quotas do not allow it to someone's job."""
    ceiling = await most_urgent(conn, user_id, workspace_id)
    if ceiling is not None and priority < ceiling[0]:
        raise InvalidInput(
            f"priority {priority} is more urgent than the quota of {ceiling[1]} allows: give {ceiling[0]} to 99, or "
            "ask an administrator for another quota"
        )


async def most_urgent(conn: Connection, user_id: int, workspace_id: int) -> tuple[int, str] | None:
    """The most urgent priority that quotas allow to someone's jobs, and whose quota says so; None: any."""
    applied = await current(conn)
    if applied is None:
        return None
    groups = [row["group_id"] for row in await conn.fetch(Q.groups_of, user_id)]
    bound = applied.quotas.of((user_id, workspace_id), groups)
    ceilings = [(quota.priority, key) for key, quota in bound.items() if quota.priority is not None]
    if not ceilings:
        return None
    priority, key = max(ceilings)
    return priority, (await names_of(conn, [key])).get(key, key[0])


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
