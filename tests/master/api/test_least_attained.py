"""The queue of a pool under least attained service, asked of the real application."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.config.master import MasterSettings, PoolSettings, SchedulerSettings
from tests.kits.api import Api, settings_in
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal
from tests.kits.rows import add_agent, add_trial, request_attempt, run_attempt


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """One pool."""
    pools = (PoolSettings(name="default", scheduler=SchedulerSettings(type="least_attained")),)
    return settings_in(tmp_path).model_copy(update={"pools": pools})


async def test_a_place_that_would_change_nothing_is_refused(api: Api) -> None:
    """Who has held much stands behind, wherever its place is."""
    made = {
        name: (await create(api, CONFIG.replace("name: digits", f"name: {name}")))["experiment"]
        for name in ("much", "none", "little")
    }
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1")
        for name, each in made.items():
            trial = await add_trial(conn, each["id"])
            if name == "much":
                past = await run_attempt(conn, trial, ("a1",))
                await conn.execute(
                    "update allocations set state = 'TERMINATED', assigned_at = now() - interval '9 hours',"
                    " ended_at = now() where allocation_id = $1",
                    past.allocation_id,
                )
            await request_attempt(conn, trial)
    much, none, little = (each["jobId"] for each in made.values())

    async def move(job: str, anchor: str) -> object:
        return await api.user.post("/api/v1/job-queues", {"updates": [{"jobId": job, "aheadOf": anchor}]})

    assert f"job {much} would still come behind job {none}: what has held much" in refusal(await move(much, none))
    await move(little, none)
    reply = await api.user.get("/api/v1/job-queues-v2", resourcePool="default")
    assert [job["full"]["name"] for job in reply.json()["jobs"]] == ["little", "none", "much"]
