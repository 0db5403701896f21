"""Runs of experiments, and what is asked of many of them at a time."""

from __future__ import annotations

import json

from tenax.jsonvalue import JsonObject
from tests.kits import rows
from tests.kits.api import Api

SEARCH: JsonObject = {"searcher": {"name": "random", "metric": "loss"}}
SINGLE: JsonObject = {"searcher": {"name": "single", "metric": "loss"}}


async def add(api: Api, count: int = 1, config: JsonObject = SINGLE, state: str = "COMPLETED") -> tuple[int, list[int]]:
    """An experiment of the user ``determined`` with runs that have ended unless it is ACTIVE."""
    async with api.master.db.transaction() as conn:
        experiment = await rows.add_experiment(conn, config=config)
        await conn.execute("update experiments set owner_id = 2 where id = $1", experiment)
        made = [await rows.add_trial(conn, experiment, seq, {"lr": 0.1 * seq}) for seq in range(1, count + 1)]
        if state != "ACTIVE":
            await conn.execute("update experiments set state = $2, ended_at = now() where id = $1", experiment, state)
            await conn.execute(
                "update trials set state = $2, ended_at = now() where experiment_id = $1", experiment, state
            )
    return experiment, made


async def project(api: Api, key: str) -> int:
    async with api.master.db.transaction() as conn:
        made: int = await conn.fetchval(
            "insert into projects (workspace_id, name, key) values (1, $1, $1) returning id", key
        )
    return made


async def act(api: Api, verb: str, ids: list[int], **more: object) -> list[str]:
    reply = await api.user.post(f"/api/v1/runs/{verb}", {"runIds": ids, "projectId": 1, **more})
    assert reply.status_code == 200, reply.text
    return [result["error"] for result in reply.json()["results"]]


async def search(api: Api, *, archived: bool = True, **more: object) -> list[int]:
    body = {"filter": json.dumps({"showArchived": archived}), "sort": "id=asc", **more}
    reply = await api.user.post("/api/v1/runs", body)
    assert reply.status_code == 200, reply.text
    return [run["id"] for run in reply.json()["runs"]]
