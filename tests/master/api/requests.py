"""Rows of the matrix as requests: the cluster they are asked of (fixture ``world``), paths, queries and bodies."""

from __future__ import annotations

import re

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.master.api.http.routing import Declared
from tenax.master.app import ROUTES
from tests.kits.api import Api
from tests.kits.rows import add_agent
from tests.kits.world import World, make_world
from tests.master.api.matrix import USUAL, Row

DECLARED = {route.operation: route for noun in ROUTES for route in noun.declared}
#: Operations that would end what the others need, or that answer for as long as one listens.
SKIPPED = {"Logout", "LegacyLogout"}


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
