"""The command line with a real cluster: from `create` to a checkpoint on disk."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.machine import ROOT, Machine, machine, wait_for

NOOP = ROOT / "examples" / "noop"
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    with machine() as up:
        yield up


def tenax(place: Machine, *arguments: str) -> Done:
    return place.tenax(*arguments, check=False)


def document(done: Done) -> object:
    assert done.returncode == exits.OK, done.stderr
    return json.loads(done.stdout)


def create(place: Machine, file: str, *arguments: str) -> int:
    return submit(place, NOOP / file, NOOP, *arguments)


def submit(place: Machine, config: Path, code: Path, *arguments: str) -> int:
    done = tenax(place, "experiment", "create", str(config), str(code), *arguments)
    assert done.returncode == exits.OK, done.stderr
    return int(done.stdout.split()[-1])


def describe(place: Machine, number: int) -> dict[str, object]:
    shown = document(tenax(place, "e", "describe", str(number), "--json"))
    assert isinstance(shown, dict)
    return shown


def wait_for_state(place: Machine, number: int, enough: Callable[[str], bool]) -> dict[str, object]:
    """The experiment once its state is as wanted."""
    until = time.monotonic() + 240
    while time.monotonic() < until:
        experiment = describe(place, number)["experiment"]
        assert isinstance(experiment, dict)
        if enough(str(experiment["state"]).removeprefix("STATE_")):
            return experiment
    raise AssertionError(f"experiment {number} is {experiment['state']}: {experiment['reason']}\n{place.logs()}")


def reason_of(place: Machine, number: int) -> str:
    experiment = describe(place, number)["experiment"]
    assert isinstance(experiment, dict)
    return str(experiment["reason"])


def until_released(directory: Path, release: Path, searcher: str = "name: single") -> tuple[Path, Path]:
    """A configuration, and a directory whose script reports once ``release`` is there, and leaves early if asked to.

    There is a file ``begun`` beside it from when the script waits.
    """
    (directory / "train.py").write_text(
        "import os, time\n"
        "from tenax import core\n"
        "with core.init() as context:\n"
        f"    open({str(directory / 'begun')!r}, 'w').close()\n"
        f"    while not (released := os.path.exists({str(release)!r})) and not context.preempt.should_preempt():\n"
        "        time.sleep(0.02)\n"
        "    if released:\n"
        "        context.train.report_validation_metrics(1, {'loss': 1.0, 'epochs': 4})\n"
    )
    text = f"name: held\nentrypoint: python3 train.py\nsearcher: {{{searcher}, metric: loss}}\nmax_restarts: 0\n"
    (directory / "held.yaml").write_text(text)
    return directory / "held.yaml", directory


QUICK = ("--config", "hyperparameters.seconds=0.01", "--config", "hyperparameters.reports=10")


def test_from_create_to_checkpoint(place: Machine, tmp_path: Path) -> None:
    """An experiment is created and followed to its end; metrics, output and checkpoint can then be had."""
    done = tenax(place, "e", "create", str(NOOP / "const.yaml"), str(NOOP), "-f", *QUICK)
    assert done.returncode == exits.OK, done.stderr
    number = int(done.stdout.splitlines()[0].split()[-1])
    assert f"Experiment {number} COMPLETED" in done.stderr
    trials = describe(place, number)["trials"]
    assert isinstance(trials, list)
    trial = str(trials[0]["id"])
    metrics = document(tenax(place, "t", "metrics", trial, "--json"))
    assert isinstance(metrics, list)
    assert [report["steps"] for report in metrics] == list(range(1, 11))
    assert "COMPLETED" in tenax(place, "t", "logs", trial, "--tail", "1").stdout
    best = document(tenax(place, "c", "list", str(number), "--best", "1", "--json"))
    assert isinstance(best, list)
    target = tmp_path / "best"
    loaded = tenax(place, "c", "download", best[0]["uuid"], "-o", str(target))
    assert loaded.stdout.strip() == str(target)
    assert sorted(path.name for path in target.iterdir() if path.is_file())


def test_search_with_pause(place: Machine, tmp_path: Path) -> None:
    """A search is paused, shows it, is activated, and completes with its best trials listed first."""
    searcher = "name: adaptive_asha, max_trials: 3, max_time: 4, time_metric: epochs"
    release = place.directory / "activated"
    number = submit(place, *until_released(tmp_path, release, searcher))
    wait_for_state(place, number, lambda state: state == "RUNNING")
    assert tenax(place, "e", "pause", str(number)).returncode == exits.OK
    assert wait_for_state(place, number, lambda state: state == "PAUSED")["reason"]
    release.touch()
    assert tenax(place, "e", "activate", str(number)).returncode == exits.OK
    done = tenax(place, "e", "wait", str(number))
    assert done.returncode == exits.OK, done.stderr
    assert len(done.stdout.splitlines()) == 4
    assert f"Experiment {number} COMPLETED" in done.stderr


def test_waiting_says_why(place: Machine, tmp_path: Path) -> None:
    """An experiment that waits says for what, in the list and in its description."""
    # One that holds all slots until it is killed: the reason stays as it is.
    held = tmp_path / "held.yaml"
    held.write_text("entrypoint: sleep 1000\nsearcher: {name: single, metric: loss}\nresources: {slots_per_trial: 2}\n")
    first = submit(place, held, NOOP)
    wait_for_state(place, first, lambda state: state == "RUNNING")
    second = create(place, "const.yaml")
    # It is QUEUED from the beginning, and why is known once the scheduler has looked.
    reason = wait_for(lambda: reason_of(place, second), "a reason to wait")
    assert "slot" in reason
    assert wait_for_state(place, second, lambda state: state == "QUEUED")["reason"] == reason
    assert reason in tenax(place, "e", "list").stdout
    assert reason in tenax(place, "e", "describe", str(second)).stdout
    assert tenax(place, "e", "kill", str(first), str(second)).returncode == exits.OK
    for number in (first, second):
        wait_for_state(place, number, lambda state: state == "CANCELED")
    assert tenax(place, "e", "wait", str(first)).returncode == exits.NOT_COMPLETED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\n  bad: [\n", "line 2"),
        ("nam: x\nentrypoint: a\nsearcher: {name: single, metric: loss}\n", "did you mean 'name'"),
        ("entrypoint: a\nsearcher: {name: single, metric: loss, max_length: x}\n", "searcher.max_length (line 2)"),
        ("name: x\nsearcher: {name: single, metric: loss}\n", "entrypoint"),
        (
            "entrypoint: a\nhyperparameters:\n  lr: {type: double, minval: 0, maxval: 1}\n"
            "searcher: {name: grid, metric: loss}\n",
            "hyperparameters.lr",
        ),
        ("entrypoint: a\nsearcher: {name: single, metric: loss}\nresources: {slots_per_trial: 64}\n", "64 slots"),
    ],
)
def test_bad_configurations(place: Machine, tmp_path: Path, text: str, message: str) -> None:
    """A configuration that cannot be is refused with path, line and what to do, and nothing is created."""
    before = document(tenax(place, "e", "list", "--all", "--json"))
    (tmp_path / "bad.yaml").write_text(text)
    done = tenax(place, "e", "create", str(tmp_path / "bad.yaml"))
    assert done.returncode == exits.FAILED
    assert message in done.stderr
    assert document(tenax(place, "e", "list", "--all", "--json")) == before


def test_script_that_raises(place: Machine, tmp_path: Path) -> None:
    """A script that raises ends its experiment with an exit code of its own, and the reason is the script's words."""
    (tmp_path / "train.py").write_text("import no_such_module\n")
    config = "name: broken\nentrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\nmax_restarts: 0\n"
    (tmp_path / "a.yaml").write_text(config)
    done = tenax(place, "e", "create", str(tmp_path / "a.yaml"), str(tmp_path), "-f")
    assert done.returncode == exits.NOT_COMPLETED
    assert "no_such_module" in done.stdout


