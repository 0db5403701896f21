"""What becomes of an experiment that is paused, stopped, canceled, killed, deleted; and what is said meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tenax.client.experiments import Experiment
from tenax.client.trials import Trial
from tenax.jsonvalue import JsonObject
from tests.e2e import noop
from tests.e2e.trials import config, deleted, script
from tests.kits.machine import ROOT, Machine, outlast, wait_for

NOOP = ROOT / "examples" / "noop"


def submit(place: Machine, document: JsonObject, code: Path = NOOP) -> int:
    with place.client() as client:
        return client.create_experiment(document, code).id


def look(place: Machine, number: int) -> Experiment:
    with place.client() as client:
        return client.experiment(number)


def lasting(log_dir: Path, **changes: object) -> JsonObject:
    """A trial that goes on until somebody ends it."""
    hparams = {"reports": 100_000, "seconds": 0.05, "log_dir": str(log_dir)}
    return config(hyperparameters=hparams, **changes)


def end(place: Machine, *numbers: int) -> None:
    """Kill them and wait until their slots are free."""
    place.tenax("experiment", "kill", *map(str, numbers))
    for number in numbers:
        outlast(place, number)
    wait_for(lambda: not in_use(place), "free slots")


def in_use(place: Machine) -> list[str]:
    """Containers on slots, as the command line tells."""
    slots = place.json("slot", "list")
    assert isinstance(slots, list)
    assert len(slots) == 2
    return [str(slot["containerId"]) for slot in slots if isinstance(slot, dict) and slot["containerId"]]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_stop_of_the_search_ends_the_process_and_completes_the_trial(place: Machine, tmp_path: Path) -> None:
    """The script of a stopped trial sees the signal, saves and exits; nothing of it is left, and it is COMPLETED."""
    hparams = {
        "reports": 64,
        "seconds": 0.1,
        "log_dir": str(tmp_path),
        "quality": {"type": "double", "minval": 0.0, "maxval": 1.0},
    }
    searcher = {
        "name": "adaptive_asha",
        "mode": "aggressive",
        "metric": "loss",
        "time_metric": "epochs",
        "max_time": 64,
        "max_trials": 6,
        "max_concurrent_trials": 2,
    }
    # Else it might draw them so that each is better than all before it.
    seed = {"experiment_seed": 1}
    number = submit(place, config(hyperparameters=hparams, searcher=searcher, max_restarts=5, reproducibility=seed))
    assert outlast(place, number).state == "COMPLETED"
    with place.client() as client:
        trials = client.experiment(number).trials()
        saved = {trial.id: {one.steps for one in trial.checkpoints()} for trial in trials}
    assert {trial.state for trial in trials} == {"COMPLETED"}
    stopped = [trial for trial in trials if trial.steps < 64]
    assert 0 < len(stopped) < len(trials)
    for trial in stopped:
        book = noop.read(tmp_path, trial.id)
        assert trial.reason.startswith("stopped early")
        assert [line["event"] for line in book if "event" in line] == ["start", "preempted"]
        assert book[-1]["step"] in saved[trial.id]
        assert not alive(book[-1]["pid"])


def test_whoever_waits_is_told_why(place: Machine, tmp_path: Path) -> None:
    """In list and in describe, as text and as JSON; the words change when the cause does."""
    first = submit(place, config(name="first", entrypoint="sleep 1000", resources={"slots_per_trial": 2}))
    wait_for(lambda: look(place, first).state == "RUNNING", "a running experiment")
    second = submit(place, lasting(tmp_path, name="second"))
    try:
        wait_for(lambda: look(place, second).reason, "a reason to wait")
        reason = look(place, second).reason
        assert "slot" in reason
        assert reason in place.tenax("experiment", "describe", str(second)).stdout
        assert reason in place.tenax("experiment", "list").stdout
        described = place.json("experiment", "describe", str(second))
        assert isinstance(described, dict)
        assert described["experiment"]["reason"] == reason  # type: ignore[call-overload,index]
        listed = place.json("experiment", "list")
        assert reason in [one["reason"] for one in listed if one["id"] == second]  # type: ignore[union-attr,index,call-overload]
        with place.client() as client:
            (trial,) = client.experiment(second).trials()
        assert trial.state == "QUEUED"
        assert trial.reason == reason
        place.tenax("experiment", "pause", str(second))
        wait_for(lambda: "paused" in look(place, second).reason, "the reason of one that was paused")
        assert look(place, second).state == "PAUSED"
        assert look(place, first).reason == ""
    finally:
        end(place, first, second)


def test_a_trial_that_waits_for_its_own_experiment_says_so(place: Machine) -> None:
    """One that max_slots holds back while slots are free; the experiment itself runs, and has nothing to wait for."""
    searcher = {"name": "random", "metric": "loss", "max_trials": 2, "max_concurrent_trials": 2}
    resources = {"slots_per_trial": 1, "max_slots": 1}
    number = submit(place, config(entrypoint="sleep 1000", searcher=searcher, resources=resources))
    try:
        wait_for(lambda: look(place, number).state == "RUNNING", "a running trial")
        first, second = _trials(place, number)
        assert (first.state, second.state) == ("RUNNING", "QUEUED"), "trials are served in their order"
        for word in ("max_slots is 1", "of which 1 in use"):
            assert word in second.reason
        assert second.reason in place.tenax("experiment", "describe", str(number)).stdout
        assert look(place, number).reason == ""
        assert len(in_use(place)) == 1
    finally:
        end(place, number)


def test_cancel_lets_the_trials_save_first(place: Machine, tmp_path: Path) -> None:
    """CANCELED, with a checkpoint of the last step, and a reason that says who asked."""
    number = submit(place, lasting(tmp_path))
    wait_for(lambda: len(noop.books(tmp_path)) == 1 and noop.reports(tmp_path) >= 2, "reports")
    place.tenax("experiment", "cancel", str(number))
    assert outlast(place, number).state == "CANCELED"
    with place.client() as client:
        (trial,) = client.experiment(number).trials()
        saved = trial.checkpoints()
    assert trial.state == "CANCELED"
    assert "canceled" in trial.reason
    last = noop.read(tmp_path, trial.id)[-1]
    assert last["event"] == "preempted"
    assert max(one.steps for one in saved if one.state == "COMPLETED") == last["step"]
    assert place.tenax("experiment", "cancel", str(number)).returncode == 0, "it is canceled already"
    told = place.tenax("experiment", "activate", str(number), check=False)
    assert told.returncode == 1
    assert "has ended" in told.stderr


def test_kill_asks_nobody_and_delete_leaves_nothing(place: Machine, tmp_path: Path) -> None:
    """A script that would train on is gone; a running experiment cannot be deleted, an ended one can."""
    code = script(
        tmp_path / "code",
        """
        import os, time
        from tenax import core
        with core.init() as context:
            with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
                (path / "file").write_text("x" * 1000)
            print("pid", os.getpid())
            while True:
                time.sleep(0.1)
        """,
    )
    number = submit(place, config(), code)
    with place.client() as client:
        (checkpoint,) = wait_for(lambda: client.experiment(number).checkpoints(), "a checkpoint")
        directory = checkpoint.path()
        trial = client.experiment(number).trials()[0]
        line = wait_for(lambda: [one.message for one in trial.logs() if "pid" in one.message], "its pid")[0]
    assert directory is not None
    refused = place.tenax("experiment", "delete", "-y", str(number), check=False)
    assert refused.returncode == 1
    assert "cancel or kill it first" in refused.stderr
    place.tenax("experiment", "kill", str(number))
    assert outlast(place, number).state == "CANCELED"
    wait_for(lambda: not alive(int(line.split()[-1])), "the end of the process")
    wait_for(lambda: not in_use(place), "free slots")
    place.tenax("experiment", "delete", "-y", str(number))
    deleted(place, number)
    wait_for(lambda: not directory.exists(), "the end of its checkpoint's files")
    assert place.tenax("experiment", "describe", str(number), check=False).returncode == 6
    assert place.tenax("trial", "describe", str(trial.id), check=False).returncode == 6


def test_one_trial_can_be_killed_and_the_search_goes_on(place: Machine, tmp_path: Path) -> None:
    """The other trials are not touched, and the experiment completes."""
    searcher = {"name": "grid", "metric": "loss", "max_concurrent_trials": 2}
    # One goes on until somebody ends it; the other ends by itself.
    reports = {"type": "categorical", "vals": [100_000, 60]}
    hparams = {"reports": reports, "seconds": 0.05, "log_dir": str(tmp_path), "quality": 0.5}
    number = submit(place, config(searcher=searcher, hyperparameters=hparams))
    wait_for(lambda: len(noop.books(tmp_path)) == 2, "two trials")
    lasting_one = next(trial for trial in _trials(place, number) if trial.hparams["reports"] == 100_000)
    place.tenax("trial", "kill", str(lasting_one.id))
    outlast(place, number)
    killed, other = sorted(_trials(place, number), key=lambda trial: trial.id != lasting_one.id)
    assert [killed.state, other.state] == ["CANCELED", "COMPLETED"]
    assert noop.read(tmp_path, other.id)[-1]["event"] == "done"


def test_experiments_can_be_made_without_being_started(place: Machine, tmp_path: Path) -> None:
    """--paused makes it; nothing runs until it is activated."""
    path = tmp_path / "noop.json"
    path.write_text(json.dumps(config(hyperparameters={"reports": 1})))
    made = place.tenax("experiment", "create", str(path), str(NOOP), "--paused").stdout
    number = int(made.split()[-1])
    # One that was made after it has run by now.
    assert outlast(place, submit(place, config(hyperparameters={"reports": 1}))).state == "COMPLETED"
    assert [look(place, number).state, *(trial.state for trial in _trials(place, number))] == ["PAUSED"] * 2
    assert not place.task_processes(number)
    place.tenax("experiment", "activate", str(number))
    assert outlast(place, number).state == "COMPLETED"


def _trials(place: Machine, number: int) -> list[Trial]:
    with place.client() as client:
        return client.experiment(number).trials()
