"""Machines and their labels in the API: shown, asked for, and refused where nothing meets what is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.jsonvalue import JsonObject
from tenax.master.store.agents import rows as agents
from tenax.wire.agents import Hello, SlotInfo
from tests.kits.api import Api, settings_in
from tests.kits.rows import add_agent

GIB = 1024**3


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """Two pools: of rare machines, and of others."""
    pools = (PoolSettings(name="default"), PoolSettings(name="others"))
    storage = {"type": "shared_fs", "host_path": "/checkpoints"}
    return settings_in(tmp_path).model_copy(update={"pools": pools, "checkpoint_storage": storage})


async def connect(api: Api, agent_id: str, device: str, pool: str = "default", **labels: str) -> None:
    async with api.master.db.transaction() as conn:
        await add_agent(conn, agent_id, pool=pool)
        slots = [SlotInfo(number, "cuda", device, f"GPU-{number}", 40 * GIB) for number in range(2)]
        hello = Hello(1, "0.1.0", agent_id, "process", slots, [], labels=labels)
        await agents.open_session(conn, agent_id, hello, "10.0.0.1", [])


async def submitted(api: Api, constraints: JsonObject, **more: object) -> tuple[int, JsonObject]:
    config = {
        "entrypoint": "x",
        "searcher": {"name": "single", "metric": "m"},
        "resources": {"slots_per_trial": 2, "constraints": constraints},
    }
    reply = await api.user.post("/api/v1/experiments", {"config": json.dumps(config), **more})
    answer: JsonObject = reply.json()
    return reply.status_code, answer


async def test_agents_say_what_they_are(api: Api) -> None:
    """As of their last connection."""
    await connect(api, "a", "NVIDIA A100-SXM4-40GB", zone="a", disk="nvme")
    shown = (await api.user.get("/api/v1/agents/a")).json()["agent"]
    assert shown["labels"] == {"zone": "a", "disk": "nvme"}
    assert {slot["device"]["memory"] for slot in shown["slots"].values()} == {40 * GIB}
    await connect(api, "a", "Tesla T4")
    assert (await api.user.get("/api/v1/agents/a")).json()["agent"]["labels"] == {}


async def test_what_nothing_meets_is_refused_with_what_there_is(api: Api) -> None:
    """Of experiments and of commands; what could be met is taken."""
    await connect(api, "a", "NVIDIA A100-SXM4-40GB", zone="a")
    assert (await submitted(api, {"device_name": "A100", "labels": {"zone": "a"}}, validateOnly=True))[0] == 200
    status, answer = await submitted(api, {"device_name": "H100"})
    assert status == 400
    refusal = "resources.constraints: Pool default has no device named H100, but NVIDIA A100-SXM4-40GB (2)"
    assert refusal in str(answer)
    config = {"entrypoint": ["true"], "resources": {"constraints": {"labels": {"zone": "b"}}}}
    reply = await api.user.post("/api/v1/commands", {"config": config})
    assert reply.status_code == 400
    assert "no agent with the label zone=b, but a (1)" in reply.text
    config["resources"] = {"constraints": {"labels": {"zone": "a"}}}
    assert (await api.user.post("/api/v1/commands", {"config": config})).status_code == 200


async def test_what_would_start_is_told_by_what_there_is(api: Api) -> None:
    """Only machines that meet the constraints count."""
    await connect(api, "a", "NVIDIA A100-SXM4-40GB")
    await connect(api, "b", "Tesla T4")
    async with api.master.db.transaction() as conn:
        await conn.execute("update agents set state = 'DRAINING' where agent_id = 'a'")
    _, answer = await submitted(api, {"device_name": "T4"}, validateOnly=True)
    assert answer["forecast"]["starting"] == 1  # type: ignore[call-overload, index]
    _, answer = await submitted(api, {"device_name": "A100"}, validateOnly=True)
    assert answer["forecast"]["starting"] == 0  # type: ignore[call-overload, index]


async def test_a_job_is_not_moved_to_where_its_constraints_are_not_met(api: Api) -> None:
    """The pool has slots enough, but none of these."""
    await connect(api, "a", "NVIDIA A100-SXM4-40GB")
    await connect(api, "b", "Tesla T4", pool="others")
    _, answer = await submitted(api, {"device_name": "A100"})
    job = answer["experiment"]["jobId"]  # type: ignore[call-overload, index]
    reply = await api.user.post("/api/v1/job-queues", {"updates": [{"jobId": job, "resourcePool": "others"}]})
    assert reply.status_code == 400
    assert "Pool others has no device named A100, but Tesla T4 (2)" in reply.text
