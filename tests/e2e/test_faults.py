"""Nothing is lost: each part is killed at a seeded random instant of a search, which ends as if it had not been.

Each fault has to leave the cluster, which is that of other tests too, as it was.

`make test` kills once, in one search, each part whose end training does not notice, and has a power cut in another; a
training itself is killed in `test_killed_training.py`. `make test-long` has each fault ten times, in searches of their
own.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenax.client.experiments import Experiment
from tenax.client.trials import Trial
from tenax.jsonvalue import JsonObject
from tests.e2e import books
from tests.e2e.stored import count, database_url, stored_rows
from tests.kits.machine import Machine, outlast, pick, wait_for

SCRIPT = Path(__file__).parent / "faults"


@dataclass(frozen=True)
class Work:
    """``steps``: training reports before each validation; ``within_s``: the fault comes that soon after the first."""

    trials: int = 8
    steps: int = 50
    within_s: float = 6.0


SMALL = Work(trials=4, steps=25, within_s=2.0)


def search(book: Path, work: Work) -> JsonObject:
    """Trials whose scripts keep their books there."""
    return {
        "name": "faults",
        "entrypoint": "python3 train.py",
        "hyperparameters": {
            "x": {"type": "double", "minval": 1, "maxval": 2},
            "book": str(book),
            "steps": work.steps,
            "epochs": 4,
            "pause": 0.02,
        },
        "searcher": {
            "name": "adaptive_asha",
            "metric": "loss",
            "time_metric": "epochs",
            "max_time": 4,
            "max_trials": work.trials,
            "max_concurrent_trials": 4,
        },
        "resources": {"slots_per_trial": 1},
        "max_restarts": 5,
    }


Fault = Callable[[Machine], None]


def kill_server(name: str) -> Fault:
    return lambda place: place.kill(name)


def kill_master_and_agent(place: Machine) -> None:
    place.kill("master")
    place.kill("agent")


def kill_supervisor(place: Machine) -> None:
    """Nobody is left to start it again but the user."""
    place.kill("supervisor")
    place.up()


def power_cut(place: Machine) -> None:
    """Everything at once, the tasks too."""
    pids = [place.pid(name) for name in ("supervisor", "postgres", "master", "agent")] + place.task_processes()
    for pid in filter(None, pids):
        _kill(pid)
    place.up()


def kill_training(place: Machine) -> None:
    """The process that trains, not what supervises it."""

    def training() -> list[int]:
        return [
            pid for pid in place.task_processes() if b"train.py" in _command(pid) and b"sh" not in _command(pid)[:3]
        ]

    _kill(wait_for(training, "a training process")[0])


#: name: (what is done, whether training processes must not notice)
FAULTS: dict[str, tuple[Fault, bool]] = {
    "master": (kill_server("master"), True),
    "agent": (kill_server("agent"), True),
    "master and agent": (kill_master_and_agent, True),
    "postgres": (kill_server("postgres"), True),
    "supervisor": (kill_supervisor, True),
    "training": (kill_training, False),
    "power cut": (power_cut, False),
}


@pytest.mark.timeout(240)
def test_faults_that_training_does_not_notice_lose_nothing(place: Machine, tmp_path: Path) -> None:
    """One kill of each part, one after another, in a running search."""
    number = begin(place, tmp_path, Work())
    for fault, (strike, training_is_spared) in FAULTS.items():
        if training_is_spared:
            time.sleep(pick(sorted(FAULTS).index(fault), 0.0, 1.0))
            strike(place)
            wait_for(place.answers, "an answer of the master")
    hold_to_account(place, tmp_path, outlast(place, number), Work(), one_run_each=True)


@pytest.mark.timeout(180)
def test_a_power_cut_loses_nothing(place: Machine, tmp_path: Path) -> None:
    """In a running search. What a killed training goes on from is in `test_killed_training.py`."""
    suffer(place, tmp_path, "power cut", 0, SMALL)


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("fault", FAULTS)
def test_ten_faults_lose_nothing(place: Machine, tmp_path: Path, fault: str, seed: int) -> None:
    """Each part ten times, at other instants."""
    suffer(place, tmp_path, fault, seed, Work())


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_master_that_is_away_for_two_minutes_loses_nothing(place: Machine, tmp_path: Path) -> None:
    """Scripts report, finish and are preempted meanwhile; all of it arrives when the master is back."""
    away(place, tmp_path, 120.0, Work())


@pytest.mark.timeout(200)
def test_a_master_that_is_away_for_a_while_loses_nothing(place: Machine, tmp_path: Path) -> None:
    """The same for as long as the running trials take to finish."""
    away(place, tmp_path, 4.0, SMALL)


def suffer(place: Machine, directory: Path, fault: str, seed: int, work: Work) -> None:
    """Run a search, let the fault happen at a seeded instant, and hold the end against the books."""
    strike, training_is_spared = FAULTS[fault]
    number = begin(place, directory, work)
    time.sleep(pick(seed * 100 + sorted(FAULTS).index(fault), 0.0, work.within_s))
    strike(place)
    hold_to_account(place, directory, outlast(place, number), work, one_run_each=training_is_spared)


def begin(place: Machine, directory: Path, work: Work) -> int:
    """Submit the search; once its first trial keeps its book."""
    number = submit(place, directory, work)
    wait_for(lambda: books.read(directory), "the first trial")
    return number


def away(place: Machine, directory: Path, seconds: float, work: Work) -> None:
    """The master is stopped (it neither serves nor dies) while two trials run and one search pauses."""
    number = submit(place, directory, work)
    wait_for(lambda: len(books.read(directory)) >= 2 or None, "two trials")
    with place.client() as client:
        client.experiment(number).pause()
    url, pid = database_url(place), place.pid("master")
    assert pid is not None
    # From here on the scripts are told: some acknowledge before the master stops, some after. On a busy machine both
    # may have left before anybody looks.
    asked = f"select count(*) from allocations join trials using (task_id) where experiment_id = {number}"
    wait_for(lambda: count(url, f"{asked} and preemption <> 'NONE'"), "a request")
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    _kill(pid)
    wait_for(lambda: place.pid("master") not in (None, pid) or None, "the master's return")
    wait_for(place.answers, "an answer of the master")
    with place.client() as client:
        client.experiment(number).activate()
    hold_to_account(place, directory, outlast(place, number), work, one_run_each=False)


def submit(place: Machine, directory: Path, work: Work) -> int:
    """A search whose scripts keep their books in ``directory``."""
    with place.client() as client:
        return client.create_experiment(search(directory, work), SCRIPT).id


def hold_to_account(place: Machine, directory: Path, experiment: Experiment, work: Work, *, one_run_each: bool) -> None:
    """Exactly the trials asked for, every report once, nothing left over."""
    assert experiment.state == "COMPLETED", place.logs()
    kept = books.read(directory)
    with place.client() as client:
        trials = client.experiment(experiment.id).trials()
        failed = [trial for trial in trials if trial.state != "COMPLETED"]
        said = ["".join(f"{line.message}\n" for line in trial.logs()) for trial in failed]
    assert len(trials) == work.trials
    assert all(killed_while_stopping(place, trial) for trial in failed), f"{failed}\n{said}"
    # At most what ran when it happened: on two slots.
    assert len(failed) <= (0 if one_run_each else 2)
    assert {book.trial_id for book in kept} == {trial.id for trial in trials}
    assert all(len(book.starts) == 1 for book in kept), "a run was started twice"
    if one_run_each:
        # A run that was lost before its script began, as its agent was killed while it started it, has no book.
        assert len(kept) == work.trials, "a training process was started again"
        assert {trial.restarts for trial in trials} == {0}
    assert not books.compare(kept, stored_rows(place, [trial.id for trial in trials]))
    wait_for(lambda: not place.containers() or None, f"the end of {place.containers()}")
    wait_for(lambda: not place.task_processes() or None, "the end of every process of a task")


def killed_while_stopping(place: Machine, trial: Trial) -> bool:
    """The search had stopped it, and it was killed before it had left: that is a failure, and no other try follows."""
    stopped = f"select count(*) from trials where id = {trial.id} and wish = 'STOP'"
    return trial.reason.startswith("killed by SIGKILL") and count(database_url(place), stopped) == 1


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
