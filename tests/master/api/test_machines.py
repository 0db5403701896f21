"""Agents, slots, and what agents fetch."""

from __future__ import annotations

import base64
import hashlib
import json

from tenax.master.api.agents.messages import Container, Device, DeviceType, Slot
from tenax.master.api.agents.routes import slot_stats
from tenax.master.store.agents import rows as agents
from tenax.wire.agents import Hello, SlotInfo
from tests.kits.api import Api
from tests.kits.cases import load
from tests.kits.master.attempts import running
from tests.kits.master.experiments import create, file
from tests.kits.rows import add_agent


async def test_agents_show_slots_and_what_runs_on_them(api: Api) -> None:
    """With the shapes that clients insist on."""
    run = await running(api)
    reply = (await api.user.get("/api/v1/agents")).json()
    assert reply["pagination"]["total"] == 1
    agent = reply["agents"][0]
    assert (agent["id"], agent["enabled"], agent["resourcePools"]) == ("a1", True, ["default"])
    assert list(agent["slots"]) == ["000", "001", "002", "003"]
    busy = agent["slots"]["000"]
    device = {"id": 0, "brand": "core 0", "uuid": "cpu-a1-0", "type": "TYPE_CPU", "memory": None}
    assert busy["device"] == device
    assert busy["container"]["id"] == run.attempt.containers[0]
    assert busy["container"]["state"] == "STATE_RUNNING"
    trial = (await api.user.get(f"/api/v1/trials/{busy['container']['trialId']}")).json()["trial"]
    assert [busy["container"]["taskId"]] == trial["taskIds"]
    experiment = (await api.user.get(f"/api/v1/experiments/{trial['experimentId']}")).json()["experiment"]
    whose = (experiment["id"], experiment["name"], experiment["username"])
    assert tuple(busy["container"][field] for field in ("experimentId", "description", "username")) == whose
    assert agent["slots"]["001"]["container"] is None
    assert agent["slotStats"]["typeStats"]["TYPE_CPU"] == {
        "states": {"STATE_RUNNING": 1},
        "disabled": 0,
        "draining": 0,
        "total": 4,
    }
    assert list(agent["containers"]) == list(run.attempt.containers)
    bare = (await api.user.get("/api/v1/agents", excludeSlots="true", exclude_containers="true")).json()["agents"][0]
    assert (bare["slots"], bare["containers"]) == ({}, {})
    assert (await api.user.get("/api/v1/agents/a1")).json()["agent"]["id"] == "a1"
    assert (await api.user.get("/api/v1/agents/a9")).status_code == 404
    assert len((await api.user.get("/api/v1/agents/a1/slots")).json()["slots"]) == 4
    assert (await api.user.get("/api/v1/agents/a1/slots/9")).status_code == 404


async def test_an_agent_that_is_turned_off_is_left(api: Api) -> None:
    """Disabled: what runs there is asked to leave; draining: it is not; enabled: it takes work again."""
    run = await running(api)
    signal = f"{run.path}/signals/preemption"
    drained = (await api.admin.post("/api/v1/agents/a1/disable", {"drain": True})).json()["agent"]
    assert (drained["enabled"], drained["draining"]) == (False, True)
    assert (await run.task.get(signal)).json() == {"preempt": False}
    off = (await api.admin.post("/api/v1/agents/a1/disable")).json()["agent"]
    assert (off["enabled"], off["draining"]) == (False, False)
    assert off["slotStats"]["typeStats"]["TYPE_CPU"]["disabled"] == 4
    assert (await run.task.get(signal)).json() == {"preempt": True}
    assert (await api.admin.post("/api/v1/agents/a1/enable")).json()["agent"]["enabled"] is True
    assert (await api.user.post("/api/v1/agents/a1/disable")).status_code == 403
    assert (await api.admin.post("/api/v1/agents/a9/disable")).status_code == 404


