"""`det task`: generic tasks, which may be paused and have children, and the list of all that runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from tests.compat.client import Det, Sdk
from tests.kits.machine import wait_for

#: A task as the client's bindings read it.
TASK = """\
from determined.common.api import bindings
session = client.Determined()._session
found = bindings.get_GetTask(session, taskId=task).task
"""
#: Counts how often it was started, in a file that outlives it; leaves when it is asked to.
SCRIPT = """\
import pathlib, sys, time
from tenax import core

count = pathlib.Path(sys.argv[1])
count.write_text(count.read_text() + "." if count.exists() else ".")
print("started", len(count.read_text()), flush=True)
with core.init() as context:
    while len(count.read_text()) < 2:
        if context.preempt.should_preempt():
            print("leaving", flush=True)
            sys.exit(0)
        time.sleep(0.02)
print("done", flush=True)
"""


@pytest.fixture
def generic(tmp_path: Path) -> Path:
    """The configuration of a task that waits until it is ended."""
    path = tmp_path / "task.yaml"
    path.write_text("entrypoint: [sleep, '3600']\nresources: {slots: 0}\n")
    return path


def made(det: Det, *words: object) -> str:
    return str(re.findall(r"Created task ([0-9a-f-]{36})", det("task", "create", *words).out)[0])


def state(sdk: Sdk, task: str) -> str:
    told = sdk(f"{TASK}result = found.taskState.value", task=task)
    return str(told).removeprefix("GENERIC_TASK_STATE_")


def becomes(sdk: Sdk, task: str, wanted: str) -> None:
    wait_for(lambda: state(sdk, task) == wanted, f"a task that is {wanted}")


def test_a_task_is_paused_and_goes_on(det: Det, sdk: Sdk, tmp_path: Path) -> None:
    """It saves and leaves when it is asked to, and is started again later, with the same id and one log."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "run.py").write_text(SCRIPT)
    config = tmp_path / "task.yaml"
    config.write_text(f"entrypoint: [python3, run.py, {tmp_path / 'count'}]\nresources: {{slots: 0}}\n")
    task = made(det, config, "-c", tmp_path / "code")
    wait_for(lambda: "started 1" in det("task", "logs", task).out, "its first start")
    assert "Paused task" in det("task", "pause", task).out
    becomes(sdk, task, "PAUSED")
    assert task not in det("task", "list").out
    assert "Unpaused task" in det("task", "unpause", task).out
    becomes(sdk, task, "COMPLETED")
    output = det("task", "logs", task).out
    assert all(line in output for line in ("started 1", "leaving", "started 2", "done"))


def test_a_task_is_created_and_followed(det: Det, tmp_path: Path) -> None:
    """Its output is printed until it ends."""
    config = tmp_path / "task.yaml"
    config.write_text("entrypoint: ['echo type $DET_TASK_TYPE']\nresources: {slots: 0}\n")
    assert "type GENERIC" in det("task", "create", config, "--follow").out


def test_a_task_is_forked(det: Det, sdk: Sdk, generic: Path) -> None:
    """With its configuration, by either spelling; the configuration is shown as YAML and as JSON."""
    task = made(det, generic, "--config", "work_dir=/tmp")
    fork = re.findall(r"Created task ([0-9a-f-]{36})", det("task", "fork", task).out)[0]
    assert "work_dir: /tmp" in det("task", "config", fork).out
    told = cast("dict[str, object]", det("task", "config", fork, "--json").json)
    assert told["entrypoint"] == ["sleep", "3600"]
    assert sdk(f"{TASK}result = found.forkedFrom", task=fork) == task
    for one in (task, fork):
        det("task", "kill", one)
        becomes(sdk, one, "CANCELED")


def test_a_family_is_paused_and_killed_as_one(det: Det, sdk: Sdk, generic: Path, tmp_path: Path) -> None:
    """Children inherit code; a child that cannot be paused goes on; a kill from the root reaches all."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "note").write_text("x")
    timeout = ("--config", "preemption_timeout=0")
    parent = made(det, generic, "-c", tmp_path / "code", *timeout)
    child = made(det, generic, "--parent", parent, "--inherit_context", *timeout)
    stubborn = made(det, generic, "--parent", parent, "--no_pause")
    listed = det("task", "list", "--csv").out
    assert all(one in listed for one in (parent, child, stubborn))
    code = f"{TASK}result = bindings.get_GetTaskContextDirectory(session, taskId=task).b64Tgz"
    assert sdk(code, task=child) == sdk(code, task=parent) != ""
    det("task", "pause", parent)
    becomes(sdk, parent, "PAUSED")
    becomes(sdk, child, "PAUSED")
    assert state(sdk, stubborn) == "ACTIVE"
    det("task", "unpause", parent)
    becomes(sdk, child, "ACTIVE")
    det("task", "kill", child, "--root")
    for one in (parent, child, stubborn):
        becomes(sdk, one, "CANCELED")
