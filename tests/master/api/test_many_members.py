"""Many members of one attempt at once."""

from __future__ import annotations

import asyncio

from tests.kits.api import Api
from tests.kits.master.attempts import running

MEMBERS = 64


async def test_many_members_meet_and_gather_at_once(api: Api) -> None:
    """Each hears of all, in one order; what they bring comes back whole."""
    run = await running(api, MEMBERS)
    paths = [f"{run.path}/resources/{name}/rendezvous" for name in run.attempt.containers]
    replies = await asyncio.gather(*(run.task.get(path, timeout_seconds=60) for path in paths))
    infos = [reply.json()["rendezvousInfo"] for reply in replies]
    assert [info["rank"] for info in infos] == list(range(MEMBERS))
    assert {tuple(info["addresses"]) for info in infos} == {tuple(f"10.0.0.{n + 1}" for n in range(MEMBERS))}
    bodies = [{"requestUuid": f"u{n}", "numPeers": MEMBERS, "data": {"rank": n}} for n in range(MEMBERS)]
    brought = await asyncio.gather(*(run.task.post(f"{run.path}/all_gather", body) for body in bodies))
    orders = {tuple(part["rank"] for part in reply.json()["data"]) for reply in brought}
    assert [sorted(order) for order in orders] == [list(range(MEMBERS))]
