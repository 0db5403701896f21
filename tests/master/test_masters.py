"""Masters of one cluster know of one another, and say where their settings differ."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import asyncpg
import pytest

from tenax.client.cluster import MasterInfo, masters
from tenax.client.connect import Client
from tenax.errors import Forbidden
from tests.kits.machine import wait_for
from tests.kits.master.process import MasterProcess
from tests.kits.master.two_masters import LOOPS
from tests.kits.ports import free_port

PASSWORD = "Long-enough-1"


@contextmanager
def serving(directory: Path, url: str, port: int, **settings: str) -> Iterator[MasterProcess]:
    """A master that serves."""
    password = directory / "password"
    password.write_text(PASSWORD)
    settings["SECURITY__INITIAL_PASSWORD_FILE"] = str(password)
    with closing(MasterProcess(directory, url, "--port", str(port), **settings)) as process:
        try:
            process.wait_for("serving")
            yield process
        finally:
            process.popen.kill()
            process.popen.wait()


def seen_from(port: int) -> list[MasterInfo]:
    """The masters that the one at ``port`` tells of."""
    with Client(f"http://127.0.0.1:{port}", user="admin", password=PASSWORD) as client:
        return masters(client.session)


def test_masters_that_differ_say_so(database_url: str, tmp_path: Path) -> None:
    """In the log of the one that comes later, and in the list of either; one that is killed is off it at once."""
    ports = free_port(), free_port()
    with ExitStack() as stack:
        first = stack.enter_context(serving(tmp_path, database_url, ports[0]))
        # All of them: what it has not taken by then might be the second one's.
        [alone] = wait_for(lambda: (rows := seen_from(ports[0])) and len(rows[0].loops) == LOOPS and rows, "its loops")
        assert alone.other_settings == []
        pools = '[{"name": "default", "scheduler": {"type": "fair_share"}}]'
        second = stack.enter_context(serving(tmp_path, database_url, ports[1], POOLS=pools, KILL_TIMEOUT="9"))
        [warning] = [line for line in second.lines() if "other settings" in str(line["event"])]
        assert warning["settings"] == "kill_timeout, pools"
        assert warning["other"] == f"http://127.0.0.1:{ports[0]}"
        for port in ports:
            seen = seen_from(port)
            assert [each.address for each in seen] == [f"http://127.0.0.1:{at}" for at in ports]
            assert [each.answers for each in seen] == [at == port for at in ports]
            assert {tuple(each.other_settings) for each in seen if not each.answers} == {("kill_timeout", "pools")}
            assert [bool(each.loops) for each in seen] == [True, False]
        first.popen.send_signal(signal.SIGKILL)
        first.result()
        [left] = wait_for(lambda: (rows := seen_from(ports[1]))[-1].loops and rows, "the loops to move")
        assert left.answers
        with Client(f"http://127.0.0.1:{ports[1]}", user="admin", password=PASSWORD) as client:
            client.create_user("ann", password="Long-enough-2")
        with Client(f"http://127.0.0.1:{ports[1]}", user="ann", password="Long-enough-2") as client:
            with pytest.raises(Forbidden):
                masters(client.session)


def test_one_whose_connection_was_lost_is_listed_again(database_url: str, tmp_path: Path) -> None:
    """Under another session's name; rows of those that are gone are not kept."""
    port = free_port()
    with serving(tmp_path, database_url, port):
        asyncio.run(end_sessions(database_url))
        wait_for(lambda: [each.answers for each in seen_from(port)] == [True] or None, "the master in its list")
    with serving(tmp_path, database_url, port):
        assert len(seen_from(port)) == 1
        assert asyncio.run(count(database_url)) == 1


async def end_sessions(url: str) -> None:
    """Every connection of a master, as a restart of the database ends them."""
    conn = await asyncpg.connect(url)
    await conn.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name like 'tenax-master%'"
    )
    await conn.close()


async def count(url: str) -> int:
    """Rows of masters, those that are gone among them."""
    conn = await asyncpg.connect(url)
    rows: int = await conn.fetchval("select count(*) from masters")
    await conn.close()
    return rows
