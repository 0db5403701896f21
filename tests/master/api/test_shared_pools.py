"""Pools whose jobs share the slots by weight, asked of the real application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenax.config.master import MasterSettings, PoolSettings, SchedulerSettings
from tenax.jsonvalue import JsonObject
from tests.kits.api import Api, settings_in
from tests.kits.cases import answers, load
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal
from tests.kits.rows import add_agent, add_trial, request_attempt

_CASES: Any = (load("agent_state") or {}).get("resource_pools", [])
SHARES = SchedulerSettings(type="fair_share")
CONFIGURED = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, resource_pool: gpu-pool")


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """Two pools, as in the case of "agent_state/resource_pools"."""
    return settings_in(tmp_path).model_copy(
        update={
            "cluster_name": "testname",
            "pools": (PoolSettings(name="cpu-pool", scheduler=SHARES), PoolSettings(name="gpu-pool", scheduler=SHARES)),
            "default_compute_pool": "gpu-pool",
            "default_aux_pool": "cpu-pool",
        }
    )


@answers("agent_state/resource_pools", "TestGetResourcePools")
async def test_pools_say_that_they_share(api: Api) -> None:
    """Departure ("agent_state/resource_pools", architecture 7): agents need no manager that would have metadata."""
    shown = {pool["name"]: pool for pool in (await api.user.get("/api/v1/resource-pools")).json()["resourcePools"]}
    assert list(shown) == ["cpu-pool", "gpu-pool"]
    for case in _CASES:
        for expected in case["expect"]:
            pool = shown[expected["name"]]
            # Of a message without values it is said that it is empty.
            names = expected.keys() - {"resourceManagerMetadata", "stats", "details"}
            assert {name: pool[name] for name in names} == {name: expected[name] for name in names}
    assert {pool["details"]["priorityScheduler"] for pool in shown.values()} == {None}


async def waiting(api: Api, name: str) -> JsonObject:
    """An experiment whose one trial waits."""
    made = (await create(api, CONFIGURED.replace("name: digits", f"name: {name}")))["experiment"]
    async with api.master.db.transaction() as conn:
        await request_attempt(conn, await add_trial(conn, made["id"]), 1)
    return made


async def test_jobs_that_share_a_pool_have_weights_and_no_turns(api: Api) -> None:
    """Experiments and queue say that nobody is ahead; a priority changes nothing, and is refused in words."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", slots=2, pool="gpu-pool")
    first, second = await waiting(api, "first"), await waiting(api, "second")
    reply = await api.user.get("/api/v1/job-queues-v2", resourcePool="gpu-pool")
    listed = [job["full"] for job in reply.json()["jobs"]]
    assert [(job["name"], job["summary"]["jobsAhead"], job["weight"]) for job in listed] == [
        ("first", -1, 1.0),
        ("second", -1, 1.0),
    ]
    whole = (await api.user.get(f"/api/v1/experiments/{second['id']}")).json()
    assert whole["jobSummary"]["jobsAhead"] == -1

    async def change(**what: object) -> Any:
        return await api.user.post("/api/v1/job-queues", {"updates": [{"jobId": first["jobId"], **what}]})

    refused = await change(priority=1)
    assert refused.status_code == 400
    assert "share the slots of the pool 'gpu-pool' by their weight" in refusal(refused)
    assert (await change(weight=3.0)).status_code == 200


@pytest.mark.parametrize("weight", [1.7e308, 1001, 0, -1])
async def test_weights_have_a_range(api: Api, weight: float) -> None:
    """However one sets them."""
    made = await waiting(api, "first")
    change = {"updates": [{"jobId": made["jobId"], "weight": weight}]}
    assert (await api.user.post("/api/v1/job-queues", change)).status_code == 400
    body = {"id": made["id"], "resources": {"weight": weight}}
    patched = await api.user.patch(f"/api/v1/experiments/{made['id']}", body)
    assert patched.status_code == 400, patched.text
    config = CONFIGURED.replace("slots_per_trial: 1", f"slots_per_trial: 1, weight: {weight}")
    assert (await api.user.post("/api/v1/experiments", {"config": config})).status_code == 400
