"""A cluster with something of every kind in it, and callers of every kind: what authorization is tried on.

``determined`` owns what there is; ``eve`` is another user, with a running trial of her own; ``admin`` administers, and
has a running trial as well. Names in `World.names` are what rows of the matrix may ask for as ``$name``.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from tenax.master.access.task_tokens import token_hash
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import NewMachine
from tests.kits.api import Api, Client
from tests.kits.rows import add_agent, add_trial, run_attempt

PASSWORD = "Kn0wn-Secret-Words"
CONFIG = """
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: random, metric: accuracy, smaller_is_better: false, max_trials: 8}
resources: {slots_per_trial: 1}
"""
SINGLE = CONFIG.replace("name: random", "name: single").replace(", max_trials: 8", "")
CHECKPOINT, OTHER_CHECKPOINT = (f"0d6e4079-4c8e-4f5f-9a39-2f4e2b1c000{one}" for one in (1, 2))


@dataclass
class World:
    """What there is."""

    api: Api
    owner: Client
    other: Client
    admin: Client
    nobody: Client
    wrong: Client
    expired: Client
    agent: Client
    own_task: Client
    foreign_task: Client
    admin_task: Client
    #: What rows may ask for.
    names: dict[str, object] = field(default_factory=dict)

    def files(self) -> None:
        """Put the checkpoints' files where they belong, if somebody deleted them."""
        place = self.api.master.settings.checkpoint_storage
        assert place is not None
        for one in (CHECKPOINT, OTHER_CHECKPOINT):
            folder = Path(str(place["host_path"])) / one
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "w.bin").write_bytes(b"data")


async def make_world(api: Api) -> World:
    """Make all of it."""
    body = {"user": {"username": "eve"}, "password": PASSWORD}
    assert (await api.admin.post("/api/v1/users", body)).status_code == 200
    other = await api.login("eve", PASSWORD)
    async with api.master.db.transaction() as conn:
        agent = await add_agent(conn, "a1", 8)
    world = World(
        api,
        owner=api.user,
        other=other,
        admin=api.admin,
        nobody=api.nobody,
        wrong=api.client({"Authorization": "Bearer tnxs_wrong"}),
        expired=await _expired(api),
        agent=api.client({"Authorization": f"Bearer {agent}"}),
        own_task=api.nobody,
        foreign_task=api.nobody,
        admin_task=api.nobody,
    )
    world.names = {"user": 2, "username": "determined", "agent": "a1", "slot": 0, "pool": "default"}
    world.own_task = await _trial(world, api.user, "")
    world.foreign_task = await _trial(world, other, "foreign_")
    world.admin_task = await _trial(world, api.admin, "admin_")
    await _checkpoints(world)
    await _folders(world)
    await _experiments(world)
    await _tasks(world)
    await _people(world)
    world.files()
    return world


async def asked(client: Client, method: str, path: str, body: object = None) -> dict[str, object]:
    """The answer to what must succeed."""
    reply = await client.ask(method, path, body)
    assert reply.status_code == 200, f"{path}: {reply.text}"
    answer: dict[str, object] = reply.json()
    return answer


async def _expired(api: Api) -> Client:
    token = "tnxs_" + secrets.token_urlsafe(8)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into user_sessions (user_id, token_hash, expires_at) values (1, $1, now() - interval '1 minute')",
            token_hash(token),
        )
    return api.client({"Authorization": f"Bearer {token}"})


async def _experiment(client: Client, config: str = CONFIG, **more: object) -> int:
    code = [{"path": "train.py", "type": 48, "content": base64.b64encode(b"print(1)").decode(), "mode": 33188}]
    body = {"config": config, "activate": True, "modelDefinition": code, **more}
    made = await asked(client, "POST", "/api/v1/experiments", body)
    number: int = made["experiment"]["id"]  # type: ignore[index]
    return number


async def _trial(world: World, client: Client, prefix: str) -> Client:
    """A running trial of ``client``, and its token."""
    number = await _experiment(client)
    user = (await asked(client, "GET", "/api/v1/me"))["user"]["id"]  # type: ignore[index]
    async with world.api.master.db.transaction() as conn:
        trial = await add_trial(conn, number)
        attempt = await run_attempt(conn, trial)
        job = await conn.fetchval("select job_id from experiments where id = $1", number)
    task = attempt.allocation_id.rpartition(".")[0]
    found = {"experiment": number, "trial": trial, "allocation": attempt.allocation_id, "task": task, "job": job}
    found["container"] = attempt.containers[0]
    world.names |= {prefix + name: value for name, value in found.items()}
    return await world.api.task(attempt.allocation_id, user)


async def _checkpoints(world: World) -> None:
    for one in (CHECKPOINT, OTHER_CHECKPOINT):
        body = {"uuid": one, "state": "STATE_COMPLETED", "metadata": {"steps_completed": 1}, "resources": {"w.bin": 4}}
        await asked(world.own_task, "POST", "/api/v1/checkpoints", body)
    loss = {"avgMetrics": {"loss": 1}}
    values = {"trialId": world.names["trial"], "trialRunId": 1, "stepsCompleted": 0, "metrics": loss}
    path = f"/api/v1/trials/{world.names['trial']}/metrics"
    await asked(world.own_task, "POST", path, {"group": "training", "metrics": values})
    world.names |= {"checkpoint": CHECKPOINT, "other_checkpoint": OTHER_CHECKPOINT, "new_uuid": str(uuid.uuid4())}


