"""How many trials that do nothing run per second on two slots, and how soon after its submission the first line runs.

Prints one JSON line. Beside it, in turns in the same run: Ray Tune with an actor of its own for each trial (and with
reused actors, which isolate nothing, for information), and the bare interpreter's start.

- Throughput: a random search, two trials at a time, from the SDK's create call to the experiment's end as the master
  records it; each trial is a process of its own that reports one validation.
- Latency: on an idle cluster, from the create call to the moment when the script's first line ran (it prints the time),
  and to the moment when that line, out of the log that the SDK follows, is here.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

from benchmarks._cluster import client, cluster
from benchmarks._measure import LONG, Line, Peer, PeerMissing, extremes, summary
from tenax.client import Client, Experiment
from tenax.jsonvalue import JsonObject

CODE = Path(__file__).resolve().parent / "noop"
CONCURRENT = 2
ROUNDS = 5 if LONG else 3
TRIALS = 300 if LONG else 100
PEER_TRIALS = 100 if LONG else 20
SUBMISSIONS = 30 if LONG else 12
#: Trials per second, and milliseconds from submission to the first line beyond an interpreter's start.
FLOOR_TRIALS_PER_S = 20.0
FLOOR_ABOVE_INTERPRETER_MS = 150.0
#: How often the SDK looks whether a search has ended. Seldom: the end is on record, and each look costs the master.
_LOOK_S = 0.5


def config(trials: int) -> JsonObject:
    """A random search over trials that do nothing."""
    return {
        "name": "noop",
        "entrypoint": "python3 train.py",
        "hyperparameters": {"x": {"type": "double", "minval": 0.0, "maxval": 1.0}},
        "searcher": {
            "name": "random",
            "metric": "score",
            "max_trials": trials,
            "max_concurrent_trials": CONCURRENT,
        },
        "resources": {"slots_per_trial": 1},
        "max_restarts": 0,
    }


def ended_well(experiment: Experiment, trials: int) -> None:
    """Raises RuntimeError where a trial is missing or failed: a search that went wrong has no speed."""
    states = [trial.state for trial in experiment.trials()]
    if experiment.state != "COMPLETED" or states != ["COMPLETED"] * trials:
        raise RuntimeError(f"experiment {experiment.id} ended {experiment.state} ({experiment.reason}): {states}")


def search_s(sdk: Client, trials: int) -> float:
    """Seconds of a search, from the create call to its end."""
    start = time.time()
    experiment = sdk.create_experiment(config(trials), CODE).wait(interval=_LOOK_S)
    ended_well(experiment, trials)
    assert experiment.ended is not None
    return experiment.ended.timestamp() - start


def submission_ms(sdk: Client) -> tuple[float, float, float]:
    """Milliseconds from the create call to its answer, to the script's first line running, and to its being here."""
    start = time.time()
    experiment = sdk.create_experiment(config(1), CODE)
    answered = time.time()
    while not (trials := experiment.trials()):
        time.sleep(0.001)
    for line in trials[0].logs(follow=True):
        if "first line at " in line.message:
            here = time.time()
            ran = float(line.message.rpartition(" ")[2])
            break
    else:
        raise RuntimeError(f"trial {trials[0].id} ended without a line")
    ended_well(experiment.wait(interval=_LOOK_S), 1)
    return (answered - start) * 1e3, (ran - start) * 1e3, (here - start) * 1e3


def interpreter_ms() -> float:
    """Milliseconds until the first line of a bare interpreter ran, told in the same way."""
    start = time.time()
    command = [sys.executable, "-c", "import time; print(time.time())"]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return (float(told) - start) * 1e3


def latency(line: Line, sdk: Client) -> None:
    """Submission to first line, beside the interpreter's start."""
    rows = [(*submission_ms(sdk), interpreter_ms()) for _ in range(SUBMISSIONS + 1)][1:]
    answered, ran, here, bare = ([row[column] for row in rows] for column in range(4))
    above = statistics.median(here) - statistics.median(bare)
    line.add(
        submit_to_answer_ms=summary(answered, 1),
        submit_to_first_line_ms=summary(ran, 1),
        submit_to_line_in_log_ms=summary(here, 1),
        interpreter_ms=summary(bare, 1),
        first_line_above_interpreter_ms=round(statistics.median(ran) - statistics.median(bare), 1),
        log_above_interpreter_ms=round(above, 1),
        floor_above_interpreter_ms=FLOOR_ABOVE_INTERPRETER_MS,
        meets_latency_floor=above < FLOOR_ABOVE_INTERPRETER_MS,
    )


def peers_turn(peer: Peer | None, fresh: list[float], reused: list[float], first: list[float]) -> None:
    """Milliseconds per trial of the peer's own way, and of its reused actors; seconds to its first result."""
    if peer is None:
        return
    for reuse, trials, per_trial in ((False, PEER_TRIALS, fresh), (True, TRIALS, reused)):
        told = cast(dict[str, float], peer.ask(trials=trials, concurrent=CONCURRENT, reuse_actors=reuse))
        per_trial.append(told["total_s"] / trials * 1e3)
        if not reuse:
            first.append(told["first_result_s"])


def throughput(line: Line, sdk: Client, peer: Peer | None) -> None:
    """Searches in turns with the peer's."""
    search_s(sdk, CONCURRENT)
    ours: list[float] = []
    fresh, reused, first = cast(list[float], []), cast(list[float], []), cast(list[float], [])
    for _ in range(ROUNDS):
        ours.append(search_s(sdk, TRIALS) / TRIALS * 1e3)
        peers_turn(peer, fresh, reused, first)
    rate = 1e3 / statistics.median(ours)
    line.add(
        trials=TRIALS,
        concurrent=CONCURRENT,
        ms_per_trial=extremes(ours),
        trials_per_s=round(rate, 1),
        floor_trials_per_s=FLOOR_TRIALS_PER_S,
        meets_throughput_floor=rate >= FLOOR_TRIALS_PER_S,
    )
    if peer is not None:
        line.add(
            peer={
                **peer.about,
                "trials": PEER_TRIALS,
                "fresh_actor_ms_per_trial": extremes(fresh),
                "fit_to_first_result_ms": extremes([seconds * 1e3 for seconds in first]),
                "reused_actor_ms_per_trial": extremes(reused),
            },
            peer_over_ours=round(statistics.median(fresh) / statistics.median(ours), 1),
            peer_reusing_over_ours=round(statistics.median(reused) / statistics.median(ours), 2),
        )


def main() -> None:
    """Measure and print the line."""
    line = Line("noop_trials")
    with cluster(slots=CONCURRENT), client() as sdk:
        latency(line, sdk)
        try:
            with Peer("ray_tune") as peer:
                throughput(line, sdk, peer)
        except PeerMissing as missing:
            throughput(line, sdk, None)
            line.add(peer={"missing": str(missing)})
    line.emit()


if __name__ == "__main__":
    main()
