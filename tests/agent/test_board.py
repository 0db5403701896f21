"""What an agent says of its containers, and when."""

from __future__ import annotations

import asyncio

import msgspec

from tenax.agent.board import Board
from tenax.wire.agents import ContainerReport, Exit

RUNNING = ContainerReport(container_id="c", cluster_id="k", generation=1, state="running", pid=7, address="a")


async def test_a_pid_alone_is_no_news() -> None:
    """A process that is gone is told by its exit; the full state of a new connection has what is known last."""
    board = Board()
    board.put(RUNNING)
    assert board.take().containers == [RUNNING]
    without = msgspec.structs.replace(RUNNING, pid=None)
    board.put(without)
    assert not board.news.is_set()
    assert board.all() == [without]
    exited = msgspec.structs.replace(without, state="exited", exit=Exit(code=0))
    board.put(exited)
    assert board.take().containers == [exited]


async def test_a_state_on_the_way_waits_for_the_next() -> None:
    """One frame says both; what is not followed is said after a moment."""
    board = Board()
    board.put(msgspec.structs.replace(RUNNING, state="starting"), passing=True)
    assert not board.news.is_set()
    board.put(RUNNING)
    assert board.take().containers == [RUNNING]
    pulling = msgspec.structs.replace(RUNNING, container_id="d", state="pulling")
    board.put(pulling, passing=True)
    async with asyncio.timeout(60):
        await board.news.wait()
    assert board.take().containers == [pulling]
