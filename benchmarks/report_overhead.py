"""What one report costs the training loop: ``report_training_metrics`` with 10 scalars, as a trial calls it.

Measured in processes of their own, in turns with the peers; each figure is the best round's:

- ``up``: with a master that takes everything (in another process, on the same machine);
- ``down``: with nothing listening where the master should be;
- ``off``: off the cluster;
- peers: ``json.dumps`` and a buffered write of the same values (a line of JSON, without durability), a ``queue.put``
  (the floor of a reporter that only enqueues), and TensorBoard's SummaryWriter where it is installed.

Run as ``python -m benchmarks.report_overhead``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks._measure import LONG, ROOT, Line
from tenax.wire.task_names import SEGMENTS, SPOOL_FORMATS

ROUNDS = 5
CALLS = 5000 if LONG else 1000
#: Time between two calls, as in a quick training loop; without it the shipper would never get a turn.
STEP_SECONDS = 0.0005
METRICS = {f"m{i}": i * 0.5123456 for i in range(10)}


def measured(call: Callable[[int], object], calls: int) -> dict[str, float]:
    """Microseconds of a call: median and 99th percentile."""
    times = []
    for step in range(calls):
        began = time.perf_counter()
        call(step)
        times.append((time.perf_counter() - began) * 1e6)
        until = time.perf_counter() + STEP_SECONDS
        while time.perf_counter() < until:
            pass
    times.sort()
    return {"p50_us": round(statistics.median(times), 2), "p99_us": round(times[int(len(times) * 0.99)], 2)}


def measure_core(calls: int) -> dict[str, float]:
    from tenax import core

    with core.init() as context:
        return measured(lambda step: context.train.report_training_metrics(step, METRICS), calls)


def measure_json_line(calls: int) -> dict[str, float]:
    with tempfile.TemporaryFile("w") as file:
        return measured(lambda step: file.write(json.dumps({"step": step, **METRICS}) + "\n"), calls)


def measure_queue(calls: int) -> dict[str, float]:
    import queue

    waiting: queue.SimpleQueue[object] = queue.SimpleQueue()
    return measured(lambda step: waiting.put((step, METRICS)), calls)


def measure_tensorboard(calls: int) -> dict[str, float]:
    from torch.utils.tensorboard import SummaryWriter

    with tempfile.TemporaryDirectory() as directory, SummaryWriter(directory) as writer:
        return measured(lambda step: [writer.add_scalar(name, value, step) for name, value in METRICS.items()], calls)


WAYS: dict[str, Callable[[int], dict[str, float]]] = {
    "up": measure_core,
    "down": measure_core,
    "off": measure_core,
    "json_line": measure_json_line,
    "queue_put": measure_queue,
    "tensorboard": measure_tensorboard,
}


class Taker(BaseHTTPRequestHandler):
    """A master that takes every line."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        lines = self.rfile.read(int(self.headers["Content-Length"])).splitlines()
        if not lines:  # cut off: its sender has ended
            self.close_connection = True
            return
        content = json.dumps({"acked": json.loads(lines[-1])["n"], "refused": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that has ended is no news."""


def serve() -> None:
    server = Server(("127.0.0.1", 0), Taker)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def environment(way: str, directory: str, port: int) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    env |= {"DET_RUN_DIR": directory, "TENAX_DATA_DIR": directory, "DET_REPORT_WAIT": "0"}
    if way in ("up", "down"):
        env[SPOOL_FORMATS] = SEGMENTS  # as an agent says
        config = {"resources": {"slots_per_trial": 1}}
        info = Path(directory) / "info"
        info.mkdir()
        cluster = {"master_url": f"http://127.0.0.1:{port if way == 'up' else 1}", "slot_ids": [0]}
        names = ("cluster_id", "agent_id", "task_id", "allocation_id", "session_token")
        trial = {"trial_id": 1, "experiment_id": 1, "trial_seed": 0, "hparams": {}, "config": config}
        (info / "cluster.json").write_text(json.dumps({**cluster, "task_type": "TRIAL", **dict.fromkeys(names, "x")}))
        (info / "trial.json").write_text(json.dumps({**trial, "steps_completed": 0, "trial_run_id": 1}))
        members = {"container_addrs": ["127.0.0.1"], "container_rank": 0, "container_slot_counts": [1]}
        (info / "rendezvous.json").write_text(json.dumps(members))
    return env


def one_round(way: str, calls: int, port: int) -> dict[str, float] | None:
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.report_overhead", way, str(calls)],
            cwd=ROOT,
            env=environment(way, directory, port),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        if way == "tensorboard":  # not installed
            return None
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def compare(calls: int) -> dict[str, dict[str, float]]:
    results: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    serving = [sys.executable, "-m", "benchmarks.report_overhead", "serve"]
    with subprocess.Popen(serving, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            for _ in range(ROUNDS):
                for way, rounds in results.items():
                    result = one_round(way, calls, port)
                    if result is not None:
                        rounds.append(result)
        finally:
            server.kill()
    return {way: min(rounds, key=lambda one: one["p50_us"]) for way, rounds in results.items() if rounds}


def main() -> None:
    line = Line("report_overhead")
    best = compare(CALLS)
    ratio = round(best["up"]["p50_us"] / best["json_line"]["p50_us"], 2)
    line.add(calls=CALLS, floor_p50_us=10, **best, up_per_json_line=ratio)
    if "tensorboard" not in best:
        line.add(tensorboard="not installed")
    line.emit()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    elif len(sys.argv) == 3:  # one way, in a process of its own
        print(json.dumps(WAYS[sys.argv[1]](int(sys.argv[2]))))
    else:
        main()
