"""Whole scripts as processes: killed, forked, doubled, ended; under this Python and under the oldest that is served."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import tenax
from tests.kits.interpreters import interpreters
from tests.kits.spools import streams_in
from tests.kits.task_master import TaskMaster

SOURCE = str(Path(tenax.__file__).parents[1])


def start(script: str, run_dir: Path, python: str = sys.executable, **env: str) -> subprocess.Popen[str]:
    path = run_dir / "script.py"
    path.write_text(script)
    return subprocess.Popen(
        [python, str(path)],
        env={**os.environ, "PYTHONPATH": SOURCE, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(script: str, run_dir: Path, python: str = sys.executable, **env: str) -> tuple[int, str, str]:
    process = start(script, run_dir, python, **env)
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def streams(run_dir: Path) -> list[list[dict[str, object]]]:
    """What the agent finds after the end: the lines of each stream."""
    return streams_in(run_dir / "spool")


WHOLE = """
import pathlib
from tenax import core

with core.init() as context:
    for step in range(1, 21):
        context.train.report_training_metrics(step, {"loss": 1 / step, "nan": float("nan")})
    context.train.report_validation_metrics(20, {"loss": 0.05})
    context.train.report_progress(1.0)
    context.train.set_status("done")
    with context.checkpoint.store_path({"steps_completed": 20}) as (path, storage_id):
        (path / "model.bin").write_bytes(b"weights")
    with context.checkpoint.restore_path(storage_id) as path:
        assert (path / "model.bin").read_bytes() == b"weights"
    assert not context.preempt.should_preempt()
    print(context.info.trial.hparams["lr"], context.distributed.rank)
"""


@pytest.mark.parametrize("python", interpreters())
def test_whole_script(trial: Path, master: TaskMaster, python: str) -> None:
    """A script that uses everything runs on each supported Python, and the master has all it said."""
    code, out, err = run(WHOLE, trial, python)
    assert (code, err) == (0, "")
    assert out == "0.1 0\n"
    assert [record["kind"] for record in master.records()] == (
        ["run_start"] + ["metrics"] * 21 + ["progress", "runner_state", "checkpoint_started", "checkpoint"]
    )
    assert master.bodies_of("metrics")[1]["metrics"] == {"loss": 0.5, "nan": "NaN"}


@pytest.mark.parametrize(("formats", "suffix"), [("", ".jsonl"), ("segments", ".records"), ("x,segments", ".records")])
def test_form_of_the_spool(trial: Path, master: TaskMaster, formats: str, suffix: str) -> None:
    """An agent that does not say that it reads segments, as one of before, gets lines; the master has all the same."""
    code, _, err = run(WHOLE, trial, TENAX_SPOOL_FORMATS=formats)
    assert (code, err) == (0, "")
    assert [path.suffix for path in sorted((trial / "spool").iterdir())] == [".ack", suffix]
    assert len(master.bodies_of("metrics")) == 21
    assert streams(trial) == [master.records()]


@pytest.mark.parametrize("ends", ["", "raise ValueError('its own')"])
def test_no_connection_is_left_to_the_end(trial: Path, master: TaskMaster, ends: str) -> None:
    """The interpreter says so of what is; Python 3.13 prints a traceback, which stood for the script's own."""
    script = WHOLE + f"    {ends}\n"
    _, _, err = run(script, trial, PYTHONDEVMODE="1")
    assert ("ValueError: its own" in err) is bool(ends)
    assert "ResourceWarning" not in err, err
    assert "ignored" not in err, err


@pytest.mark.parametrize("python", interpreters())
def test_imports_are_the_standard_library(trial: Path, python: str) -> None:
    """On any supported Python the task side loads nothing but the standard library and itself."""
    script = WHOLE + (
        "import sys\n"
        "foreign = [name for name, module in sys.modules.items() if name != '_distutils_hack'\n"
        "           and 'site-packages' in (getattr(module, '__file__', None) or '')]\n"
        "assert not foreign, foreign\n"
    )
    code, _, err = run(script, trial, python)
    assert (code, err) == (0, "")


def test_killed_after_a_report(trial: Path, master: TaskMaster) -> None:
    """kill -9 right after a report loses nothing of it, even when the master was away all the time."""
    master.down()
    script = """
import os, signal
from tenax import core
with core.init() as context:
    for step in range(1, 101):
        context.train.report_training_metrics(step, {"loss": step})
    os.kill(os.getpid(), signal.SIGKILL)
"""
    code, _, _ = run(script, trial)
    assert code == -signal.SIGKILL
    (lines,) = streams(trial)
    assert [line["n"] for line in lines] == list(range(1, 102))
    assert [line["body"]["stepsCompleted"] for line in lines[1:]] == list(range(1, 101))  # type: ignore[index]
    master.up()


def test_two_processes(trial: Path, master: TaskMaster) -> None:
    """Two processes of one container have a stream each, and both arrive."""
    script = """
import sys
from tenax import core
with core.init() as context:
    for step in range(50):
        context.train.report_metrics("of-" + sys.argv[0][-4:-3], step, {"x": step})
"""
    processes = [start(script, trial) for _ in range(2)]
    assert [process.wait(240) for process in processes] == [0, 0]
    assert len(master.streams) == 2
    for records in master.streams.values():
        assert [record["n"] for record in records] == list(range(1, 52))
    for process in processes:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()


