"""How fast metrics come in over HTTP, durably, and how fast a long series goes out to a chart.

Prints one JSON line. Beside it, in turns in the same run on the same PostgreSQL: an MLflow tracking server (its
``log-batch`` of 100 values, its ``log-metric`` of one, its chart of a series), and rows that are COPYed straight into
an indexed table, 1,000 per commit.

- ``shipped``: as our own client ships what has gathered, up to 1 MiB (27,000 values) per request, from 1, 4 and 16
  clients: the figure that is held against the floor;
- ``batch100``: 100 values per request (10 reports of 10 metrics), for the comparison with MLflow's;
- ``single``: one report of one value per request, on Determined's route;
- ``chart_ms``: 1,000 points of a series of 100,000.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import asyncpg
import msgspec

from benchmarks._measure import LONG, Line, Peer, PeerMissing, extremes
from benchmarks._telemetry import Bench, Job, Trial, master, send

CLIENTS = (1, 4, 16)
ROUNDS = 5 if LONG else 3
#: Requests of one round, shared by its clients.
BATCHES, SINGLES, SHIPMENTS = (1600, 1600, 48) if LONG else (240, 160, 8)
PEER_BATCHES, PEER_SINGLES = (128, 128) if LONG else (32, 32)
SHIPPED_REPORTS = 2700
#: Values per second over HTTP, durable; milliseconds of a chart.
FLOOR_VALUES, FLOOR_CHART_MS = 100_000.0, 100.0
SERIES = 100_000
_RNG = random.Random(1)


class Reporter:
    """A trial with numbered reports."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._n = 0

    def job(self, requests: int, reports: int) -> Job:
        """Requests of its spool, with ``reports`` of ten metrics each."""
        bodies = [b"".join(self._line() for _ in range(reports)) for _ in range(requests)]
        return Job(
            "POST",
            f"/api/v1/allocations/{self.trial.allocation_id}/spool",
            {"Authorization": f"Bearer {self.trial.token}"},
            bodies,
            [{"container_id": self.trial.allocation_id, "stream": "bench-1-1"}] * requests,
        )

    def single(self, requests: int) -> Job:
        """Requests of Determined's route, with one value each."""
        bodies = []
        for _ in range(requests):
            self._n += 1
            inner = {"trialId": self.trial.id, "trialRunId": 1, "stepsCompleted": self._n}
            metrics = {**inner, "metrics": {"avgMetrics": {"m": _RNG.random()}}}
            bodies.append(msgspec.json.encode({"group": "validation", "metrics": metrics}))
        headers = {"Authorization": f"Bearer {self.trial.token}"}
        return Job("POST", f"/api/v1/trials/{self.trial.id}/metrics", headers, bodies, [{}] * requests)

    def _line(self) -> bytes:
        self._n += 1
        body = {
            "group": "training",
            "stepsCompleted": self._n,
            "metrics": {f"m{number}": _RNG.random() for number in range(10)},
            "batchMetrics": None,
            "reportTime": None,
        }
        return msgspec.json.encode({"n": self._n, "kind": "metrics", "at": 1.79e9 + self._n, "body": body}) + b"\n"


