"""Thousands of trials are killed while the database is far away, and nobody else notices.

The trials that are killed are of pretended agents; a search and a steady task of a real one are in the same cluster.
`make test` kills 25 of them once, `make test-long` 2,500 ten times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.e2e.ordeal import SMALL, Work, ordeal
from tests.kits.faulty_cluster import FaultyCluster, faulty_cluster
from tests.kits.figures import Figures
from tests.kits.machine import wait_for
from tests.kits.pretend_fleet import pretend_fleet

ROUND_TRIP_S = 0.1
POOL = "pretended"
SLOTS = 50
_LIVE = "select count(*) from trials where experiment_id = $1 and state not in ('CANCELED', 'COMPLETED', 'ERROR')"
_RUNNING = (
    "select count(*) from containers c join allocations a using (allocation_id) join trials t using (task_id)"
    " where t.experiment_id = $1 and c.state = 'RUNNING'"
)
_CANCELED = "select count(*) from trials where experiment_id = $1 and state = 'CANCELED'"
_ROOM = f"select count(*) from agent_slots where agent_id like '{POOL}-%'"
_LOST = "select count(*) from containers where exit ->> 'platform' = 'true'"


@pytest.fixture(scope="module")
def place() -> Iterator[FaultyCluster]:
    """One for all kills."""
    with faulty_cluster(settings={"pools": [{"name": "default"}, {"name": POOL}]}) as up:
        yield up


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_kill_of_many_over_a_slow_database_harms_nobody(
    place: FaultyCluster, tmp_path: Path, figures: Figures
) -> None:
    """A hundredth of it."""
    with pretend_fleet(place.machine.url, place.machine.directory / "join-token", pool=POOL, agents=2, slots=SLOTS):
        kill(place, tmp_path, figures, 0, 25, SMALL, 1.0)


@pytest.fixture(scope="module")
def thousands(place: FaultyCluster) -> Iterator[None]:
    """Room for as many trials."""
    with pretend_fleet(place.machine.url, place.machine.directory / "join-token", pool=POOL, agents=50, slots=SLOTS):
        yield


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("thousands")
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_kills_of_thousands_over_a_slow_database_harm_nobody(
    place: FaultyCluster, tmp_path: Path, figures: Figures, seed: int
) -> None:
    """At ten instants; the database is near again after another while each time."""
    kill(place, tmp_path, figures, seed, 2500, Work(), Random(seed).uniform(5.0, 40.0))


def kill(
    place: FaultyCluster, directory: Path, figures: Figures, seed: int, trials: int, work: Work, seconds: float
) -> None:
    """Start so many trials, and kill them while the database is slow, which it is for so many seconds from then on."""
    wait_for(lambda: int(str(place.value(_ROOM))) >= trials or None, "agents")
    number = _submit(place, trials)
    began = time.monotonic()
    wait_for(lambda: place.value(_RUNNING, number) == trials or None, f"{trials} running trials", 600.0)
    started_s = time.monotonic() - began
    lost = place.value(_LOST)
    with ordeal(place, directory, figures, "a kill of many over a slow database", seed, work=work):
        place.proxy.slow(ROUND_TRIP_S)
        with place.machine.client() as client:
            client.experiment(number).kill()
        began = time.monotonic()
        time.sleep(seconds)
        place.proxy.slow(0.0)
    wait_for(lambda: place.value(_LIVE, number) == 0 or None, "the end of all that were killed", 600.0)
    ended = place.value(
        "select extract(epoch from max(ended_at) - min(ended_at)) from trials where experiment_id=$1", number
    )
    assert place.value(_CANCELED, number) == trials
    assert place.value(_LOST) == lost, "containers were given up"
    figures.tell(
        "a kill of many over a slow database",
        seed=seed,
        trials=trials,
        started_s=round(started_s, 1),
        slow_s=round(seconds, 1),
        from_first_to_last_end_s=round(float(str(ended)), 1),
    )


def _submit(place: FaultyCluster, trials: int) -> int:
    with place.machine.client() as client:
        return client.create_experiment(
            {
                "name": "many",
                "entrypoint": "sleep infinity",
                "hyperparameters": {"x": {"type": "double", "minval": 1, "maxval": 2}},
                "searcher": {
                    "name": "random",
                    "metric": "loss",
                    "max_trials": trials,
                    "max_concurrent_trials": trials,
                },
                "resources": {"slots_per_trial": 1, "resource_pool": POOL},
            },
            None,
        ).id
