"""The embedded PostgreSQL: it starts, serves its owner alone, and comes back from whatever was done to it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tenax.errors import Impossible, UserError
from tenax.local import binaries, pgdata, postgres
from tenax.local.accounts import account_for, unreachable
from tenax.local.binaries import Installation, NoPostgres
from tenax.local.pgdata import AlreadyRunning, DatabaseFailed
from tenax.local.postgres import EmbeddedPostgres

FAST = {"shared_buffers": "16MB"}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="is about what happens when root starts it")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that is not there yet, and that any account could reach."""
    base = Path(tempfile.gettempdir()) / f"tenax-pg-{uuid.uuid4().hex[:10]}"
    yield base
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A directory with a database that was stopped: making one takes a while."""
    base = Path(tempfile.gettempdir()) / f"tenax-pg-{uuid.uuid4().hex[:10]}"
    with EmbeddedPostgres(base, settings=FAST) as server:
        run(server, "create table kept (x int); insert into kept values (1)")
    yield base
    shutil.rmtree(base, ignore_errors=True)


def run(server: EmbeddedPostgres, statement: str) -> object:
    """The first value of a statement, or the status of several."""

    async def ask() -> object:
        conn = await asyncpg.connect(server.dsn)
        try:
            return await conn.fetchval(statement) if ";" not in statement else await conn.execute(statement)
        finally:
            await conn.close()

    return asyncio.run(ask())


def until_gone(pid: int) -> None:
    """Until the process has ended; one that nobody has waited for yet has, too."""
    while True:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.005)


def test_it_serves_its_owner_alone(place: Path) -> None:
    """A fresh directory becomes a database with a role of its own; no network, a password, private files."""
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert run(server, "select current_database() || current_user") == "tenaxtenax"
        assert run(server, "show listen_addresses") == ""
        assert run(server, "show fsync") == "on"
        assert run(server, "select datlocale from pg_database where datname = 'tenax'") == "C.UTF-8"
        with pytest.raises(asyncpg.InvalidPasswordError):
            asyncio.run(asyncpg.connect(server.dsn.replace("tenax:", "tenax:x")))
        for private in (server.data, place / "password", place / "socket"):
            assert stat.S_IMODE(private.stat().st_mode) & 0o077 == 0, private
        pid = server.pid
    assert pid is not None
    assert server.pid is None


def test_what_was_stored_is_there_after_a_stop_and_a_kill(made: Path) -> None:
    """The server killed outright is started again by the same owner, with everything that was committed."""
    with EmbeddedPostgres(made, settings=FAST) as server:
        run(server, "insert into kept values (2); select 1")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        while server.poll() is None:
            time.sleep(0.005)
        assert server.poll() == -signal.SIGKILL
        server.start()
        assert run(server, "select count(*) from kept where x = 2") == 1


def test_a_second_owner_is_refused(made: Path) -> None:
    """And told who has it; after the first has gone, it may."""
    with EmbeddedPostgres(made, settings=FAST):
        with pytest.raises(AlreadyRunning, match=f"process {os.getpid()}"):
            EmbeddedPostgres(made, settings=FAST).start()
    with EmbeddedPostgres(made, settings=FAST) as server:
        assert run(server, "select 1") == 1


def test_a_pid_file_that_names_a_living_stranger_does_not_matter(made: Path) -> None:
    """Pids recur: only the lock says whether a server is there."""
    for pid in (1, os.getpid()):
        (made / "data" / "postmaster.pid").write_text(f"{pid}\n{made / 'data'}\n1\n5432\n/tmp\n\n1 1\nready   \n")
        with EmbeddedPostgres(made, settings=FAST) as server:
            assert run(server, "select 1") == 1


LAUNCHER = """
import sys, time
from pathlib import Path
from tenax.local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), settings={"shared_buffers": "16MB"})
server.start()
print(server.pid, flush=True)
time.sleep(1000)
"""


def test_the_server_ends_with_its_owner_and_the_next_one_starts(made: Path) -> None:
    """An owner killed outright leaves no server behind; a new owner waits for the last process and goes on."""
    owner = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(made)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    with EmbeddedPostgres(made, settings=FAST) as server:
        until_gone(pid)
        assert run(server, "select count(*) from kept where x = 1") == 1
    owner.wait()
    owner.stdout.close()


def test_processes_that_outlive_a_killed_server_are_ended(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that only computes does not notice that its server was killed; the next start sees to it, and says so."""
    monkeypatch.setattr(postgres, "_PROGRESS_EVERY_S", 0.2)
    messages: list[str] = []
    with EmbeddedPostgres(made, settings=FAST, progress=messages.append) as server:
        busy = threading.Thread(target=compute, args=(server.dsn,))
        busy.start()
        others = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() and state = 'active'"
        while not run(server, f"{others} and query like '%busy%'"):
            time.sleep(0.01)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        while server.poll() is None:
            time.sleep(0.005)
        server.start()
        assert run(server, "select 1") == 1
        busy.join()
    assert "waiting for the last processes" in messages[0]


