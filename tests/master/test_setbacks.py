"""An agent on which nothing starts any more, for reasons that are not those of what starts, rests for a while."""

from __future__ import annotations

import asyncio

import pytest

from tenax.master.store.agents import rows as agents
from tenax.wire.agents import AgentReport, ContainerReport, Exit
from tests.kits.master.hub import Place, Talk, place
from tests.kits.rows import add_experiment, add_trial, run_attempt

__all__ = ["place"]

FAILED = Exit(reason="could not prepare its directory: No space left on device", platform=True)


async def run(place: Place, owner: int = 1, agent: str = "a1", *, runs: bool = False) -> str:
    """A run of somebody on an agent, which has not begun there yet; its container. ``runs``: it has."""
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
        (name,) = (await run_attempt(conn, await add_trial(conn, experiment), (agent,))).containers
        if not runs:
            await conn.execute(
                "update containers set state = 'STARTING', started_at = null where container_id = $1", name
            )
    return name


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


async def fail(place: Place, talk: Talk, owner: int = 1) -> None:
    """One more start on a1 fails."""
    await end(place, talk, await run(place, owner))


async def fail_often(place: Place, talk: Talk, times: int = 3, owner: int = 1) -> None:
    """The same several times; after the first something begins to run on a2."""
    for number in range(times):
        await fail(place, talk, owner)
        if number == 0:
            await run(place, agent="a2", runs=True)


async def test_the_third_in_a_row(place: Place) -> None:
    """It drains, and says why; what was placed there runs on; who enables it begins anew."""
    talk = await connected(place)
    await fail_often(place, talk, 2)
    assert (await standing(place))[0] == "ENABLED"
    await fail(place, talk)
    assert await standing(place) == (
        "DRAINING",
        "3 starts in a row failed here, while others succeeded elsewhere, the last: could not prepare its directory: "
        "No space left on device; it is tried again after 10 minutes",
    )
    assert await place.state() == "RUNNING"
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a1", "ENABLED")
    assert await standing(place) == ("ENABLED", "")
    await fail_often(place, talk, 2)
    assert (await standing(place))[0] == "ENABLED"


async def test_it_is_tried_again(place: Place) -> None:
    """After its rest it takes work; the next start that fails takes it out anew, one that succeeds ends the row."""
    talk = await connected(place)
    await fail_often(place, talk)
    async with place.db.transaction() as conn:
        assert await agents.end_rests(conn) == []
        await conn.execute("update agents set rests_until = now() where agent_id = 'a1'")
    async with place.db.transaction() as conn:
        assert await agents.end_rests(conn) == ["a1"]
    assert await standing(place) == ("ENABLED", "")
    await fail(place, talk)
    assert (await standing(place))[0] == "DRAINING"
    async with place.db.transaction() as conn:
        await conn.execute("update agents set rests_until = now() where agent_id = 'a1'")
        await agents.end_rests(conn)
    await end(place, talk, await run(place), ending=Exit(code=0))
    await fail(place, talk)
    assert await standing(place) == ("ENABLED", "")


@pytest.mark.parametrize("code", [0, 1])
async def test_a_start_that_succeeds_ends_the_row(place: Place, code: int) -> None:
    """However it ends, by itself."""
    talk = await connected(place)
    await fail_often(place, talk, 2)
    await end(place, talk, await run(place), ending=Exit(code=code))
    await fail(place, talk)
    assert await standing(place) == ("ENABLED", "")


async def test_what_had_begun_to_run_says_nothing_of_its_machine(place: Place) -> None:
    """The machine was started again under it, or somebody killed what watches it."""
    talk = await connected(place)
    await fail_often(place, talk, 2)
    for _ in range(3):
        await end(place, talk, await run(place, runs=True))
    assert await standing(place) == ("ENABLED", "")


async def test_a_machine_that_restarts_under_many_is_one_setback(place: Place) -> None:
    """All that began there ends at once; and what it left over, a little later."""
    talk = await connected(place)
    began = [await run(place) for _ in range(5)]
    await end(place, talk, *began[:3])
    await run(place, agent="a2", runs=True)
    for name in began[3:]:
        await end(place, talk, name)
    assert await standing(place) == ("ENABLED", "")


async def test_the_last_one_is_never_taken_out(place: Place) -> None:
    """Nor where nothing starts elsewhere either."""
    talk = await connected(place)
    for _ in range(3):
        await fail(place, talk)
    assert await standing(place) == ("ENABLED", "")
    await run(place, agent="a2", runs=True)
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a2", "DRAINING")
    await fail(place, talk)
    assert await standing(place) == ("ENABLED", "")
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a2", "ENABLED")
    await fail(place, talk)
    assert (await standing(place))[0] == "DRAINING"


async def test_one_person_alone_takes_it_from_nobody(place: Place) -> None:
    """Their runs may fail for what they did; the first of somebody else's that fails, too, takes it out."""
    talk = await connected(place)
    await fail_often(place, talk, 4, owner=7)
    assert await standing(place) == ("ENABLED", "")
    await fail(place, talk, owner=8)
    assert (await standing(place))[0] == "DRAINING"


async def test_setbacks_grow_old(place: Place) -> None:
    talk = await connected(place)
    await fail_often(place, talk, 2)
    async with place.db.transaction() as conn:
        await conn.execute("update agent_setbacks set ended_at = ended_at - interval '61 minutes'")
    await fail_often(place, talk, 2)
    assert await standing(place) == ("ENABLED", "")
    await fail(place, talk)
    assert (await standing(place))[0] == "DRAINING"


async def test_a_row_is_kept_over_a_new_connection(place: Place) -> None:
    talk = await connected(place)
    await fail_often(place, talk, 2)
    talk = await connected(place)
    await fail(place, talk)
    assert (await standing(place))[0] == "DRAINING"


async def test_what_a_person_set_stays(place: Place) -> None:
    """Also where it is set while the third is about to fail."""
    talk = await connected(place)
    await fail_often(place, talk, 2)
    last = await run(place)
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a1", "DISABLED")
    await end(place, talk, last)
    assert await standing(place) == ("DISABLED", "")
