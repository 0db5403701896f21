"""What a search reads from a validation report, and the words of a refusal."""

from __future__ import annotations

import math

import pytest

from tenax.jsonvalue import Json
from tenax.search.validation import Objective, Reading, UnusableReport, read_report

ASHA = Objective("loss", "samples", needs_validations=True)


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"acc": 1.0, "samples": 3}, "a number named 'loss' in every validation report"),
        ({"acc": 1.0, "samples": 3}, "the one at step 7 holds acc = 1.0, samples = 3."),
        ({"acc": 1.0, "samples": 3}, "set searcher.metric to a name that is reported"),
        ({}, "numbers named 'loss' and 'samples'"),
        ({}, "holds nothing. Report 'loss' and 'samples' with each validation"),
        ({"loss": "high", "samples": 1}, 'loss = "high"'),
        ({"loss": "x" * 100, "samples": 1}, "xxx..."),
        ({"loss": True, "samples": 1}, "loss = true"),
        ({"loss": 0.1}, "error parsing searcher time metric: the search needs a number named 'samples'"),
        ({"loss": 0.1}, "set searcher.time_metric to a name that is reported"),
        ({"loss": 0.1, "samples": "NaN"}, 'samples = "NaN"'),
    ],
)
def test_a_refusal_says_what_was_expected_and_what_came(metrics: dict[str, Json], told: str) -> None:
    """Asynchronous halving cannot do without metric and time: the message helps the author of the script."""
    with pytest.raises(UnusableReport) as refused:
        read_report(ASHA, metrics, 7)
    assert told in refused.value.message


def test_special_numbers_are_numbers() -> None:
    """NaN and infinities, as numbers or as the strings that carry them, are metrics; so is what no float can hold."""
    reading = read_report(ASHA, {"loss": "NaN", "samples": 2.5}, 1)
    assert reading is not None
    assert math.isnan(reading.metric)
    assert reading.time == 2.5
    assert read_report(ASHA, {"loss": "-Infinity", "samples": 1}, 1) == Reading(-math.inf, 1.0)
    assert read_report(ASHA, {"loss": 10**400, "samples": 1}, 1) == Reading(math.inf, 1.0)


def test_batches_that_nobody_names_are_the_step() -> None:
    """A time in batches needs no metric; one that is reported counts, and has to be a number."""
    objective = Objective("loss", "batches", needs_validations=True)
    assert read_report(objective, {"loss": 0.1}, 7) == Reading(0.1, 7.0)
    assert read_report(objective, {"loss": 0.1, "batches": 9}, 7) == Reading(0.1, 9.0)
    with pytest.raises(UnusableReport, match="searcher time metric"):
        read_report(objective, {"loss": 0.1, "batches": "many"}, 7)


def test_other_methods_do_without() -> None:
    """Where validations do not decide, a report without the metric is simply not the searcher's."""
    objective = Objective("loss")
    assert read_report(objective, {"acc": 1.0}, 1) is None
    assert read_report(objective, {"loss": 1.0}, 1) == Reading(1.0, 0.0)
