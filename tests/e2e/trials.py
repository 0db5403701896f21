"""Small experiments: their configurations and scripts, and what is there to see of them."""

from __future__ import annotations

import contextlib
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tenax.client.experiments import Experiment
from tenax.client.trials import Trial
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tests.kits.machine import Machine, outlast, wait_for

#: Written by the servers about themselves; neither a task's nor an experiment's.
_SERVERS_OWN = ("postgres", "supervisor.json", "session.json", "lock")


@dataclass(frozen=True, slots=True)
class Traces:
    """All that an experiment leaves behind."""

    experiments: frozenset[int]
    containers: frozenset[str]
    processes: frozenset[int]
    files: frozenset[str]

    def beyond(self, before: Traces) -> list[str]:
        """What is new since; empty when nothing is. What has gone meanwhile is no trace."""
        return [
            *(f"experiment {number}" for number in self.experiments - before.experiments),
            *(f"container {name}" for name in self.containers - before.containers),
            *(f"process {pid}" for pid in self.processes - before.processes),
            *(f"file {path}" for path in self.files - before.files),
        ]


def traces(place: Machine) -> Traces:
    """What is there now."""
    with place.client() as client:
        experiments = frozenset(one.id for one in client.experiments(archived=None))
    files = (path.relative_to(place.directory) for path in place.directory.rglob("*"))
    return Traces(
        experiments,
        frozenset(place.containers()),
        frozenset(place.task_processes()),
        frozenset(str(path) for path in files if path.parts[0] not in _SERVERS_OWN and path.suffix != ".log"),
    )


def script(directory: Path, text: str) -> Path:
    """A code directory with this ``train.py``."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "train.py").write_text(textwrap.dedent(text))
    return directory


def config(**changes: object) -> JsonObject:
    """One short trial, with ``changes`` in place of the defaults here."""
    document: dict[str, object] = {
        "name": "small",
        "entrypoint": "python3 train.py",
        "hyperparameters": {},
        "searcher": {"name": "single", "metric": "loss"},
        "resources": {"slots_per_trial": 1},
        "max_restarts": 0,
        **changes,
    }
    return document  # type: ignore[return-value]


def ran(
    place: Machine, document: JsonObject, code: Path | None, seconds: float = 240.0
) -> tuple[Experiment, list[Trial]]:
    """Submit it, wait for its end; the experiment and its trials as they ended."""
    with place.client() as client:
        number = client.create_experiment(document, code).id
    ended = outlast(place, number, seconds)
    with place.client() as client:
        return ended, client.experiment(number).trials()


def deleted(place: Machine, number: int) -> None:
    """Wait until nobody finds that experiment any more."""

    def look() -> bool:
        with place.client() as client, contextlib.suppress(NotFound):
            client.experiment(number)
            return False
        return True

    wait_for(look, f"the deletion of experiment {number}")


def was_kept(said: str) -> bool:
    """Whether a run by hand was being sent, and says that its end had no time for the rest, as on a busy machine."""
    return "tracked as trial" in said and "the master does not answer. What is not sent is kept" in said


def output(place: Machine, trial: Trial) -> str:
    """All that a trial's log holds."""
    with place.client() as client:
        return "\n".join(line.message for line in client.trial(trial.id).logs())
