"""Many clients at once on a whole cluster: who follows, who submits, who brings a lot.

In each run, and without a cluster, it is shown that all who follow have every line
(`tests/master/ingest/test_logs.py`), that what is submitted at once is made once
(`tests/master/api/test_experiments.py`), and that what is large is stored as it was sent
(`tests/master/test_uploads.py`). That all of it runs and completes, and that a script gets what is large as it was, is
shown here alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
import pytest

from tenax.jsonvalue import JsonObject
from tests.kits.machine import Machine, wait_for
from tests.scale.place import scaled, tell

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

_TALKING = """\
import sys, time
from tenax import core

with core.init() as context:
    for number in range(int(sys.argv[1])):
        print("line", number, time.time(), flush=True)
        time.sleep(0.001)
    context.train.report_validation_metrics(1, {"score": 1.0})
"""
_WEIGHED = """\
import hashlib, sys
from tenax import core

with core.init() as context:
    with open("weights.bin", "rb") as file:
        print("digest", hashlib.sha256(file.read()).hexdigest(), flush=True)
    context.train.report_validation_metrics(1, {"score": 1.0})
"""


def _config(entrypoint: str) -> JsonObject:
    return {
        "name": "scale",
        "entrypoint": entrypoint,
        "searcher": {"name": "single", "metric": "score", "smaller_is_better": False},
        "resources": {"slots_per_trial": 1},
        "max_restarts": 0,
    }


async def test_followers_of_one_log(cluster: Machine, tmp_path: Path) -> None:
    """Each gets every line once and in order, and the end."""
    followers, lines = scaled(200, 5), 2000
    (tmp_path / "train.py").write_text(_TALKING)
    with cluster.client() as sdk:
        experiment = sdk.create_experiment(_config(f"python3 train.py {lines}"), tmp_path)
        trials = wait_for(experiment.trials, "the trial")
    late: list[float] = []

    async def follow(http: aiohttp.ClientSession) -> None:
        seen = 0
        async with http.get(f"/api/v1/trials/{trials[0].id}/logs", params={"follow": "true"}) as reply:
            assert reply.status == 200
            async for raw in reply.content:
                message = str(json.loads(raw)["result"].get("log") or json.loads(raw)["result"]["message"])
                if "line " in message:
                    number, at = message.split("line ")[1].split()[:2]
                    assert int(number) == seen
                    seen += 1
                    late.append((time.time() - float(at)) * 1e3)
        assert seen == lines

    headers = {"Authorization": f"Bearer {cluster.token()}"}
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(cluster.url, headers=headers, connector=connector, timeout=timeout) as http:
        await asyncio.gather(*(follow(http) for _ in range(followers)))
    tell("from a line's printing to a follower", late, followers=followers)


def test_experiments_submitted_at_once(cluster: Machine, tmp_path: Path) -> None:
    """All are made, run and completed; none twice."""
    count = scaled(50, 8)
    (tmp_path / "train.py").write_text(_TALKING)

    def submit(number: int) -> tuple[int, float]:
        with cluster.client() as sdk:
            began = time.perf_counter()
            made = sdk.create_experiment({**_config("python3 train.py 1"), "name": f"at once {number}"}, tmp_path)
            return made.id, (time.perf_counter() - began) * 1e3

    cluster.token()
    began = time.perf_counter()
    with ThreadPoolExecutor(count) as pool:
        made = list(pool.map(submit, range(count)))
    assert len({number for number, _ in made}) == count
    tell("submissions at once", [taken for _, taken in made], experiments=count)
    with cluster.client() as sdk:
        for number, _ in made:
            assert sdk.experiment(number).wait(interval=0.1).state == "COMPLETED"
    tell("all of them to their ends", [(time.perf_counter() - began) * 1e3], experiments=count)


def test_a_large_context(cluster: Machine, tmp_path: Path) -> None:
    """Model code of 90 MiB reaches the script as it was."""
    content = os.urandom(scaled(90 * 1024 * 1024, 1024))
    (tmp_path / "train.py").write_text(_WEIGHED)
    (tmp_path / "weights.bin").write_bytes(content)
    with cluster.client() as sdk:
        began = time.perf_counter()
        experiment = sdk.create_experiment(_config("python3 train.py"), tmp_path)
        submitted = time.perf_counter() - began
        assert experiment.wait(interval=0.1).state == "COMPLETED"
        lines = [line.message for line in experiment.trials()[0].logs()]
    assert any(hashlib.sha256(content).hexdigest() in line for line in lines)
    tell("submission of a large context", [submitted * 1e3], bytes=len(content))
