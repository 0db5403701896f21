"""Experiments that run until they are told to end: what the tests of queue and machines push around."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from tenax.jsonvalue import Json, JsonObject
from tests.compat.client import RealClient
from tests.compat.experiments import CONFIG
from tests.kits.machine import wait_for

SCRIPT = """\
import time
from tenax import core

with core.init() as context:
    context.train.report_training_metrics(steps_completed=1, metrics={"loss": 1.0})
    while not context.preempt.should_preempt():
        time.sleep(0.05)
"""


@contextlib.contextmanager
def experiment(client: RealClient, directory: Path, name: str, slots: int = 1, **more: Json) -> Iterator[int]:
    """Its number; killed in the end, and waited for. One of several slots only sleeps: it cannot be asked to leave."""
    code = directory / f"code-{name}"
    code.mkdir()
    (code / "hold.py").write_text(SCRIPT)
    entrypoint = "python3 hold.py" if slots == 1 else "sleep 600"
    config = {**CONFIG, "name": name, "entrypoint": entrypoint, "resources": {"slots_per_trial": slots, **more}}
    path = directory / f"{name}.json"
    path.write_text(json.dumps(config))
    made = client.det("e", "create", path, code)
    number = int(made.out.split("Created experiment ")[1].split()[0])
    try:
        yield number
    finally:
        client.det("e", "kill", number)
        wait_for(lambda: told(client, number)["state"] == "STATE_CANCELED", f"the end of experiment {number}")


def told(client: RealClient, number: int) -> JsonObject:
    """The experiment as it is."""
    return cast(JsonObject, client.sdk(_GET, path=f"/api/v1/experiments/{number}"))["experiment"]  # type: ignore[return-value]


def trial(client: RealClient, number: int) -> JsonObject:
    """The one trial of an experiment; empty before it is made."""
    answer = cast(JsonObject, client.sdk(_GET, path=f"/api/v1/experiments/{number}/trials"))
    trials = cast("list[JsonObject]", answer["trials"])
    return trials[0] if trials else {}


def runs(client: RealClient, number: int) -> Callable[[], bool]:
    """Whether its trial runs."""
    return lambda: trial(client, number).get("state") == "STATE_RUNNING"


_GET = "result = client.Determined()._session.get(path).json()"
