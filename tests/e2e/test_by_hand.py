"""Runs by hand beside a cluster: tracked as they run, whatever happens to it, to them, or to what sends them."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.trials import was_kept
from tests.kits.cli.command_line import run_here
from tests.kits.machine import TENAX, Machine, wait_for
from tests.kits.ports import free_port

SCRIPT = """
import json, os, sys, time
from tenax import core

def main(context):
    wanted = context.hparams
    step = 0
    if context.latest_checkpoint:
        with context.checkpoint.restore_path(context.latest_checkpoint) as path:
            step = json.loads((path / "state.json").read_text())["step"]
    print("begun at", step, flush=True)
    while step < wanted["steps"]:
        step += 1
        context.train.report_validation_metrics(step, {"validation_loss": 1 / step})
        if step % 5 == 0:
            with context.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                (path / "state.json").write_text(json.dumps({"step": step}))
        if step == wanted.get("fails_at") and not context.latest_checkpoint:
            raise ValueError("bad luck")
        # A file to wait for, at a step.
        while step == wanted.get("waits_at") and not os.path.exists(wanted["for"]):
            open(wanted["for"] + ".waiting", "w").close()
            time.sleep(0.02)
    print("ended at", step, flush=True)

with core.init(hparams={"steps": 10}) as context:
    main(context)
"""


class Hand:
    """A person with a directory of their own for scripts and data."""

    def __init__(self, place: Machine, root: Path) -> None:
        self.place = place
        self.data = root / "data"
        self.root = root
        self.go = root / "go"
        (root / "train.py").write_text(SCRIPT)
        self.environment = {**place.environment, "TENAX_DATA_DIR": str(self.data)}
        self.environment["PATH"] = f"{TENAX.parent}{os.pathsep}{os.environ['PATH']}"

    def begin(self, *argv: str, more: Mapping[str, str] = {}, **options: object) -> subprocess.Popen[str]:
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            argv,
            cwd=self.root,
            env={**self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def does(self, *argv: str, more: Mapping[str, str] = {}, **options: object) -> tuple[int, str, str]:
        return self.ends(self.begin(*argv, more=more, **options))

    def ends(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        """What came of it; what it had no time to send is sent as it said."""
        out, err = process.communicate(timeout=120)
        if was_kept(err):
            self.tenax("sync")
        return process.returncode, out, err

    def tenax(self, *arguments: str) -> str:
        code, out, err = self.does(str(TENAX), *arguments)
        assert code == 0, out + err
        return out

    def track(self, *hparams: str, more: Mapping[str, str] = {}) -> tuple[int, str, str]:
        given = [part for hparam in hparams for part in ("--hparam", hparam)]
        return self.does(str(TENAX), "track", *given, sys.executable, "train.py", more=more)

    def reads(self, *arguments: str) -> str:
        """What a command says that changes nothing, and is asked often: not in a process of its own."""
        done = run_here(self.environment, *arguments)
        assert done.code == 0, done.out + done.err
        return done.out

    def runs(self) -> list[dict[str, object]]:
        """The newest first."""
        found: list[dict[str, object]] = json.loads(self.reads("local", "list", "--json"))
        return found

    def trial(self, run: int = 0) -> tuple[str, str, list[int]]:
        """State and reason of the newest run's trial, and the steps of its validations."""
        number = self.runs()[run]["trialId"]
        assert isinstance(number, int)
        with self.place.client() as client:
            trial = client.trial(number)
            return trial.state, trial.reason, [report.steps for report in trial.metrics("validation")]

    def log(self) -> str:
        return self.reads("trial", "logs", str(self.runs()[0]["trialId"]))


@pytest.fixture
def hand(place: Machine, tmp_path: Path) -> Hand:
    return Hand(place, tmp_path)


