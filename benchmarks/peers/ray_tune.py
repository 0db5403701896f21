"""Ray Tune, asked for searches of trials that do nothing but report once.

Reads ``{"trials": n, "concurrent": n, "reuse_actors": bool}`` per line; starts a Ray of its own, warms it up, runs the
search and stops Ray again, so that between questions nothing of it runs. Answers ``{"total_s", "first_result_s",
"init_s"}``: from ``fit`` to its end, from ``fit`` to the first result, and what the start of Ray took before.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time

SETTINGS = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "100000",
}
os.environ.update(SETTINGS)

# What Ray prints must not get between the answers.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import ray  # noqa: E402
from ray import tune  # noqa: E402


class FirstResult(tune.Callback):
    """When the first result came."""

    def __init__(self) -> None:
        self.at: float | None = None

    def on_trial_result(self, *_: object, **__: object) -> None:
        if self.at is None:
            self.at = time.perf_counter()


def noop(config: dict[str, float]) -> None:
    """A trial."""
    tune.report({"score": config["x"]})


@ray.remote
def nothing() -> None:
    """Makes Ray start its workers before the clock runs."""


def answer(trials: int, concurrent: int, reuse_actors: bool) -> dict[str, float]:
    """One search in a Ray of its own."""
    directory = tempfile.mkdtemp(prefix="ray-")
    start = time.perf_counter()
    ray.init(
        num_cpus=concurrent,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _temp_dir=f"{directory}/ray",
    )
    try:
        init_s = time.perf_counter() - start
        ray.get([nothing.remote() for _ in range(100)])
        first = FirstResult()
        tuner = tune.Tuner(
            noop,
            param_space={"x": tune.uniform(0, 1)},
            tune_config=tune.TuneConfig(
                num_samples=trials, max_concurrent_trials=concurrent, reuse_actors=reuse_actors
            ),
            run_config=tune.RunConfig(storage_path=f"{directory}/results", verbose=0, callbacks=[first]),
        )
        start = time.perf_counter()
        results = tuner.fit()
        total_s = time.perf_counter() - start
        if len(results) != trials or results.errors or first.at is None:
            raise RuntimeError(f"{len(results)} results of {trials} trials, errors: {results.errors}")
        return {"total_s": total_s, "first_result_s": first.at - start, "init_s": init_s}
    finally:
        ray.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


def say(document: dict[str, object] | dict[str, float]) -> None:
    """One line to whoever asked."""
    print(json.dumps(document), file=ANSWERS, flush=True)


def main() -> None:
    """Answer questions until there are no more."""
    say({"peer": "ray[tune]", "version": ray.__version__})
    for line in sys.stdin:
        say(answer(**json.loads(line)))


if __name__ == "__main__":
    main()
