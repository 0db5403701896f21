"""An agent on which run after run fails for reasons that are not theirs is taken out, and says why."""

from __future__ import annotations

import asyncio

from tenax.master.store.agents import rows as agents
from tenax.wire.agents import AgentReport, ContainerReport, Exit
from tests.kits.master.hub import Place, Talk, place
from tests.kits.rows import add_experiment, add_trial, run_attempt

__all__ = ["place"]

FAILED = Exit(reason="could not prepare its directory: No space left on device", platform=True)


async def run(place: Place, owner: int = 1) -> str:
    """A run on a1 of somebody; its container."""
    async with place.db.transaction() as conn:
        await conn.execute(
            "insert into users (id, username, admin) values ($1, $2, $3) on conflict (id) do update set admin = $3",
            owner,
            f"user {owner}",
            owner == 1,
        )
        experiment = await add_experiment(conn)
        await conn.execute(
            "update jobs set owner_id = $1 from experiments e where e.job_id = jobs.job_id and e.id = $2",
            owner,
            experiment,
        )
        attempt = await run_attempt(conn, await add_trial(conn, experiment))
    return attempt.containers[0]


async def end(place: Place, talk: Talk, *containers: str, ending: Exit = FAILED) -> None:
    """The agent says that these have ended, and that nothing is left of them; until that is committed and judged."""
    reports = [
        ContainerReport(name, place.cluster.cluster_id, place.cluster.generation, "exited", exit=ending)
        for name in containers
    ]
    talk.say(AgentReport(containers=reports))
    talk.say(AgentReport(gone=list(containers)))
    while True:
        async with place.db.connection() as conn:
            if not await conn.fetchval(
                "select 1 from containers where container_id = any($1) and gone_at is null", list(containers)
            ):
                return
        await asyncio.sleep(0.01)


async def standing(place: Place) -> tuple[str, str]:
    async with place.db.connection() as conn:
        row = await conn.fetchrow("select state, reason from agents where agent_id = 'a1'")
    assert row is not None
    return row["state"], row["reason"]


async def connected(place: Place) -> Talk:
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"), slots=64)
    await talk.wants()
    return talk


async def test_the_third_in_a_row(place: Place) -> None:
    """It drains, and says why; what was placed there runs on; who enables it begins anew."""
    talk = await connected(place)
    for number in range(3):
        assert (await standing(place))[0] == "ENABLED", number
        await end(place, talk, await run(place))
    assert await standing(place) == (
        "DRAINING",
        "3 runs in a row failed here for reasons that were not theirs, the last: could not prepare its directory: "
        "No space left on device",
    )
    assert await place.state() == "RUNNING"
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a1", "ENABLED")
    assert await standing(place) == ("ENABLED", "")
    for _ in range(2):
        await end(place, talk, await run(place))
    assert (await standing(place))[0] == "ENABLED"


async def test_what_ends_otherwise_ends_the_row(place: Place) -> None:
    """Well, or by its own fault."""
    talk = await connected(place)
    for code in (0, 1):
        for _ in range(2):
            await end(place, talk, await run(place))
        await end(place, talk, await run(place), ending=Exit(code=code))
    await end(place, talk, await run(place))
    assert await standing(place) == ("ENABLED", "")


async def test_a_machine_that_restarts_under_many_is_one_setback(place: Place) -> None:
    """All that ran there ends at once; and what it left over, a little later."""
    talk = await connected(place)
    ran = [await run(place) for _ in range(5)]
    await end(place, talk, *ran[:3])
    for name in ran[3:]:
        await end(place, talk, name)
    assert await standing(place) == ("ENABLED", "")


async def test_one_person_alone_takes_it_from_nobody(place: Place) -> None:
    """Their runs may fail for what they did; the first of somebody else's that fails, too, takes it out."""
    talk = await connected(place)
    await run(place)
    for _ in range(4):
        await end(place, talk, await run(place, owner=7))
    assert await standing(place) == ("ENABLED", "")
    await end(place, talk, await run(place, owner=8))
    assert (await standing(place))[0] == "DRAINING"


async def test_a_row_is_kept_over_a_new_connection(place: Place) -> None:
    talk = await connected(place)
    for _ in range(2):
        await end(place, talk, await run(place))
    talk = await connected(place)
    await end(place, talk, await run(place))
    assert (await standing(place))[0] == "DRAINING"


async def test_what_a_person_set_stays(place: Place) -> None:
    talk = await connected(place)
    ran = []
    for _ in range(3):
        ran.append(await run(place))
        if len(ran) < 3:
            await end(place, talk, ran[-1])
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a1", "DISABLED")
    await end(place, talk, ran[-1])
    assert await standing(place) == ("DISABLED", "")