def test_it_is_tracked(hand: Hand) -> None:
    """Metrics, hyperparameters, checkpoints, output and exit code; the output is on the screen as ever."""
    code, out, err = hand.track("steps=12")
    assert (code, out) == (0, "begun at 0\nended at 12\n")
    assert "tracked as trial" in err
    assert hand.trial() == ("COMPLETED", "the script finished", list(range(1, 13)))
    assert "ended at 12" in hand.log()
    (run,) = hand.runs()
    assert (run["state"], run["sent"], run["checkpoints"], run["hparams"]) == ("COMPLETED", True, 2, {"steps": 12})
    shown = json.loads(hand.reads("trial", "describe", str(run["trialId"]), "--json"))
    assert shown["trial"]["hparams"] == {"steps": 12}
    assert [saved["metadata"]["steps_completed"] for saved in shown["checkpoints"]] == [5, 10]
    assert str(run["experimentId"]) in hand.reads("experiment", "list")


@pytest.mark.parametrize("tracked", ["while it runs", "as a whole"])
def test_what_its_first_validation_has_ranks_it(hand: Hand, tracked: str) -> None:
    """Sent before it has validated, it has the same metric as one that is sent when it has ended, and a best value."""
    script = SCRIPT.replace('{"validation_loss": 1 / step}', '{"test_accuracy": min(step, 20 - step)}')
    (hand.root / "train.py").write_text(script)
    if tracked == "as a whole":
        assert hand.does(sys.executable, "train.py", more={"TENAX_TRACK": "0"})[0] == 0
        hand.tenax("sync")
    else:
        assert hand.track()[0] == 0
    (run,) = hand.runs()
    with hand.place.client() as client:
        experiment = client.experiment(int(str(run["experimentId"])))
        searcher = experiment.config["searcher"]
        best = client.trial(int(str(run["trialId"]))).best_validation
    assert (searcher["metric"], searcher["smaller_is_better"]) == ("test_accuracy", False)
    assert best is not None
    assert (best.steps, best.metrics) == (10, {"test_accuracy": 10})


def test_one_variable_is_enough(hand: Hand) -> None:
    """TENAX_TRACK=1 alone tracks it, but for its output."""
    code, _, err = hand.does(sys.executable, "train.py", more={"TENAX_TRACK": "1"})
    assert (code, "tracked as trial" in err) == (0, True)
    assert hand.trial() == ("COMPLETED", "the script finished", list(range(1, 11)))
    code, _, err = hand.does(sys.executable, "train.py", more={"TENAX_TRACK": "maybe"})
    assert code != 0
    assert "TENAX_TRACK is 'maybe'" in err


def test_a_failure_and_going_on(hand: Hand) -> None:
    """The exit code and the last words are the trial's reason; resumed, it is the next run of the same trial."""
    code, _, _ = hand.track("steps=20", "fails_at=13")
    assert code == 1
    state, reason, steps = hand.trial()
    assert (state, reason, steps[-1]) == ("ERROR", "exit code 1: ValueError: bad luck", 13)
    first = hand.runs()[0]
    out = hand.tenax("local", "resume", "last", "--hparam", "steps=18")
    assert "begun at 10" in out
    assert hand.runs()[0]["trialId"] == first["trialId"]
    assert hand.trial() == ("COMPLETED", "the script finished", list(range(1, 19)))


def test_ctrl_c(hand: Hand) -> None:
    """It reaches the script, and the trial is CANCELED."""
    process = hand.begin(
        str(TENAX), "track", "--hparam", "waits_at=3", "--hparam", f"for={hand.go}", sys.executable, "train.py"
    )
    wait_for(Path(f"{hand.go}.waiting").exists, "step 3")
    process.send_signal(signal.SIGINT)
    code, _, err = hand.ends(process)
    assert code == 130, err
    state, reason, steps = hand.trial()
    assert (state, reason, steps) == ("CANCELED", "ended by SIGINT", [1, 2, 3])


def test_a_master_that_is_not_there(hand: Hand) -> None:
    """The script runs, a line says so, and what it did is sent later."""
    code, out, err = hand.track(more={"DET_MASTER": f"http://127.0.0.1:{free_port()}"})
    assert (code, out) == (0, "begun at 0\nended at 10\n")
    assert "not tracked yet" in err
    assert "tenax sync" in err
    assert hand.runs()[0]["sent"] is False
    hand.tenax("sync")
    assert hand.trial() == ("COMPLETED", "the script finished", list(range(1, 11)))
    assert "ended at 10" in hand.log()


