"""The shared case file on what members of a task ask for ("task_services"): meetings, gatherings, policies on output.

What it says in words has its tests elsewhere, under its place. Departures (architecture 6.6): whoever meets or gathers
with a member that has ended or does not come is answered with an error that names it; who asks twice is answered twice.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from tenax.config.schema.logs import BUILT_IN
from tenax.lifecycle.container import Container, ContainerState, Desired
from tenax.master.store.allocations import barriers, containers
from tenax.master.store.allocations.containers import MemberChange
from tenax.master.store.logs import policies
from tests.kits.api import Api
from tests.kits.cases import answers, load
from tests.kits.database import until_held
from tests.kits.master.attempts import running
from tests.kits.rows import Attempt, add_agent, add_trial, run_attempt

_CASES: Any = load("task_services")
#: Every order in which two members can start and ask.
ORDERS = [list(order) for order in itertools.permutations(("watch c1", "watch c2", "start c1", "start c2"))]


async def start(api: Api, attempt: Attempt, place: int) -> None:
    async with api.master.db.transaction() as conn:
        member = (await containers.lock_members(conn, [attempt.allocation_id]))[attempt.allocation_id][place]
        up = Container(member.container.container_id, ContainerState.RUNNING, Desired.RUN, None, False)
        await containers.save(conn, [MemberChange(member, up, f"10.0.0.{place + 1}")])
        await conn.execute("select pg_notify('tenax', 'allocation:' || $1)", attempt.allocation_id)


async def test_members_meet_in_any_order(api: Api) -> None:
    """Nobody is answered before all have asked and run; then each gets both addresses ("task_services/rendezvous")."""
    orders = _CASES["rendezvous"]["orders"] if _CASES else ORDERS
    assert sorted(map(tuple, orders)) == sorted(map(tuple, ORDERS))
    run = await running(api, 2)
    for seq, order in enumerate(orders, 2):
        async with api.master.db.transaction() as conn:
            experiment = await conn.fetchval("select experiment_id from trials where id = $1", run.trial)
            for name in (f"b{seq}", f"c{seq}"):
                await add_agent(conn, name, 1)
            attempt = await run_attempt(conn, await add_trial(conn, experiment, seq), (f"b{seq}", f"c{seq}"))
            await conn.execute(
                "update containers set state = 'STARTING', address = '' where allocation_id = $1", attempt.allocation_id
            )
        task = await api.task(attempt.allocation_id)
        asked: list[asyncio.Task[Any]] = []
        for event in order:
            assert not any(request.done() for request in asked), order
            place = int(event[-1]) - 1
            if event.startswith("start"):
                await start(api, attempt, place)
                continue
            path = f"/api/v1/allocations/{attempt.allocation_id}/resources/{attempt.containers[place]}/rendezvous"
            asked.append(asyncio.create_task(task.get(path)))
            await until_there(api, attempt, place, asked[-1])
        infos = [reply.json()["rendezvousInfo"] for reply in await asyncio.gather(*asked)]
        assert [info["addresses"] for info in infos] == [["10.0.0.1", "10.0.0.2"]] * 2, order


async def until_there(api: Api, attempt: Attempt, place: int, request: asyncio.Task[Any]) -> None:
    """The master knows that a member asks, or has answered it."""
    async with asyncio.timeout(60):
        while not request.done():
            async with api.master.db.connection() as conn:
                if (await barriers.members(conn, attempt.allocation_id))[place].arrived:
                    return
            await asyncio.sleep(0.001)


@answers(
    "task_services/allgather",
    "4 peers join a group of 4 with data d1..d4",
    "2 join; a third joins, leaves, joins, joins again with the same id; then the fourth joins",
)
async def test_four_gather(api: Api) -> None:
    """Each gets what all four brought; one who asks again brings nothing twice ("task_services/allgather")."""
    run = await running(api, 4)

    async def bring(number: int) -> list[int]:
        body = {"requestUuid": f"u{number}", "numPeers": 4, "data": {"d": number}}
        reply = await run.task.post(f"{run.path}/all_gather", body)
        assert reply.status_code == 200, reply.text
        return sorted(part["d"] for part in reply.json()["data"])

    early = [asyncio.create_task(bring(number)) for number in (1, 2, 3, 3)]
    await until_held(api.master.listener, "allocation", run.attempt.allocation_id, *early)
    assert await bring(4) == [1, 2, 3, 4]
    assert await asyncio.gather(*early) == [[1, 2, 3, 4]] * 4


async def test_matches_of_policies_count_as_the_cases_say(api: Api) -> None:
    """For an excluded machine once by machine, for a forbidden retry once; the first line stays."""
    run = await running(api)
    cases = _CASES["log_policy"] if _CASES else {"exclude_node": [], "cancel_retries": [], "defaults": []}
    for action in ("exclude_node", "cancel_retries"):
        for case in cases[action]:
            async with api.master.db.transaction() as conn:
                await conn.execute("delete from log_matches")
                for node, regex, line in case["reports"]:
                    # What is kept apart by the regex there has a policy's name here.
                    agent = node if action == "exclude_node" else ""
                    await policies.record(conn, run.trial, regex, action.upper(), agent, line)
                stored = await conn.fetch("select agent_id, policy, line from log_matches")
                blocked = (await policies.excluded(conn, [run.trial])).get(run.trial, [])
            if action == "exclude_node":
                assert {tuple(row) for row in stored} == {tuple(row) for row in case.get("stored", [])}
                assert sorted(blocked) == case["blocked_nodes"]
            else:
                assert {(row["policy"], row["line"]) for row in stored} == {tuple(row) for row in case["triggers"]}
    assert [{"name": name, "pattern": pattern} for name, pattern in BUILT_IN][: len(cases["defaults"])] == cases[
        "defaults"
    ]
