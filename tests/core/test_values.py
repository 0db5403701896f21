"""Metrics of users as JSON."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tenax.core.values import metrics_body, plain, require_finished


def encoded(metrics: dict[str, object]) -> object:
    return json.loads(metrics_body("training", 1, metrics))["metrics"]


def test_body() -> None:
    """A report has its group, steps, metrics and batches, and leaves the time to the master."""
    assert json.loads(metrics_body("training", 3, {"loss": 0.5}, [{"loss": 1}, {"loss": 0.25}])) == {
        "group": "training",
        "stepsCompleted": 3,
        "metrics": {"loss": 0.5},
        "batchMetrics": [{"loss": 1}, {"loss": 0.25}],
        "reportTime": None,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (0.1, 0.1),
        (True, True),
        ("text", "text"),
        (None, None),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ([1, float("inf"), {"deep": float("nan")}], [1, "Infinity", {"deep": "NaN"}]),
        ((1, 2), [1, 2]),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.float32("nan"), "NaN"),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan]]), [[1.0, "NaN"]]),
        (torch.tensor(2.5, requires_grad=True), 2.5),
        (torch.tensor([1, 2]), [1, 2]),
        (datetime.date(2030, 1, 2), "2030-01-02"),
        (datetime.datetime(2030, 1, 2, tzinfo=datetime.timezone.utc), "2030-01-02T00:00:00+00:00"),
        ({"nested": {"x": np.float32(1)}}, {"nested": {"x": 1.0}}),
        ("lone \ud800 surrogate", "lone \ud800 surrogate"),
    ],
)
def test_values(value: object, expected: object) -> None:
    """Whatever users report becomes JSON; what JSON lacks becomes its usual string."""
    assert encoded({"value": value}) == {"value": expected}


@given(st.dictionaries(st.text(), st.floats() | st.integers() | st.text()))
def test_always_standard_json(metrics: dict[str, object]) -> None:
    """The text is one line of ASCII without bare NaN or Infinity, whatever the numbers."""
    text = metrics_body("training", 1, metrics)
    assert text.isascii()
    assert "\n" not in text
    document = json.loads(text, parse_constant=lambda word: pytest.fail(f"bare {word}"))
    assert set(document["metrics"]) == set(metrics)


def test_bytes_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes are no metric: they are left out with a warning that names them, the rest is reported."""
    assert encoded({"loss": 1.0, "blob": b"x", "list": [1, b"y"]}) == {"loss": 1.0, "list": [1]}
    errors = capsys.readouterr().err
    assert "blob holds bytes" in errors
    assert "list[1] holds bytes" in errors
    assert encoded({"blob": b"y"}) == {}
    assert capsys.readouterr().err == "", "it was said once"


def test_steps_are_counted_from_0() -> None:
    """As on a cluster, where the report would be refused later."""
    with pytest.raises(ValueError, match="steps_completed is -1: it must be 0 or more"):
        metrics_body("training", -1, {"loss": 1.0})


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"model": object()}, TypeError, "model is a object, which cannot be reported"),
        ({1: 2.0}, TypeError, "has the name 1, a int"),
        ({"a": {2: object()}}, TypeError, "a has the name 2"),
        ([("loss", 1)], TypeError, "metrics must be a dict"),
    ],
)
def test_refused(metrics: dict[str, object], error: type[Exception], message: str) -> None:
    """What cannot be a metric is refused in the call, with its name."""
    with pytest.raises(error, match=message):
        metrics_body("training", 1, metrics)


def test_numbers_as_inner_names() -> None:
    """JSON has only strings for names: a number inside a nested map becomes one."""
    assert encoded({"per_class": {2: 0.5}}) == {"per_class": {"2": 0.5}}


def test_loops_are_refused() -> None:
    """A structure that holds itself is an error and no endless loop."""
    loop: dict[str, object] = {}
    loop["self"] = loop
    with pytest.raises(ValueError, match="nested more than"):
        metrics_body("training", 1, loop)


@pytest.mark.parametrize("steps", [5, np.int64(5), torch.tensor(5)])
def test_steps(steps: object) -> None:
    """Steps are any whole number."""
    assert json.loads(metrics_body("training", steps, {}))["stepsCompleted"] == 5


@pytest.mark.parametrize("steps", [1.5, "3", None])
def test_bad_steps(steps: object) -> None:
    """Anything else as steps is refused with its value."""
    with pytest.raises(TypeError, match="steps_completed must be a whole number"):
        metrics_body("training", steps, {})


def test_validation_is_whole() -> None:
    """A validation without a value is refused with the metric's name."""
    require_finished({"loss": float("nan")})
    with pytest.raises(ValueError, match="'accuracy' is None"):
        require_finished({"loss": 1, "accuracy": None})


def test_plain_bytes() -> None:
    """Bytes alone become None."""
    assert plain(b"x") is None
