"""Checkpoints that are stored in the background: what the loop waits for, what is reported, what a fault leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tenax import core
from tenax.core.checkpoint import CheckpointContext
from tenax.core.distributed import DistributedContext, DummyDistributedContext
from tenax.core.pending import SaveUnfinished
from tenax.core.spool import Spool
from tenax.core.spooling.file import SpoolFile
from tenax.errors import InvalidInput, NotNow
from tenax.storage.local_directory import from_directory
from tenax.storage.port import StorageFailed
from tests.kits.task_master import TaskMaster

Write = Callable[[Path], None]


class Held:
    """Writes a file once it is let."""

    def __init__(self, text: str = "state", failure: Exception | None = None) -> None:
        self.text, self.failure = text, failure
        self.writing, self.let = threading.Event(), threading.Event()

    def take(self) -> Write:
        return self.write

    def write(self, path: Path) -> None:
        self.writing.set()
        assert self.let.wait(240)
        if self.failure is not None:
            raise self.failure
        (path / "state").write_text(self.text)


class Task:
    def __init__(self, root: Path) -> None:
        self.base = root / "storage"
        self.spool = Spool(SpoolFile(str(root / "spool"), "reports"), None, "", "")
        storage = from_directory(str(self.base))
        self.context = CheckpointContext(storage, self.spool, DummyDistributedContext(), None, needs_steps=True)

    def steps(self) -> list[int]:
        """Of the checkpoints that were reported."""
        if not os.path.exists(self.spool.path):
            return []
        lines = Path(self.spool.path).read_text().splitlines()
        return [json.loads(line)["body"]["stepsCompleted"] for line in lines]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path)


def steps(count: int) -> dict[str, object]:
    return {"steps_completed": count}


def test_the_loop_goes_on_while_it_is_stored(task: Task) -> None:
    """Until then there is no checkpoint and no report; then it is as any other."""
    held = Held()
    pending = task.context.store_async(held.take, steps(1))
    assert held.writing.wait(240)
    assert not pending.done()
    with pytest.raises(SaveUnfinished, match="not stored yet"):
        pending.wait(0)
    assert (task.steps(), os.listdir(task.base)) == ([], [f".{pending.storage_id}.partial"])
    held.let.set()
    assert pending.wait() == pending.storage_id
    assert (task.steps(), os.listdir(task.base)) == ([1], [pending.storage_id])
    with task.context.restore_path(pending.storage_id) as path:
        assert (path / "state").read_text() == "state"


@pytest.mark.parametrize("second", ["store_async", "store_path", "upload"])
def test_a_second_save_waits_for_the_first(task: Task, tmp_path: Path, second: str) -> None:
    """Whatever it is: at most one is stored at a time, and they are reported in order; it is copied after that, too."""
    (tmp_path / "files").mkdir()
    first = Held()
    order: list[str] = []
    task.context.store_async(first.take, steps(1))

    def take() -> Write:
        order.append("copied")
        assert task.steps() == [1]
        return lambda path: None

    def save() -> None:
        if second == "store_async":
            task.context.store_async(take, steps(2)).wait()
        elif second == "store_path":
            with task.context.store_path(steps(2)):
                order.append("copied")
        else:
            task.context.upload(tmp_path / "files", steps(2))
            order.append("copied")

    saving = threading.Thread(target=save)
    saving.start()
    assert first.writing.wait(240)
    assert order == []
    first.let.set()
    saving.join(240)
    assert order == ["copied"]
    assert task.steps() == [1, 2]


def test_what_a_save_failed_with_is_raised_once(task: Task) -> None:
    """By whoever waits, else by the next save, of which nothing is stored then; what is left of it is thrown away."""
    failing = Held(failure=ZeroDivisionError("mine"))
    failing.let.set()
    pending = task.context.store_async(failing.take, steps(1))
    with pytest.raises(ZeroDivisionError):
        pending.wait()
    task.context.store_async(failing.take, steps(2))
    with pytest.raises(ZeroDivisionError):
        task.context.store_async(failing.take, steps(3))
    with task.context.store_path(steps(4)) as (path, storage_id):
        (path / "x").touch()
    assert (task.steps(), os.listdir(task.base)) == ([4], [storage_id])
    assert task.context.close() is None


def test_what_cannot_be_copied_is_an_error_at_once(task: Task) -> None:
    """Nothing is begun; neither without the steps, nor on another rank than the chief."""

    def take() -> Write:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        task.context.store_async(take, steps(1))
    with pytest.raises(InvalidInput, match="steps_completed"):
        task.context.store_async(take)
    other = DistributedContext.__new__(DistributedContext)
    other.rank, other.size = 1, 2
    context = CheckpointContext(from_directory(str(task.base)), task.spool, other, None, needs_steps=True)
    with pytest.raises(NotNow, match="only the chief may store"):
        context.store_async(take, steps(1))
    assert not task.base.exists()


def test_a_storage_that_goes_while_it_is_written(task: Task) -> None:
    """The message says what happened and what to do."""
    held = Held()
    pending = task.context.store_async(held.take, steps(1))
    assert held.writing.wait(240)
    shutil.rmtree(task.base)
    held.let.set()
    with pytest.raises(StorageFailed, match=r"is gone: was its storage removed.*Bring it back, or choose another"):
        pending.wait()
    assert task.steps() == []


def test_what_reads_a_checkpoint_waits_until_it_is_there(task: Task, tmp_path: Path) -> None:
    """Of the one that is being stored; others are read at once."""
    with task.context.store_path(steps(1)) as (path, before):
        (path / "x").touch()
    held = Held()
    pending = task.context.store_async(held.take, steps(2))
    task.context.download(before, tmp_path / "before")
    threading.Timer(0.0, held.let.set).start()
    task.context.download(pending.storage_id, tmp_path / "here")
    assert (tmp_path / "here/state").read_text() == "state"


def test_the_end_of_a_script_waits_for_the_save(trial: Path, master: TaskMaster, tmp_path: Path) -> None:
    """Also of one that fails: what was copied before is a checkpoint."""
    held = Held()

    def train() -> None:
        with core.init(checkpoint_storage=str(tmp_path / "storage")) as context:
            context.checkpoint.store_async(held.take, steps(7))
            threading.Timer(0.0, held.let.set).start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert [body["stepsCompleted"] for body in master.bodies_of("checkpoint")] == [7]
    assert [record["kind"] for record in master.records()][-2:] == ["checkpoint_started", "checkpoint"]


def test_a_save_that_failed_fails_the_script(trial: Path, master: TaskMaster, tmp_path: Path) -> None:
    """It would end as completed otherwise, without the checkpoint that it made; and a script that fails says both."""
    failing = Held(failure=StorageFailed("the disk is gone"))
    failing.let.set()
    with pytest.raises(StorageFailed, match="disk is gone"):
        with core.init(checkpoint_storage=str(tmp_path / "storage")) as context:
            context.checkpoint.store_async(failing.take, steps(7))
    assert [record["kind"] for record in master.records()][-1] == "checkpoint_abandoned"


def test_a_save_that_does_not_end_is_given_up(
    off_cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After DET_REPORT_WAIT seconds: the script fails and says so; whatever becomes of it, it was not reported."""
    monkeypatch.setenv("DET_REPORT_WAIT", "0.05")
    held = Held()
    with pytest.raises(SaveUnfinished, match=r"not stored after 0 s \(DET_REPORT_WAIT\): nothing of it counts"):
        with core.init(checkpoint_storage=str(tmp_path / "storage")) as context:
            pending = context.checkpoint.store_async(held.take, steps(7))
    held.let.set()
    with pytest.raises(NotNow, match="closed"):
        pending.wait()
    assert reported(off_cluster) == 0


