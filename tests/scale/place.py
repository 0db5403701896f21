"""A master on a large database, and what a load on it came to.

How large is `SCALE`: 1 is what big teams have (`make scale`), other runs take a hundredth. Figures are printed, one
line of JSON each, beside their budget; none is asserted, because machines differ.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp
import msgspec

from tenax.config.master import MasterSettings
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.access.bootstrap import bootstrap
from tenax.master.access.passwords import Passwords
from tenax.master.access.task_tokens import allocation_token, token_hash
from tenax.master.store.cluster import rows as cluster_rows
from tenax.master.store.database.connection import Database
from tests.kits.database import migrated
from tests.kits.machine import free_port, wait_for
from tests.kits.many_experiments import Amount, seed, settle
from tests.kits.rows import add_agent, add_experiment, add_trial, run_attempt

#: Of everything; the environment variable ``TENAX_SCALE``.
SCALE = float(os.environ.get("TENAX_SCALE", "0.01"))


#: How often each thing is timed.
TIMES = 20 if SCALE >= 1 else 2


def scaled(amount: int, least: int = 1) -> int:
    """So many at this scale."""
    return max(least, round(amount * SCALE))


def tell(what: str, milliseconds: Sequence[float], budget_ms: float | None = None, **more: object) -> None:
    """Print what was measured: median, 95th percentile, worst."""
    times = sorted(milliseconds)
    figures = {
        "p50_ms": round(times[len(times) // 2], 2),
        "p95_ms": round(times[math.ceil(len(times) * 0.95) - 1], 2),
        "max_ms": round(times[-1], 2),
        "count": len(times),
    }
    line = {"scale": SCALE, "what": what, **figures, "budget_ms": budget_ms, **more}
    if budget_ms is not None:
        line["within"] = figures["p95_ms"] <= budget_ms
    print(json.dumps(line), flush=True)


@dataclass(frozen=True)
class Sender:
    """A trial that reports: its container has the name of its allocation."""

    trial_id: int
    allocation_id: str
    container_id: str
    token: str


@dataclass(frozen=True)
class Large:
    """A running master, and what is in its database."""

    url: str
    token: str
    amount: Amount
    sender: Sender
    root: Path
    dsn: str

    @contextlib.contextmanager
    def watched(self) -> Iterator[Watched]:
        """Another master on the same database, which tells how long its event loop was held."""
        with _master(self.root, self.dsn, "tests.kits.watched_master") as (url, process):
            yield Watched(replace(self, url=url), process)

    def session(self) -> aiohttp.ClientSession:
        """Logged in as the administrator."""
        headers = {"Authorization": f"Bearer {self.token}"}
        connector = aiohttp.TCPConnector(limit=0)
        return aiohttp.ClientSession(self.url, headers=headers, connector=connector, read_bufsize=2**20)


@dataclass(frozen=True)
class Watched:
    """A master that tells how long its event loop was held."""

    large: Large
    process: subprocess.Popen[bytes]

    def longest_ms(self) -> tuple[float, str]:
        """The longest callback since the last look, and what it was."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["ms"], answer["by"]


async def asked(http: aiohttp.ClientSession, path: str, **query: str) -> bytes:
    """The body of an answer. Raises AssertionError for one that is not 200."""
    async with http.get(path, params=query) as reply:
        body = await reply.read()
        assert reply.status == 200, f"{path}: {reply.status} {body[:300]!r}"
        return body


