"""Which checkpoints stay: examples in words, and properties over anything that may be saved."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tenax.lifecycle.garbage import Judgement, OwningTrial, RetentionPolicy, SavedCheckpoint, judge

ENDED: dict[int, OwningTrial] = {}
NONE = RetentionPolicy(0, 0, 0)
METRICS = st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.0, math.nan, math.inf, -math.inf])
POLICIES = st.builds(RetentionPolicy, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


@st.composite
def experiments(draw: st.DrawFn, protected: bool = True) -> tuple[SavedCheckpoint, ...]:
    """Some checkpoints of some trials; with ``protected`` also registered, trimmed, superseded ones."""
    somewhere = st.none() | st.just("somewhere") if protected else st.none()
    count = draw(st.integers(0, 9))
    return tuple(
        SavedCheckpoint(
            uuid=f"c{number}",
            trial_id=draw(st.integers(1, 3)),
            steps=draw(st.integers(0, 4)),
            metric=draw(METRICS),
            reported=float(number),
            whole=not protected or draw(st.booleans()),
            superseded=protected and draw(st.booleans()),
            registered=draw(somewhere),
            source_of=draw(somewhere),
        )
        for number in range(count)
    )


def saved(uuid: str, trial: int, steps: int, metric: float | None = None, **more: object) -> SavedCheckpoint:
    return SavedCheckpoint(uuid, trial, steps, metric, float(steps), **more)  # type: ignore[arg-type]


def kept(fates: tuple[Judgement, ...]) -> set[str]:
    return {fate.uuid for fate in fates if fate.keep}


TWO = (
    saved("a1", 1, 1, 0.1),
    saved("a2", 1, 2, 0.2),
    saved("a3", 1, 3, 0.3),
    saved("b1", 2, 1, 0.15),
    saved("b2", 2, 2),
)


def test_policies_are_a_union() -> None:
    """The best of the experiment, the best and the latest of each trial: what one of them keeps stays."""
    assert kept(judge(RetentionPolicy(2, 0, 0), TWO, ENDED)) == {"a1", "b1"}
    assert kept(judge(RetentionPolicy(0, 1, 0), TWO, ENDED)) == {"a1", "b1"}
    assert kept(judge(RetentionPolicy(0, 0, 1), TWO, ENDED)) == {"a3", "b2"}
    assert kept(judge(RetentionPolicy(0, 1, 1), TWO, ENDED)) == {"a1", "a3", "b1", "b2"}
    assert kept(judge(NONE, TWO, ENDED)) == set()
    assert kept(judge(RetentionPolicy(1, 0, 0), TWO, ENDED, smaller_is_better=False)) == {"a3"}


def test_what_has_no_value_is_never_among_the_best() -> None:
    """However many are kept; what is not finite ranks behind every number, and still before nothing."""
    three = (saved("none", 1, 1), saved("nan", 1, 2, math.nan), saved("inf", 1, 3, -math.inf), saved("good", 1, 4, 9.0))
    assert kept(judge(RetentionPolicy(0, 9, 0), three, ENDED)) == {"nan", "inf", "good"}
    assert kept(judge(RetentionPolicy(0, 1, 0), three, ENDED)) == {"good"}
    assert kept(judge(RetentionPolicy(1, 0, 0), three, ENDED, smaller_is_better=False)) == {"good"}


def test_among_equals_the_first_reported_is_better() -> None:
    """So that a checkpoint that is as good as an earlier one does not push it out."""
    equal = (saved("late", 1, 2, 0.5), saved("early", 1, 1, 0.5))
    assert kept(judge(RetentionPolicy(1, 0, 0), equal, ENDED)) == {"early"}


def test_a_live_trial_keeps_what_it_would_resume_from() -> None:
    """Whatever the policy says; once it has ended, the policy alone decides."""
    two = (saved("old", 1, 1, 0.1), saved("new", 1, 2, 0.2))
    (old, new) = judge(NONE, two, {1: OwningTrial(live=True, validated_to=2)})
    assert (old.keep, new.keep) == (False, True)
    assert new.reasons == ("trial 1 would resume from it",)
    assert kept(judge(NONE, two, {1: OwningTrial(live=False)})) == set()


def test_what_may_still_be_validated_waits() -> None:
    """Until the trial has reported the metric beyond its step; if only the latest count, nothing waits."""
    three = (saved("c1", 1, 1), saved("c2", 1, 2), saved("c3", 1, 3))
    waiting = {1: OwningTrial(live=True, validated_to=0)}
    assert kept(judge(RetentionPolicy(0, 1, 1), three, waiting)) == {"c1", "c2", "c3"}
    assert kept(judge(RetentionPolicy(0, 1, 1), three, {1: OwningTrial(live=True, validated_to=2)})) == {"c3"}
    assert kept(judge(RetentionPolicy(0, 0, 1), three, waiting)) == {"c3"}
    # It has never validated, and may never do so.
    assert kept(judge(RetentionPolicy(0, 1, 1), three, {1: OwningTrial(live=True)})) == {"c2", "c3"}


def test_each_reason_is_told() -> None:
    """Every rule that keeps one, in words; of one that goes, where it stands and what is kept."""
    named = judge(
        RetentionPolicy(1, 1, 1),
        (
            saved("both", 1, 2, 0.1, registered="version 3 of model bert", source_of="trial 9 of experiment 4"),
            saved("goes", 1, 1, 0.7),
            saved("bare", 1, 0),
            saved("cut", 1, 5, whole=False),
            saved("lost", 1, 6, superseded=True),
        ),
        ENDED,
        metric="loss",
    )
    both, goes, bare, cut, lost = named
    assert both.reasons == (
        "it is version 3 of model bert",
        "trial 9 of experiment 4 started from it",
        "1st of the experiment by loss (of 1 to keep)",
        "1st of its trial by loss (of 1 to keep)",
        "1st latest of its trial (of 1 to keep)",
    )
    assert "2nd of the experiment and 2nd of its trial by loss, 2nd latest of its trial" in goes.reasons[0]
    assert "the best 1 of the experiment" in goes.reasons[0]
    assert "no value of loss" in bare.reasons[0]
    assert cut.keep
    assert "by hand" in cut.reasons[0]
    assert not lost.keep
    assert "replaced" in lost.reasons[0]


def stated(policy: RetentionPolicy, checkpoints: tuple[SavedCheckpoint, ...], smaller: bool) -> set[str]:
    """The rule as documentation states it, counted out pair by pair."""

    def before(left: SavedCheckpoint, right: SavedCheckpoint) -> bool:
        """Whether ``one`` is better than ``other``."""
        assert left.metric is not None
        assert right.metric is not None
        bad, worse = not math.isfinite(left.metric), not math.isfinite(right.metric)
        if bad != worse:
            return worse
        if not bad and left.metric != right.metric:
            return (left.metric < right.metric) == smaller
        return left.reported < right.reported

    stay = set()
    for checkpoint in checkpoints:
        peers = [other for other in checkpoints if other.trial_id == checkpoint.trial_id]
        newer = [other for other in peers if (other.steps, other.reported) > (checkpoint.steps, checkpoint.reported)]
        if len(newer) < policy.trial_latest:
            stay.add(checkpoint.uuid)
        if checkpoint.metric is None:
            continue
        rated = [other for other in checkpoints if other.metric is not None and before(other, checkpoint)]
        own = [other for other in rated if other.trial_id == checkpoint.trial_id]
        if len(rated) < policy.experiment_best or len(own) < policy.trial_best:
            stay.add(checkpoint.uuid)
    return stay


@given(policy=POLICIES, checkpoints=experiments(protected=False), smaller=st.booleans())
def test_it_is_the_rule_as_stated(
    policy: RetentionPolicy, checkpoints: tuple[SavedCheckpoint, ...], smaller: bool
) -> None:
    """Counting out every pair gives the same."""
    assert kept(judge(policy, checkpoints, ENDED, smaller_is_better=smaller)) == stated(policy, checkpoints, smaller)


@given(policy=POLICIES, checkpoints=experiments(), live=st.sets(st.integers(1, 3)))
def test_what_is_protected_never_goes(
    policy: RetentionPolicy, checkpoints: tuple[SavedCheckpoint, ...], live: set[int]
) -> None:
    """Registered, started from, trimmed, and where each live trial resumes; and everything has a reason."""
    fates = judge(policy, checkpoints, {number: OwningTrial(live=True) for number in live})
    stays = kept(fates)
    assert all(fate.reasons and all(fate.reasons) for fate in fates)
    assert [fate.uuid for fate in fates] == [checkpoint.uuid for checkpoint in checkpoints]
    for checkpoint in checkpoints:
        if checkpoint.registered or checkpoint.source_of or not checkpoint.whole:
            assert checkpoint.uuid in stays
    for number in live:
        whole = [
            checkpoint
            for checkpoint in checkpoints
            if checkpoint.trial_id == number and checkpoint.whole and not checkpoint.superseded
        ]
        newest = max(((checkpoint.steps, checkpoint.reported) for checkpoint in whole), default=None)
        assert not whole or any(
            checkpoint.uuid in stays for checkpoint in whole if (checkpoint.steps, checkpoint.reported) == newest
        )


@given(policy=POLICIES, checkpoints=experiments(), more=POLICIES)
def test_a_more_generous_policy_collects_no_more(
    policy: RetentionPolicy, checkpoints: tuple[SavedCheckpoint, ...], more: RetentionPolicy
) -> None:
    """Raising any of the three numbers keeps all that was kept."""
    raised = RetentionPolicy(
        policy.experiment_best + more.experiment_best,
        policy.trial_best + more.trial_best,
        policy.trial_latest + more.trial_latest,
    )
    assert kept(judge(policy, checkpoints, ENDED)) <= kept(judge(raised, checkpoints, ENDED))


@given(checkpoints=experiments(), policy=POLICIES, order=st.randoms(use_true_random=False))
def test_the_order_in_which_they_are_given_does_not_matter(
    checkpoints: tuple[SavedCheckpoint, ...], policy: RetentionPolicy, order: object
) -> None:
    """Ranks follow from the values alone."""
    shuffled = list(checkpoints)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert kept(judge(policy, shuffled, ENDED)) == kept(judge(policy, checkpoints, ENDED))


@given(checkpoints=experiments(protected=False), policy=POLICIES)
def test_collecting_step_by_step_leaves_what_collecting_at_the_end_leaves(
    checkpoints: tuple[SavedCheckpoint, ...], policy: RetentionPolicy
) -> None:
    """Each report is followed by a collection; nothing went that the end would have kept, and nothing is over."""
    # A script saves in the order of its steps.
    rising = [replace(checkpoint, steps=place) for place, checkpoint in enumerate(checkpoints)]
    there: tuple[SavedCheckpoint, ...] = ()
    for place, checkpoint in enumerate(rising):
        there = (*there, checkpoint)
        live = {number: OwningTrial(live=True, validated_to=place) for number in (1, 2, 3)}
        stays = kept(judge(policy, there, live))
        there = tuple(each for each in there if each.uuid in stays)
    left = kept(judge(policy, there, ENDED))
    assert left == kept(judge(policy, rising, ENDED))


@given(policy=POLICIES, checkpoints=experiments())
def test_a_second_collection_finds_nothing(policy: RetentionPolicy, checkpoints: tuple[SavedCheckpoint, ...]) -> None:
    """What was kept is kept again."""
    stays = kept(judge(policy, checkpoints, ENDED))
    left = tuple(checkpoint for checkpoint in checkpoints if checkpoint.uuid in stays)
    assert kept(judge(policy, left, ENDED)) == stays
