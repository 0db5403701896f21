"""Every operation, asked by callers of every kind: who is let in gets what the table says, nobody else changes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.master.access.authorization import Allow
from tenax.master.api.http.routing import Declared
from tenax.master.app import ROUTES
from tests.kits.api import Api, Client
from tests.kits.rows import add_agent
from tests.kits.sandbox import undone
from tests.kits.world import World, make_world
from tests.master.api.authorization import POLICIES
from tests.master.api.matrix import ROWS, USUAL, Row, Who

DECLARED = {route.operation: route for noun in ROUTES for route in noun.declared}

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
    Who.ADMINS: {Allow.ADMIN},
    Who.TASK: {Allow.TASK, Allow.REPORTER, Allow.USER},
    Who.AGENT: {Allow.AGENT},
}
#: Tables that change by themselves, or by being asked.
VOLATILE = {"leases", "agent_presence", "user_sessions"}


@pytest.fixture
def master_settings(master_settings: MasterSettings) -> MasterSettings:
    """A second pool, which workspaces may be bound to."""
    pools = (PoolSettings(name="default"), PoolSettings(name="other"))
    return master_settings.model_copy(update={"pools": pools})


@pytest.fixture
async def world(api: Api) -> World:
    """One of everything."""
    made = await make_world(api)
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a2")
        await conn.execute("update agent_presence set connected = false where agent_id = 'a2'")
        context = await conn.fetchval("select hash from contexts limit 1")
    more = {"password": api.password, "first": 1, "far": "far", "near": "near", "new": "new", "k": "k"}
    made.names |= more | {"context": context, "idle_agent": "a2", "other_pool": "other"}
    return made


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
            world.api.master.credentials.hear_all()
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
    return all(isinstance(one, dict) and one.get("error") for one in results)


def world_caller(world: World, name: str) -> Client:
    client: Client = getattr(world, name)
    return client


async def ask(world: World, client: Client, route: Declared, row: Row) -> object:
    """The request of a row, as ``client``."""
    path = path_of(world, route, row)
    return await client.ask(route.method, path + query_of(world, row), filled(row.body, world))


def query_of(world: World, row: Row) -> str:
    """What stands behind the path."""
    query = re.sub(r"\$(\w+)", lambda match: str(world.names[match[1]]), row.query)
    return f"?{query}" if query else ""


def path_of(world: World, route: Declared, row: Row) -> str:
    """The path of a route, to what its row says."""

    def fill(match: re.Match[str]) -> str:
        name = match[1].partition(":")[0]
        return str(world.names[row.at.get(name, USUAL.get(name, name))])

    return re.sub(r"\{([^}]*)\}", fill, route.path)


def filled(value: object, world: World) -> object:
    """``$name`` as what it is in this world."""
    if isinstance(value, str) and value.startswith("$"):
        return world.names[value[1:]]
    if isinstance(value, dict):
        return {key: filled(item, world) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, world) for item in value]
    return value


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