def test_nobody_who_is_logged_in(hand: Hand, tmp_path: Path) -> None:
    """It is said what to do, and the script runs."""
    more = {"DET_MASTER": hand.place.url, "TENAX_DIR": str(tmp_path / "none"), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    code, out, err = hand.track(more=more)
    assert (code, "ended at 10" in out) == (0, True)
    assert "You are not logged in" in err
    assert "tenax sync" in err


def test_a_master_that_is_killed_meanwhile(hand: Hand) -> None:
    """Nothing is lost and nothing there twice."""
    process = hand.begin(
        str(TENAX), "track", "--hparam", "waits_at=6", "--hparam", f"for={hand.go}", sys.executable, "train.py"
    )
    wait_for(Path(f"{hand.go}.waiting").exists, "step 6")
    hand.place.kill("master")
    hand.go.touch()
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "ended at 10" in out) == (0, True), err
    wait_for(hand.place.answers, "the master")
    hand.tenax("sync")
    assert hand.trial() == ("COMPLETED", "the script finished", list(range(1, 11)))


def test_a_script_that_is_killed(hand: Hand) -> None:
    """It left no word of its end: sync sends what is missing, and says so."""
    more = {"TENAX_TRACK": "1"}
    (hand.root / "train.py").write_text(
        SCRIPT.replace('{"steps": 10}', f'{{"steps": 10, "waits_at": 4, "for": {str(hand.go)!r}}}')
    )
    process = hand.begin(sys.executable, "train.py", more=more)
    wait_for(Path(f"{hand.go}.waiting").exists, "step 4")
    process.kill()
    process.communicate(timeout=60)
    assert hand.runs()[0]["state"] == "ERROR"
    hand.tenax("sync")
    state, reason, steps = hand.trial()
    assert (state, steps) == ("ERROR", [1, 2, 3, 4])
    assert "it ended without a word" in reason


def test_a_sync_that_is_killed_again_and_again(hand: Hand) -> None:
    """At any instant: the next one goes on, there is one trial, and each report is stored once."""
    steps = 3000
    code, _, err = hand.does(sys.executable, "train.py", more={"TENAX_TRACK": "0"})
    assert (code, "not on a cluster" in err) == (0, True)
    script = SCRIPT.replace('{"steps": 10}', f'{{"steps": {steps}}}').replace("step % 5", "step % 1000")
    (hand.root / "train.py").write_text(script)
    assert hand.does(sys.executable, "train.py")[0] == 0
    rng = random.Random(7)
    for _ in range(6):
        process = hand.begin(str(TENAX), "sync")
        until = time.monotonic() + rng.uniform(0.2, 1.2)
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=60)
    assert "already" not in hand.tenax("sync")
    trials = [run["trialId"] for run in hand.runs()]
    assert hand.trial(0) == ("COMPLETED", "the script finished", list(range(1, steps + 1)))
    assert hand.trial(1) == ("COMPLETED", "the script finished", list(range(1, 11)))
    again = hand.does(str(TENAX), "sync")
    assert (again[0], "nothing to send" in again[2]) == (0, True)
    assert "already" in hand.tenax("sync", "last")
    assert [run["trialId"] for run in hand.runs()] == trials
    assert hand.trial(0)[2] == list(range(1, steps + 1))


def test_what_was_long_ago_has_its_own_times(hand: Hand) -> None:
    """Sent an hour after it ended, it began when it began, and took as long as it ran, not as long as it was sent."""
    assert hand.does(sys.executable, "train.py")[0] == 0
    assert hand.does(str(TENAX), "local", "resume", "last", "--offline")[0] == 0
    now = time.time()
    # The first ran for ten minutes, the second for five, with a night between them.
    for path, began, ended in zip(
        sorted(hand.data.rglob("run.json"), key=lambda path: json.loads(path.read_text())["started"]),
        (now - 50_000, now - 4_300),
        (now - 49_400, now - 4_000),
        strict=True,
    ):
        path.write_text(json.dumps({**json.loads(path.read_text()), "started": began, "ended": ended}))
    hand.tenax("sync")
    for kind in ("experiment", "run"):
        newest = max(json.loads(hand.reads(kind, "list", "--json")), key=lambda listed: listed["id"])
        assert abs(newest["runningSeconds"] - 900) < 2, newest
        started = datetime.fromisoformat(newest["startTime"].replace("Z", "+00:00")).timestamp()
        ended = datetime.fromisoformat(newest["endTime"].replace("Z", "+00:00")).timestamp()
        assert (round((now - started) / 100), round((now - ended) / 100)) == (500, 40), newest


