"""Whether a trial is well: a pure function of what is known of it."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from tenax.lifecycle.health import (
    IDLE_S,
    SILENT_AT_FIRST_S,
    SILENT_S,
    Direction,
    Evidence,
    GpuFacts,
    HealthFacts,
    HealthKind,
    MetricFacts,
    OddMetric,
    direction,
    judge,
)

FALLING = [2.0 / (1 + step) for step in range(40)]
LOSS = MetricFacts("validation", "loss", True, FALLING, list(range(1, 41)))
#: It reports once a minute, and all is well.
WELL = HealthFacts(
    "RUNNING", runs_s=7200.0, reported_s=20.0, line_s=5.0, checkpoint_s=180.0, metric=LOSS, pauses=[60.0] * 30
)


def test_what_is_well_says_which_way_it_goes_and_how_old_its_last_signs_are() -> None:
    """In one sentence, with the metric as its evidence."""
    health = judge(WELL)
    assert health.sentence == "Healthy: loss falling, last report 20 s ago, checkpoint 3 m ago"
    (finding,) = health.findings
    assert (finding.kind, finding.evidence, finding.metric) == (HealthKind.HEALTHY, Evidence.METRIC, "loss")
    rising = replace(LOSS, name="accuracy", smaller_is_better=False, values=[1 - value for value in FALLING])
    assert "accuracy rising" in judge(replace(WELL, metric=rising)).sentence
    assert judge(HealthFacts("RUNNING", runs_s=30.0)).sentence == (
        "Running, and has reported no metric yet, 30 s after its begin"
    )


@pytest.mark.parametrize(
    ("pauses", "silent", "stalls"),
    [
        ([60.0] * 30, SILENT_S - 1, False),
        ([60.0] * 30, SILENT_S, True),
        # Who reports every ten minutes may be silent for fifty.
        ([600.0] * 30, 2999.0, False),
        ([600.0] * 30, 3000.0, True),
        # One long pause among many, as a validation makes: it is usual.
        ([1.0] * 9 + [400.0], 1999.0, False),
        # Nothing is known of its rhythm yet.
        ([], SILENT_AT_FIRST_S - 1, False),
        ([60.0], SILENT_AT_FIRST_S, True),
    ],
)
def test_silence_is_measured_by_its_own_rhythm(pauses: list[float], silent: float, stalls: bool) -> None:
    """No line, no report and no checkpoint; any of them is a sign of life."""
    facts = replace(WELL, pauses=pauses, reported_s=silent, line_s=silent + 5, checkpoint_s=None)
    health = judge(facts)
    assert (health.kind is HealthKind.STALLED) == stalls
    assert (health.silent_in_s == 0) == stalls
    if stalls:
        assert "no line of output and no metric for" in health.sentence
    assert judge(replace(facts, line_s=3.0)).kind is HealthKind.HEALTHY
    assert judge(replace(facts, runs_s=10.0)).kind is HealthKind.HEALTHY


def test_a_metric_that_is_no_number_any_more_is_named_with_its_step() -> None:
    """And how many others are none; what was none before and is one now is well."""
    broken = replace(LOSS, values=[*FALLING[:30], *[math.nan] * 10])
    odd = [OddMetric("validation", "loss", math.nan), OddMetric("training", "grad", math.inf)]
    health = judge(replace(WELL, metric=broken, odd=odd))
    assert health.sentence == "validation loss is NaN since step 31, and so is 1 other metric"
    assert health.findings[0].metric == "loss"
    assert judge(replace(WELL, odd=odd[1:])).sentence == "training grad is infinite"
    assert judge(replace(WELL, metric=replace(LOSS, values=[math.nan, *FALLING[1:]]))).kind is HealthKind.HEALTHY


def test_where_a_metric_goes() -> None:
    """Noise is no direction; worse than the best is not yet divergence, worse than the begin is."""
    rng = random.Random(7)
    noisy = [value + rng.gauss(0, 0.02) for value in FALLING]
    assert direction(noisy, True) is Direction.IMPROVING
    assert direction([-value for value in noisy], False) is Direction.IMPROVING
    assert direction([0.5 + rng.gauss(0, 0.05) for _ in range(60)], True) in (Direction.FLAT, Direction.IMPROVING)
    assert direction([*FALLING, *[0.05 + 0.04 * step for step in range(15)]], True) is Direction.WORSENING
    assert direction([*FALLING, *[0.5 * 1.4**step for step in range(15)]], True) is Direction.DIVERGING
    assert direction([0.1] * 20 + [5.0] * 12, True) is Direction.DIVERGING
    assert direction(FALLING[:7], True) is None
    health = judge(replace(WELL, metric=replace(LOSS, values=[*FALLING[:20], *[0.2 * 1.4**n for n in range(20)]])))
    assert health.kind is HealthKind.DIVERGING
    assert "at its best" in health.sentence


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_never_diverges(seed: int) -> None:
    """Of a metric that stays where it is."""
    rng = random.Random(seed)
    assert direction([1 + rng.gauss(0, 0.1) for _ in range(50)], True) is not Direction.DIVERGING


def test_gpus_that_do_nothing_are_counted() -> None:
    """Over the whole period, and not over a moment of it."""
    idle, busy = GpuFacts("g0", [3.0] * 60, IDLE_S), GpuFacts("g1", [3.0] * 59 + [95.0], IDLE_S)
    one = judge(replace(WELL, gpus=[idle, busy]))
    assert (one.kind, one.sentence) == (HealthKind.IDLE_GPUS, "1 of 2 GPUs is used less than 10 % for 10 m")
    assert one.findings[0].evidence is Evidence.SYSTEM
    assert judge(replace(WELL, gpus=[idle, idle])).sentence.startswith("All 2 GPUs")
    assert judge(replace(WELL, gpus=[busy])).kind is HealthKind.HEALTHY
    assert judge(replace(WELL, gpus=[replace(idle, covers_s=60.0)])).kind is HealthKind.HEALTHY


def test_what_ended_or_waits_says_why() -> None:
    """A failure leads to its line; silence means nothing then."""
    failed = judge(replace(WELL, state="ERROR", reason="your code raised KeyError: 'x'", line=2, runs_s=None))
    assert failed.sentence == "Failed: your code raised KeyError: 'x'"
    assert (failed.findings[0].evidence, failed.findings[0].line) == (Evidence.LINE, 2)
    assert failed.silent_in_s is None
    waits = judge(HealthFacts("QUEUED", "it needs 8 slots, and 2 are free"))
    assert (waits.kind, waits.sentence) == (HealthKind.WAITING, "Waits for slots: it needs 8 slots, and 2 are free")
    assert judge(HealthFacts("PAUSED")).kind is HealthKind.PAUSED
    done = judge(replace(WELL, state="COMPLETED", best=0.0512345))
    assert done.sentence == "Completed, best loss 0.05123"
    assert judge(HealthFacts("CANCELED", "asha stopped it")).sentence == "Canceled: asha stopped it"


def test_the_gravest_comes_first_and_restarts_are_mentioned() -> None:
    """A trial that was started again and is well is well."""
    again = judge(replace(WELL, restarts=2))
    assert [finding.kind for finding in again.findings] == [HealthKind.HEALTHY, HealthKind.RESTARTED]
    assert again.findings[1].sentence == "Started again 2 times after failures"
    both = judge(replace(WELL, restarts=1, odd=[OddMetric("training", "loss", math.nan)], line_s=9e3, reported_s=9e3))
    kinds = [finding.kind for finding in both.findings]
    # The checkpoint was saved three minutes ago: it lives.
    assert kinds == [HealthKind.NOT_FINITE, HealthKind.RESTARTED]


def test_what_stands_out_is_what_any_trial_may_say() -> None:
    """A sentence begins with it, whatever the names in the rest hold; where a name begins it, nothing does."""
    odd = OddMetric("training", "loss: a, b", float("nan"))
    for facts, head in (
        (HealthFacts("ERROR", "your code raised KeyError: 'x', y"), "Failed"),
        (HealthFacts("PAUSED", "by hand: later"), "Paused"),
        (HealthFacts("QUEUED", "it needs 8 slots, and 2 are free"), "Waits for slots"),
        (HealthFacts("COMPLETED"), "Completed"),
        (HealthFacts("RUNNING", runs_s=30.0), "Running"),
        (WELL, "Healthy"),
        (replace(WELL, odd=[odd]), ""),
    ):
        first = judge(facts).findings[0]
        assert first.head == head
        assert first.sentence.startswith(head)