def test_fork_after_init(trial: Path, master: TaskMaster) -> None:
    """A forked child reports in a stream of its own, and does not disturb the parent's."""
    script = """
import os
from tenax import core
with core.init() as context:
    for step in range(20):
        context.train.report_metrics("parent", step, {"x": step})
    context.preempt.should_preempt()
    child = os.fork()
    if child == 0:
        for step in range(20):
            context.train.report_metrics("child", step, {"x": step})
        assert not context.preempt.should_preempt()
        context.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for step in range(20, 40):
        context.train.report_metrics("parent", step, {"x": step})
"""
    code, _, err = run(script, trial)
    assert (code, err) == (0, "")
    by_group = [
        (record["body"]["group"], record["body"]["stepsCompleted"])  # type: ignore[index]
        for record in master.records("metrics")
    ]
    assert by_group[: by_group.index(("child", 0))] + by_group[by_group.index(("child", 0)) + 20 :] == (
        [("parent", step) for step in range(40)]
    )
    assert [pair for pair in by_group if pair[0] == "child"] == [("child", step) for step in range(20)]
    assert len(master.streams) == 2


def test_invalid_hyperparameters(trial: Path, master: TaskMaster) -> None:
    """InvalidHP is reported and ends the script with 0."""
    script = """
from tenax import core
with core.init() as context:
    raise core.InvalidHP("hidden must be even")
"""
    code, _, err = run(script, trial)
    assert code == 0
    assert "hidden must be even" in err
    assert "Traceback" not in err
    assert master.bodies_of("early_exit") == [{"reason": "EXITED_REASON_INVALID_HP"}]


def test_refused_report_fails_the_script(trial: Path, master: TaskMaster) -> None:
    """A report that the master refuses makes the exit code, with the master's words as the last line."""
    master.judge = lambda record: ("loss is there with another value", False) if record["kind"] == "metrics" else None
    script = """
from tenax import core
with core.init() as context:
    context.train.report_validation_metrics(1, {"loss": 2})
"""
    code, _, err = run(script, trial)
    assert code == 1
    assert err.splitlines()[-1].endswith("the master refused a report: loss is there with another value")


def test_own_error_of_a_script(trial: Path, master: TaskMaster) -> None:
    """A script that raises keeps its own error, and what it reported before is with the master."""
    script = """
from tenax import core
with core.init() as context:
    context.train.report_validation_metrics(1, {"loss": 2})
    raise ValueError("mine")
"""
    code, _, err = run(script, trial)
    assert code == 1
    assert err.splitlines()[-1] == "ValueError: mine"
    assert len(master.bodies_of("metrics")) == 1


def test_preempted_script_acknowledges(trial: Path, master: TaskMaster) -> None:
    """A script that is asked to stop has acknowledged before it exits, with the checkpoint before or after."""
    master.preempt.set()
    script = """
from tenax import core
with core.init() as context:
    assert context.preempt.should_preempt()
    with context.checkpoint.store_path({"steps_completed": 3}) as (path, _):
        (path / "state").write_text("3")
"""
    code, _, err = run(script, trial)
    assert (code, err) == (0, "")
    kinds = [record["kind"] for record in master.records()]
    assert kinds == ["run_start", "ack_preemption", "checkpoint_started", "checkpoint"]


def test_acknowledgement_without_a_master(trial: Path, master: TaskMaster) -> None:
    """With the master gone after the signal, the acknowledgement is in the file that the exit waits for."""
    script = """
import sys
from tenax import core
with core.init() as context:
    while not context.preempt.should_preempt(auto_ack=False):
        pass
    print("seen", flush=True)
    sys.stdin.readline()
    context.preempt.acknowledge_preemption_signal()
"""
    master.preempt.set()
    path = trial / "script.py"
    path.write_text(script)
    process = subprocess.Popen(
        [sys.executable, str(path)],
        env={**os.environ, "DET_REPORT_WAIT": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "seen\n"
    master.down()
    _, err = process.communicate("go\n", timeout=240)
    assert process.returncode == 0
    assert "the agent sends them" in err
    assert streams(trial)[0][-1]["kind"] == "ack_preemption"
    master.up()


def test_stacks_on_signal(trial: Path, master: TaskMaster) -> None:
    """SIGUSR1 prints the stacks of a running script, which goes on."""
    script = """
import os, signal
from tenax import core
def where_it_hangs():
    os.kill(os.getpid(), signal.SIGUSR1)
with core.init():
    where_it_hangs()
print("went on")
"""
    code, out, err = run(script, trial)
    assert (code, out) == (0, "went on\n")
    assert "in where_it_hangs" in err


def test_process_that_replaces_itself(trial: Path, master: TaskMaster) -> None:
    """A script that starts itself anew by exec has the same process id and start: its streams still differ."""
    script = """
import os, sys
from tenax import core
with core.init() as context:
    context.train.report_metrics("run" + str(len(sys.argv)), 1, {"x": 1})
    if len(sys.argv) == 1:
        os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
"""
    code, _, err = run(script, trial)
    assert (code, err) == (0, "")
    groups = [[line["body"].get("group") for line in lines] for lines in streams(trial)]  # type: ignore[attr-defined]
    assert sorted(groups) == [[None, "run1"], [None, "run2"]]
    assert [body["group"] for body in master.bodies_of("metrics")][-1] == "run2"


@pytest.mark.parametrize("python", interpreters())
def test_ranks_that_share_their_output_write_whole_lines(trial: Path, master: TaskMaster, python: str) -> None:
    """Under torchrun alone they do: a traceback would be read as ``InputErrorInputError: : ``."""
    path = trial / "script.py"
    path.write_text("from tenax import core\ncore.init()\nprint('a', 'b')\nraise ValueError('c')\n")
    # Each write is one message.
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONUNBUFFERED": "1", "LOCAL_WORLD_SIZE": "2"}
    with ours, subprocess.Popen([python, str(path)], env=environment, stdout=its, stderr=its):
        its.close()
        written = list(iter(lambda: ours.recv(65536), b""))
    assert b"a b\n" in written
    assert b"ValueError: c\n" in written
    assert all(text.endswith(b"\n") for text in written)
