"""A master and its database for benchmarks of telemetry, with trials in their first run; no agents, no scripts.

The master is a process of its own, as in life, and so is whoever sends: `send` runs this module as a child that posts
prepared bodies and reports what it counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import asyncpg
import uvloop

from tenax.local.postgres import EmbeddedPostgres
from tenax.master.access.task_tokens import allocation_token, token_hash

ROOT = Path(__file__).resolve().parent.parent
_CONFIG = {"searcher": {"name": "single", "metric": "loss", "smaller_is_better": True}}


@dataclass(frozen=True)
class Trial:
    """One that reports: its container has the name of its allocation."""

    id: int
    task_id: str
    allocation_id: str
    token: str


@dataclass(frozen=True)
class Bench:
    """A running master."""

    url: str
    dsn: str
    trials: list[Trial]
    #: Credential of the agent of all containers.
    agent: str
    #: The master's process.
    pid: int

    async def connect(self) -> asyncpg.Connection:
        """To the database."""
        return await asyncpg.connect(self.dsn)


@contextlib.contextmanager
def master(trials: int) -> Iterator[Bench]:
    """A master with so many trials; gone with all its files afterwards."""
    root = Path(tempfile.gettempdir()) / f"tenax-bench-{uuid.uuid4().hex[:12]}"
    postgres = EmbeddedPostgres(root / "postgres")
    process = None
    try:
        dsn = postgres.start()
        port = _free_port()
        environment = {**os.environ, "TENAX_MASTER_DB__URL": dsn}
        options = ["--port", str(port), "--dir", str(root / "master"), "--log-level", "warning"]
        process = subprocess.Popen([sys.executable, "-m", "tenax.master", *options], env=environment)
        url = f"http://127.0.0.1:{port}"
        _wait_until_up(url, process)
        agent = f"tnxg_{uuid.uuid4().hex}"
        made = asyncio.run(_make_trials(dsn, trials, agent))
        yield Bench(url, dsn, made, agent, process.pid)
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        postgres.stop()
        shutil.rmtree(root, ignore_errors=True)


@dataclass(frozen=True)
class Job:
    """What one client sends, one after another, each when the one before is answered."""

    method: str
    path: str
    headers: dict[str, str]
    bodies: list[bytes]
    #: Queries of the requests, one per body.
    queries: list[dict[str, str]]


@dataclass(frozen=True)
class Result:
    """What a load came to."""

    seconds: float
    #: Of each request, in milliseconds.
    latencies: list[float]

    def per_second(self, things: float) -> float:
        """A rate, of ``things`` in all."""
        return round(things / self.seconds, 1)

    @property
    def p50_ms(self) -> float:
        return round(statistics.median(self.latencies), 2)

    @property
    def p99_ms(self) -> float:
        return round(sorted(self.latencies)[int(len(self.latencies) * 0.99)], 2)


def send(url: str, jobs: Sequence[Job]) -> Result:
    """Send all jobs at once, from a process of its own. Raises RuntimeError for an answer that is not 200."""
    described = [
        {
            "method": job.method,
            "path": job.path,
            "headers": job.headers,
            "bodies": [body.hex() for body in job.bodies],
            "queries": job.queries,
        }
        for job in jobs
    ]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._telemetry", url],
        input=json.dumps(described),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    answer = json.loads(done.stdout)
    return Result(answer["seconds"], answer["latencies"])


async def _send_all(url: str, jobs: list[Job]) -> Result:
    latencies: list[float] = []

    async def client(session: aiohttp.ClientSession, job: Job) -> None:
        for body, query in zip(job.bodies, job.queries):
            began = time.perf_counter()
            async with session.request(
                job.method, url + job.path, data=body, headers=job.headers, params=query
            ) as reply:
                told = await reply.read()
                if reply.status != 200:
                    raise RuntimeError(f"{reply.status}: {told[:500]!r}")
            latencies.append((time.perf_counter() - began) * 1e3)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), read_bufsize=2**20) as session:
        began = time.perf_counter()
        await asyncio.gather(*(client(session, job) for job in jobs))
        return Result(time.perf_counter() - began, latencies)


def _child(url: str) -> None:
    jobs = [
        Job(one["method"], one["path"], one["headers"], [bytes.fromhex(body) for body in one["bodies"]], one["queries"])
        for one in json.load(sys.stdin)
    ]
    result = uvloop.run(_send_all(url, jobs))
    json.dump({"seconds": result.seconds, "latencies": result.latencies}, sys.stdout)


async def _make_trials(dsn: str, count: int, agent: str) -> list[Trial]:
    conn = await asyncpg.connect(dsn)
    secret = await conn.fetchval("select secret from cluster")
    await conn.execute(
        "insert into agents (agent_id, pool, credential_hash) values ('bench', 'default', $1)", token_hash(agent)
    )
    await conn.execute(
        "insert into jobs (job_id, pool, priority, queue_position, owner_id) values ('bench', 'default', 42, 1, 1)"
    )
    # PAUSED and without a search: the loops leave it alone.
    experiment = await conn.fetchval(
        "insert into experiments (job_id, owner_id, project_id, unmanaged) values ('bench', 1, 1, true) returning id"
    )
    await conn.execute(
        "insert into experiment_documents (experiment_id, name, original_config, config, seed)"
        " values ($1, 'bench', '', $2::text::jsonb, 0)",
        experiment,
        json.dumps(_CONFIG),
    )
    trials = [await _make_trial(conn, experiment, number, secret) for number in range(1, count + 1)]
    await conn.close()
    return trials


async def _make_trial(conn: asyncpg.Connection, experiment: int, number: int, secret: bytes) -> Trial:
    request = str(uuid.uuid4())
    task_id = f"{experiment}.{request}"
    trial = await conn.fetchval(
        "insert into trials (experiment_id, request_id, journal_seq, task_id, run_id, hparams, seed)"
        " values ($1, $2, $3, $4, 1, '{}', 0) returning id",
        experiment,
        request,
        number,
        task_id,
    )
    await conn.execute(
        "insert into tasks (task_id, kind, job_id, trial_id) values ($1, 'TRIAL', 'bench', $2)", task_id, trial
    )
    name = f"{task_id}.1"
    await conn.execute(
        "insert into allocations (allocation_id, task_id, run_id, state, slots) values ($1, $2, 1, 'RUNNING', 0)",
        name,
        task_id,
    )
    await conn.execute(
        "insert into containers (container_id, allocation_id, rank, agent_id, slots, state)"
        " values ($1, $1, 0, 'bench', '{}', 'RUNNING')",
        name,
    )
    token = allocation_token(secret, name)
    await conn.execute("insert into allocation_tokens values ($1, $2, 1)", token_hash(token), name)
    return Trial(trial, task_id, name, token)


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/info", timeout=5):
            return
        time.sleep(0.05)
    raise RuntimeError(f"the master ended with {process.returncode}")


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


if __name__ == "__main__":
    _child(sys.argv[1])
