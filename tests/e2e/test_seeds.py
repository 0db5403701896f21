"""The same experiment_seed gives the same hyperparameters, from submission to what the script itself is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import Json, JsonObject
from tests.e2e.trials import config, ran
from tests.kits import cases
from tests.kits.machine import Machine

SPACE: JsonObject = {
    "batch": {"type": "categorical", "vals": [16, 32, 64]},
    "depth": {"type": "int", "minval": 1, "maxval": 9},
    "dropout": {"type": "double", "minval": 0.0, "maxval": 0.5},
    "lr": {"type": "log", "base": 10, "minval": -5, "maxval": -1},
    "width": 128,
}
#: Drawn by numpy's RandomState(20240607) by the rules of the stream: keys in sorted order, then four words of an id,
#: then the trial's seed.
GOLDEN: list[JsonObject] = [
    {
        "hparams": {"batch": 32, "depth": 1, "dropout": 0.1744275717990047, "lr": 7.097123687790012e-05, "width": 128},
        "trial_seed": 1266098938,
    },
    {
        "hparams": {"batch": 16, "depth": 6, "dropout": 0.23628234369587386, "lr": 0.0018829673235158742, "width": 128},
        "trial_seed": 1654396193,
    },
    {
        "hparams": {
            "batch": 32,
            "depth": 4,
            "dropout": 0.49408118138662366,
            "lr": 2.4490542825684275e-05,
            "width": 128,
        },
        "trial_seed": 1863101763,
    },
]


def drawn(
    place: Machine, directory: Path, space: JsonObject, seed: int, searcher: dict[str, object]
) -> list[JsonObject]:
    """``{"hparams", "trial_seed"}`` of each trial in the order of their making, written down where it ran."""
    document = config(
        # The shell alone, so that a trial is over as soon as it has begun.
        entrypoint=f'printf "%s\\n%s" "$DET_TRIAL_SEED" "$DET_HPARAMS" > "{directory}/$DET_TRIAL_ID"',
        hyperparameters=space,
        searcher={"metric": "loss", **searcher},
        resources={"slots_per_trial": 0},
        reproducibility={"experiment_seed": seed},
    )
    experiment, trials = ran(place, document, None)
    assert experiment.state == "COMPLETED"
    assert {trial.state for trial in trials} == {"COMPLETED"}
    told: list[JsonObject] = []
    for trial in trials:
        trial_seed, hparams = (directory / str(trial.id)).read_text().split("\n", 1)
        assert json.loads(hparams) == trial.hparams, "the task and the API disagree"
        told.append({"hparams": json.loads(hparams), "trial_seed": int(trial_seed)})
    return told


def hold_against(found: list[JsonObject], expected: list[JsonObject]) -> None:
    """Equal but for the last place of real numbers, in which a fused multiply-add may differ."""
    for got, due in zip(found, expected, strict=True):
        assert got["trial_seed"] == due["trial_seed"]
        assert _real(got["hparams"]) == pytest.approx(_real(due["hparams"]), rel=1e-14, abs=0)
        assert _others(got["hparams"]) == _others(due["hparams"])


def _real(hparams: Json) -> dict[str, float]:
    return {name: value for name, value in cast(JsonObject, hparams).items() if isinstance(value, float)}


def _others(hparams: Json) -> JsonObject:
    return {name: value for name, value in cast(JsonObject, hparams).items() if not isinstance(value, float)}


def random_search(count: int) -> dict[str, object]:
    return {"name": "random", "max_trials": count, "max_concurrent_trials": count}


def _derived() -> list[JsonObject]:
    document = cases.load("searcher_sampling")
    return [] if document is None else cast("list[JsonObject]", document["derived_creates"])


@pytest.mark.parametrize("case", [pytest.param(case, id=str(case["id"])) for case in _derived()])
def test_the_cases_hold_through_the_whole_platform(place: Machine, tmp_path: Path, case: JsonObject) -> None:
    """Every derived case of searcher_sampling: hyperparameters and trial seeds, in the order of the trials."""
    expected = cast("list[JsonObject]", case["expect_creates"])
    space, seed = cast(JsonObject, case["hyperparameters"]), cast(int, case["experiment_seed"])
    hold_against(drawn(place, tmp_path, space, seed, random_search(len(expected))), expected)


def test_a_seed_gives_its_golden_trials(place: Machine, tmp_path: Path) -> None:
    """Values of our own, for a checkout without the cases; one trial alone draws as the first of several."""
    hold_against(drawn(place, tmp_path, SPACE, 20240607, random_search(3)), GOLDEN)
    hold_against(drawn(place, tmp_path, SPACE, 20240607, {"name": "single"}), GOLDEN[:1])


def test_the_order_of_ends_does_not_move_the_stream(place: Machine, tmp_path: Path) -> None:
    """With one trial at a time the later ones are drawn as the earlier ones end, and are the same."""
    one_by_one = {"name": "random", "max_trials": 3, "max_concurrent_trials": 1}
    hold_against(drawn(place, tmp_path, SPACE, 20240607, one_by_one), GOLDEN)


def test_a_seed_that_nobody_gave_is_drawn_and_kept(place: Machine, tmp_path: Path) -> None:
    """It stands in the stored configuration, and given again it gives the same trial."""
    document = config(entrypoint="true", hyperparameters=SPACE, searcher={"metric": "loss", **random_search(1)})
    experiment, (trial,) = ran(place, document, None)
    reproducibility = cast(JsonObject, experiment.config["reproducibility"])
    seed = cast(int, reproducibility["experiment_seed"])
    (again,) = drawn(place, tmp_path, SPACE, seed, random_search(1))
    assert again["hparams"] == trial.hparams
