"""Trials of which somebody asks whether they are OK: one is well and has everything, one is silent, one waits."""

from __future__ import annotations

import base64
import math
import time
import uuid
import zlib
from dataclasses import dataclass

from tenax.jsonvalue import Json, JsonObject
from tenax.master.telemetry.reports import from_values
from tenax.master.telemetry.values import SpooledReport
from tests.kits.api import Api
from tests.kits.telemetry import Book

NAMES = ("digits well on its way", "digits silent for hours", "digits that waits for slots")
#: As the scheduler says it.
WAITS = (
    "can never start as it is: 16 slots can never run here: pool default has 8 slots on 1 agent."
    " Ask for at most 8 slots, or add agents."
)
STEPS, EVERY_S, EPOCH_STEPS = 120, 20, 24
SCRIPT = "".join(f"line_{number} = {number}\n" for number in range(1, 200)) + "print('<b>done</b>')\n"
FILES = {
    "train.py": SCRIPT.encode(),
    "weights.bin": bytes(range(256)),
    "model/net.py": b"LAYERS = 3\n",
    "data/large.csv": b"0,1,2,3\n" * 150_000,
}
CONFIG = """
name: {name}
entrypoint: python3 train.py
resources: {{slots_per_trial: 1}}
searcher: {{name: single, metric: loss, smaller_is_better: true}}
hyperparameters: {{lr: 0.1}}
"""


@dataclass
class Trained:
    """Numbers of trials, and of the experiment that waits."""

    well: int
    silent: int
    waiting: int


async def make(api: Api, book: Book) -> Trained:
    """They belong to ``determined``."""
    well, silent, waiting = [await _submitted(api, name) for name in NAMES]
    await _report(book, await _begun(api, book, well))
    await _grow_silent(api, book, await _begun(api, book, silent))
    async with api.master.db.transaction() as conn:
        name = await conn.fetchval(
            "insert into allocations (allocation_id, task_id, run_id, state, slots, requested_at)"
            " select task_id || '.1', task_id, 1, 'PENDING', 16, now() - interval '25 min' from trials"
            " where experiment_id = $1 returning allocation_id",
            waiting,
        )
        await conn.execute("update trials set run_id = 1 where experiment_id = $1", waiting)
        await conn.execute("update experiments set created_at = now() - interval '26 min' where id = $1", waiting)
        await conn.execute("insert into allocation_waits (allocation_id, reason) values ($1, $2)", name, WAITS)
    return Trained(await _trial(api, well), await _trial(api, silent), waiting)


async def _submitted(api: Api, name: str) -> int:
    files = [{"path": path, "content": base64.b64encode(content).decode()} for path, content in FILES.items()]
    body = {"config": CONFIG.format(name=name), "modelDefinition": files, "activate": True}
    reply = await api.user.post("/api/v1/experiments", body)
    assert reply.status_code == 200, reply.text
    return int(reply.json()["experiment"]["id"])


async def _trial(api: Api, experiment: int) -> int:
    async with api.master.db.connection() as conn:
        number: int = await conn.fetchval("select id from trials where experiment_id = $1", experiment)
    return number


async def _begun(api: Api, book: Book, experiment: int) -> int:
    """Its trial, that runs since half an hour."""
    trial = await _trial(api, experiment)
    attempt = await book.run(trial, 1)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update allocations set slots = 2, assigned_at = now() - interval '31 min',"
            " requested_at = now() - interval '32 min' where allocation_id = $1",
            attempt.allocation_id,
        )
        await conn.execute(
            "update containers set started_at = now() - interval '30 min', created_at = now() - interval '31 min'"
            " where allocation_id = $1",
            attempt.allocation_id,
        )
        await conn.execute("update trials set created_at = now() - interval '40 min' where id = $1", trial)
    return trial


