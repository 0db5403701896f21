"""What an agent says of its containers, and when."""

from __future__ import annotations

import asyncio

import msgspec

from tenax.agent.container_reports import ContainerReports
from tenax.wire.agents import ContainerReport, Exit

RUNNING = ContainerReport(container_id="c", cluster_id="k", generation=1, state="running", pid=7, address="a")


async def test_a_pid_alone_is_no_news() -> None:
    """A process that is gone is told by its exit; the full state of a new connection has what is known last."""
    reports = ContainerReports()
    reports.put(RUNNING)
    assert reports.take().containers == [RUNNING]
    without = msgspec.structs.replace(RUNNING, pid=None)
    reports.put(without)
    assert not reports.news.is_set()
    assert reports.all() == [without]
    exited = msgspec.structs.replace(without, state="exited", exit=Exit(code=0))
    reports.put(exited)
    assert reports.take().containers == [exited]


async def test_a_state_on_the_way_waits_for_the_next() -> None:
    """One frame says both; what is not followed is said after a moment."""
    reports = ContainerReports()
    reports.put(msgspec.structs.replace(RUNNING, state="starting"), passing=True)
    assert not reports.news.is_set()
    reports.put(RUNNING)
    assert reports.take().containers == [RUNNING]
    pulling = msgspec.structs.replace(RUNNING, container_id="d", state="pulling")
    reports.put(pulling, passing=True)
    async with asyncio.timeout(240):
        await reports.news.wait()
    assert reports.take().containers == [pulling]
