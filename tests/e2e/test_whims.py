"""Users who change their minds: experiments that are paused, activated, canceled and killed at seeded random instants.

Whatever was asked for, everything ends, nothing is left over, and no server has met an error of its own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from tenax.client.connect import Client
from tenax.client.experiments import Experiment
from tenax.client.trials import Trial
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tests.e2e.trials import config
from tests.kits.machine import ROOT, Machine, machine, outlast, wait_for

TRIALS = 4
SEARCHERS: tuple[dict[str, object], ...] = (
    {"name": "single"},
    {"name": "grid"},
    {"name": "random", "max_trials": TRIALS, "max_concurrent_trials": 2},
    {"name": "adaptive_asha", "time_metric": "epochs", "max_time": 12, "max_trials": TRIALS},
)
#: What is asked for, and how often in comparison.
WHIMS = {"pause": 6, "activate": 8, "kill one trial": 2, "cancel": 1, "kill": 1}


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    """One of their own: its logs must hold no error."""
    with machine() as up:
        yield up


def test_whatever_users_ask_for_everything_ends(place: Machine) -> None:
    """A handful of experiments and thirty whims."""
    live_through(place, seed=0, whims=30)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_whims(place: Machine, seed: int) -> None:
    """Three hundred whims a time."""
    live_through(place, seed, whims=300)


def live_through(place: Machine, seed: int, whims: int) -> None:
    """Make experiments and steer them at random, then let all that can go on, and count what is left."""
    rng = random.Random(seed)
    made: list[Experiment] = []
    with place.client() as client:
        for _ in range(whims):
            if len(made) < 4 or rng.random() < 0.1:
                made.append(client.create_experiment(some_search(rng), ROOT / "examples" / "noop"))
            have(rng, rng.choice(made))
            time.sleep(rng.uniform(0.0, 0.2))
        for experiment in made:
            ask(experiment, "activate")
        for experiment in made:
            check(client, outlast(place, experiment.id, 300))
    wait_for(lambda: not place.containers() or None, f"the end of {place.containers()}")
    wait_for(lambda: not place.task_processes(), "the end of every process of a task")
    for name in ("master", "agent", "supervisor"):
        told = (place.directory / f"{name}.log").read_text()
        assert "Traceback" not in told, told[-5000:]
    assert "ERROR" not in (place.directory / "postgres" / "postgres.log").read_text()


def some_search(rng: random.Random) -> JsonObject:
    """Short trials, some of which fail."""
    hparams: dict[str, object] = {
        "reports": 12,
        "seconds": rng.choice([0.0, 0.02, 0.1]),
        "checkpoint_every": rng.choice([0, 3]),
        "quality": {"type": "double", "minval": 0.0, "maxval": 1.0, "count": 3},
    }
    if rng.random() < 0.3:
        hparams["fail_at"] = rng.choice([2, 7])
    return config(
        name=f"whim of {rng.randrange(1000)}",
        hyperparameters=hparams,
        searcher={"metric": "loss", **rng.choice(SEARCHERS)},
        resources={"slots_per_trial": rng.choice([0, 1, 1])},
        max_restarts=rng.choice([0, 1, 3]),
    )


def have(rng: random.Random, experiment: Experiment) -> None:
    """One whim."""
    (whim,) = rng.choices(list(WHIMS), weights=list(WHIMS.values()))
    if whim != "kill one trial":
        ask(experiment, whim)
        return
    trials = experiment.trials()
    if trials:
        rng.choice(trials).kill()


def ask(experiment: Experiment, verb: str) -> None:
    """Whoever asks for what cannot be any more is told so."""
    try:
        experiment.do(verb)
    except InvalidInput as error:
        if "has ended" not in str(error) and "any more" not in str(error):
            raise


def check(client: Client, ended: Experiment) -> None:
    """It ended with all its trials, each of which tells a story without gaps."""
    trials = ended.trials()
    assert all(trial.has_ended and trial.reason for trial in trials)
    assert ended.reason
    if ended.state == "COMPLETED":
        assert len(trials) == {"single": 1, "grid": 3}.get(ended.searcher, TRIALS)
    for trial in trials:
        check_reports(client, trial)


def check_reports(client: Client, trial: Trial) -> None:
    """Each step once, in order, none left out: whatever ran twice replaced what it had reported before."""
    steps = [report.steps for report in client.trial(trial.id).metrics("validation")]
    assert steps == list(range(1, len(steps) + 1))
    assert trial.restarts == 0 or trial.state == "CANCELED" or "fail_at" in trial.hparams