def test_checkpoints_of_what_is_removed_here(hand: Hand) -> None:
    """The cluster lists them no longer; one that cannot be told is named, and the files are gone all the same."""
    assert hand.track("steps=12")[0] == hand.track("steps=7")[0] == 0
    second, first = hand.runs()
    unheard = hand.does(str(TENAX), "local", "rm", "last", "-y", more={"DET_MASTER": f"http://127.0.0.1:{free_port()}"})
    assert unheard[0] == 0
    assert "still lists its checkpoint, since it could not be told" in unheard[2]
    hand.tenax("local", "rm", "last", "-y")
    assert (hand.runs(), list((hand.data / "checkpoints").iterdir())) == ([], [])

    def listed(run: dict[str, object], *more: str) -> list[str]:
        shown = json.loads(hand.reads("checkpoint", "list", str(run["experimentId"]), "--json", *more))
        return [checkpoint["state"] for checkpoint in shown]

    assert (listed(first), listed(first, "--deleted")) == ([], ["STATE_DELETED", "STATE_DELETED"])
    assert listed(second) == ["STATE_COMPLETED"]


def test_a_disk_that_is_full(hand: Hand) -> None:
    """The script fails in words, and what was whole is sent."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    (hand.root / "train.py").write_text(SCRIPT.replace('{"steps": 10}', '{"steps": 200}'))
    code, _, err = hand.does(sys.executable, "train.py", preexec_fn=limit, more={"PYTHONDONTWRITEBYTECODE": "1"})
    assert (code, "could not be written" in err or "File too large" in err) == (1, True), err
    hand.tenax("sync")
    state, _, steps = hand.trial()
    assert state == "ERROR"
    assert steps == list(range(1, len(steps) + 1))
    assert steps


def test_a_data_directory_that_cannot_be_written(hand: Hand) -> None:
    """It is said before the script starts, with the variable that names another one."""
    (hand.root / "a-file").write_text("")
    for argv in (["tenax", "track", "true"], [sys.executable, "train.py"]):
        code, out, err = hand.does(*argv, more={"TENAX_DATA_DIR": str(hand.root / "a-file" / "data")})
        assert code == 1
        assert "TENAX_DATA_DIR" in err
        assert "ended" not in out


def test_of_several_processes_the_chief_reports(hand: Hand) -> None:
    """One trial for all of them; a process that does not say which one it is, is told how."""
    (hand.root / "launch.py").write_text(
        "import os, subprocess, sys\n"
        f"here = {{**os.environ, 'WORLD_SIZE': '2', 'LOCAL_WORLD_SIZE': '2', 'MASTER_PORT': '{free_port()}'}}\n"
        "ranks = [{**here, 'RANK': rank, 'LOCAL_RANK': rank} for rank in '01']\n"
        "both = [subprocess.Popen([sys.executable, 'train.py'], env=rank) for rank in ranks]\n"
        "sys.exit(max(each.wait() for each in both))\n"
    )
    chief_only = SCRIPT.replace("    main(context)", "    if context.distributed.rank == 0:\n        main(context)")
    (hand.root / "train.py").write_text(
        chief_only.replace("core.init(", "core.init(distributed=core.DistributedContext.from_torch_distributed(), ")
    )
    for argv, more in (("tenax", "track"), {}), ((), {"TENAX_TRACK": "1"}):
        before = len(hand.runs())
        code, out, err = hand.does(*argv, sys.executable, "launch.py", more=more)
        assert (code, out.count("ended at 10")) == (0, 1), err
        assert len(hand.runs()) == before + 1
        assert hand.trial() == ("COMPLETED", "the script finished", list(range(1, 11)))
    (hand.root / "train.py").write_text(SCRIPT)
    code, _, err = hand.does("tenax", "track", sys.executable, "launch.py")
    assert (code, "DistributedContext.from_torch_distributed" in err) == (1, True)
