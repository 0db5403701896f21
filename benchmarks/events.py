"""What the live stream costs a master: 200 light clients on a busy cluster, beside none.

Prints one JSON line. There is no peer: the figure is the share of a core that the master's process uses, read in turns
without clients, with 200 streams of ten sets of topics, and with the same clients that also fetch what a page fetches
for what it is told of (`_FETCH_S` apart at most). The load is the same throughout: metrics and output of 40 trials, and
edits of experiments, so many a second; it comes from a process of its own, and so do the clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import aiohttp
import uvloop

from benchmarks._measure import LONG, Line
from benchmarks._telemetry import ROOT, Bench, Trial, master

CLIENTS, USERS, TRIALS = 200, 10, 40
ROUNDS = 5 if LONG else 3
SECONDS = 60 if LONG else 15
#: A second, over all trials.
REPORTS, CHUNKS, EDITS = 40, 10, 4
AIM_CORES = 0.05
#: What was begun is under way.
_SETTLE_S = 2.0
#: Of one client, between two fetches for what it was told of.
_FETCH_S = 2.0
_TICK = os.sysconf("SC_CLK_TCK")


def topics(trials: Sequence[int]) -> list[list[str]]:
    """Ten pages: what each of them follows beside what all do."""
    pages = [
        ["experiments", "job-queues/default"],
        ["projects/1/experiments"],
        ["experiments/1", "experiments/1/trials"],
        ["agents", "job-queues/default"],
        ["tasks", "models", "workspaces"],
        *([f"trials/{trial}", "experiments/1"] for trial in trials[:5]),
    ]
    return [["users/1", *page] if page[0] == "experiments" else page for page in pages]


def fetched(page: Sequence[str]) -> str:
    """What a page fetches again for what it is told of."""
    of_trial = [name for name in page if name.startswith("trials/")]
    if of_trial:
        return f"/api/v1/{of_trial[0]}"
    return "/api/v1/agents" if "agents" in page else "/api/v1/experiments?limit=40"


def main() -> None:
    """Measure and print the line."""
    line = Line("events")
    cores: dict[str, list[float]] = {"none": [], "streams": [], "pages": []}
    with master(TRIALS) as bench:
        tokens = asyncio.run(log_in(bench))
        described = {
            "url": bench.url,
            "dsn": bench.dsn,
            "agent": bench.agent,
            "trials": [vars_of(trial) for trial in bench.trials],
            "tokens": tokens,
        }
        told: dict[str, object] = {}
        with child("load", described):
            for _ in range(ROUNDS):
                for way, measured in cores.items():
                    with child(way, described) if way != "none" else contextlib.nullcontext() as client:
                        time.sleep(_SETTLE_S)
                        measured.append(used_cores(bench.pid, SECONDS))
                    if client is not None:
                        told[way] = json.loads(client)
    median = {way: statistics.median(measured) for way, measured in cores.items()}
    line.add(
        clients=CLIENTS,
        load_per_second={"reports": REPORTS, "chunks": CHUNKS, "edits": EDITS},
        master_cores={way: round(value, 3) for way, value in median.items()},
        streams_cores=round(median["streams"] - median["none"], 3),
        pages_cores=round(median["pages"] - median["none"], 3),
        aim_cores=AIM_CORES,
        all_rounds={way: [round(value, 3) for value in measured] for way, measured in cores.items()},
        clients_were_told=told,
    )
    line.emit()


def vars_of(trial: Trial) -> dict[str, object]:
    return {"id": trial.id, "allocation_id": trial.allocation_id, "token": trial.token}


def used_cores(pid: int, seconds: float) -> float:
    """Of a process, over the next seconds."""

    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before, began = ticks(), time.perf_counter()
    time.sleep(seconds)
    return (ticks() - before) / _TICK / (time.perf_counter() - began)


async def log_in(bench: Bench) -> list[str]:
    """A login of each of some users."""
    conn = await bench.connect()
    tokens = []
    for number in range(USERS):
        token = f"tnxs_bench{number}"
        user = 1
        if number:
            user = await conn.fetchval("insert into users (username) values ($1) returning id", f"bench{number}")
        await conn.execute(
            "insert into user_sessions (user_id, token_hash, expires_at) values ($1, $2, now() + interval '1 day')",
            user,
            hashlib.sha256(token.encode()).digest(),
        )
        tokens.append(token)
    await conn.close()
    return tokens


@contextmanager
def child(way: str, described: Mapping[str, object]) -> Iterator[bytearray]:
    """This module as a process, until the block ends; what it said then. Raises RuntimeError where it failed."""
    command = [sys.executable, "-m", "benchmarks.events", way]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    said = bytearray()
    try:
        _pipe(process.stdin).write(json.dumps(described).encode() + b"\n")
        _pipe(process.stdin).flush()
        if _pipe(process.stdout).readline() != b"ready\n":
            raise RuntimeError(f"the {way} of the benchmark did not begin")
        yield said
    finally:
        # The end of its input is the end of its work.
        said += process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"the {way} of the benchmark ended with {process.returncode}")


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


async def _work(way: str) -> None:
    described = json.loads(sys.stdin.readline())
    loop = asyncio.get_running_loop()
    over = loop.run_in_executor(None, sys.stdin.read)
    async with aiohttp.ClientSession(
        described["url"], connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout()
    ) as session:
        counts = {"events": 0, "parts": 0, "fetches": 0, "resets": 0}
        if way == "load":
            tasks = [asyncio.create_task(work) for work in _load(session, described)]
        else:
            tasks, ready = [], asyncio.Semaphore(0)
            pages = topics([trial["id"] for trial in described["trials"]])
            for number in range(CLIENTS):
                page = pages[number % len(pages)]
                user = number % len(described["tokens"])
                # Only the first follows what is its own.
                named = [name for name in page if user == 0 or not name.startswith("users/")]
                headers = {"Authorization": f"Bearer {described['tokens'][user]}"}
                follow = _follow(session, headers, named, counts, ready, fetches=way == "pages")
                tasks.append(asyncio.create_task(follow))
            for _ in range(CLIENTS):
                await ready.acquire()
        print("ready", flush=True)
        await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
        broken = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if broken:
            raise RuntimeError(f"it ended before it was to: {broken[0]}")
    print(json.dumps(counts), flush=True)


async def _follow(
    session: aiohttp.ClientSession,
    headers: dict[str, str],
    page: Sequence[str],
    counts: dict[str, int],
    ready: asyncio.Semaphore,
    *,
    fetches: bool,
) -> None:
    """One client: reads its stream, and with ``fetches`` what it was told of."""
    due, news = 0.0, asyncio.Event()

    async def fetch() -> None:
        nonlocal due
        while True:
            await news.wait()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            news.clear()
            due = time.monotonic() + _FETCH_S
            async with session.get(fetched(page), headers=headers) as reply:
                await reply.read()
                reply.raise_for_status()
            counts["fetches"] += 1

    fetching = asyncio.create_task(fetch()) if fetches else None
    try:
        async with session.get("/api/v1/events", params=[("topic", name) for name in page], headers=headers) as reply:
            reply.raise_for_status()
            async for part, _ in reply.content.iter_chunks():
                if b"event: hello" in part:
                    ready.release()
                counts["parts"] += 1
                counts["events"] += part.count(b"event: change")
                counts["resets"] += part.count(b"event: reset")
                # What carries its fields is patched; the rest is fetched.
                if b'"kind":"metrics"' in part or b'"kind":"job_queue"' in part:
                    news.set()
    finally:
        if fetching is not None:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)


def _load(session: aiohttp.ClientSession, described: Mapping[str, object]) -> list[object]:
    trials = described["trials"]
    assert isinstance(trials, list)
    admin = {"Authorization": f"Bearer {described['tokens'][0]}"}  # type: ignore[index]
    agent = {"Authorization": f"Bearer {described['agent']}"}
    return [_reports(session, trials), _output(session, trials, agent), _edits(session, admin)]


async def _every(per_second: float, number: int, began: float) -> None:
    await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))


async def _reports(session: aiohttp.ClientSession, trials: Sequence[Mapping[str, object]]) -> None:
    began, number = time.monotonic(), 0
    # Of rounds before there may be some.
    first = int(time.time())
    while True:
        trial = trials[number % len(trials)]
        metrics = {"avgMetrics": {f"m{each}": number / (each + 1) for each in range(10)}}
        inner = {"trialId": trial["id"], "trialRunId": 1, "stepsCompleted": first + number, "metrics": metrics}
        headers = {"Authorization": f"Bearer {trial['token']}"}
        body = {"group": "training", "metrics": inner}
        async with session.post(f"/api/v1/trials/{trial['id']}/metrics", json=body, headers=headers) as reply:
            reply.raise_for_status()
        number += 1
        await _every(REPORTS, number, began)


async def _output(
    session: aiohttp.ClientSession, trials: Sequence[Mapping[str, object]], headers: dict[str, str]
) -> None:
    began, number = time.monotonic(), 0
    offsets = dict.fromkeys((str(trial["allocation_id"]) for trial in trials), 0)
    while True:
        name = str(trials[number % len(trials)]["allocation_id"])
        raw = b"".join(b"INFO: step %d of the training, loss 0.5\n" % line for line in range(20))
        query = {"container_id": name, "stream": "stdout", "offset": str(offsets[name])}
        async with session.post("/agents/logs", params=query, data=zlib.compress(raw), headers=headers) as reply:
            reply.raise_for_status()
            offsets[name] = (await reply.json())["next"]
        number += 1
        await _every(CHUNKS, number, began)


async def _edits(session: aiohttp.ClientSession, headers: dict[str, str]) -> None:
    began, number = time.monotonic(), 0
    while True:
        async with session.patch("/api/v1/experiments/1", json={"name": f"bench {number}"}, headers=headers) as reply:
            reply.raise_for_status()
        number += 1
        await _every(EDITS, number, began)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvloop.run(_work(sys.argv[1]))
    else:
        main()