async def _folders(world: World) -> None:
    """Workspaces, projects, models, all of the owner's; one of each to delete."""
    owner = world.owner
    for name in ("workspace", "empty_workspace", "archived_workspace"):
        made = await asked(owner, "POST", "/api/v1/workspaces", {"name": name})
        world.names[name] = made["workspace"]["id"]  # type: ignore[index]
    for name in ("project", "empty_project", "archived_project"):
        path = f"/api/v1/workspaces/{world.names['workspace']}/projects"
        made = await asked(owner, "POST", path, {"name": name})
        world.names[name] = made["project"]["id"]  # type: ignore[index]
        world.names[f"{name}_key"] = made["project"]["key"]  # type: ignore[index]
    for kind in ("workspace", "project"):
        await asked(owner, "POST", f"/api/v1/{kind}s/{world.names[f'archived_{kind}']}/archive")
    for name in ("model", "archived_model"):
        await asked(owner, "POST", "/api/v1/models", {"name": name})
        world.names[name] = name
    await asked(owner, "POST", "/api/v1/models/archived_model/archive")
    version = {"checkpointUuid": OTHER_CHECKPOINT}
    await asked(owner, "POST", "/api/v1/models/model/versions", version)
    await asked(owner, "POST", "/api/v1/templates/template", {"config": {"resources": {"slots": 0}}})
    world.names |= {"version": 1, "template": "template", "workload_type": "EXPERIMENT"}


async def _experiments(world: World) -> None:
    """Experiments that have ended, are paused, are archived, or run elsewhere."""
    names = world.names
    for name in ("ended", "paused", "archived", "shelved"):
        names[name] = await _experiment(world.owner, SINGLE, projectId=names["project"])
    await asked(world.owner, "POST", f"/api/v1/experiments/{names['paused']}/pause")
    async with world.api.master.db.transaction() as conn:
        done = [names[name] for name in ("ended", "archived", "shelved")]
        await conn.execute("update experiments set state = 'CANCELED', ended_at = now() where id = any($1)", done)
        await conn.execute(
            "update jobs set ended_at = now() where job_id in (select job_id from experiments where id = any($1))", done
        )
        for name in ("ended", "archived", "paused", "shelved"):
            names[f"{name}_trial"] = await add_trial(conn, int(str(names[name])), seq=100 + int(str(names[name])))
        await conn.execute("update trials set state = 'CANCELED', ended_at = now() where experiment_id = any($1)", done)
    await asked(world.owner, "POST", f"/api/v1/experiments/{names['archived']}/archive")
    shelved = {"runIds": [names["shelved_trial"]], "projectId": names["project"]}
    await asked(world.owner, "POST", "/api/v1/runs/archive", shelved)
    unmanaged = {"config": "name: far\nsearcher: {name: single, metric: score}\n", "unmanaged": True}
    made = await asked(world.owner, "PUT", "/api/v1/experiments/by-external-id/far", unmanaged)
    names["unmanaged"] = made["experiment"]["id"]  # type: ignore[index]
    trial = {"experimentId": names["unmanaged"], "hparams": {}, "unmanaged": True}
    body = {"createTrialRequest": trial, "externalTrialId": "near"}
    made = await asked(world.owner, "PUT", "/api/v1/trials", body)
    names["unmanaged_trial"] = made["trial"]["id"]  # type: ignore[index]
    names["unmanaged_task"] = made["trial"]["taskId"]  # type: ignore[index]
    made = await asked(world.owner, "POST", f"/api/v1/trials/{names['unmanaged_trial']}/start", {})
    names["unmanaged_run"] = made["trialRunId"]


async def _tasks(world: World) -> None:
    """A command and a generic task."""
    body = {"config": {"entrypoint": ["true"], "resources": {"slots": 0}}}
    made = await asked(world.owner, "POST", "/api/v1/commands", body)
    world.names["command"] = made["command"]["id"]  # type: ignore[index]
    for name in ("generic", "paused_generic"):
        config = {"config": "entrypoint: ['true']\nresources: {slots: 0}\n", "contextDirectory": []}
        made = await asked(world.owner, "POST", "/api/v1/generic-tasks", config)
        world.names[name] = made["taskId"]
    await asked(world.owner, "POST", f"/api/v1/tasks/{world.names['paused_generic']}/pause")


async def _people(world: World) -> None:
    """A group, an access token, a webhook."""
    made = await asked(world.admin, "POST", "/api/v1/groups", {"name": "group", "addUsers": [2]})
    world.names["group"] = made["group"]["groupId"]  # type: ignore[index]
    made = await asked(world.admin, "POST", "/api/v1/join-tokens", {"agentId": "a9"})
    world.names["join_token"] = made["joinToken"]["id"]
    async with world.api.master.db.transaction() as conn:
        await machines.plan(conn, [NewMachine("m-1", "default", "aws", "r", "", "m5.large", 2, (), b"m" * 32, "")])
        await conn.execute("update machines set state = 'FAILED', ended_at = now()")
    world.names["machine"] = "m-1"
    world.names["token"] = (await asked(world.owner, "POST", "/api/v1/tokens", {"userId": 2}))["tokenId"]
    hook = {
        "name": "hook",
        "url": "http://hooks.invalid/s3cr3t-hook-path",
        "mode": "WEBHOOK_MODE_SPECIFIC",
        "webhookType": "WEBHOOK_TYPE_DEFAULT",
        "triggers": [{"triggerType": "TRIGGER_TYPE_CUSTOM"}],
        "workspaceId": world.names["workspace"],
    }
    made = await asked(world.owner, "POST", "/api/v1/webhooks", hook)
    world.names["webhook"] = made["webhook"]["id"]  # type: ignore[index]