SCRIPT = """
import os, resource, signal, sys, time
from tenax import core

how = sys.argv[1]

def take():
    data = os.urandom(1 << 20)
    def write(path):
        for number in range(64):
            with open(path / f"{number}", "wb") as file:
                file.write(data)
            if how == "kill" and number == 5:
                os.kill(os.getpid(), signal.SIGKILL)
    return write

if how == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
context = core.init(checkpoint_storage=sys.argv[2])
if how != "open":
    context.__enter__()
context.checkpoint.store_async(take, {"steps_completed": 1})
if how == "fork":
    if os.fork() == 0:
        context.checkpoint.close()
        os._exit(0)
    os.wait()
if how != "open":
    context.__exit__(None, None, None)
"""


def run(how: str, tmp_path: Path, off_cluster: Path) -> tuple[int, str, list[str]]:
    """Exit code, what it says, and what lies in the storage then."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, how, str(tmp_path / "storage")],
        env={**os.environ, "TENAX_DATA_DIR": str(off_cluster)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.returncode, ended.stderr, os.listdir(tmp_path / "storage")


def reported(off_cluster: Path) -> int:
    return sum(path.read_text().count("stepsCompleted") for path in (off_cluster / "runs").rglob("*.jsonl"))


def test_a_process_that_is_killed_in_the_middle(tmp_path: Path, off_cluster: Path) -> None:
    """What it leaves nobody takes for a checkpoint."""
    code, _, left = run("kill", tmp_path, off_cluster)
    assert code == -signal.SIGKILL
    assert [name.endswith(".partial") for name in left] == [True]
    assert reported(off_cluster) == 0


def test_a_disk_that_takes_no_more(tmp_path: Path, off_cluster: Path) -> None:
    """The script fails, with the system's error; nothing is left."""
    code, says, left = run("full", tmp_path, off_cluster)
    assert code == 1
    assert "File too large" in says
    assert left == []
    assert reported(off_cluster) == 0


@pytest.mark.parametrize("how", ["fork", "open"])
def test_a_process_that_ends_with_a_save_on_its_way(tmp_path: Path, off_cluster: Path, how: str) -> None:
    """It is stored, though nobody closed the context; a child that was forked meanwhile does not wait for it."""
    code, says, left = run(how, tmp_path, off_cluster)
    assert code == 0, says
    assert [len(name) for name in left] == [36]
    assert reported(off_cluster) == 1