async def test_a_broken_device_says_what_is_wrong(api: Api) -> None:
    """It counts as disabled for clients that know no fault."""
    async with api.master.db.transaction() as conn:
        hello = Hello(1, "0.1.0", "a1.local", "process", [SlotInfo(0, "cuda", "H100", "GPU-a", None, "lost")], [])
        await add_agent(conn, "a1", slots=2)
        await agents.open_session(conn, "a1", hello, "10.0.0.1", [])
    slots = (await api.user.get("/api/v1/agents/a1/slots")).json()["slots"]
    assert [(slot["id"], slot["enabled"], slot["draining"], slot["fault"]) for slot in slots] == [
        ("0", False, False, "lost")
    ]


async def test_a_slot_can_be_turned_off_alone(api: Api) -> None:
    """Only what runs on it is asked to leave."""
    run = await running(api)
    signal = f"{run.path}/signals/preemption"
    free = (await api.admin.post("/api/v1/agents/a1/slots/3/disable")).json()["slot"]
    assert (free["id"], free["enabled"]) == ("3", False)
    assert (await run.task.get(signal)).json() == {"preempt": False}
    await api.admin.post("/api/v1/agents/a1/slots/0/disable")
    assert (await run.task.get(signal)).json() == {"preempt": True}
    assert (await api.admin.post("/api/v1/agents/a1/slots/0/enable")).json()["slot"]["enabled"] is True
    assert (await api.admin.post("/api/v1/agents/a1/slots/9/enable")).status_code == 404


async def test_an_agent_fetches_only_code_that_it_runs(api: Api) -> None:
    """The bytes have the hash that names them; another agent, a user and a wrong credential get nothing."""
    await running(api)
    await create(api, modelDefinition=[file("train.py", "x = 1\n" * 1000)])
    async with api.master.db.transaction() as conn:
        other = await add_agent(conn, "a2")
        hashed = await conn.fetchval("select hash from contexts")
        await conn.execute("update experiment_documents set context_hash = $1", hashed)
    path = f"/agents/contexts/{hashed}"
    reply = await api.client({"Authorization": "Bearer tnxg_a1"}).get(path)
    assert hashlib.sha256(reply.content).hexdigest() == hashed
    assert (await api.client({"Authorization": f"Bearer {other}"}).get(path)).status_code == 403
    assert (await api.user.get(path)).status_code == 401
    assert (await api.client({"Authorization": "Bearer tnxg_a7"}).get(path)).status_code == 401
    async with api.master.db.connection() as conn:
        task_id = await conn.fetchval("select task_id from tasks")
    code = (await api.user.get(f"/api/v1/tasks/{task_id}/context_directory")).json()["b64Tgz"]
    assert base64.b64decode(code) == reply.content
    assert (await api.user.get("/api/v1/tasks/nope/context_directory")).status_code == 404


def test_slots_are_counted_as_the_cases_say() -> None:
    """By type and by brand; what runs is counted by type. (Without the case files: one of each kind.)"""
    document = load("api_records")
    cases = document["slot_summary"] if document is not None else json.loads(_OWN)
    for case in cases:  # type: ignore[attr-defined]
        slots = [_slot(number, slot) for number, slot in enumerate(case["slots"])]
        shown = slot_stats(slots).model_dump(by_alias=True)
        for kind in ("type", "brand"):
            expected = case[f"{kind}_stats"]
            assert set(shown[f"{kind}Stats"]) == set(expected)
            for name, stats in expected.items():
                whole = {"states": {}, "disabled": 0, "draining": 0, **stats}
                assert shown[f"{kind}Stats"][name] == whole


_OWN = """[{"slots": [{"type": "TYPE_CUDA", "brand": "X", "enabled": true, "draining": false,
                       "container_state": "STATE_RUNNING"},
                      {"type": "TYPE_CUDA", "brand": "X", "enabled": false, "draining": true}],
            "type_stats": {"TYPE_CUDA": {"total": 2, "disabled": 1, "draining": 1, "states": {"STATE_RUNNING": 1}}},
            "brand_stats": {"X": {"total": 2, "disabled": 1, "draining": 1}}}]"""


def _slot(number: int, case: dict[str, object]) -> Slot:
    state = case.get("container_state")
    return Slot(
        id=str(number),
        device=Device(id=number, brand=str(case["brand"]), type=DeviceType(str(case["type"]))),
        enabled=case["enabled"] is True,
        draining=case["draining"] is True,
        container=None if state is None else Container(id="c", state=str(state)),
    )
