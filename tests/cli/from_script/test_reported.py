"""Which metrics a script reports, as its text says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.cli.experiment.from_script.reported import time_of, validation_metrics, without_times

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('c.train.report_validation_metrics(1, {"loss": 1, "epochs": 2})', ["loss", "epochs"]),
        ('t.report_validation_metrics(steps_completed=1, metrics={"loss": 1})', ["loss"]),
        ('t.report_metrics("validation", 1, {"loss": 1})\nt.report_metrics("training", 1, {"b": 1})', ["loss"]),
        ('t.report_metrics(group="validation", steps_completed=1, metrics={"loss": 1})', ["loss"]),
        ('t.report_validation_metrics(1, {"a": 1})\nt.report_validation_metrics(2, {"a": 1, "b": 2})', ["a", "b"]),
        ('t.report_validation_metrics(1, {name: 1, **more, 3: 4, "a": 1})', ["a"]),
        ("t.report_validation_metrics(1, metrics)", []),
        ("t.report_validation_metrics(1)", []),
        ('t.report_training_metrics(1, {"a": 1})', []),
        ('report_validation_metrics(1, {"a": 1})', []),
        ("this is no Python", []),
        ("\0", []),
        ("(" * 5000, []),
        ("", []),
    ],
)
def test_what_its_text_says(source: str, names: list[str]) -> None:
    """Names that stand in its calls, and nothing that is computed."""
    assert validation_metrics(source) == names


def test_the_example() -> None:
    """The digits report two metrics, and their time."""
    names = validation_metrics((ROOT / "examples" / "digits" / "train.py").read_text())
    assert without_times(names) == ["accuracy", "loss"]
    assert time_of(names) == "epochs"
    assert time_of(["loss"]) is None
