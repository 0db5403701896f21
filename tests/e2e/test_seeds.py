"""The same experiment_seed gives the same hyperparameters, as the task itself sees them, from submission to script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests import cases
from tests.e2e.machine import Machine, machine
from tests.e2e.trials import config, ran

#: What each task is told is written down by the shell alone.
ENTRYPOINT = (
    'printf "%s" "$DET_HPARAMS" > "{}/$DET_TRIAL_ID.hparams"; printf "%s" "$DET_TRIAL_SEED" > "{}/$DET_TRIAL_ID.seed"'
)

SPACE: JsonObject = {
    "batch": {"type": "categorical", "vals": [16, 32, 64]},
    "depth": {"type": "int", "minval": 1, "maxval": 9},
    "dropout": {"type": "double", "minval": 0.0, "maxval": 0.5},
    "lr": {"type": "log", "base": 10, "minval": -5, "maxval": -1},
    "width": 128,
}


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    """One cluster for all; tasks without slots, so that they do not wait for each other."""
    with machine() as up:
        yield up


def drawn(
    place: Machine, directory: Path, space: JsonObject, seed: int, count: int, name: str = "random"
) -> list[JsonObject]:
    """``{"hparams", "trial_seed"}`` of each trial in the order of their making, read where the tasks ran."""
    searcher: JsonObject = {"name": name, "metric": "loss"}
    if name == "random":
        searcher.update(max_trials=count, max_concurrent_trials=count)
    document = config(
        entrypoint=ENTRYPOINT.format(directory),
        hyperparameters=space,
        searcher=searcher,
        resources={"slots_per_trial": 0},
        reproducibility={"experiment_seed": seed},
    )
    experiment, trials = ran(place, document, None)
    assert experiment.state == "COMPLETED"
    assert [trial.state for trial in trials] == ["COMPLETED"] * count
    told: list[JsonObject] = []
    for trial in trials:
        trial_seed, hparams = (directory / str(trial.id)).read_text().split("\n", 1)
        assert json.loads(hparams) == trial.hparams, "the task and the API disagree"
        told.append({"hparams": json.loads(hparams), "trial_seed": int(trial_seed)})
    return told


def hold_against(drawn: list[JsonObject], expected: list[JsonObject]) -> None:
    """Equal but for the last place of real numbers, in which a fused multiply-add may differ."""
    for got, due in zip(drawn, expected, strict=True):
        assert got["trial_seed"] == due["trial_seed"]
        assert got["hparams"] == pytest.approx(due["hparams"], rel=1e-14, abs=0)


def _derived() -> list[JsonObject]:
    document = cases.load("searcher_sampling")
    return [] if document is None else cast("list[JsonObject]", document["derived_creates"])


@pytest.mark.parametrize("case", [pytest.param(case, id=str(case["id"])) for case in _derived()])
def test_the_cases_hold_through_the_whole_platform(place: Machine, tmp_path: Path, case: JsonObject) -> None:
    """Every derived case of searcher_sampling: hyperparameters and trial seeds, in the order of the trials."""
    expected = cast("list[JsonObject]", case["expect_creates"])
    space, seed = cast(JsonObject, case["hyperparameters"]), cast(int, case["experiment_seed"])
    hold_against(drawn(place, tmp_path, space, seed, len(expected), "random"), expected)
