"""How fast output of containers is taken in over HTTP, durably, and how fast it is found again.

Prints one JSON line. Beside it, in turns in the same run on the same PostgreSQL: the same lines COPYed as rows (task,
time, rank, level, line), 1,000 per commit, with an index by task.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import statistics
import time
import urllib.parse
import urllib.request
import zlib

from benchmarks._measure import LONG, Line, extremes
from benchmarks._telemetry import Bench, Job, Trial, master, send

ROUNDS = 5 if LONG else 3
#: Lines of one round, in chunks as an agent sends them.
LINES = 400_000 if LONG else 160_000
CHUNK_LINES = 5000
CLIENTS = 4
FLOOR_LINES = 100_000.0
_RNG = random.Random(1)


def text(number: int) -> str:
    """A line of a training script, some 100 bytes."""
    return (
        f"[rank={number % 8}] INFO: 2026-11-20 20:00:{number % 60:02d} epoch {number // 1000} step {number} "
        f"loss={_RNG.random():.6f} lr=0.001 throughput={_RNG.randrange(1000)} img/s"
    )


class Speaker:
    """A container that prints."""

    def __init__(self, bench: Bench, trial: Trial) -> None:
        self._bench = bench
        self.trial = trial
        self._offset = 0

    def job(self, texts: list[str]) -> Job:
        """Its output, as the agent ships it."""
        bodies, queries = [], []
        for start in range(0, len(texts), CHUNK_LINES):
            raw = ("\n".join(texts[start : start + CHUNK_LINES]) + "\n").encode()
            bodies.append(zlib.compress(raw, 1))
            query = {"container_id": self.trial.allocation_id, "stream": "stdout", "offset": str(self._offset)}
            queries.append(query)
            self._offset += len(raw)
        return Job("POST", "/agents/logs", {"Authorization": f"Bearer {self._bench.agent}"}, bodies, queries)


async def copy_round(bench: Bench, texts: list[str]) -> float:
    """Lines per second as rows."""
    conn = await bench.connect()
    await conn.execute("drop table if exists bench_lines")
    await conn.execute(
        "create table bench_lines (id bigint generated always as identity,"
        " task text, at timestamptz, rank integer, level text, line text)"
    )
    await conn.execute("create index on bench_lines (task, id)")
    now = datetime.datetime.now(datetime.timezone.utc)
    began = time.perf_counter()
    for start in range(0, len(texts), 1000):
        rows = [("task", now, 0, "INFO", line) for line in texts[start : start + 1000]]
        await conn.copy_records_to_table("bench_lines", records=rows, columns=["task", "at", "rank", "level", "line"])
    took = time.perf_counter() - began
    await conn.close()
    return len(texts) / took


async def bytes_per_line(bench: Bench) -> dict[str, float]:
    """As stored, indexes included."""
    conn = await bench.connect()
    chunks = await conn.fetchrow(
        "select sum(pg_total_relation_size(relid))::bigint as size,"
        " (select sum(lines) from log_chunks)::bigint as lines from pg_partition_tree('log_chunks')"
    )
    rows = await conn.fetchrow(
        "select pg_total_relation_size('bench_lines') as size, count(*) as lines from bench_lines"
    )
    await conn.close()
    return {"chunks": round(chunks["size"] / chunks["lines"], 1), "rows": round(rows["size"] / rows["lines"], 1)}


def ask(bench: Bench, trial: Trial, **query: str) -> tuple[float, int]:
    """Seconds of a request for lines, and how many came."""
    url = f"{bench.url}/api/v1/trials/{trial.id}/logs?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {trial.token}"})
    began = time.perf_counter()
    with urllib.request.urlopen(request) as reply:
        lines = reply.read().count(b"\n")
    return time.perf_counter() - began, lines


def main() -> None:
    line = Line("logs")
    ours: list[float] = []
    rows: list[float] = []
    searches: list[float] = []
    tails: list[float] = []
    texts = [text(number) for number in range(LINES)]
    share = LINES // CLIENTS
    with master(trials=CLIENTS) as bench:
        speakers = [Speaker(bench, trial) for trial in bench.trials]
        for _ in range(ROUNDS):
            jobs = [speaker.job(texts[k * share : (k + 1) * share]) for k, speaker in enumerate(speakers)]
            ours.append(send(bench.url, jobs).per_second(share * CLIENTS))
            rows.append(asyncio.run(copy_round(bench, texts)))
            took, _ = ask(bench, bench.trials[0], searchText=r"step 1\d*77 loss", enableRegex="true")
            searches.append(share * len(ours) / took)
            tails.append(ask(bench, bench.trials[0], orderBy="ORDER_BY_DESC", limit="1000")[0] * 1e3)
        stored = asyncio.run(bytes_per_line(bench))
    line.add(
        lines_per_s=extremes(ours),
        floor_lines_per_s=FLOOR_LINES,
        peer="COPY of rows, 1,000 per commit, with an index",
        copy_lines_per_s=extremes(rows),
        ratio=round(statistics.median(ours) / statistics.median(rows), 2),
        bytes_per_line=stored,
        line_bytes=round(statistics.fmean(map(len, texts[:1000])), 1),
        search_lines_per_s=extremes(searches),
        last_1000_lines_ms=extremes(tails),
    )
    line.emit()


if __name__ == "__main__":
    main()
