"""``tenax verify-resume``: scripts that go on as if nothing had been, and scripts that forget something."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.kits.cli.command_line import Tenax
from tests.kits.machine import wait_for

#: A loop without PyTorch: a number that random ones are added to. What ``KEEPS`` has is stored and loaded again.
SCRIPT = """
    import json, random, sys, time
    from tenax import core

    KEEPS = sys.argv[1].split(",")
    with core.init() as context:
        state = {"step": 0, "value": 0.0, "random": None}
        if "unread" not in KEEPS and context.latest_checkpoint:
            with context.checkpoint.restore_path(context.latest_checkpoint) as path:
                state = json.loads((path / "state.json").read_text())
            if "random" in KEEPS:
                version, numbers, gauss = state["random"]
                random.setstate((version, tuple(numbers), gauss))
            if "value" not in KEEPS:
                state["value"] = 0.0
            if "step" not in KEEPS:
                state["step"] = 0
        for step in range(state["step"] + 1, 9):
            state = {"step": step, "value": state["value"] + (random.random() if "fixed" not in KEEPS else 0.5)}
            metrics = {"value": state["value"], "at": time.perf_counter()}
            context.train.report_training_metrics(step, metrics)
            if "fails" in KEEPS and context.latest_checkpoint:
                raise KeyError("no such state")
            stops = "deaf" not in KEEPS and context.preempt.should_preempt()
            if (stops and "stores" in KEEPS) or ("often" in KEEPS and step % 3 == 0):
                with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    state["random"] = random.getstate()
                    (path / "state.json").write_text(json.dumps(state))
            if stops and "stubborn" not in KEEPS:
                break
"""


@pytest.fixture
def script(home: Path) -> str:
    (home / "train.py").write_text(textwrap.dedent(SCRIPT))
    return str(home / "train.py")


def test_a_script_that_keeps_all(script: str, tenax: Tenax) -> None:
    """Paused or killed. A time is its own in each run, which is not held against it."""
    done = tenax("verify-resume", "--steps", "8", script, "stores,random,value,step")
    assert done.code == 0, done.out + done.err
    assert "paused    steps 1 to 4" in done.err
    assert "resumed   steps 5 to 8" in done.err
    assert "the same: python random, training value" in done.out
    assert "not compared, since two runs from the start differ in it: training at" in done.out
    assert "It goes on from step 4 to 8 as if it had not been stopped." in done.out
    done = tenax("verify-resume", "--steps", "8", "--kill", script, "often,random,value,step", "--", "--x")
    assert done.code == 0, done.out + done.err
    assert "resumed   steps 4 to 8" in done.err


@pytest.mark.parametrize(
    ("keeps", "says"),
    [
        ("stores,value,step", "✗ python random: another from step 5 on.\n      Store random.getstate()"),
        ("stores,random,step", "at step 5, where"),
        ("stores,random,value", "✗ steps: 1, 2, 3, 4 were made a second time: the checkpoint is of step 4."),
        ("stores,random,value,step,unread", "✗ the checkpoint: the script did not read context.latest_checkpoint"),
    ],
)
def test_what_a_script_forgets_is_named(script: str, tenax: Tenax, keeps: str, says: str) -> None:
    """And what to do about it."""
    done = tenax("verify-resume", "--steps", "8", script, keeps)
    assert done.code == 1
    assert says in done.out, done.out
    assert "After a pause it is another run." in done.out


def test_random_numbers_that_nobody_draws_do_no_harm(script: str, tenax: Tenax) -> None:
    """They are said, and nothing else differs."""
    done = tenax("verify-resume", "--steps", "8", "--json", script, "stores,value,step,fixed")
    verdict = json.loads(done.out)
    assert (done.code, verdict["exact"], verdict["findings"]) == (0, True, [])
    assert (verdict["stoppedAt"], verdict["checkpointStep"], verdict["lastStep"]) == (4, 4, 8)


@pytest.mark.parametrize(
    ("options", "keeps", "says"),
    [
        ((), "deaf", "never asks whether to stop, so nothing can pause it"),
        ((), "random", "stored no checkpoint when it was asked to stop at step 4"),
        (("--kill",), "stores,random", "stored no checkpoint before it was killed at step 4"),
        ((), "stores,fails", "The run 'resumed' failed: exit code 1: KeyError: 'no such state'"),
        (("--steps", "1"), "stores", "1 is not in the range x>=2"),
    ],
)
def test_what_cannot_be_verified(script: str, tenax: Tenax, options: tuple[str, ...], keeps: str, says: str) -> None:
    """It is said what the script lacks."""
    done = tenax("verify-resume", "--steps", "8", *options, script, keeps)
    assert done.code != 0
    assert says in done.err, done.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("print('no cluster')", "The script reported 0 steps"),
        ("raise SystemExit('bad')", "'straight' failed: exit code 1: bad"),
    ],
)
def test_a_script_that_reports_nothing(home: Path, tenax: Tenax, text: str, says: str) -> None:
    """Or ends before it does."""
    (home / "train.py").write_text(text)
    done = tenax("verify-resume", str(home / "train.py"))
    assert done.code != 0
    assert says in done.err, done.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_one_that_is_asked_to_end(home: Path, number: int) -> None:
    """Neither the script, which may hold a GPU, nor the directory with what it stored."""
    (home / "wait.py").write_text(
        "import os, pathlib, time\nplace = pathlib.Path('pid')\n"
        "place.with_suffix('.new').write_text(str(os.getpid()))\nplace.with_suffix('.new').rename(place)\n"
        "while True: time.sleep(1)\n"
    )
    (home / "t").mkdir()
    program = [str(Path(sys.executable).with_name("tenax")), "verify-resume", sys.executable, "wait.py"]
    process = subprocess.Popen(program, cwd=home, env={**os.environ, "TMPDIR": str(home / "t")})
    wait_for(lambda: (home / "pid").exists() or None, "the script")
    process.send_signal(number)
    process.wait(60)
    wait_for(lambda: not Path(f"/proc/{(home / 'pid').read_text()}").exists() or None, "its end")
    assert not list((home / "t").glob("tenax-verify-*"))


def test_a_script_that_goes_on_is_ended(home: Path, tenax: Tenax) -> None:
    """After some reports more."""
    text = SCRIPT.replace('range(state["step"] + 1, 9)', "range(1, 10**9)")
    (home / "train.py").write_text(textwrap.dedent(text))
    for keeps, says in (("stores,stubborn", "was asked to stop and went on"), ("deaf", "never asks whether to stop")):
        done = tenax("verify-resume", "--steps", "4", str(home / "train.py"), keeps)
        assert done.code != 0
        assert says in done.err, done.err


FORGETFUL = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from tenax import core

    with core.init() as context:
        data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
        model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        first = 0
        if context.latest_checkpoint:
            with context.checkpoint.restore_path(context.latest_checkpoint) as path:
                state = torch.load(path / "state.pt")
            model.load_state_dict(state["model"])
            first = state["epoch"]
        for epoch in range(first + 1, 5):
            for inputs, outputs in DataLoader(data, batch_size=10, shuffle=True):
                loss = torch.nn.functional.mse_loss(model(inputs), outputs)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            schedule.step()
            context.train.report_validation_metrics(epoch, {"loss": loss.item()})
            stops = context.preempt.should_preempt()
            if stops:
                with context.checkpoint.store_path({"steps_completed": epoch}) as (path, _):
                    torch.save({"model": model.state_dict(), "epoch": epoch}, path / "state.pt")
                break
"""


