"""What is counted once is counted once; what is shown of now is of now."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest
from prometheus_client import CollectorRegistry

from tenax.config.agent import AgentSettings
from tenax.errors import TryAgain
from tenax.master.agents.hub import _Session
from tenax.master.agents.notices import Forewarned
from tenax.master.agents.setbacks import Setbacks
from tenax.master.concurrency.pulse import Pulse
from tenax.master.concurrency.single_flight import SingleFlight
from tenax.master.loops import lease_keeper
from tenax.master.loops.lease_keeper import LeaseKeeper
from tenax.master.observability import counters, log_context
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.wire.agents import ContainerReport, Exit


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(name, labels) or 0.0


async def test_each_statement_is_one(database: Database) -> None:
    """However the driver runs it."""
    async with database.connection() as conn:
        for statement in (
            partial(conn.execute, "select 1"),
            partial(conn.execute, "select $1::int", 1),
            partial(conn.fetchval, "select $1::int", 1),
            partial(conn.executemany, "select $1::int", [(1,), (2,)]),
        ):
            await statement()
            before = value(counters.REGISTRY, "tenax_db_statement_seconds_count")
            await statement()
            assert value(counters.REGISTRY, "tenax_db_statement_seconds_count") == before + 1


async def test_what_the_database_cannot_do_is_counted(database: Database) -> None:
    """By what is wrong with it."""
    before = value(counters.REGISTRY, "tenax_db_errors_total", kind="slow")

    async def take_too_long() -> None:
        async with database.transaction() as conn:
            await conn.execute("set local statement_timeout = 10")
            await conn.execute("select pg_sleep(5)")

    with pytest.raises(TryAgain):
        await take_too_long()
    assert value(counters.REGISTRY, "tenax_db_errors_total", kind="slow") == before + 1


async def test_a_lease_that_has_run_out_is_not_held(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the database was not there to say so."""
    listener = Listener(database)
    keeper = LeaseKeeper(database, listener)
    held = partial(value, counters.REGISTRY, "tenax_loop_lease_held", loop="searching")
    tasks = [asyncio.create_task(listener.run()), asyncio.create_task(keeper.run())]
    try:
        tenure = await keeper.wait_for("searching", 60.0, lambda: None)
        assert held() == 1.0
        monkeypatch.setattr(keeper, "_reached_at", time.monotonic() - lease_keeper.LEASE_S)
        assert held() == 0.0
        monkeypatch.setattr(keeper, "_reached_at", time.monotonic())
        assert held() == 1.0
        keeper.let_go(tenure)
        assert held() == 0.0
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_beats_that_were_missed_are_late_ones() -> None:
    """An event loop that is held for two seconds shows in more than one number."""
    late: list[float] = []
    Pulse(late=late.append)._tell(2.2)
    assert late == pytest.approx([2.2, 1.7, 1.2, 0.7, 0.2])


def test_an_end_is_counted_once() -> None:
    """It is reported until its container is gone."""
    session = _Session("box-of-ends", 1, 1, None, Setbacks("box-of-ends"), Forewarned("box-of-ends", 1))  # type: ignore[arg-type]
    ended = partial(ContainerReport, cluster_id="c", generation=1, state="exited")
    ends = [
        ended("a", exit=Exit(code=0)),
        ended("b", exit=Exit(code=1)),
        ended("c", exit=Exit(signal=9)),
        ended("d", exit=Exit(reason="lost", platform=True)),
        ContainerReport("e", "c", 1, "running"),
    ]
    for _ in range(3):
        session.count_ends(ends)
    counted = partial(value, counters.OF_POOLS, "tenax_containers_ended_total", agent_id="box-of-ends")
    assert (counted(outcome="ok"), counted(outcome="failed"), counted(outcome="platform")) == (1.0, 2.0, 1.0)


async def test_what_many_share_is_nobodys_in_the_log() -> None:
    """Whoever asked first does not lend it a name."""

    async def fetch() -> dict[str, str]:
        return log_context.known()

    flights = SingleFlight()
    with log_context.request([(b"x-request-id", b"first")]):
        log_context.called_by(allocation=None, agent=None, user="alice")
        assert await flights.share("x", fetch) == {}
        assert log_context.known() == {"request": "first", "user": "alice"}


def test_several_masters_are_named_between_commas() -> None:
    """Each with its scheme."""
    settings = AgentSettings(master_url=" http://one:8080/ , https://two ")
    assert settings.master_urls == ("http://one:8080", "https://two")
    assert settings.task_master_urls == settings.master_urls
    assert settings.uses_tls
    with pytest.raises(ValueError, match="http://two"):
        AgentSettings(master_url="http://one:8080,two:8080")
