"""Where what is filed in a workspace goes when it names no pool."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tests.kits.api import Api, settings_in
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.workspaces import project, workspace


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """Three pools; the first is the cluster's for both kinds."""
    pools = tuple(PoolSettings(name=name) for name in ("default", "gpus", "small"))
    return settings_in(tmp_path).model_copy(update={"pools": pools})


async def pool_of(api: Api, config: str, project_id: object) -> object:
    made = await create(api, config, projectId=project_id)
    return made["experiment"]["resourcePool"]  # type: ignore[index]


async def test_its_default_pools_serve_what_names_none(api: Api) -> None:
    """One for tasks with slots, one for those without; the cluster's again when they are taken away."""
    made = await workspace(api, defaultComputePool="gpus", defaultAuxPool="small")
    inside = (await project(api, made["id"]))["id"]
    without = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 0")
    named = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, resource_pool: default")
    assert [await pool_of(api, config, inside) for config in (CONFIG, without, named)] == ["gpus", "small", "default"]
    assert await pool_of(api, CONFIG, 1) == "default"
    path = f"/api/v1/workspaces/{made['id']}"
    await api.user.patch(path, {"defaultComputeResourcePool": ""})
    assert [await pool_of(api, config, inside) for config in (CONFIG, without)] == ["default", "small"]