def compute(dsn: str) -> None:
    """Keep one process of the server busy until it is ended."""

    async def ask() -> None:
        conn = await asyncpg.connect(dsn)
        await conn.execute("/* busy */ do $$ declare i bigint := 0; begin loop i := i + 1; end loop; end $$")

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
        asyncio.run(ask())


def test_a_making_that_was_cut_off_is_begun_anew(place: Path) -> None:
    """A half-made data directory is never taken for a whole one."""
    (place / "data.half").mkdir(parents=True)
    place.chmod(0o755)
    (place / "data.half" / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(place, settings=FAST) as server:
        assert run(server, "select 1") == 1


def test_data_of_another_major_version_is_refused(place: Path) -> None:
    """It is left as it is, and the message says which version made it and what to do."""
    (place / "data").mkdir(parents=True)
    place.chmod(0o755)
    (place / "data" / "PG_VERSION").write_text("11\n")
    with pytest.raises(NoPostgres, match=r"made by PostgreSQL 11.*Nothing was changed"):
        EmbeddedPostgres(place).start()
    assert sorted(path.name for path in (place / "data").iterdir()) == ["PG_VERSION"]


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program at all."""
    monkeypatch.setattr(binaries, "_WHEEL", "no_such_wheel")
    with pytest.raises(NoPostgres, match=r"pip install .*\[server\]'"):
        binaries.choose(18)


def test_a_server_that_cannot_start_says_why(made: Path) -> None:
    """With the end of its own log."""
    server = EmbeddedPostgres(made, settings={"shared_buffers": "many"})
    with pytest.raises(DatabaseFailed, match="shared_buffers"):
        server.start()
    with EmbeddedPostgres(made, settings=FAST) as again:
        assert run(again, "select 1") == 1


def test_a_long_path_has_its_socket_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The kernel limits the path of a socket: a short private directory stands in, named by the place."""
    long = Path(tempfile.gettempdir()) / ("d" * 120)
    account = account_for(long)
    directory = pgdata.socket_directory(long, account)
    try:
        assert len(os.fsencode(directory)) < 100
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert pgdata.socket_directory(long, account) == directory
        directory.chmod(0o755)
        with pytest.raises(DatabaseFailed, match="not a private directory"):
            pgdata.socket_directory(long, account)
    finally:
        directory.rmdir()


def test_nothing_is_left_outside_its_directory(place: Path) -> None:
    """The socket of a database with a long path is gone with the server."""
    deep = place / ("d" * 100)
    with EmbeddedPostgres(deep, settings=FAST) as server:
        sockets = pgdata.socket_directory(deep, account_for(deep / "data"))
        assert run(server, "select 1") == 1
        assert any(sockets.iterdir())
    assert not sockets.exists()


def test_it_is_started_from_the_main_thread_only(made: Path) -> None:
    """The kernel ends it with the thread that started it."""
    failed: list[BaseException] = []

    def start() -> None:
        try:
            EmbeddedPostgres(made).start()
        except Impossible as error:
            failed.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(failed) == 1


@as_root
def test_as_root_a_place_that_the_account_cannot_reach_is_refused(place: Path) -> None:
    """The directory in the way is named, and no mode is changed."""
    closed = place / "closed"
    closed.mkdir(parents=True, mode=0o700)
    place.chmod(0o755)
    with pytest.raises(DatabaseFailed, match=f"may not enter {closed},"):
        EmbeddedPostgres(closed / "deep" / "db").start()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert list(closed.iterdir()) == []


@as_root
def test_as_root_programs_out_of_reach_are_copied_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation below a private directory serves from a copy beside the data."""
    original = binaries.choose(18)
    hidden = place / "hidden"
    hidden.mkdir(parents=True, mode=0o700)
    place.chmod(0o755)
    package = original.root.parent
    for directory in (package, package.with_name(f"{package.name}.libs")):
        (hidden / directory.name).symlink_to(directory)
    installation = Installation(original.major, original.version, hidden / package.name / original.root.name)
    monkeypatch.setattr(postgres, "choose", lambda major, among: installation)
    account = account_for(place / "db")
    assert account is not None
    for _ in range(2):
        with EmbeddedPostgres(place / "db", settings=FAST) as server:
            assert run(server, "select 1") == 1
    (program,) = (place / "db" / f"postgresql-{original.version}").glob("*/*/bin/postgres")
    assert unreachable(account, program) is None
    assert stat.S_IMODE(hidden.stat().st_mode) == 0o700


@as_root
def test_as_root_the_owner_of_the_data_runs_it(made: Path) -> None:
    """Whatever accounts the machine gets later; another name is refused."""
    owner = account_for(made / "data")
    assert owner is not None
    assert owner.uid == (made / "data").stat().st_uid != 0
    with pytest.raises(UserError, match="must run as that account"):
        EmbeddedPostgres(made, account="daemon" if owner.name != "daemon" else "bin").start()
    with pytest.raises(UserError, match="other than root"):
        EmbeddedPostgres(made, account="root").start()
