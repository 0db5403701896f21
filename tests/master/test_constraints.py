"""What a configuration asks of machines, through the loops: where its trials go, also as labels change."""

from __future__ import annotations

from tenax.jsonvalue import JsonObject
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import notify
from tenax.wire.agents import ContainerSpec
from tests.kits.master.cluster import Cluster, running, submit
from tests.kits.pretend_agent import Script

SINGLE: JsonObject = {"name": "single", "metric": "loss"}


def at_once(place: Cluster) -> Script:
    async def script(spec: ContainerSpec) -> int:
        return 0

    return script


def asking(**constraints: object) -> JsonObject:
    return {"constraints": constraints}  # type: ignore[dict-item]


async def test_a_trial_goes_where_its_constraints_are_met_and_waits_until_they_are(database: Database) -> None:
    """The agent's slots are named 'pretended', and it has no labels at first."""
    async with running(database, at_once) as place:
        met = await submit(database, SINGLE, resources=asking(device_name="pretended"))
        assert await place.ended(met) == "COMPLETED"
        unmet = await submit(database, SINGLE, resources=asking(labels={"zone": "a"}, device_name="pretended"))
        waits = (
            "select w.reason from allocation_waits w join allocations a using (allocation_id) where a.state = 'PENDING'"
        )

        async def is_explained() -> bool:
            return "has no agent with a label zone" in str(await place.value(waits))

        await place.until(is_explained)
        asked_for = await place.value("select constraints from allocations where state = 'PENDING'")
        assert asked_for == {
            "labels": {"zone": ["a"]},
            "device_name": ["pretended"],
            "device_memory": None,
            "same": [],
        }
        async with database.transaction() as conn:
            await conn.execute('update agent_presence set labels = \'{"zone": "a"}\'')
            await notify(conn, "scheduling", "")
        assert await place.ended(unmet) == "COMPLETED"
