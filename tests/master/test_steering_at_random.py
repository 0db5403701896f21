"""Machines are rented, steered, taken back, killed and lost in any order: nothing breaks, and nothing is left."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tenax.errors import TenaxError
from tenax.master.observability import counters
from tests.kits.master.scaling import Place, line, master_settings, place, rented, server

__all__ = ["line", "master_settings", "place", "rented", "server"]

#: The others are for the long run.
SEEDS = [0, 3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 30))]
MAX_INSTANCES = 2


def failed() -> float:
    """How many machines, pools and places could not be handled."""
    return float(counters.LOOP_FAILED_OBJECTS.labels("scaling")._value.get())


async def steer(place: Place, rng: random.Random, kills: list[float]) -> str:
    """One thing happens; which. ``kills``: how many of what could not be handled were."""
    api, states = place.api, await place.states()
    name = rng.choice([*states, "m-nobody"])

    async def post(path: str, body: object) -> None:
        reply = await api.admin.post(path, body)
        assert reply.status_code in (200, 400, 404), reply.text

    async def join() -> None:
        for instance in place.rented.running():
            try:
                await place.join(instance, has=rng.choice([2, 2, 2, 1]))
            except (TenaxError, AssertionError, KeyError):
                continue

    async def terminate() -> None:
        for instance in place.rented.running()[:1]:
            place.rented.terminate(instance)

    async def stray() -> None:
        place.rented.launch({"tenax-cluster": str(api.master.cluster.cluster_id), "tenax-pool": "default"})

    async def killed() -> None:
        place.point.left = rng.randint(1, 12)
        before = failed()
        await place.passes(2)
        # The one that it was at.
        assert failed() - before <= (place.point.left <= 0)
        kills.append(failed() - before)
        place.point.left = 0

    events: dict[str, Callable[[], Awaitable[Any]]] = {
        "launch": lambda: post("/api/v1/machines/launch", {"resourcePool": "default", "count": rng.randint(1, 2)}),
        "end": lambda: post("/api/v1/machines/end", {"machineIds": [name]}),
        "end now": lambda: post("/api/v1/machines/end", {"machineIds": [name], "now": True}),
        "enable": lambda: post(f"/api/v1/agents/{name}/enable", None),
        "disable": lambda: post(f"/api/v1/agents/{name}/disable", {"drain": rng.random() < 0.5}),
        "away": lambda: place.execute("update agent_presence set connected = false"),
        "back": lambda: place.execute("update agent_presence set connected = true, last_seen_at = now()"),
        "later": lambda: place.later(rng.choice([10, 31, 61, 601, 1201])),
        "pass": lambda: place.passes(rng.randint(1, 3)),
        "join": join, "terminate": terminate, "stray": stray, "end strays": lambda: end_strays(place), "killed": killed,
        "waits": lambda: place.waits(rng.randint(1, 2)),
    }  # fmt: skip
    what = rng.choice(list(events))
    await events[what]()
    return what


async def end_strays(place: Place) -> None:
    """What an audit shows to have no row."""
    shown = (await place.api.admin.get("/api/v1/machines/audit")).json()["machines"]
    named = [{key: each[key] for key in ("provider", "region", "providerId")} for each in shown if each["stray"]]
    reply = await place.api.admin.post("/api/v1/machines/audit/end", {"machines": named})
    assert reply.status_code == (200 if named else 400), reply.text


@pytest.mark.parametrize("server", ["aws"], indirect=True)
@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_happens_nothing_breaks_and_nothing_is_left(place: Place, seed: int) -> None:
    """Never more machines than there may be but those that had no row, and once all are ended none runs."""
    rng, story, before = random.Random(seed), [], failed()
    kills: list[float] = []
    for _ in range(40):
        story.append(await steer(place, rng, kills))
        async with place.api.master.db.connection() as conn:
            ours = await conn.fetchval(
                "select count(*) from machines where ended_at is null and (sent > 0 or state = 'PLANNED')"
            )
        assert ours <= MAX_INSTANCES, story
        assert failed() == before + sum(kills), story
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now() where state <> 'TERMINATED'")
    await place.passes(3)
    for name, state in (await place.states()).items():
        if state not in ("GONE", "FAILED", "ENDING"):
            await place.api.admin.post("/api/v1/machines/end", {"machineIds": [name], "now": True})
    # Where all is quiet the loop looks every five minutes: nobody waits for that here.
    await end_strays(place)
    await place.execute("update agent_presence set connected = false")
    for _ in range(8):
        await place.passes(2)
        await place.later(31)
    assert place.rented.running() == [], (story, await place.states())
    assert set((await place.states()).values()) <= {"GONE", "FAILED"}, story
    assert failed() == before + sum(kills), story
