"""Whatever people do at once, nobody waits for nobody: every verb of the API, at random, against real loops and agents.

No request may break (500), no loop may break, and PostgreSQL may find no deadlock: that would be two paths through the
code which lock the same rows in different orders. A deadlock is found by PostgreSQL after a moment of waiting, ends one
of the transactions, and would be hidden as "try again"; so each is caught where it is translated.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import traceback
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import pytest
import structlog

from tenax.master import loops
from tenax.master.access.task_tokens import allocation_token
from tenax.master.agents.hub import Hub
from tenax.master.agents.specs import PoolDefaults
from tenax.master.store.agents import rows as agents
from tenax.master.store.database import connection as store_database
from tenax.master.store.database.connection import Database
from tenax.wire.agents import ContainerSpec
from tests.kits.api import Api, Client, answering, settings_in
from tests.kits.pretend_agent import PretendAgent

CONFIG = """
name: e
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: random, metric: loss, max_trials: 3}
checkpoint_storage: {save_experiment_best: 0, save_trial_best: 1, save_trial_latest: 1}
resources: {slots_per_trial: 1}
max_restarts: 1
"""
_CODE = [{"path": "train.py", "type": 48, "content": base64.b64encode(b"print(1)").decode(), "mode": 33188}]
_TRIGGERS = [
    {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": f"STATE_{state}"}}
    for state in ("COMPLETED", "ERROR")
]
#: Who plays at once, and how many verbs each; in an ordinary run so many.
PLAYERS, VERBS, FEW = 8, 60, 25
_EXPERIMENT_VERBS = ("activate", "pause", "cancel", "kill", "archive", "unarchive")
_RUN_VERBS = ("kill", "pause", "resume", "archive", "unarchive", "delete")


class Crowd:
    """People who do what comes to mind."""

    def __init__(self, api: Api, chance: random.Random, verbs: int) -> None:
        self.api = api
        self.chance = chance
        self._count = verbs
        self.answers: Counter[str] = Counter()
        self.broken: list[str] = []

    async def play(self) -> None:
        """One of them."""
        verbs = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]
        for _ in range(self._count):
            await self.chance.choice(verbs)()
            await asyncio.sleep(self.chance.uniform(0, 0.02))

    async def _ask(self, method: str, path: str, body: object = None, client: Client | None = None) -> None:
        try:
            reply = await (client or self.api.admin).ask(method, path, body)
        except Exception:
            self.broken.append(f"{method} {path} {body}\n{traceback.format_exc()}")
            return
        self.answers[f"{reply.status_code}"] += 1
        # 503: somebody else changed the same thing first, and the caller is told to try again.
        if reply.status_code >= 500 and reply.status_code != 503:
            self.broken.append(f"{method} {path} {body}: {reply.text}")

    async def _some(self, sql: str, most: int = 1) -> list[object]:
        """A few of what there is, in any order."""
        async with self.api.master.db.connection() as conn:
            found = [row[0] for row in await conn.fetch(sql)]
        return self.chance.sample(found, min(len(found), self.chance.randint(1, most)))

    async def _experiments(self, most: int = 1) -> list[object]:
        return await self._some("select id from experiments", most)

    async def _projects(self) -> list[object]:
        return await self._some("select id from projects where id > 0")

    async def do_create(self) -> None:
        for project in await self._projects():
            config = CONFIG.replace("max_trials: 3", f"max_trials: {self.chance.randint(1, 4)}")
            body = {"config": config, "activate": True, "modelDefinition": _CODE, "projectId": project}
            await self._ask("POST", "/api/v1/experiments", body)

    do_create_too = do_create

    async def do_verb(self) -> None:
        for one in await self._experiments():
            await self._ask("POST", f"/api/v1/experiments/{one}/{self.chance.choice(_EXPERIMENT_VERBS)}")

    async def do_many(self) -> None:
        body = {"experimentIds": await self._experiments(6)}
        verb = self.chance.choice(_EXPERIMENT_VERBS)
        await self._ask("POST", f"/api/v1/projects/0/experiments/{verb}", body)

    async def do_move_many(self) -> None:
        for project in await self._projects():
            body = {"experimentIds": await self._experiments(6), "destinationProjectId": project}
            await self._ask("POST", "/api/v1/projects/0/experiments/move", body)

    async def do_delete_many(self) -> None:
        body = {"experimentIds": await self._experiments(3)}
        await self._ask("DELETE", "/api/v1/projects/0/experiments/delete", body)

    async def do_continue(self) -> None:
        for one in await self._some("select id from experiments where ended_at is not null"):
            await self._ask("POST", "/api/v1/experiments/continue", {"id": one})

    async def do_runs(self) -> None:
        runs = await self._some("select id from trials", 6)
        verb = self.chance.choice(_RUN_VERBS)
        for project in await self._projects():
            await self._ask("POST", f"/api/v1/runs/{verb}", {"runIds": runs, "projectId": project})

    async def do_move_runs(self) -> None:
        runs = await self._some("select id from trials", 6)
        for source in await self._projects():
            for target in await self._projects():
                body = {"runIds": runs, "sourceProjectId": source, "destinationProjectId": target}
                await self._ask("POST", "/api/v1/runs/move", body)

    async def do_policy(self) -> None:
        for one in await self._experiments():
            names = ("saveExperimentBest", "saveTrialBest", "saveTrialLatest")
            policy = {name: self.chance.randint(0, 2) for name in names}
            await self._ask("PATCH", f"/api/v1/experiments/{one}", {"checkpointStorage": policy})

    async def do_edit(self) -> None:
        for one in await self._experiments():
            resources = {"maxSlots": self.chance.randint(1, 4), "weight": 1.0, "priority": self.chance.randint(1, 99)}
            await self._ask("PATCH", f"/api/v1/experiments/{one}", {"name": "n", "resources": resources})
            await self._ask("PUT", f"/api/v1/experiments/{one}/labels/{self.chance.choice('abc')}")
            await self._ask("PUT", f"/api/v1/experiments/{one}/retain_logs", {"numDays": 3})

    async def do_queue(self) -> None:
        jobs = await self._some("select job_id from jobs where ended_at is null", 5)
        wishes: list[dict[str, object]] = [{"priority": 50}, {"weight": 2.0}]
        if jobs:
            wishes += [{"aheadOf": jobs[0]}, {"behindOf": jobs[0]}]
        updates = [{"jobId": job, **self.chance.choice(wishes)} for job in jobs]
        await self._ask("POST", "/api/v1/job-queues", {"updates": updates})

    async def do_drain(self) -> None:
        await self._ask("POST", "/api/v1/agents/a1/disable", {"drain": self.chance.random() < 0.5})
        await self._ask("DELETE", "/api/v1/agents/a1")
        await self._ask("POST", "/api/v1/agents/a1/enable")

    async def do_slot(self) -> None:
        await self._ask("POST", "/api/v1/agents/a2/slots/0/disable", {"drain": self.chance.random() < 0.5})
        await self._ask("POST", "/api/v1/agents/a2/slots/0/enable")

    async def do_register(self) -> None:
        await self._ask("POST", "/api/v1/models", {"name": self.chance.choice("mno")})
        for one in await self._some("select uuid from checkpoints"):
            model = self.chance.choice("mno")
            await self._ask("POST", f"/api/v1/models/{model}/versions", {"checkpointUuid": one})
            await self._ask("DELETE", f"/api/v1/models/{model}/versions/{self.chance.randint(1, 5)}")

    async def do_model(self) -> None:
        model = self.chance.choice("mno")
        if self.chance.random() < 0.3:
            await self._ask("DELETE", f"/api/v1/models/{model}")
        for target in await self._some("select id from workspaces"):
            await self._ask("POST", f"/api/v1/models/{model}/move", {"destinationWorkspaceId": target})

    async def do_checkpoints(self) -> None:
        some = await self._some("select uuid from checkpoints", 4)
        if self.chance.random() < 0.5:
            await self._ask("DELETE", "/api/v1/checkpoints", {"checkpointUuids": some})
        else:
            body = {"checkpointUuids": some, "checkpointGlobs": ["*.bin"]}
            await self._ask("POST", "/api/v1/checkpoints/rm", body)

    async def do_command(self) -> None:
        config = {"entrypoint": ["true"], "resources": {"slots": self.chance.randint(0, 1)}}
        await self._ask("POST", "/api/v1/commands", {"config": config})
        for one in await self._some("select task_id from tasks where kind = 'COMMAND'"):
            await self._ask("POST", f"/api/v1/commands/{one}/set_priority", {"priority": 50})
            await self._ask("POST", f"/api/v1/commands/{one}/kill")

    async def do_generic(self) -> None:
        parents = await self._some("select task_id from tasks where kind = 'GENERIC'")
        body = {"config": "entrypoint: ['true']\nresources: {slots: 0}\n", "contextDirectory": []}
        await self._ask("POST", "/api/v1/generic-tasks", body | ({"parentId": parents[0]} if parents else {}))
        verbs: list[tuple[str, object]] = [("pause", None), ("unpause", None), ("kill", {"killFromRoot": True})]
        for one in await self._some("select task_id from tasks where kind = 'GENERIC'", 2):
            verb, wish = self.chance.choice(verbs)
            await self._ask("POST", f"/api/v1/tasks/{one}/{verb}", wish)

    async def do_folders(self) -> None:
        await self._ask("POST", "/api/v1/workspaces", {"name": uuid.UUID(int=self.chance.getrandbits(128)).hex})
        for one in await self._some("select id from workspaces"):
            verb = self.chance.choice(("archive", "unarchive", "unarchive", "projects", "projects"))
            body = {"name": uuid.UUID(int=self.chance.getrandbits(128)).hex}
            await self._ask("POST", f"/api/v1/workspaces/{one}/{verb}", body if verb == "projects" else None)

    async def do_empty(self) -> None:
        kind = self.chance.choice(("workspace", "project", "project"))
        for one in await self._some(f"select id from {kind}s where id > 1"):
            await self._ask("DELETE", f"/api/v1/{kind}s/{one}")

    async def do_move_project(self) -> None:
        for one in await self._projects():
            for target in await self._some("select id from workspaces"):
                await self._ask("POST", f"/api/v1/projects/{one}/move", {"destinationWorkspaceId": target})

    async def do_people(self) -> None:
        users = await self._some("select id from users where username <> 'admin'", 3)
        body = {"userIds": users, "activate": self.chance.random() < 0.8}
        await self._ask("PATCH", "/api/v1/users", body)
        await self._ask("POST", "/api/v1/users", {"user": {"username": f"u{self.chance.randint(1, 20)}"}})

    async def do_webhooks(self) -> None:
        hook = {"name": self.chance.choice("xyz"), "url": "http://192.0.2.1/", "webhookType": "WEBHOOK_TYPE_DEFAULT"}
        await self._ask("POST", "/api/v1/webhooks", hook | {"triggers": _TRIGGERS, "workspaceId": 1})
        for one in await self._some("select id from webhooks"):
            if self.chance.random() < 0.3:
                await self._ask("DELETE", f"/api/v1/webhooks/{one}")

    async def do_look(self) -> None:
        for path in ("experiments", "agents", "job-queues-v2?resourcePool=default", "tasks", "models", "workspaces"):
            await self._ask("GET", f"/api/v1/{path}")

    async def do_metadata(self) -> None:
        for one in await self._some("select id from trials"):
            await self._ask("POST", f"/api/v1/runs/{one}/metadata", {"metadata": {"k": self.chance.randint(0, 9)}})

    # What tasks do

    async def script(self, spec: ContainerSpec) -> int:
        """Reports, announces and stores checkpoints; ends well or not."""
        token = allocation_token(self.api.master.cluster.secret, spec.allocation_id)
        client = self.api.client({"Grpc-Metadata-x-allocation-token": f"Bearer {token}"})
        trial = spec.env.get("DET_TRIAL_ID")
        for step in range(1, 5):
            await asyncio.sleep(self.chance.uniform(0, 0.1))
            if trial is not None:
                await self._report(client, spec, trial, step)
            if self.chance.random() < 0.05:
                return 1
        return 0

    async def _report(self, client: Client, spec: ContainerSpec, trial: str, step: int) -> None:
        values = {"trialId": int(trial), "trialRunId": int(spec.env["DET_TRIAL_RUN_ID"]), "stepsCompleted": step}
        metrics = values | {"metrics": {"avgMetrics": {"loss": self.chance.random()}}}
        body = {"group": "validation", "metrics": metrics}
        await self._ask("POST", f"/api/v1/trials/{trial}/metrics", body, client)
        made = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        body = {"uuid": made, "state": "STATE_COMPLETED", "metadata": {"steps_completed": step}}
        await self._ask("POST", "/api/v1/checkpoints", body | {"resources": {"w.bin": 4}}, client)
        await self._ask("POST", f"/api/v1/trials/{trial}/progress", {"progress": step / 5}, client)


@contextmanager
def deadlocks_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The story of each deadlock that PostgreSQL finds."""
    found: list[str] = []
    translated = store_database.translated

    @contextmanager
    def counting() -> Iterator[None]:
        with translated():
            try:
                yield
            except asyncpg.DeadlockDetectedError as error:
                found.append(f"{error}\n{error.detail}\n{error.context}\n{traceback.format_exc()}")
                raise

    monkeypatch.setattr(store_database, "translated", counting)
    yield found


