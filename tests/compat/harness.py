"""Experiments whose tasks run in the Python that holds Determined's own library, and what is left of them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tenax.client.experiments import Experiment
from tenax.client.trials import Trial
from tenax.jsonvalue import Json
from tests.compat.client import PYTHON
from tests.kits.machine import Machine, outlast

#: What makes a task run in that Python; nothing else is asked of a user.
WHEEL = [f"DET_PYTHON_EXECUTABLE={PYTHON}"]


def submit(
    place: Machine, directory: Path, code: Mapping[str, str], *, wheel: bool = True, **changes: Json
) -> Experiment:
    """Start an experiment of one trial with these files; ``changes`` go over its configuration."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in code.items():
        (directory / name).write_text(textwrap.dedent(text))
    config: dict[str, Json] = {
        "name": "harness",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "score", "smaller_is_better": False},
        "resources": {"slots_per_trial": 1},
        "max_restarts": 0,
        "environment": {"environment_variables": list(WHEEL) if wheel else []},
        **changes,
    }
    with place.client() as client:
        return client.create_experiment(config, directory)


def finished(place: Machine, experiment: Experiment) -> tuple[Trial, str]:
    """The first trial once all is over, and what it printed. Raises AssertionError unless all went well."""
    ended = outlast(place, experiment.id)
    with place.client() as client:
        trial = client.trial(client.experiment(ended.id).trials()[0].id)
        said = "\n".join(line.message for line in trial.logs())
    assert ended.state == "COMPLETED", f"{ended.state}: {ended.reason}\n{said}"
    return trial, said


def told(said: str, word: str) -> Json:
    """The JSON that a script printed behind ``word``."""
    line = next(line for line in said.splitlines() if f"{word} " in line)
    return cast(Json, json.loads(line.split(f"{word} ", 1)[1]))
