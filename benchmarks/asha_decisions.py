"""What one decision of a 10,000-trial ASHA costs: from a validation to what is done about it, the next trial included.

Prints one JSON line. Beside it, in turns in the same run: Optuna's SuccessiveHalvingPruner with as many trials behind.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from typing import cast

from benchmarks._measure import Line, Peer, PeerMissing, summary
from tenax.ids import RequestId
from tenax.search.config import Double, Log, Map, SearchConfig
from tenax.search.journal import Create, Exited, SearchEntry, Started, Stop, Validated, encode
from tenax.search.methods.async_halving import AsyncHalving
from tenax.search.searcher import start, step
from tenax.search.state import State, fold

TRIALS = 10_000
ROUNDS = 4
PEER_DECISIONS = 100
#: Microseconds that a decision at 10,000 trials may take.
FLOOR_US = 100.0
SPACE = Map({"lr": Log(-5, -1), "x": Double(0, 1)})


def search(trials: int) -> SearchConfig:
    """Five rungs at 1, 4, 16, 64, 256, sixteen trials at a time."""
    return SearchConfig(SPACE, AsyncHalving("batches", 256, trials, 5, 4.0, 16), "loss")


class Run:
    """A search that is told one report after another, each decision timed."""

    def __init__(self, trials: int, seed: int) -> None:
        self.state: State
        self.state, decisions = start(search(trials), seed)
        self.journal: list[SearchEntry] = [Started(seed), *decisions]
        self.waiting = [entry.request_id for entry in decisions if isinstance(entry, Create)]
        self.rng = random.Random(seed)

    def trial(self, samples: list[float]) -> None:
        """One trial through the rungs until it is stopped, and its exit."""
        name = self.waiting.pop(0)
        value = self.rng.random()
        for number, units in enumerate((1, 4, 16, 64, 256)):
            metric = value + self.rng.random() / (number + 1)
            if self.tell(Validated(name, units, metric, float(units)), name, samples):
                break
        self.tell(Exited(name), name, None)

    def tell(self, fact: Validated | Exited, name: RequestId, samples: list[float] | None) -> bool:
        """Time one decision; whether it stopped the trial."""
        before = time.perf_counter()
        decisions = step(self.state, fact)
        if samples is not None:
            samples.append((time.perf_counter() - before) * 1e6)
        self.journal += [fact, *decisions]
        self.waiting += [entry.request_id for entry in decisions if isinstance(entry, Create)]
        return any(isinstance(entry, Stop) and entry.request_id == name for entry in decisions)


def whole_search(line: Line) -> None:
    """All decisions of a whole search, and what its journal costs."""
    run, samples = Run(TRIALS, 0), cast(list[float], [])
    while run.waiting:
        run.trial(samples)
    assert run.state.shutdown is not None
    assert len(run.state.trials) == TRIALS
    before = time.perf_counter()
    text = [json.dumps(encode(entry)) for entry in run.journal]
    encoded = time.perf_counter()
    again = fold(run.state.config, run.journal)
    folded = time.perf_counter()
    assert again.values() == run.state.values()
    line.add(
        trials=TRIALS,
        decision_us=summary(samples),
        decisions_per_s=round(1e6 / statistics.fmean(samples)),
        floor_us=FLOOR_US,
        meets_floor=statistics.median(samples) < FLOOR_US,
        journal_entries=len(run.journal),
        journal_bytes=sum(map(len, text)),
        encode_us_per_entry=round((encoded - before) / len(text) * 1e6, 2),
        fold_ms=round((folded - encoded) * 1e3, 1),
    )


def beside_the_peer(line: Line) -> None:
    """Decisions with 10,000 trials behind them, ours and the peer's in turns."""
    run = Run(TRIALS + 2_000, 1)
    while len(run.state.trials) < TRIALS:
        run.trial([])
    ours, theirs = cast(list[float], []), cast(list[float], [])
    with Peer("optuna_asha") as peer:
        for _ in range(ROUNDS):
            samples: list[float] = []
            while len(samples) < PEER_DECISIONS:
                run.trial(samples)
            ours.append(statistics.median(samples))
            answer = cast(list[float], peer.ask(history=TRIALS, decisions=PEER_DECISIONS)["us"])
            theirs.append(statistics.median(answer))
        line.add(
            at_10000_us=round(statistics.median(ours), 2),
            peer={**peer.about, "at_10000_us": round(statistics.median(theirs), 1)},
            peer_over_ours=round(statistics.median(theirs) / statistics.median(ours), 1),
        )


def main() -> None:
    """Measure and print the line."""
    line = Line("asha_decisions")
    whole_search(line)
    try:
        beside_the_peer(line)
    except PeerMissing as missing:
        line.add(peer={"missing": str(missing)})
    line.emit()


if __name__ == "__main__":
    main()
