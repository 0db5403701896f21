"""What a short trial with PyTorch costs where its imports are loaded already, and where it imports them itself.

Prints one JSON line. One cluster, in turns: the same code with warm start and without (``TENAX_WARM_START=0``), and the
bare script of the same step in an interpreter of its own.

- Latency: on an idle cluster, from the SDK's create call to the script's first line, and to the moment when its first
  metric was reported, one optimizer step later.
- Throughput: a random search of such trials, two at a time, from the create call to its end.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks._cluster import client, cluster
from benchmarks._measure import LONG, Line, extremes
from benchmarks.noop_trials import CONCURRENT, ended_well
from tenax.client import Client
from tenax.jsonvalue import JsonObject
from tenax.wire.task_names import WARM_START

CODE = Path(__file__).resolve().parent / "one_step"
ROUNDS = 15 if LONG else 7
SEARCHES = 3
TRIALS = 100 if LONG else 40
COLD_TRIALS = 20 if LONG else 10
_LOOK_S = 0.2
#: The same step, by itself.
_BARE = """
import time, torch
model = torch.nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(8, (32,))).backward()
optimizer.step()
print(time.time())
"""


def config(trials: int, *, warm: bool) -> JsonObject:
    """A random search over trials of one step."""
    return {
        "name": "one step",
        "entrypoint": "python3 train.py",
        "hyperparameters": {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}},
        "searcher": {
            "name": "random",
            "metric": "loss",
            "max_trials": trials,
            "max_concurrent_trials": CONCURRENT,
        },
        "resources": {"slots_per_trial": 1},
        "environment": {"environment_variables": [] if warm else [f"{WARM_START}=0"]},
        "max_restarts": 0,
    }


def submission_ms(sdk: Client, *, warm: bool) -> tuple[float, float]:
    """Milliseconds from the create call to the script's first line, and to its first metric."""
    start = time.time()
    experiment = sdk.create_experiment(config(1, warm=warm), CODE).wait(interval=_LOOK_S)
    ended_well(experiment, 1)
    lines = [line.message for line in experiment.trials()[0].logs()]
    first, reported = (
        next(float(line.rpartition(" ")[2]) for line in lines if words in line)
        for words in ("first line at", "reported at")
    )
    return (first - start) * 1e3, (reported - start) * 1e3


def search_ms(sdk: Client, trials: int, *, warm: bool) -> float:
    """Milliseconds per trial of a search."""
    start = time.time()
    experiment = sdk.create_experiment(config(trials, warm=warm), CODE).wait(interval=_LOOK_S)
    ended_well(experiment, trials)
    assert experiment.ended is not None
    return (experiment.ended.timestamp() - start) * 1e3 / trials


def bare_ms() -> float:
    """Milliseconds of the same step in an interpreter of its own."""
    start = time.time()
    told = subprocess.run([sys.executable, "-c", _BARE], stdout=subprocess.PIPE, check=True).stdout
    return (float(told) - start) * 1e3


def main() -> None:
    """Measure and print the line."""
    line = Line("warm_start")
    with cluster(slots=CONCURRENT), client() as sdk:
        # The first learns nothing, the second what is imported, the third waits until it is loaded.
        for _ in range(3):
            submission_ms(sdk, warm=True)
        rows = [(*submission_ms(sdk, warm=True), *submission_ms(sdk, warm=False), bare_ms()) for _ in range(ROUNDS)]
        warm_line, warm, cold_line, cold, bare = ([row[column] for row in rows] for column in range(5))
        searches = [
            (search_ms(sdk, TRIALS, warm=True), search_ms(sdk, COLD_TRIALS, warm=False)) for _ in range(SEARCHES)
        ]
    warm_trial, cold_trial = ([row[column] for row in searches] for column in range(2))
    line.add(
        warm_submit_to_first_line_ms=extremes(warm_line),
        warm_submit_to_metric_ms=extremes(warm),
        cold_submit_to_first_line_ms=extremes(cold_line),
        cold_submit_to_metric_ms=extremes(cold),
        bare_script_ms=extremes(bare),
        warm_over_bare=round(statistics.median(warm) / statistics.median(bare), 3),
        cold_over_bare=round(statistics.median(cold) / statistics.median(bare), 2),
        concurrent=CONCURRENT,
        warm_ms_per_trial=extremes(warm_trial),
        cold_ms_per_trial=extremes(cold_trial),
        cold_over_warm=round(statistics.median(cold_trial) / statistics.median(warm_trial), 1),
    )
    line.emit()


if __name__ == "__main__":
    main()
