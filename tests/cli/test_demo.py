"""``tenax demo``: from nothing to a checked checkpoint, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tenax.cli.console import exits
from tenax.cli.local.demo import _end_like_ctrl_c

TENAX = str(Path(sys.executable).with_name("tenax"))

CONFIG = """
name: tiny
entrypoint: python3 train.py
hyperparameters: {x: {type: double, minval: 1, maxval: 2}, epochs: 4, pause: 0.02}
searcher:
  {name: adaptive_asha, metric: loss, time_metric: epochs, max_time: 4, max_trials: 3, max_concurrent_trials: 2}
resources: {slots_per_trial: 1}
"""
TRAIN = """
import json, time
from tenax import core
with core.init() as context:
    hparams = context.info.trial.hparams
    for epoch in range(1, hparams["epochs"] + 1):
        time.sleep(hparams["pause"])
        loss = hparams["x"] / epoch
        with context.checkpoint.store_path({"steps_completed": epoch, "loss": loss}) as (path, uuid):
            (path / "loss.json").write_text(json.dumps(loss))
        context.train.report_validation_metrics(epoch, {"loss": loss, "epochs": epoch})
        if context.preempt.should_preempt():
            break
"""
EVALUATE = """
import json, pathlib, sys
print("loss", json.loads((pathlib.Path(sys.argv[1]) / "loss.json").read_text()))
"""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A search of three trials that take a moment each."""
    directory = tmp_path / "example"
    directory.mkdir()
    (directory / "adaptive.yaml").write_text(CONFIG)
    (directory / "train.py").write_text(TRAIN)
    (directory / "evaluate.py").write_text(EVALUATE)
    return directory


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A directory for temporary files that another account may pass."""
    root = Path(tempfile.mkdtemp(prefix="tenax-test-"))
    root.chmod(0o711)
    yield root
    with contextlib.suppress(OSError):
        root.rmdir()


def demo(temporary: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
    return subprocess.Popen(
        [TENAX, "demo", *arguments],
        env={**environment, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def processes_of(temporary: Path) -> list[str]:
    """Whatever still runs and mentions that directory."""
    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and str(temporary) in " ".join(process.cmdline()):
                pids.append(" ".join(process.cmdline()))
    return pids


def test_from_start_to_end(example: Path, temporary: Path) -> None:
    """It ends with a table of trials and a checkpoint that was loaded again, and leaves no process and no file."""
    process = demo(temporary, "--example", str(example))
    output, _ = process.communicate(timeout=240)
    assert process.returncode == exits.OK, output
    assert "Experiment 1 COMPLETED" in output
    assert "BEST loss" in output
    assert "It gives the figure that was reported." in output
    (program,) = re.findall(r"What next: (\S+) up, then docs/quickstart.md with a script of your own.\n", output)
    # As it is called from here.
    assert shutil.which(program)
    assert processes_of(temporary) == []
    assert list(temporary.iterdir()) == []


def test_a_checkpoint_that_lies(example: Path, temporary: Path) -> None:
    """When the checkpoint does not give what was reported the demo fails, and cleans up all the same."""
    (example / "evaluate.py").write_text("raise SystemExit('another figure')\n")
    process = demo(temporary, "--example", str(example))
    output, _ = process.communicate(timeout=240)
    assert process.returncode == exits.FAILED
    assert "another figure" in output
    assert list(temporary.iterdir()) == []


@pytest.fixture
def handlers() -> Iterator[None]:
    """Put back in the end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_it_otherwise_ends_it_like_ctrl_c(handlers: None, number: signal.Signals) -> None:
    """Of which the next test shows what it does."""
    _end_like_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_interrupted(example: Path, temporary: Path, number: signal.Signals) -> None:
    """Whoever ends it in the middle of training gets everything stopped and removed."""
    config = (example / "adaptive.yaml").read_text()
    (example / "adaptive.yaml").write_text(config.replace("pause: 0.02", "pause: 20"))
    process = demo(temporary, "--example", str(example))
    assert process.stdout is not None
    for line in process.stdout:
        if "RUNNING" in line:
            break
    assert any("train.py" in spec.read_text() for spec in temporary.glob("*/agent/containers/*/spec.json"))
    process.send_signal(number)
    process.communicate(timeout=240)
    assert process.returncode == exits.INTERRUPTED
    assert processes_of(temporary) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_the_digits(temporary: Path) -> None:
    """The demo as it is: real data, the best trial above 95 %, some trials stopped early."""
    process = demo(temporary)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == exits.OK, output
    best = next(line for line in output.splitlines() if "held-out accuracy" in line)
    assert float(best.split("accuracy")[1].split()[0]) >= 0.95
    assert "were stopped early by the search" in output
    assert list(temporary.iterdir()) == []