async def timed(ask: Callable[[], Awaitable[object]], times: int) -> list[float]:
    """Milliseconds of each of ``times`` calls, one after the other."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        await ask()
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


async def together(ask: Callable[[], Awaitable[object]], users: int, times: int) -> list[float]:
    """Milliseconds of each call of ``users`` who ask at once, ``times`` each."""
    taken = await asyncio.gather(*(timed(ask, times) for _ in range(users)))
    return [one for each in taken for one in each]


@contextlib.contextmanager
def large_master() -> Iterator[Large]:
    """A master that was started on a database that was filled before; gone with all its files afterwards."""
    root = Path(tempfile.mkdtemp(prefix="tenax-scale-"))
    root.chmod(0o755)
    postgres = EmbeddedPostgres(root / "postgres")
    amount = Amount(experiments=scaled(100_000, 500), live=scaled(200, 4))
    try:
        dsn = postgres.start()
        (root / "master").mkdir(mode=0o700)
        sender = asyncio.run(_fill(dsn, root / "master", amount))
        with _master(root, dsn) as (url, _):
            yield Large(url, _login(url, root), amount, sender, root, dsn)
    finally:
        postgres.stop()
        shutil.rmtree(root, ignore_errors=True)


@dataclass(frozen=True)
class Empty:
    """A running master that knows of nothing yet."""

    url: str
    token: str
    pid: int

    def peak_mib(self) -> float:
        """The most memory that the process has ever had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


@contextlib.contextmanager
def empty_master() -> Iterator[Empty]:
    """A master on a database of its own; gone with all its files afterwards."""
    root = Path(tempfile.mkdtemp(prefix="tenax-scale-"))
    root.chmod(0o755)
    postgres = EmbeddedPostgres(root / "postgres")
    try:
        with _master(root, postgres.start()) as (url, process):
            yield Empty(url, _login(url, root), process.pid)
    finally:
        postgres.stop()
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def _master(root: Path, dsn: str, module: str = "tenax.master") -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = ["--port", str(port), "--dir", str(root / "master"), "--log-level", "warning"]
    environment = {**os.environ, "TENAX_MASTER_DB__URL": dsn}
    command = [sys.executable, "-m", module, *options]
    pipe = subprocess.PIPE if module != "tenax.master" else None
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe) as process:
        try:
            wait_for(lambda: process.poll() is not None or _answers(url), "the master")
            yield url, process
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    async def look() -> bool:
        async with aiohttp.ClientSession() as http, http.get(f"{url}/info") as reply:
            return reply.status == 200

    with contextlib.suppress(OSError, aiohttp.ClientError):
        return asyncio.run(look())
    return False


def _login(url: str, root: Path) -> str:
    told = json.loads((root / "master" / "credentials.json").read_text())

    async def ask() -> str:
        async with aiohttp.ClientSession() as http, http.post(f"{url}/api/v1/auth/login", json=told) as reply:
            return str((await reply.json())["token"])

    return asyncio.run(ask())


async def _fill(dsn: str, directory: Path, amount: Amount) -> Sender:
    """As a master leaves it that has begun once, and all that is to be there."""
    await migrated(dsn)
    database = await Database.open(dsn)
    await bootstrap(database, MasterSettings(dir=directory), Passwords())
    async with database.transaction() as conn:
        await seed(conn, amount)
        await add_agent(conn, "scale")
        experiment = await add_experiment(conn)
        # Without a search, so that nobody tends it.
        await conn.execute("update experiments set unmanaged = true where id = $1", experiment)
        trial = await add_trial(conn, experiment)
        attempt = await run_attempt(conn, trial, ("scale",))
        token = allocation_token((await cluster_rows.ensure(conn, "")).secret, attempt.allocation_id)
        await conn.execute(
            "insert into allocation_tokens values ($1, $2, 1) on conflict do nothing",
            token_hash(token),
            attempt.allocation_id,
        )
    async with database.connection() as conn:
        await settle(conn)
    await database.close()
    return Sender(trial, attempt.allocation_id, attempt.containers[0], token)


def spool_lines(first: int, count: int) -> bytes:
    """So many reports of training, of one metric each, as our client ships them."""
    lines = []
    for n in range(first, first + count):
        body = {
            "group": "training",
            "stepsCompleted": n,
            "metrics": {"loss": 1.0 / n},
            "batchMetrics": None,
            "reportTime": None,
        }
        lines.append(msgspec.json.encode({"n": n, "kind": "metrics", "at": 1.79e9 + n, "body": body}))
    return b"\n".join(lines) + b"\n"