@asynccontextmanager
async def crowd(database: Database, directory: Path, seed: int, verbs: int) -> AsyncIterator[Crowd]:
    """A master with its loops, three agents, and a crowd that has not begun."""
    async with answering(database, settings_in(directory)) as api:
        made = Crowd(api, random.Random(seed), verbs)
        master = api.master
        hub = Hub(database, master.listener, master.cluster, {"default": PoolDefaults()})
        running, machines = [], []
        for name in ("a1", "a2", "a3"):
            async with database.transaction() as conn:
                await agents.join(conn, name, "default", name.encode().ljust(32))
            agent = PretendAgent(3, made.script)
            machines.append(agent)
            serving = hub.serve(agent.channel, name, "127.0.0.1", asyncio.Event())
            running += [asyncio.create_task(serving), asyncio.create_task(agent.run())]
        running_loops = loops.start(database, master.listener, master.settings, master.cluster)
        try:
            yield made
        finally:
            await running_loops.stop()
            for task in running:
                task.cancel()
            for agent in machines:
                agent.reconnect(with_nothing=True)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*running, return_exceptions=True)


@pytest.mark.parametrize(
    ("seed", "verbs"), [(0, FEW), *(pytest.param(seed, VERBS, marks=pytest.mark.long) for seed in range(11))]
)
async def test_verbs_at_once_break_nothing(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, verbs: int
) -> None:
    """Nothing breaks and nothing is locked in two orders, whatever is asked for at the same time."""
    admin = await asyncpg.connect(database_url)
    name = await admin.fetchval("select current_database()")
    await admin.execute(f"alter database {name} set deadlock_timeout = '100ms'")
    await admin.close()
    database = await Database.open(database_url, max_connections=16)
    with (
        deadlocks_counted(monkeypatch) as deadlocks,
        structlog.testing.capture_logs([structlog.processors.format_exc_info]) as told,
    ):
        async with crowd(database, tmp_path, seed, verbs) as people:
            admin = people.api.admin
            own = (await admin.post("/api/v1/workspaces", {"name": "own"})).json()["workspace"]["id"]
            for folder in ("one", "two"):
                assert (await admin.post(f"/api/v1/workspaces/{own}/projects", {"name": folder})).status_code == 200
            await asyncio.gather(*(people.play() for _ in range(PLAYERS)))
    await database.close()
    errors = ["\n".join(map(str, entry.values())) for entry in told if entry["log_level"] in ("error", "critical")]
    assert not deadlocks, "\n\n".join(deadlocks)
    assert not people.broken, "\n\n".join(people.broken)
    assert not errors, "\n\n".join(errors)
    assert people.answers["200"] > PLAYERS * verbs / 2, people.answers
