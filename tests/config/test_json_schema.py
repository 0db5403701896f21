"""The schema for editors: legal JSON Schema, no stricter than the master, and with what the sources say of each key."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from tenax.config.comments import comments_of
from tenax.config.resolve import experiment_schema
from tenax.config.schema.resources import Resources
from tenax.config.schema.searcher import AdaptiveAshaConfig, CommonConfig

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCHEMA = jsonschema_rs.validator_for(experiment_schema())


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_examples_fit(path: Path) -> None:
    """As they are written."""
    SCHEMA.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    "config",
    [
        {"nmae": "x"},
        {"searcher": {"name": "adaptive_asha", "max_trails": 4}},
        {"searcher": {"name": "custom", "metric": "loss"}},
        {"searcher": {"name": "adaptive_asha", "mode": "quick"}},
        {"resources": {"priority": 100}},
        {"bind_mounts": [{"host_path": "/data"}]},
        {"debug": "yes"},
    ],
)
def test_what_can_never_be_submitted_does_not_fit(config: object) -> None:
    """Unknown keys and values, a searcher of the past, what is missing where no lower layer can bring it."""
    assert not SCHEMA.is_valid(config)


def test_older_spellings_and_what_is_not_set_fit() -> None:
    """A size in words, one image for all devices, a length, null for any key."""
    SCHEMA.validate(
        {
            "description": None,
            "resources": {"shm_size": "1.5 gb", "devices": ["/dev/a:/dev/b"]},
            "environment": {"image": "one", "environment_variables": ["A=1"]},
            "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
            "hyperparameters": {"lr": 0.1, "deep": {"depth": {"type": "int", "minval": 1, "maxval": 3}}, "none": None},
            "tensorboard_storage": {"type": "shared_fs"},
        }
    )


def test_a_key_says_what_the_sources_say_of_it() -> None:
    """The comment above a field, also of the class that it comes from; its default beside it."""
    assert comments_of(CommonConfig)["metric"] == "Validation metric that ranks the trials."
    assert comments_of(AdaptiveAshaConfig)["metric"] == comments_of(CommonConfig)["metric"]
    assert comments_of(AdaptiveAshaConfig)["time_metric"].endswith("where the last rung lies on it.")
    assert "weight" in comments_of(Resources)
    properties = experiment_schema()["properties"]
    assert isinstance(properties, dict)
    restarts = properties["max_restarts"]
    assert isinstance(restarts, dict)
    assert restarts["default"] == 5
    assert "not started again" in str(restarts["description"])
