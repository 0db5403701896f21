"""What no operator of a pool's agents allows is refused when it is submitted, by the setting that asks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.jsonvalue import JsonObject
from tenax.master.store.agents import rows as agents
from tenax.wire.agents import Allowed, Hello, SlotInfo
from tests.kits.api import Api, settings_in
from tests.kits.rows import add_agent

ASKED: JsonObject = {
    "bind_mounts": [{"host_path": "/etc", "container_path": "/mnt"}],
    "environment": {"add_capabilities": ["SYS_ADMIN"]},
    "resources": {"devices": [{"host_path": "/dev/sda", "container_path": "/dev/sda"}]},
}
SETTINGS = ("bind_mounts: the bind mount /etc", "environment.add_capabilities: ", "resources.devices: ")
EXPERIMENT: JsonObject = {"entrypoint": "x", "searcher": {"name": "single", "metric": "m"}}


@pytest.fixture
def master_settings(tmp_path: Path) -> MasterSettings:
    """A pool whose operator gives a folder to all, and one that gives nothing."""
    data = {"bind_mounts": [{"host_path": "/data", "container_path": "/data"}]}
    pools = (PoolSettings(name="default"), PoolSettings(name="given", task_container_defaults=data))
    storage = {"type": "shared_fs", "host_path": "/checkpoints"}
    return settings_in(tmp_path).model_copy(update={"pools": pools, "checkpoint_storage": storage})


async def connect(api: Api, agent_id: str, allowed: Allowed | None, pool: str = "default") -> None:
    async with api.master.db.transaction() as conn:
        await add_agent(conn, agent_id, pool=pool)
        hello = Hello(1, "0.1.0", agent_id, "docker", [SlotInfo(0, "cpu", "core")], [], allowed=allowed)
        await agents.open_session(conn, agent_id, hello, "10.0.0.1", [])


async def link(api: Api) -> None:
    """The user gets a uid."""
    account = {"agentUid": 1234, "agentGid": 1234, "agentUser": "ada", "agentGroup": "ada"}
    reply = await api.admin.patch("/api/v1/users/2", {"agentUserGroup": account})
    assert reply.status_code == 200, reply.text


def merged(below: JsonObject, asked: JsonObject) -> JsonObject:
    resources = {**below.get("resources", {}), **asked.get("resources", {})}  # type: ignore[dict-item]
    return {**below, **asked, "resources": resources}


async def submitted(api: Api, kind: str, asked: JsonObject, template: str = "") -> tuple[int, str]:
    if kind == "experiment":
        body = {"config": json.dumps(merged(EXPERIMENT, asked)), "template": template}
        reply = await api.user.post("/api/v1/experiments", body)
    elif kind == "command":
        config = merged({"entrypoint": ["true"], "resources": {"slots": 0}}, asked)
        reply = await api.user.post("/api/v1/commands", {"config": config, "templateName": template})
    else:
        config = merged({"entrypoint": ["true"], "resources": {"slots": 0}}, asked)
        reply = await api.user.post("/api/v1/generic-tasks", {"config": json.dumps(config), "contextDirectory": []})
    return reply.status_code, reply.json()["error"]["message"] if reply.status_code != 200 else ""


@pytest.mark.parametrize("kind", ["experiment", "command", "generic"])
async def test_it_is_refused_before_it_waits(api: Api, kind: str) -> None:
    """All of it at once; whoever has no uid is in one trust domain with the machine, as ever."""
    await connect(api, "strict", Allowed())
    assert await submitted(api, kind, ASKED) == (200, "")
    await link(api)
    status, told = await submitted(api, kind, ASKED)
    assert (status, [name for name in SETTINGS if name not in told]) == (400, []), told
    assert "checkpoint_storage" not in told
    assert await submitted(api, kind, {}) == (200, "")
    if kind != "generic":
        reply = await api.user.post("/api/v1/templates/t", {"config": ASKED})
        assert reply.status_code == 200, reply.text
        status, told = await submitted(api, kind, {}, template="t")
        assert (status, [name for name in SETTINGS if name not in told]) == (400, []), told


async def test_one_agent_that_allows_it_is_enough(api: Api) -> None:
    """And so is one that does not say, or that makes plain processes; a disabled one does not count."""
    await link(api)
    assert await submitted(api, "command", ASKED) == (200, "")
    await connect(api, "strict", Allowed())
    assert (await submitted(api, "command", ASKED))[0] == 400
    lenient = Allowed(bind_mounts=["/etc"], capabilities=["CAP_SYS_ADMIN"], devices=["/dev/sda"])
    for allowed in (lenient, None, Allowed(by_engine=False)):
        await connect(api, "other", allowed)
        assert await submitted(api, "command", ASKED) == (200, "")
    async with api.master.db.transaction() as conn:
        await agents.set_state(conn, "other", "DISABLED")
    assert (await submitted(api, "command", ASKED))[0] == 400


async def test_what_the_operator_gives_to_all_is_nobodys_wish(api: Api) -> None:
    """The defaults of a pool are allowed there and not elsewhere; a storage of one's own is a folder of the machine."""
    await link(api)
    await connect(api, "a1", Allowed())
    await connect(api, "a2", Allowed(), pool="given")
    data: JsonObject = {"bind_mounts": [{"host_path": "/data", "container_path": "/other"}]}
    assert await submitted(api, "experiment", {**data, "resources": {"resource_pool": "given"}}) == (200, "")
    assert (await submitted(api, "experiment", data))[0] == 400
    own: JsonObject = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/home/me"}}
    status, told = await submitted(api, "experiment", own)
    assert (status, "checkpoint_storage: the bind mount /home/me" in told) == (400, True), told


async def test_as_whom_it_runs(api: Api) -> None:
    """Tasks without a uid, where operators do not take them; also where they make plain processes."""
    await connect(api, "strict", Allowed(unmapped=False, by_engine=False))
    status, told = await submitted(api, "command", {})
    assert (status, "allowed.unmapped" in told) == (400, True), told
    await link(api)
    assert await submitted(api, "command", ASKED) == (200, "")
