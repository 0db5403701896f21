"""What the cloud says of an agent's machine, as its hub takes it: no new work, time to save, and all back again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenax.lifecycle.notice import Rebalance
from tenax.master.agents.specs import PoolDefaults
from tenax.master.store.agents import rows as agents
from tenax.wire.agents import MachineNotice, MachineNotices
from tests.kits.master.hub import Place, Talk, place

__all__ = ["place"]

TAKEN = MachineNotice("interruption", "it is taken back at noon", 120.0)


async def standing(place: Place) -> tuple[Any, ...]:
    """State and reason of the agent, the notice, its plan, and the seconds that are left."""
    async with place.db.connection() as conn:
        row = await conn.fetchrow(
            "select state, reason, notice, notice_plan, extract(epoch from notice_until - now())::float8 as left_s "
            "from agents where agent_id = 'a1'"
        )
    return tuple(row)


async def asked(place: Place) -> tuple[str, str, float | None]:
    """Whether the attempt was asked to leave, why, and the seconds that it has."""
    async with place.db.connection() as conn:
        row = await conn.fetchrow(
            "select preemption, preemption_reason, extract(epoch from preemption_deadline - now())::float8 as left_s "
            "from allocations where allocation_id = $1",
            place.attempt.allocation_id,
        )
    return tuple(row)


async def until(place: Place, state: str, notice: str) -> None:
    while True:
        now = await standing(place)
        if (now[0], now[2]) == (state, notice):
            return
        await asyncio.sleep(0.01)


async def until_asked(place: Place, most_s: float = 120.0) -> None:
    """To leave, within so many seconds."""
    while True:
        preemption, _, seconds = await asked(place)
        if preemption != "NONE" and seconds is not None and seconds <= most_s:
            return
        await asyncio.sleep(0.01)


async def make_ready(place: Place, upload_s: float | None = None) -> None:
    """The attempt has come up; its trial has saved once."""
    async with place.db.transaction() as conn:
        await conn.execute("update allocations set ready_at = now()")
        await conn.execute(
            "insert into checkpoints (uuid, task_id, trial_id, run_id, state, upload_s) "
            "select 'c1', task_id, id, 1, 'COMPLETED', $1 from trials",
            upload_s,
        )


def connected(place: Place) -> Talk:
    talk = place.connect("a1")
    talk.hello(talk.report(place.container, "running"))
    return talk


async def lines(place: Place) -> int:
    """Of all logs."""
    async with place.db.connection() as conn:
        return int(await conn.fetchval("select coalesce(sum(lines), 0) from log_chunks"))


async def test_a_machine_that_is_taken_back_takes_nothing_new_and_its_work_saves(place: Place) -> None:
    """Within what is left, less a margin; a repeated notice gives no more time, a shorter one less."""
    await make_ready(place, upload_s=5.0)
    talk = connected(place)
    talk.say(MachineNotices([TAKEN]))
    await until_asked(place)
    state, reason, notice, plan, left_s = await standing(place)
    assert (state, reason, notice, plan) == ("DRAINING", TAKEN.reason, TAKEN.reason, "LEAVE")
    assert 60 < left_s <= 120
    preemption, why, seconds = await asked(place)
    assert (preemption, why) == ("REQUESTED", TAKEN.reason)
    assert seconds is not None
    assert 60 < seconds <= 110
    assert await lines(place) == 1
    sooner = MachineNotice("maintenance", "it is stopped", 20.0)
    talk.say(MachineNotices([TAKEN, sooner]))
    await until(place, "DRAINING", sooner.reason)
    await until_asked(place, 15.0)
    assert (await asked(place))[1] == TAKEN.reason


async def test_what_is_not_up_yet_ends_at_once(place: Place) -> None:
    """It has nothing to save."""
    connected(place).say(MachineNotices([TAKEN]))
    await until_asked(place)
    assert ((await asked(place))[2] or 0) <= 0


async def test_a_trial_whose_last_save_took_longer_is_told(place: Place) -> None:
    """Once, in its log."""
    await make_ready(place, upload_s=300.0)
    talk = connected(place)
    talk.say(MachineNotices([TAKEN]))
    await until_asked(place)
    assert await lines(place) == 2
    talk.say(MachineNotices([MachineNotice("interruption", "again", 100.0)]))
    await until(place, "DRAINING", "again")
    await until_asked(place, 90.0)
    assert await lines(place) == 2


async def test_a_notice_that_is_taken_back_gives_back_what_it_took(place: Place) -> None:
    """What was asked to leave leaves all the same."""
    await make_ready(place)
    talk = connected(place)
    talk.say(MachineNotices([TAKEN]))
    await until_asked(place)
    talk.say(MachineNotices([]))
    await until(place, "ENABLED", "")
    assert (await standing(place))[1] == ""
    assert (await asked(place))[0] == "REQUESTED"


@pytest.mark.parametrize("state", ["DRAINING", "DISABLED", "ENABLED"])
async def test_what_a_person_says_of_an_agent_stays(place: Place, state: str) -> None:
    """Said before the notice, or after it: neither the same notice again nor its end changes that."""
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a1", state)
    talk = connected(place)
    talk.say(MachineNotices([TAKEN]))
    await until(place, "DRAINING" if state == "ENABLED" else state, TAKEN.reason)
    async with place.db.transaction() as conn:
        await agents.set_agent(conn, "a1", state)
    talk.say(MachineNotices([TAKEN, MachineNotice("rebalance", "beside it")]))
    again = connected(place)
    again.say(MachineNotices([TAKEN]))
    await until_asked(place)
    await until(place, state, TAKEN.reason)
    again.say(MachineNotices([]))
    await until(place, state, "")


async def test_the_word_of_an_older_connection_changes_nothing(place: Place) -> None:
    """Its notice may be one of before."""
    old = connected(place)
    await old.wants()
    new = connected(place)
    await new.wants()
    old.say(MachineNotices([TAKEN]))
    await place.tasks[-2]
    assert (await standing(place))[:3] == ("ENABLED", "", "")


async def test_advice_follows_the_settings_of_the_pool(place: Place) -> None:
    """Nobody is asked to leave for it here: where its work goes is asked of the scheduler."""
    await make_ready(place)
    talk = connected(place)
    advice = MachineNotice("rebalance", "it may be taken back")
    talk.say(MachineNotices([advice, MachineNotice("eclipse", "of the moon", 1.0)]))
    talk.say(MachineNotices([TAKEN]))
    await until(place, "DRAINING", TAKEN.reason)
    place.hub.pools = {"default": PoolDefaults(rebalance=Rebalance.REPLACE_FIRST)}
    talk.say(MachineNotices([advice]))
    await until(place, "DRAINING", advice.reason)
    assert (await standing(place))[3] == "REPLACE"
    place.hub.pools = {"default": PoolDefaults()}
    talk.say(MachineNotices([advice]))
    await until(place, "ENABLED", "")
