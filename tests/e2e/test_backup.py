"""``tenax backup`` and ``tenax restore``: a filled cluster comes back, whatever happened to its directory."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tenax.cli.console import exits
from tenax.local.pgdata import address_of
from tests.kits.machine import ROOT, Machine, home, machine, wait_for

#: A test starts its servers several times, which is what a busy machine is slow at.
pytestmark = pytest.mark.timeout(600)

NOOP = ROOT / "examples" / "noop"
#: What the servers go on writing by themselves.
MOVING = ("agent", "lease", "session", "presence", "process", "master", "generation")
#: What the first master on a restored database writes about that, in the cluster's row.
OF_THE_RESTORE = ["database_identity", "restored_at", "generation"]
CONTAINERS = "public.containers"
TABLES = (
    "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace"
    " where c.relkind = 'r' and n.nspname !~ '^(pg_|information_schema)' order by 1"
)


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    """A cluster with an experiment that has ended, its checkpoint, a workspace and a user."""
    with machine(slots=1) as up:
        config = ["--config", "hyperparameters.reports=5", "--config", "hyperparameters.seconds=0"]
        up.tenax("experiment", "create", str(NOOP / "const.yaml"), str(NOOP), "-f", *config)
        up.tenax("workspace", "create", "kept")
        yield up


def contents(place: Machine) -> dict[str, object]:
    """What every table holds, but for those in which the servers keep their own state."""

    async def read() -> dict[str, object]:
        conn = await asyncpg.connect(address_of(place.directory / "postgres"))
        try:
            tables = [row[0] for row in await conn.fetch(TABLES)]
            kept = [table for table in tables if not any(word in table for word in MOVING)]
            return {
                table: await conn.fetchval(
                    f"select array_agg((to_jsonb(t) - $1::text[])::text order by 1) from {table} t",
                    OF_THE_RESTORE,
                )
                for table in kept
            }
        finally:
            await conn.close()

    return asyncio.run(read())


def settled(place: Machine) -> dict[str, object]:
    """The same once nothing is left to collect, and nothing of its container on the agent's machine: an experiment that
    has just ended is looked at once more. It is as it was at the look before."""
    before: dict[str, object] = {}

    def look() -> dict[str, object] | None:
        nonlocal before
        held, before = before, contents(place)
        over = before["public.garbage_due"] is None and '"gone_at": null' not in str(before[CONTAINERS])
        return before if over and held == before else None

    return wait_for(look, "nothing to be due")


def lose(place: Machine) -> None:
    """Stop the cluster; of its directory the checkpoints alone are left, as if they lay elsewhere."""
    place.down()
    elsewhere = place.directory.parent / "checkpoints"
    (place.directory / "checkpoints").rename(elsewhere)
    place.directory.rename(place.directory.parent / f"lost-{len(list(place.directory.parent.iterdir()))}")
    place.directory.mkdir(mode=0o711)
    elsewhere.rename(place.directory / "checkpoints")


def restore(place: Machine, source: Path) -> subprocess.CompletedProcess[str]:
    return place.tenax("restore", str(source), check=False)


def test_a_filled_cluster_comes_back(place: Machine) -> None:
    """Every row, the same address, users and passwords; its agent is known, and what was saved can be gone on from.

    From a restore that was killed no cluster starts; begun again it is whole.
    """
    copy = place.directory.parent / "monday"
    checkpoint = place.tenax("checkpoint", "list", "1", "--csv").stdout
    before = settled(place)
    place.tenax("backup", str(copy))
    secrets = [path for path in [copy, *copy.rglob("*")] if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert secrets == []
    assert "is there already" in place.tenax("backup", str(copy), check=False).stderr
    assert restore(place, copy).returncode == exits.EXISTS
    place.tenax("workspace", "create", "after")

    lose(place)
    kill_a_restore(place, copy)
    refused = place.tenax("up", check=False)
    assert refused.returncode == exits.FAILED
    assert "was broken off: begin it again, with tenax restore" in refused.stderr
    done = restore(place, copy)
    assert done.returncode == exits.OK, done.stderr
    assert "Start it with: tenax up" in done.stderr

    assert place.tenax("up").returncode == exits.OK
    after = settled(place)
    assert after.keys() == before.keys()
    # Of users, when each was last seen; and what the loop that schedules removes once it has read it.
    differ = {table for table in before if before[table] != after[table]}
    assert differ <= {"public.users", "public.cluster_changes"}
    assert place.answers()
    assert "after" not in place.tenax("workspace", "list", "--csv").stdout
    assert "resources exited successfully" in place.tenax("trial", "logs", "1").stdout
    assert place.tenax("checkpoint", "list", "1", "--csv").stdout == checkpoint
    assert "enabled" in place.tenax("agent", "list").stdout
    again = ["experiment", "continue", "1", "-f", "--config", "hyperparameters.reports=8"]
    done = place.tenax(*again, "--config", "hyperparameters.seconds=0", check=False)
    assert done.returncode == exits.OK, done.stdout + done.stderr
    assert "at step 8" in done.stdout + done.stderr


def kill_a_restore(place: Machine, source: Path) -> None:
    restoring = subprocess.Popen([*place.command, "restore", str(source)], env=place.environment)
    wait_for(lambda: (place.directory / "restoring" / "postgres" / "data").exists() or None, "a restore at work")
    restoring.send_signal(signal.SIGKILL)
    restoring.wait()


def test_a_cluster_that_is_down(place: Machine) -> None:
    """Its database is started for a backup, and ends with it; a restore does not write over what is there."""
    place.down()
    copy = place.directory.parent / "down"
    place.tenax("backup", str(copy))
    assert (copy / "database.dump").stat().st_size > 10_000
    assert place.tenax("status", check=False).returncode == exits.UNREACHABLE
    assert "There is a database in" in restore(place, copy).stderr
    nothing = place.directory.parent / "nothing"
    nothing.mkdir()
    assert "is no backup" in restore(place, nothing).stderr


def test_where_there_is_nothing_to_copy() -> None:
    """That is said, and nothing is made."""
    with home() as directory:
        empty = Machine(directory / "cluster")
        done = empty.tenax("backup", str(directory / "copy"), check=False)
        assert done.returncode == exits.FAILED
        assert "There is no database in" in done.stderr
        own = Machine(directory / "cluster", environment={"TENAX_MASTER_DB__URL": "postgresql://x@127.0.0.1:1/y"})
        assert "with its own tools" in own.tenax("backup", str(directory / "copy"), check=False).stderr
        assert sorted(path.name for path in directory.iterdir()) == []


def test_a_database_of_your_own_is_not_left_by_accident(database_url: str) -> None:
    """Once a cluster was up on it, its address is asked for; to leave it takes an option."""
    with home() as directory:
        own = Machine(
            directory / "cluster", options=("--no-agent",), environment={"TENAX_MASTER_DB__URL": database_url}
        )
        try:
            own.up()
            own.down()
            plain = Machine(directory / "cluster", options=("--no-agent",))
            done = plain.tenax("up", "--port", str(plain.port), check=False)
            assert (done.returncode, "--embedded-database" in done.stderr) == (exits.FAILED, True), done.stderr
            refused = plain.tenax("upgrade-database", check=False)
            assert (refused.returncode, "Nothing was changed" in refused.stderr) == (exits.FAILED, True)
            assert "with its own tools" in plain.tenax("backup", str(directory / "copy"), check=False).stderr
            assert not (directory / "cluster" / "postgres").exists()
            plain.tenax("up", "--port", str(plain.port), "--embedded-database")
            assert plain.answers()
        finally:
            own.down()