def mlflow_batch(run: str, requests: int, values: int, step: int) -> Job:
    """``log-batch`` of ten metrics at several steps."""
    bodies = []
    for _ in range(requests):
        metrics = [
            {"key": f"m{k % 10}", "value": _RNG.random(), "timestamp": 1_790_000_000_000, "step": step + k // 10}
            for k in range(values)
        ]
        step += max(1, values // 10)
        bodies.append(msgspec.json.encode({"run_id": run, "metrics": metrics}))
    return _mlflow_job("/api/2.0/mlflow/runs/log-batch", bodies)


def mlflow_single(run: str, requests: int) -> Job:
    """``log-metric``."""
    one = {"run_id": run, "key": "m", "timestamp": 1_790_000_000_000}
    bodies = [msgspec.json.encode({**one, "value": _RNG.random(), "step": step}) for step in range(requests)]
    return _mlflow_job("/api/2.0/mlflow/runs/log-metric", bodies)


def _mlflow_job(path: str, bodies: list[bytes]) -> Job:
    return Job("POST", path, {"Content-Type": "application/json"}, bodies, [{}] * len(bodies))


class Figures:
    """Samples of all rounds, by name."""

    def __init__(self) -> None:
        self.samples: dict[str, list[float]] = {}
        #: What the peer could not do, in its words.
        self.refused: list[str] = []

    def add(self, name: str, value: float) -> None:
        self.samples.setdefault(name, []).append(value)

    def median(self, name: str) -> float | None:
        return statistics.median(self.samples[name]) if name in self.samples else None

    def told(self, prefix: str) -> dict[str, dict[str, float]]:
        return {
            name.removeprefix(prefix): extremes(values)
            for name, values in self.samples.items()
            if name.startswith(prefix)
        }

    def ratio(self, ours: str, theirs: str) -> float | None:
        mine, other = self.median(ours), self.median(theirs)
        return None if mine is None or other is None else round(mine / other, 1)


def product_round(bench: Bench, reporters: list[Reporter], figures: Figures) -> None:
    """Every mode once."""
    for clients in CLIENTS:
        jobs = [reporter.job(BATCHES // clients, 10) for reporter in reporters[:clients]]
        result = send(bench.url, jobs)
        figures.add(f"values_per_s.batch100_c{clients}", result.per_second(BATCHES // clients * clients * 100))
        figures.add(f"p99_ms.batch100_c{clients}", result.p99_ms)
        shipments = max(1, SHIPMENTS // clients)
        jobs = [reporter.job(shipments, SHIPPED_REPORTS) for reporter in reporters[:clients]]
        result = send(bench.url, jobs)
        figures.add(f"values_per_s.shipped_c{clients}", result.per_second(shipments * clients * SHIPPED_REPORTS * 10))
        jobs = [reporter.single(SINGLES // clients) for reporter in reporters[16 : 16 + clients]]
        result = send(bench.url, jobs)
        figures.add(f"requests_per_s.single_c{clients}", result.per_second(SINGLES // clients * clients))
        figures.add(f"p99_ms.single_c{clients}", result.p99_ms)


def peer_round(url: str, runs: list[str], number: int, figures: Figures) -> None:
    """The same of MLflow."""
    for clients in CLIENTS:
        batches = PEER_BATCHES // clients
        jobs = [mlflow_batch(run, batches, 100, number * 100_000 + clients * 10_000) for run in runs[:clients]]
        peer_sample(url, jobs, f"mlflow.values_per_s.batch100_c{clients}", batches * clients * 100, figures)
        jobs = [mlflow_single(run, PEER_SINGLES // clients) for run in runs[:clients]]
        peer_sample(url, jobs, f"mlflow.requests_per_s.single_c{clients}", PEER_SINGLES, figures)


def peer_sample(url: str, jobs: list[Job], name: str, amount: int, figures: Figures) -> None:
    """One figure of MLflow; where its server refuses a request (its pool of connections runs dry), that is noted."""
    try:
        figures.add(name, send(url, jobs).per_second(amount))
    except RuntimeError as error:
        figures.refused.append(f"{name}: {str(error).strip().splitlines()[-1][:300]}")


async def copy_round(bench: Bench, figures: Figures) -> None:
    """Rows, 1,000 per commit, into a table with the index that reading needs."""
    conn = await bench.connect()
    await conn.execute("drop table if exists bench_rows")
    await conn.execute("create table bench_rows (trial bigint, name text, step bigint, value double precision)")
    await conn.execute("create index on bench_rows (trial, name, step)")
    rows = [(1, f"m{k % 10}", k // 10, _RNG.random()) for k in range(50_000)]
    began = time.perf_counter()
    for start in range(0, len(rows), 1000):
        await conn.copy_records_to_table("bench_rows", records=rows[start : start + 1000])
    figures.add("copy.rows_per_s", len(rows) / (time.perf_counter() - began))
    await conn.close()


def fill_series(bench: Bench, reporter: Reporter) -> None:
    """A trial with a series of 100,000 points."""
    send(bench.url, [reporter.job(SERIES // 4000, 4000)])


def chart(bench: Bench, trial: Trial) -> float:
    """Milliseconds for 1,000 points of it."""
    url = f"{bench.url}/api/v1/trials/{trial.id}/series?metric=m1&max_points=1000"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {trial.token}"})
    began = time.perf_counter()
    with urllib.request.urlopen(request) as reply:
        answer = msgspec.json.decode(reply.read())
    took = (time.perf_counter() - began) * 1e3
    if answer["total"] != SERIES:
        raise RuntimeError(f"the series has {answer['total']} points")
    return took


def mlflow_chart(url: str, run: str) -> float:
    """Milliseconds for MLflow's page to get 1,000 points of as long a series."""
    query = f"run_ids={run}&metric_key=m0&max_results=1000"
    began = time.perf_counter()
    with urllib.request.urlopen(f"{url}/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?{query}") as reply:
        reply.read()
    return (time.perf_counter() - began) * 1e3


@contextmanager
def mlflow(bench: Bench) -> Iterator[tuple[str, list[str], object]]:
    """An MLflow server with a database beside ours: its address, its runs, its version. Raises PeerMissing."""
    with Peer("mlflow_server") as peer:
        asyncio.run(_create_database(bench.dsn, "mlflow"))
        database = bench.dsn.replace("postgresql://", "postgresql+psycopg2://").replace("/tenax?", "/mlflow?")
        told = peer.ask(database=database)
        yield str(told["url"]), cast("list[str]", told["runs"]), peer.about["mlflow"]


async def _create_database(dsn: str, name: str) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute(f"create database {name}")
    await conn.close()


def measure(bench: Bench, line: Line, figures: Figures) -> None:
    reporters = [Reporter(trial) for trial in bench.trials]
    fill_series(bench, reporters[-1])
    try:
        with mlflow(bench) as (url, runs, version):
            line.add(peer=f"mlflow {version}")
            # As long a series, in batches of what it takes at most.
            send(url, [mlflow_batch(runs[-1], SERIES // 100, 1000, 0)])
            for number in range(ROUNDS):
                product_round(bench, reporters, figures)
                peer_round(url, runs, number, figures)
                asyncio.run(copy_round(bench, figures))
                figures.add("chart_ms", chart(bench, reporters[-1].trial))
                figures.add("mlflow.chart_ms", mlflow_chart(url, runs[-1]))
    except PeerMissing as missing:
        line.add(peer=f"not measured: {missing}")
        for _ in range(ROUNDS):
            product_round(bench, reporters, figures)
            asyncio.run(copy_round(bench, figures))
            figures.add("chart_ms", chart(bench, reporters[-1].trial))


def main() -> None:
    line, figures = Line("metrics"), Figures()
    with master(trials=40) as bench:
        measure(bench, line, figures)
    line.add(
        values_per_s=figures.told("values_per_s."),
        requests_per_s=figures.told("requests_per_s."),
        p99_ms=figures.told("p99_ms."),
        chart_ms=extremes(figures.samples["chart_ms"]),
        floor={"values_per_s": FLOOR_VALUES, "chart_ms": FLOOR_CHART_MS},
        mlflow=figures.told("mlflow."),
        mlflow_refused=figures.refused,
        copy_rows_per_s=extremes(figures.samples["copy.rows_per_s"]),
        ratio={
            **{
                name: figures.ratio(name, f"mlflow.{name}")
                for kind, many in (("values_per_s.batch100", CLIENTS), ("requests_per_s.single", CLIENTS))
                for name in (f"{kind}_c{clients}" for clients in many)
            },
            "shipped / copy": figures.ratio("values_per_s.shipped_c4", "copy.rows_per_s"),
            "mlflow chart / chart": figures.ratio("mlflow.chart_ms", "chart_ms"),
        },
    )
    line.emit()


if __name__ == "__main__":
    main()