def test_what_a_loop_of_pytorch_forgets(home: Path, tenax: Tenax) -> None:
    """The optimizer, the schedule and random states; the model it has."""
    (home / "train.py").write_text(textwrap.dedent(FORGETFUL))
    done = tenax("verify-resume", "--steps", "4", "--json", str(home / "train.py"))
    assert done.code == 1, done.err
    findings = {finding["what"]: finding for finding in json.loads(done.out)["findings"]}
    assert list(findings) == ["optimizer", "learning rate", "torch random", "batches", "parameters", "validation loss"]
    assert findings["learning rate"]["how"] == "0.1 at the first step, where 0.025 is due"
    assert findings["batches"]["how"].startswith("the first samples are ")
    assert findings["parameters"]["advice"] == findings["validation loss"]["advice"] == "it follows from the above"


AHEAD = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from tenax import core

    with core.init() as context:
        data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        first = 0
        if context.latest_checkpoint:
            with context.checkpoint.restore_path(context.latest_checkpoint) as path:
                state = torch.load(path / "state.pt")
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            first = state["epoch"]
        loader = DataLoader(data, batch_size=10, generator=torch.Generator().manual_seed(7))
        model(next(iter(loader))[0])  # whether it runs
        for epoch in range(first + 1, 5):
            for inputs, outputs in loader:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), outputs).backward()
                optimizer.step()
            context.train.report_training_metrics(epoch, {"epochs": epoch})
            if context.preempt.should_preempt():
                with context.checkpoint.store_path({"steps_completed": epoch}) as (path, _):
                    kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                    torch.save(kept, path / "state.pt")
                break
"""


@pytest.mark.long
def test_batches_that_are_not_trained_on_do_no_harm(home: Path, tenax: Tenax) -> None:
    """Where the parameters are the same, it was trained on the same; what is loaded to try the loop is no fault."""
    (home / "train.py").write_text(textwrap.dedent(AHEAD))
    done = tenax("verify-resume", "--steps", "4", str(home / "train.py"))
    assert done.code == 0, done.out + done.err
    assert "the same: parameters, optimizer, learning rate" in done.out
    assert "- batches: " in done.out