def test_wrong_password(place: Machine) -> None:
    """A wrong password is refused with an exit code of its own."""
    environment = {
        **place.environment,
        "DET_USER": "admin",
        "DET_PASS": "wrong",
        "TENAX_DIR": str(place.directory / "no"),
    }
    done = subprocess.run(
        [*place.command, "-m", f"http://127.0.0.1:{place.port}", "user", "whoami"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == exits.NOT_ALLOWED
    assert "wrong" not in done.stderr.replace("Wrong", "")


def test_tasks_outlive_the_cluster(place: Machine, tmp_path: Path) -> None:
    """`tenax down` says what runs on, `tenax up` finds it again, and its process is the same."""
    number = submit(place, *until_released(tmp_path, place.directory / "outlived"))
    # What a start needs for a moment is no process of it any more.
    wait_for((tmp_path / "begun").exists, "the script")
    before = place.task_processes()
    done = tenax(place, "down")
    assert "1 task keeps running" in done.stderr
    assert before
    assert set(before) <= set(place.task_processes())
    place.up()
    assert set(before) <= set(place.task_processes())
    (place.directory / "outlived").touch()
    assert tenax(place, "e", "wait", str(number)).returncode == exits.OK
    trials = describe(place, number)["trials"]
    assert isinstance(trials, list)
    assert (trials[0]["runId"], trials[0]["restarts"]) == (1, 0)


def test_down_with_tasks(place: Machine, tmp_path: Path) -> None:
    """`tenax down --kill-tasks` leaves no process; the next `up` starts the trial again, which counts for nothing."""
    number = submit(place, *until_released(tmp_path, place.directory / "restarted"))
    wait_for_state(place, number, lambda state: state == "RUNNING")
    done = tenax(place, "down", "--kill-tasks")
    assert "1 task ended" in done.stderr
    assert place.task_processes() == []
    (place.directory / "restarted").touch()
    place.up()
    assert tenax(place, "e", "wait", str(number)).returncode == exits.OK
    trials = describe(place, number)["trials"]
    assert isinstance(trials, list)
    assert (trials[0]["runId"], trials[0]["restarts"]) == (2, 0)
