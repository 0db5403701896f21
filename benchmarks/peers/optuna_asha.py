"""Optuna's SuccessiveHalvingPruner in memory, asked for decisions with a history of finished trials behind it.

Reads ``{"history": trials, "decisions": n}`` per line, answers ``{"us": [...]}``: microseconds from a report to the
answer whether to prune. The history is kept between questions; what is measured adds to it.
"""

from __future__ import annotations

import json
import random
import sys
import time

import optuna

RUNGS = (1, 4, 16, 64, 256)


def decide(study: optuna.Study, rng: random.Random, samples: list[float] | None) -> None:
    """One trial through the rungs until it is pruned; times each decision."""
    trial = study.ask()
    value = rng.random()
    state = optuna.trial.TrialState.COMPLETE
    for number, units in enumerate(RUNGS):
        metric = value + rng.random() / (number + 1)
        start = time.perf_counter()
        trial.report(metric, units)
        pruned = trial.should_prune()
        if samples is not None:
            samples.append((time.perf_counter() - start) * 1e6)
        if pruned:
            state = optuna.trial.TrialState.PRUNED
            break
    study.tell(trial, value if state is optuna.trial.TrialState.COMPLETE else None, state=state)


def fill(study: optuna.Study, rng: random.Random, upto: int) -> None:
    """Add finished trials as the pruner would have left them: one in four goes on at each rung."""
    missing = upto - len(study.get_trials(deepcopy=False))
    if missing <= 0:
        return
    made = []
    for number in range(missing):
        value = rng.random()
        reached = 1
        while reached < len(RUNGS) and (number // 4 ** (reached - 1)) % 4 == 0:
            reached += 1
        metrics = {units: value + rng.random() / (rung + 1) for rung, units in enumerate(RUNGS[:reached])}
        rungs = {f"completed_rung_{rung}": metric for rung, metric in enumerate(metrics.values())}
        made.append(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.PRUNED,
                value=value,
                intermediate_values=metrics,
                system_attrs=rungs,
            )
        )
    study.add_trials(made)


def main() -> None:
    """Answer questions until there are no more."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruner)
    rng = random.Random(0)
    print(json.dumps({"peer": "optuna", "version": optuna.__version__}), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        fill(study, rng, question["history"])
        samples: list[float] = []
        while len(samples) < question["decisions"]:
            decide(study, rng, samples)
        print(json.dumps({"us": samples, "trials": len(study.get_trials(deepcopy=False))}), flush=True)


if __name__ == "__main__":
    main()
