"""The shared case file on agents ("agent_state"): how many slots they have for work, and of which kind a pool is.

Departures (architecture 7): an agent says at each connection which slots it has, and that is what it has from then on;
its pool is that of its join; of two connections the older one closes.
"""

from __future__ import annotations

from typing import Any

import pytest

from tenax.master.store.agents import rows as agents
from tenax.wire.agents import Hello, SlotInfo
from tests.kits.api import Api
from tests.kits.cases import answers, load
from tests.kits.master.attempts import running
from tests.kits.rows import add_agent, end_member

_CASES: Any = load("agent_state") or {"resource_summary": [], "slot_index": []}


async def slots_for_work(api: Api) -> int:
    (pool,) = (await api.user.get("/api/v1/resource-pools")).json()["resourcePools"]
    return int(pool["slotsAvailable"])


async def shown(api: Api) -> list[tuple[bool, bool]]:
    agent = (await api.user.get("/api/v1/agents/a1")).json()["agent"]
    return [(slot["enabled"], slot["draining"]) for slot in agent["slots"].values()]


async def change(api: Api, path: str, **body: object) -> None:
    reply = await api.admin.post(f"/api/v1/agents/a1/{path}", body)
    assert reply.status_code == 200, reply.text


@answers("agent_state/slot_states", "TestSlotStates")
async def test_slots_of_an_agent_that_is_turned_off_and_on(api: Api) -> None:
    """Enabled: all; drained: those in use; disabled: none ("agent_state/slot_states")."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", 2)
    assert await slots_for_work(api) == 2
    assert await shown(api) == [(True, False)] * 2
    await change(api, "slots/0/disable", drain=True)
    assert (await shown(api))[0] == (False, True)
    for slot in (0, 1):
        await change(api, f"slots/{slot}/enable")
    assert await shown(api) == [(True, False)] * 2
    run = await running(api)
    await change(api, "disable", drain=True)
    assert await slots_for_work(api) == 1
    async with api.master.db.transaction() as conn:
        await end_member(conn, run.attempt, 0)
        await conn.execute("delete from slots_in_use")
    assert await slots_for_work(api) == 0
    await change(api, "disable")
    assert await slots_for_work(api) == 0
    await change(api, "enable")
    assert await slots_for_work(api) == 2


@answers("agent_state/group_priority", "TestSettingGroupPriority")
async def test_a_job_that_is_not_there_gets_no_priority(api: Api) -> None:
    """Departure ("agent_state/group_priority", architecture 5): it stands in the row of the job, and goes with that."""
    body = {"updates": [{"jobId": "nobody's", "priority": 22}]}
    assert (await api.admin.post("/api/v1/job-queues", body)).status_code == 404


@pytest.mark.parametrize("case", _CASES["resource_summary"], ids=lambda case: str(case["id"]))
async def test_the_kind_of_a_pool(api: Api, case: Any) -> None:
    """That of its slots where they are of one kind."""
    async with api.master.db.transaction() as conn:
        for number, entry in enumerate(case["agents"]):
            name = f"a{number}"
            await agents.join(conn, name, "default", name.encode() * 16)
            # An agent without slots is of no kind here.
            count = max(entry["slots"], 1)
            slots = [SlotInfo(place, entry["slot_type"], "x", f"{name}-{place}") for place in range(count)]
            await agents.open_session(conn, name, Hello(1, "0.1.0", name, "process", slots, []), "10.0.0.1", [])
    (pool,) = (await api.user.get("/api/v1/resource-pools")).json()["resourcePools"]
    assert pool["slotType"] == f"TYPE_{case['expect_slot_type'].upper() or 'UNSPECIFIED'}"


@answers("agent_state/device_match", "devices match", "device is missing", "extra device", "mismatched device")
async def test_an_agent_has_the_slots_that_it_said_last(api: Api) -> None:
    """Whatever it said before: none of these is refused."""
    for number, case in enumerate(_CASES.get("device_match", [])):
        name = f"a{number}"
        async with api.master.db.transaction() as conn:
            await agents.join(conn, name, "default", name.encode() * 16)
            for said in (case["master"], case["agent"]):
                slots = [SlotInfo(place, "cuda", device["type"], device["uuid"]) for place, device in enumerate(said)]
                await agents.open_session(conn, name, Hello(1, "0.1.0", name, "process", slots, []), "10.0.0.1", [])
        agent = (await api.user.get(f"/api/v1/agents/{name}")).json()["agent"]
        shown_devices = [slot["device"]["uuid"] for slot in agent["slots"].values()]
        assert shown_devices == [device["uuid"] for device in case["agent"]], case["id"]


@answers("agent_state/pool_match", "match", "agent says default", "master has default", "mismatch")
async def test_the_pool_of_an_agent_is_that_of_its_join(api: Api) -> None:
    """A machine that is set up anew may be in another one."""
    for number, case in enumerate(_CASES.get("pool_match", [])):
        name = f"a{number}"
        async with api.master.db.transaction() as conn:
            await agents.join(conn, name, case["master"], name.encode() * 16)
            await agents.join(conn, name, case["agent"], name.encode() * 8 + b"anew" * 4, replace=True)
        agent = (await api.user.get(f"/api/v1/agents/{name}")).json()["agent"]
        assert agent["resourcePools"] == [case["agent"]]


async def test_slots_are_named_so_that_they_sort(api: Api) -> None:
    """With three digits."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", 17)
    names = list((await api.user.get("/api/v1/agents/a1")).json()["agent"]["slots"])
    assert names == sorted(names)
    for case in _CASES["slot_index"]:
        assert names[case["index"]] == case["expect"]
