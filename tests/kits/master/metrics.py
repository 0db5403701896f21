"""Metrics: reported as tasks do, the rows that a validation leaves, and lines of a stream of them."""

from __future__ import annotations

import json

import httpx2

from tests.kits.api import Api
from tests.kits.master.attempts import Running


async def validated(api: Api, trial: int, step: int, metric: float) -> None:
    """The rows that a validation leaves behind."""
    async with api.master.db.transaction() as conn:
        await conn.execute("insert into validations (trial_id, step, metric) values ($1, $2, $3)", trial, step, metric)


async def reported(one: Running, group: str, step: int, **metrics: object) -> None:
    """A report as the unmodified client makes one."""
    inner = {"avgMetrics": metrics, "batchMetrics": [{"loss": 1.0}] if group == "training" else None}
    told = {"trialId": one.trial, "trialRunId": 1, "stepsCompleted": step, "reportTime": None, "metrics": inner}
    reply = await one.task.post(f"/api/v1/trials/{one.trial}/metrics", {"group": group, "metrics": told})
    assert reply.status_code == 200, reply.text


def lines(reply: httpx2.Response) -> list[dict[str, dict[str, object]]]:
    """Of a stream: none of them empty, the last one ended."""
    assert reply.status_code == 200, reply.text
    assert reply.text.endswith("\n") or not reply.text
    return [json.loads(line) for line in reply.text.split("\n")[:-1]]
