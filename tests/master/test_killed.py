"""A master that is killed between any two of its writes: the next one goes on, and nothing is lost or done for ever."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from asyncpg import Connection

from tenax.backoff import Backoff
from tenax.config.master import MasterSettings, WebhookSettings
from tenax.lifecycle.listening import Listening
from tenax.master.loops.loop import PassContext
from tenax.master.loops.timeouts import UNMANAGED_WAIT_S, Timeouts
from tenax.master.loops.webhook_delivery import WebhookDelivery
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database, now
from tenax.master.store.database.leases import Lease
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.experiments import unmanaged
from tenax.master.webhooks.sender import Sender
from tests.kits.api import Api
from tests.kits.master.unmanaged import state, trial
from tests.kits.receiver import Receiver, receiving

EVERYTHING = Woken(frozenset(), full=True)
NEWS = Woken(frozenset(), full=False)
HERE = WebhookSettings(allowed_networks=("127.0.0.0/8",))


@pytest.fixture
def master_settings(master_settings: MasterSettings) -> MasterSettings:
    """Messages may go to this machine."""
    return master_settings.model_copy(update={"webhooks": HERE})


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again soon."""
    monkeypatch.setattr("tenax.lifecycle.delivery.BACKOFF", Backoff(first=0.01, ceiling=60.0))


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class Dying(PassContext):
    """A context whose master is killed at its ``at``-th write (from 0): before it is committed, or right after."""

    def __init__(self, database: Database, lease: Lease, at: int, committed: bool) -> None:
        super().__init__(database, lease)
        self._at, self._committed, self._writes = at, committed, 0

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        number, self._writes = self._writes, self._writes + 1
        if number > self._at:
            raise Killed
        async with super().transaction() as conn:
            yield conn
            if number == self._at and not self._committed:
                raise Killed
        if number == self._at:
            raise Killed


async def lease_of(api: Api, loop: str) -> Lease:
    """Of the master that begins now; whoever was before has lost it."""
    async with api.master.db.transaction() as conn:
        await conn.execute("update leases set epoch = epoch + 1, expires_at = now() where loop = $1", loop)
        lease = await leases.acquire(conn, loop, "test", 3600.0)
    assert lease is not None
    return lease


async def failing_hook(api: Api, receiver: Receiver) -> None:
    """A webhook that hears of experiments that end in ERROR."""
    trigger = {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "ERROR"}}
    body = {"name": "hook", "url": receiver.url, "webhookType": "WEBHOOK_TYPE_DEFAULT", "triggers": [trigger]}
    assert (await api.admin.post("/api/v1/webhooks", body)).status_code == 200


async def deliver(context: PassContext) -> None:
    """What a master does until nothing waits, or it is killed."""
    loop = WebhookDelivery(Sender(HERE, b"s"), 60.0, 7)
    try:
        while await loop.make_pass(context, EVERYTHING) is not None:
            if any(task.done() and isinstance(task.exception(), Killed) for task in loop._busy.values()):
                raise Killed
    finally:
        with suppress(Killed):
            await loop.close()


async def time_out(api: Api, context: PassContext) -> None:
    """One look of a master that has listened for an hour."""
    async with api.master.db.connection() as conn:
        moment = (await now(conn)).timestamp()
    loop = Timeouts(MasterSettings().pools)
    loop._watch = Listening(moment - 3600, moment)
    await loop.make_pass(context, NEWS)


async def silent_trial(api: Api) -> int:
    """One that was not heard of for longer than it may be."""
    number = await trial(api)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update unmanaged_trials set heard_at = now() - make_interval(secs => $1)", UNMANAGED_WAIT_S + 60
        )
    return number


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("at", range(4))
async def test_a_message_survives_the_end_of_its_master(api: Api, at: int, committed: bool) -> None:
    """It arrives, under one id; whoever was killed after sending it and before writing so sends it once more."""
    async with receiving() as receiver:
        await failing_hook(api, receiver)
        await silent_trial(api)
        await time_out(api, PassContext(api.master.db, await lease_of(api, "timeouts")))
        with suppress(Killed):
            await deliver(Dying(api.master.db, await lease_of(api, "webhook_delivery"), at, committed))
        assert len(receiver.requests) <= 1
        for _ in range(3):
            await deliver(PassContext(api.master.db, await lease_of(api, "webhook_delivery")))
    assert 1 <= len(receiver.requests) <= 2
    assert len({request.event["event_id"] for request in receiver.requests}) == 1
    async with api.master.db.connection() as conn:
        [row] = await conn.fetch("select state, attempts from webhook_deliveries")
    assert row["state"] == "DELIVERED"
    assert len(receiver.requests) <= row["attempts"] <= 2


async def test_a_message_is_not_sent_for_ever_by_masters_that_die_of_it(api: Api) -> None:
    """Each that is killed while it sends has counted its attempt before, and it is given up when it is too old."""
    async with receiving() as receiver:
        await failing_hook(api, receiver)
        await silent_trial(api)
        await time_out(api, PassContext(api.master.db, await lease_of(api, "timeouts")))
        for _ in range(3):
            with suppress(Killed):
                # The second write is the one after the answer.
                await deliver(Dying(api.master.db, await lease_of(api, "webhook_delivery"), 2, committed=False))
        async with api.master.db.transaction() as conn:
            assert await conn.fetchval("select attempts from webhook_deliveries") == len(receiver.requests) == 3
            await conn.execute("update webhook_deliveries set created_at = now() - interval '1 day'")
        await deliver(PassContext(api.master.db, await lease_of(api, "webhook_delivery")))
    assert len(receiver.requests) == 3
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select state from webhook_deliveries") == "FAILED"


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("at", range(3))
async def test_a_script_that_fell_silent_is_found_by_the_next_master(api: Api, at: int, committed: bool) -> None:
    """Once: its trial and its experiment end together, and one message tells of it."""
    async with receiving() as receiver:
        await failing_hook(api, receiver)
        number = await silent_trial(api)
        with suppress(Killed):
            await time_out(api, Dying(api.master.db, await lease_of(api, "timeouts"), at, committed))
        for _ in range(2):
            await time_out(api, PassContext(api.master.db, await lease_of(api, "timeouts")))
    assert await state(api, number) == ("STATE_ERROR", "STATE_ERROR")
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from webhook_deliveries") == 1


async def test_a_script_that_is_heard_of_since_the_look_is_not_lost(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the giving up it said something: nobody is told of an error that was none."""
    number = await silent_trial(api)
    silent = unmanaged.silent

    async def heard_meanwhile(conn: Connection, wait_s: float, listening_s: float) -> list[unmanaged.SilentTrial]:
        trials = await silent(conn, wait_s, listening_s)
        await conn.execute("update unmanaged_trials set heard_at = now()")
        return trials

    monkeypatch.setattr(unmanaged, "silent", heard_meanwhile)
    await time_out(api, PassContext(api.master.db, await lease_of(api, "timeouts")))
    assert await state(api, number) == ("STATE_RUNNING", "STATE_RUNNING")
