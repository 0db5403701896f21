"""Experiments and trials that are trained elsewhere, made over the API, and their states."""

from __future__ import annotations

from tests.kits.api import Api, Client

CONFIG = "name: far\nsearcher: {name: single, metric: score}\n"
NEW = {"config": CONFIG, "unmanaged": True}


async def experiment(api: Api, who: Client | None = None) -> int:
    reply = await (who or api.user).post("/api/v1/experiments", NEW)
    assert reply.status_code == 200, reply.text
    number: int = reply.json()["experiment"]["id"]
    return number


async def trial(api: Api, start: bool = True) -> int:
    made = {"experimentId": await experiment(api), "hparams": {"lr": 1}, "unmanaged": True}
    reply = await api.user.post("/api/v1/trials", made)
    assert reply.status_code == 200, reply.text
    number: int = reply.json()["trial"]["id"]
    if start:
        reply = await api.user.post(f"/api/v1/trials/{number}/start", {"resume": True})
        assert reply.json() == {"trialRunId": 1, "latestCheckpoint": None, "stepsCompleted": 0}
    return number


async def state(api: Api, number: int) -> tuple[str, str]:
    """Of the trial, and of its experiment."""
    told = (await api.user.get(f"/api/v1/trials/{number}")).json()["trial"]
    above = (await api.user.get(f"/api/v1/experiments/{told['experimentId']}")).json()["experiment"]
    return told["state"], above["state"]
