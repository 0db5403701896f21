"""An MLflow tracking server on a PostgreSQL database, for clients that speak its REST API.

The first line in is ``{"database": "postgresql+psycopg2://..."}`` (an empty database), the answer
``{"url", "runs": [run ids]}`` once it serves. Ends when its input does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}
RUNS = 32


def post(url: str, body: dict[str, object]) -> dict[str, dict[str, dict[str, str]]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        answer: dict[str, dict[str, dict[str, str]]] = json.load(reply)
    return answer


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def wait(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"mlflow ended with {server.returncode}")


def main() -> None:
    import mlflow

    print(json.dumps({"mlflow": mlflow.__version__}), flush=True)
    asked = json.loads(sys.stdin.readline())
    directory = tempfile.mkdtemp(prefix="tenax-bench-mlflow-")
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        *("mlflow", "server", "--backend-store-uri", asked["database"], "--default-artifact-root", directory),
        *("--host", "127.0.0.1", "--port", url.rpartition(":")[2], "--workers", "1"),
    ]
    with open(f"{directory}/log", "wb") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **ENVIRONMENT}, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait(url, server)
        created = [
            post(f"{url}/api/2.0/mlflow/runs/create", {"experiment_id": "0", "start_time": 1_790_000_000_000})
            for _ in range(RUNS)
        ]
        print(json.dumps({"url": url, "runs": [one["run"]["info"]["run_id"] for one in created]}), flush=True)
        sys.stdin.read()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