async def _report(book: Book, trial: int) -> None:
    """Losses that fall, what GPUs did, three checkpoints, output."""
    began = time.time() - STEPS * EVERY_S
    reports: list[SpooledReport] = []

    def report(group: str, step: int | None, at: float, metrics: JsonObject) -> None:
        written = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}Z"
        reports.append(SpooledReport(from_values(trial, 1, group, step, written, {"avgMetrics": metrics})))

    for step in range(1, STEPS + 1):
        at = began + step * EVERY_S
        loss = 2.3 * math.exp(-step / 40) + 0.02 * math.sin(step)
        metrics: JsonObject = {"loss": loss, "lr": 0.1 * 0.99**step, "grad_norm": 1 + math.cos(step)}
        report("training", step, at, {**metrics, "tokens": step * 512, "epoch": step / EPOCH_STEPS})
        if step % 6 == 0:
            report("validation", step, at, {"loss": loss * 1.1, "accuracy": 1 - loss / 2.4})
        if step % 2 == 0:
            gpus: dict[str, Json] = {
                f"GPU-0000000{place}-aaaa": {"gpu_util": 80.0 + 5 * math.sin(step + place), "gpu_free_memory": 9e9}
                for place in range(2)
            }
            report("gpu", None, at, {"a1": gpus})
            report("cpu", None, at, {"a1": {"cpu_util_simple": 35 + 10 * math.sin(step / 5)}})
            report("memory", None, at, {"a1": {"memory_free": 6e10}})
            report("network", None, at, {"a1": {"net_throughput_recv": 2e6, "net_throughput_sent": 1e6}})
    refused = (await book.intake.metrics.submit(reports)).refused
    assert not any(refused), refused
    async with book.database.transaction() as conn:
        task = await conn.fetchval("select task_id from trials where id = $1", trial)
        await conn.execute("update trial_telemetry set progress = 0.6 where trial_id = $1", trial)
        await conn.execute(
            "update experiment_progress set progress = 0.6"
            " where experiment_id = (select experiment_id from trials where id = $1)",
            trial,
        )
        for step in (30, 60, 90):
            await conn.execute(
                "insert into checkpoints (uuid, task_id, allocation_id, trial_id, run_id, state, steps_completed,"
                " metadata, resources, size_bytes, reported_at)"
                " values ($1, $2::text, $2 || '.1', $3, 1, 'COMPLETED', $4::bigint, $5, $6, 5000000,"
                " now() - make_interval(secs => $7))",
                str(uuid.uuid5(uuid.NAMESPACE_OID, f"{trial} {step}")),
                task,
                trial,
                step,
                {"steps_completed": step, "framework": "torch"},
                {"state.pt": 4_000_000, "optimizer/adam.pt": 1_000_000, "optimizer/": 0},
                float((STEPS - step) * EVERY_S),
            )
    lines = "".join(f"[rank=0] INFO: step {step} of {STEPS}, loss falls\n" for step in range(1, STEPS + 1))
    await book.intake.logs.output("a1", f"{task}.1", "stdout", 0, zlib.compress(lines.encode()))


async def _grow_silent(api: Api, book: Book, trial: int) -> None:
    """It reported once a minute, and not for two hours."""
    began = time.time() - 3 * 3600
    for step in range(1, 31):
        written = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(began + 60 * step))}Z"
        report = from_values(trial, 1, "validation", step, written, {"avgMetrics": {"loss": 1 / step}})
        assert (await book.intake.metrics.submit([SpooledReport(report)])).refused == [None]
    async with api.master.db.transaction() as conn:
        await conn.execute("update metric_groups set reported_at = now() - interval '2 h' where trial_id = $1", trial)
        await conn.execute(
            "update containers set started_at = now() - interval '3 h' where allocation_id ="
            " (select task_id || '.1' from trials where id = $1)",
            trial,
        )
        await conn.execute(
            "update log_chunks set last_at = now() - interval '2 h' where task_id ="
            " (select task_id from trials where id = $1)",
            trial,
        )
