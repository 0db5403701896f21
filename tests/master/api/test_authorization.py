"""Every operation, asked by callers of every kind: who is let in gets what the table says, nobody else changes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenax.master.access.authorization import Allow
from tenax.master.api.http.routing import Declared
from tests.kits.api import Api, Client
from tests.kits.sandbox import undone
from tests.kits.world import World
from tests.master.api.authorization import POLICIES
from tests.master.api.matrix import ROWS, Row, Who
from tests.master.api.requests import DECLARED, filled, master_settings, path_of, query_of, world

__all__ = ["master_settings", "world"]

#: Two of them ask thousands of questions, on a machine that others use as well.
pytestmark = pytest.mark.timeout(900)


UNKNOWN = ("nobody", "wrong", "expired")
PEOPLE_AND_TASKS = ("other", "foreign_task", "admin_task", "own_task", "owner", "admin")
#: Who is let in, of those who are known.
ADMITTED = {
    Who.PUBLIC: PEOPLE_AND_TASKS,
    Who.ALL: PEOPLE_AND_TASKS,
    Who.OWNERS: ("own_task", "owner", "admin"),
    Who.EACH: ("own_task", "owner", "admin"),
    Who.PEOPLE: ("owner", "admin"),
    Who.ADMINS: ("admin",),
    Who.TASK: ("own_task",),
    Who.AGENT: (),
}
#: The policy that a row can stand on: what is decided before the thing is loaded.
FITS = {
    Who.PUBLIC: {Allow.PUBLIC},
    Who.ALL: {Allow.USER},
    Who.OWNERS: {Allow.USER, Allow.REPORTER},
    Who.EACH: {Allow.USER},
    Who.PEOPLE: {Allow.USER},
    # Some say first what is wrong for everyone; whom they let in is tried below.
    Who.ADMINS: {Allow.ADMIN, Allow.USER},
    Who.TASK: {Allow.TASK, Allow.REPORTER, Allow.USER},
    Who.AGENT: {Allow.AGENT},
}
#: Tables that change by themselves, or by being asked.
VOLATILE = {"leases", "agent_presence", "user_sessions"}


def test_every_operation_has_a_row_that_fits_its_policy() -> None:
    """A route that is new, or opened up, has to be written into the table."""
    assert set(POLICIES) == set(DECLARED)
    missing = sorted(set(DECLARED) - set(ROWS))
    assert not missing, f"these operations have no row in tests/master/api/matrix.py: {missing}"
    assert not sorted(set(ROWS) - set(DECLARED))
    wrong = [name for name, row in ROWS.items() if POLICIES[name] not in FITS[row.who]]
    assert not wrong


async def test_whoever_is_not_let_in_is_refused_and_changes_nothing(world: World) -> None:
    """Without a credential 401, with another's 403 or 404; all rows of all tables are what they were."""
    before = await contents(world.api)
    wrong = []
    for operation, caller in refusals():
        row = ROWS[operation]
        reply = await ask(world, world_caller(world, caller), DECLARED[operation], row)
        expected = expectation(row, caller)
        told_otherwise = row.who is Who.EACH and reply.status_code == 200 and not all_refused(reply.json())
        if reply.status_code not in expected or told_otherwise:
            wrong.append(f"{operation} as {caller}: {reply.status_code} {reply.text[:200]}")
    assert not wrong, "\n".join(wrong)
    after = await contents(world.api)
    assert {name for name in after if before[name] != after[name]} == set()


async def test_whoever_is_let_in_gets_what_the_row_says(world: World) -> None:
    """Each on the same rows: what a caller did is undone before the next one asks."""
    wrong = []
    for operation, row in ROWS.items():
        route = DECLARED[operation]
        callers = ("agent",) if row.who is Who.AGENT else (*ADMITTED[row.who], *row.also)
        # Where everybody is let in, those who have least to do with it are enough.
        callers = ("other", "foreign_task", "admin") if row.who is Who.ALL else callers
        if row.who is Who.PUBLIC:
            callers = (*UNKNOWN, *callers)
        for caller in callers if route.method != "WEBSOCKET" else ():
            world.files()
            async with undone(world.api.master):
                reply = await ask(world, world_caller(world, caller), route, row)
                if reply.status_code != row.status or (row.who is Who.EACH and all_refused(reply.json())):
                    wrong.append(f"{operation} as {caller}: {reply.status_code} {reply.text[:300]}")
            world.api.master.credentials.wake_all()
    assert not wrong, "\n".join(wrong)


def refusals() -> Iterator[tuple[str, str]]:
    """Operations, and who is not let in."""
    for operation, row in ROWS.items():
        if row.who is Who.PUBLIC or DECLARED[operation].method == "WEBSOCKET":
            continue
        yield from ((operation, caller) for caller in UNKNOWN)
        refused = [caller for caller in PEOPLE_AND_TASKS if caller not in (*ADMITTED[row.who], *row.also)]
        # One's own: whoever asks means themselves.
        own = operation in ("Logout", "LegacyLogout")
        yield from ((operation, caller) for caller in refused if not own)


def expectation(row: Row, caller: str) -> set[int]:
    if caller in UNKNOWN or row.who is Who.AGENT:
        return {401}
    if row.who is Who.EACH:
        return {200, 403, 404}
    return {403, 404, row.refusal or 403}


def all_refused(answer: dict[str, object]) -> bool:
    """Whether what was asked for many things was done to none of them."""
    results = answer.get("results")
    assert isinstance(results, list), answer
    return all(isinstance(result, dict) and result.get("error") for result in results)


def world_caller(world: World, name: str) -> Client:
    client: Client = getattr(world, name)
    return client


async def ask(world: World, client: Client, route: Declared, row: Row) -> object:
    """The request of a row, as ``client``."""
    path = path_of(world, route, row)
    return await client.ask(route.method, path + query_of(world, row), filled(row.body, world))


async def contents(api: Api) -> dict[str, str]:
    """A digest of every table."""
    async with api.master.db.snapshot() as conn:
        tables = await conn.fetch(
            "select table_name as name from information_schema.tables"
            " where table_schema = 'public' and table_type = 'BASE TABLE'"
        )
        names = [row["name"] for row in tables if row["name"] not in VOLATILE]
        return {
            name: await conn.fetchval(
                f"select md5(coalesce(string_agg(t::text, ',' order by t::text), '')) from \"{name}\" t"
            )
            for name in names
        }
