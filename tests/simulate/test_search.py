"""A whole search on a small cluster in virtual time: real decisions of search and scheduler, trials as work."""

from __future__ import annotations

import random

import pytest

from tenax.ids import AllocationId, RequestId
from tenax.scheduler.snapshot import PoolRules
from tenax.search.config import Double, Map, SearchConfig
from tenax.search.journal import Create, Decision, Exited, ExitReason, Shutdown, Stop, Validated
from tenax.search.methods.adaptive_asha import AdaptiveAsha
from tenax.search.state import fold
from tests.kits.builders.pool import agent
from tests.kits.builders.search import Run
from tests.simulate.cluster import Cluster

CONFIG = SearchConfig(Map({"x": Double(0, 1)}), AdaptiveAsha("batches", 64, 24, max_concurrent_trials=6), "loss")


class Experiment:
    """Trials that report at each unit of time, the closer ``x`` to 0.3 the better; some of them fail."""

    def __init__(self, cluster: Cluster, seed: int, failing: float = 0.0) -> None:
        self.cluster, self.rng, self.failing = cluster, random.Random(seed), failing
        self.run = Run(CONFIG, seed)
        self.trained: dict[RequestId, int] = {}
        self.values: dict[RequestId, float] = {}
        self.ended: Shutdown | None = None
        cluster.pool.job("search")
        self.act(self.run.first)

    def act(self, decisions: list[Decision]) -> None:
        """Do what the search decided."""
        for decision in decisions:
            match decision:
                case Create(request_id, _, hparams):
                    self.trained[request_id] = 0
                    self.values[request_id] = abs(float(str(hparams["x"])) - 0.3)
                    self.cluster.submit(self.cluster.now, request_id, 1, 1.0, "search")
                    self.cluster.at(self.cluster.now, lambda trial=request_id: self.watch(trial))  # type: ignore[misc]
                case Stop(request_id):
                    self.act(self.run.tell(Exited(request_id)))
                case Shutdown():
                    self.ended = decision

    def watch(self, trial: RequestId) -> None:
        """After each unit of a trial's work: report, then go on or not."""
        work = self.cluster.work[AllocationId(trial)]
        if work.ended_at is None:
            self.cluster.at(self.cluster.now + 0.5, lambda: self.watch(trial))
            return
        self.trained[trial] += 1
        time = self.trained[trial]
        if self.rng.random() < self.failing:
            self.act(self.run.tell(Exited(trial, ExitReason.ERRORED)))
            return
        self.act(self.run.tell(Validated(trial, time, self.values[trial] + 1 / time, float(time))))
        if self.run.state.trials[trial].open:
            self.cluster.submit(self.cluster.now, trial, 1, 1.0, "search")
            self.cluster.at(self.cluster.now, lambda: self.watch(trial))


@pytest.mark.parametrize("failing", [0.0, 0.05])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_search_ends_with_its_trials_and_stops_the_worse_ones(seed: int, failing: float) -> None:
    """Exactly max_trials trials are made on two slots, the search stops most early, and its journal tells it all."""
    cluster = Cluster([agent("a", 2)], PoolRules())
    experiment = Experiment(cluster, seed, failing)
    cluster.run()
    state = experiment.run.state
    assert experiment.ended is not None
    assert not experiment.ended.failure
    assert len(state.trials) == state.max_trials == 24
    assert sum(experiment.trained.values()) < 24 * 64 / 2
    assert fold(CONFIG, experiment.run.journal).values() == state.values()
    if failing == 0:
        assert max(experiment.trained.values()) == 64
        done = [trial for trial, time in experiment.trained.items() if time == 64]
        middle = sorted(experiment.values.values())[12]
        assert min(experiment.values[trial] for trial in done) < middle
