"""What a cluster is put through: a search and a steady trial run, a fault befalls it, and all is accounted for.

    with ordeal(place, tmp_path, figures, "a name", seed) as chance:
        ...  # begin the fault, and end it before the block ends; ``chance`` is seeded by name and seed

The block begins at a seeded instant of the search, which does not end before the block does. Several faults befall one
search, one after another, by

    with ordeals(place, tmp_path, figures) as befalls:
        with befalls("a name", seed) as chance:
            ...

What must hold afterwards, whatever the faults were:

- the search completes, with as many trials as were asked for, and its journal has no gap;
- no healthy task was ended: each trial ran in one container, and none was tried again (but with ``tried_again``);
- each report that a script made is stored once, or its trial says that it was lost;
- each numbered line that a script printed is in the log once and in order, or lines of the log say how many bytes
  are gone;
- nothing is left over.

Where the database was replaced by an older copy (``restored``) this holds for the containers that the copy knows. A
container that had ended and gone by then cannot say again what the copy lacks: its exit says so, and its trial goes on
with another. What the copy does not know is left alone.

Told as a figure: the seconds from each fault's end to the next entry of a search's journal.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tenax.client.trials import Trial
from tenax.jsonvalue import JsonObject
from tenax.wire.task_names import RUN_BEGINS
from tests.e2e import books
from tests.e2e.books import Book
from tests.e2e.stored import rows_at
from tests.kits.faulty_cluster import FaultyCluster
from tests.kits.figures import Figures
from tests.kits.machine import container_of, outlast, wait_for

SCRIPT = Path(__file__).parent / "faults"
#: Of a line of the scripts.
_LINE_BYTES = 64
_LINE = re.compile(r"([0-9a-f]{8}) ([0-9]{7}) \.+")
#: Bytes of the line that begins a run.
_MAX_HEAD = 4096
#: Those that left nothing when they were asked for again are gone.
_CONTAINERS = """
select container_id as name, coalesce(exit ->> 'reason' like 'nothing is left%', false) as gone from containers
"""
_GAP = re.compile(r"\[(\d+) bytes of output are missing here: they were dropped\]")
#: The seeded instant is within so many seconds after the first line of a book.
_WITHIN_S = 6.0


@dataclass(frozen=True)
class Work:
    """How much the search does: ``make test`` takes a fraction."""

    trials: int = 10
    steps: int = 50
    epochs: int = 4
    lines: int = 5
    #: Seconds between two steps.
    pause: float = 0.02


SMALL = Work(trials=4, steps=20, epochs=2, lines=2)
#: For faults that come one after another: as long as they last, with little to do meanwhile.
CALM = Work(trials=6, steps=20, pause=0.05, lines=3)


@dataclass(frozen=True)
class _Running:
    directory: Path
    search: int
    steady: int
    work: Work


#: What befalls a search, from a seeded instant on: its name, and the seed.
Befalls = Callable[[str, int], AbstractContextManager[random.Random]]


@dataclass(frozen=True)
class _Fault:
    name: str
    seed: int
    lasted_s: float
    ended_at: datetime


@contextmanager
def ordeal(
    place: FaultyCluster,
    directory: Path,
    figures: Figures,
    name: str,
    seed: int,
    *,
    work: Work = Work(),
    restored: bool = False,
    tried_again: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[random.Random]:
    """One fault. Raises AssertionError."""
    within_s = _WITHIN_S if work == Work() else 1.0
    with _through(
        place, directory, figures, work, within_s, environment, restored=restored, tried_again=tried_again
    ) as befalls:
        with befalls(name, seed) as chance:
            yield chance


@contextmanager
def ordeals(
    place: FaultyCluster, directory: Path, figures: Figures, *, environment: Mapping[str, str] | None = None
) -> Iterator[Befalls]:
    """Several faults, each within a second after the one before. Raises AssertionError."""
    with _through(place, directory, figures, CALM, 1.0, environment) as befalls:
        yield befalls


@contextmanager
def _through(
    place: FaultyCluster,
    directory: Path,
    figures: Figures,
    work: Work,
    within_s: float,
    environment: Mapping[str, str] | None,
    *,
    restored: bool = False,
    tried_again: bool = False,
) -> Iterator[Befalls]:
    running = _begin(place, directory, work, environment or {})
    faults: list[_Fault] = []

    @contextmanager
    def befalls(name: str, seed: int) -> Iterator[random.Random]:
        chance = random.Random(f"{name} {seed}")
        time.sleep(chance.uniform(0.0, within_s))
        going_on = place.value("select ended_at is null from experiments where id = $1", running.search)
        assert going_on is True, f"the search had ended before {name}"
        began = time.monotonic()
        yield chance
        faults.append(_Fault(name, seed, round(time.monotonic() - began, 2), place.now()))

    yield befalls
    (directory / "befallen").touch()
    lost = _account(place, running, restored=restored, tried_again=tried_again)
    for fault in faults:
        figures.tell(
            "next decision after a fault",
            fault=fault.name,
            seed=fault.seed,
            lasted_s=fault.lasted_s,
            next_decision_s=next_decision(place, fault.ended_at),
            **lost,
        )


def next_decision(place: FaultyCluster, since: datetime) -> float | None:
    """Seconds until the next entry of any journal; None where nothing was left to decide."""
    found = place.value("select extract(epoch from min(at) - $1)::float8 from search_journal where at > $1", since)
    return None if found is None else round(float(str(found)), 2)


def _begin(place: FaultyCluster, directory: Path, work: Work, environment: Mapping[str, str]) -> _Running:
    """Both experiments, once each has begun to train."""
    place.wait_until_well()
    for name in ("search", "steady"):
        (directory / name).mkdir()
    steady = _submit(
        place, directory, "steady", work, {"name": "single", "metric": "loss"}, environment, epochs=100_000
    )
    method: JsonObject = {
        "name": "adaptive_asha",
        "metric": "loss",
        "time_metric": "epochs",
        "max_time": work.epochs,
        "max_trials": work.trials,
        "max_concurrent_trials": 2,
    }
    search = _submit(place, directory, "search", work, method, environment, epochs=work.epochs)
    for name in ("search", "steady"):
        wait_for(lambda name=name: books.read(directory / name), f"a book of the {name}")  # type: ignore[misc]
    return _Running(directory, search, steady, work)


def _submit(
    place: FaultyCluster,
    directory: Path,
    name: str,
    work: Work,
    searcher: JsonObject,
    environment: Mapping[str, str],
    *,
    epochs: int,
) -> int:
    hparams: JsonObject = {
        "x": {"type": "double", "minval": 1, "maxval": 2},
        "book": str(directory / name),
        "steps": work.steps,
        "epochs": epochs,
        "pause": work.pause,
        "lines": work.lines,
    }
    if name == "steady":
        hparams["until"] = str(directory / "over")
    else:
        hparams |= {"trials": work.trials, "befallen": str(directory / "befallen")}
    document: JsonObject = {
        "name": name,
        "entrypoint": "python3 train.py",
        "hyperparameters": hparams,
        "searcher": searcher,
        "resources": {"slots_per_trial": 1},
        "max_restarts": 5,
        "environment": {"environment_variables": [f"{name}={value}" for name, value in environment.items()]},
    }
    with place.machine.client() as client:
        return client.create_experiment(document, SCRIPT).id


def _account(place: FaultyCluster, running: _Running, *, restored: bool, tried_again: bool) -> dict[str, object]:
    """Hold the end against the books; what was lost with a word about it."""
    search = outlast(place.machine, running.search)
    (running.directory / "over").touch()
    steady = outlast(place.machine, running.steady)
    logs = place.machine.logs
    assert (search.state, steady.state) == ("COMPLETED", "COMPLETED"), logs()
    with place.machine.client() as client:
        trials = {one.id: client.experiment(one.id).trials() for one in (search, steady)}
        output = {trial.id: [line.log for line in trial.logs()] for each in trials.values() for trial in each}
    assert len(trials[search.id]) == running.work.trials
    assert len(trials[steady.id]) == 1
    known = {str(row["name"])[:8]: row["gone"] for row in place.rows(_CONTAINERS)}
    lost = {"bytes": 0, "tries": 0, "containers_gone": 0, "containers_unknown": 0}
    for experiment, name in ((search, "search"), (steady, "steady")):
        kept = books.read(running.directory / name)
        _no_gap(place, experiment.id)
        if restored:
            unknown = [book for book in kept if book.container not in known]
            gone = [book for book in kept if known.get(book.container)]
            lost["containers_unknown"] += len(unknown)
            lost["containers_gone"] += len(gone)
            kept = [book for book in kept if book not in unknown and book not in gone]
            assert name != "steady" or len(kept) == 1, "what ran all the time was not known any more"
        told = trials[experiment.id]
        if restored:
            # What had gone was done by what the copy knows, and was not tried again.
            done = {book.trial_id for book in gone} - {book.trial_id for book in kept}
            _are_completed([trial for trial in told if trial.id in done])
            told = [trial for trial in told if trial.id not in done]
        if tried_again:
            lost["tries"] += len(kept) - len(told)
            _all_completed(told, kept)
        else:
            _nobody_was_ended(told, kept, restored, logs)
        wrong = books.compare(kept, rows_at(place.url, [trial.id for trial in trials[experiment.id]]))
        assert not wrong, wrong[:20]
        for trial in trials[experiment.id]:
            lost["bytes"] += lines([book for book in kept if book.trial_id == trial.id], output[trial.id])
    _nothing_is_left(place, known)
    return {f"lost_{name}": count for name, count in lost.items() if count}


def _no_gap(place: FaultyCluster, experiment: int) -> None:
    gapless = "select count(*) = max(seq) and min(seq) = 1 from search_journal where experiment_id = $1"
    assert place.value(gapless, experiment) is True, f"the journal of {experiment} has a gap"


def _all_completed(trials: list[Trial], kept: list[Book]) -> None:
    """However often they were tried: nobody is charged with that."""
    _are_completed(trials)
    ids = {trial.id for trial in trials}
    assert ids == {book.trial_id for book in kept}, (ids, [(one.trial_id, one.run_id, one.container) for one in kept])


def _are_completed(trials: list[Trial]) -> None:
    assert all(trial.state == "COMPLETED" for trial in trials), [(one.id, one.state, one.reason) for one in trials]
    assert not any(trial.restarts for trial in trials)


def _nobody_was_ended(trials: list[Trial], kept: list[Book], restored: bool, logs: Callable[[], str]) -> None:
    """Each trial completed, in one container, and it is the one that kept a book."""
    _all_completed(trials, kept)
    ran = [(book.trial_id, book.run_id) for book in kept]
    assert len(kept) == len(trials), f"tasks were ended: {ran}\n{logs()}"
    assert all(len(book.starts) == 1 for book in kept), "a process was started twice"
    # Of a copy, what had gone was tried again.
    assert restored or {run for _, run in ran} == {1}


def _nothing_is_left(place: FaultyCluster, known: Collection[str]) -> None:
    """No directory and no process; but of what the database does not know."""

    def containers() -> list[str]:
        return [name for name in place.machine.containers() if name[:8] in known]

    def processes() -> list[int]:
        return [pid for pid in place.machine.task_processes() if container_of(pid)[:8] in known]

    wait_for(lambda: not containers() or None, f"the end of {containers()}")
    wait_for(lambda: not processes() or None, "the end of every process of a task")


def lines(kept: list[Book], log: list[str]) -> int:
    """Every line that the containers of one trial printed is in its log, or counted there; the bytes that are gone.

    The line with which each of them begins says its configuration: where it is gone, so are so many bytes more.
    """
    heads = [book.container for book in kept if not any(f"{RUN_BEGINS}{book.container}" in text for text in log)]
    seen: dict[str, list[int]] = {book.container: [] for book in kept}
    gone = gaps = 0
    for text in log:
        if found := _LINE.fullmatch(text):
            seen.setdefault(found[1], []).append(int(found[2]))
        elif found := _GAP.fullmatch(text):
            gone, gaps = gone + int(found[1]), gaps + 1
    missing = 0
    for book in kept:
        numbers = seen[book.container]
        assert numbers == sorted(set(numbers)), f"lines of trial {book.trial_id} came twice or in another order"
        missing += len(set(range(1, book.printed + 1)) - set(numbers))
    # What is gone may begin and end within a line.
    assert missing * _LINE_BYTES <= gone + 2 * _LINE_BYTES * gaps, f"{missing} lines are gone, {gone} bytes were told"
    assert gone <= missing * _LINE_BYTES + len(heads) * _MAX_HEAD, (
        f"{gone} bytes were told to be gone, {missing} lines are"
    )
    return gone
