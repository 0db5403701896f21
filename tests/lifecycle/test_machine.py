"""The life of a rented machine: what may follow what, and what is done next."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.errors import Impossible, NotNow
from tenax.ids import AgentId
from tenax.lifecycle.machine import (
    AWAY_S,
    CUT_S,
    ENDED,
    LAG_S,
    TRANSITIONS,
    Dismissal,
    MachineEvent,
    MachineFacts,
    MachineState,
    MachineStep,
    Sighting,
    Trouble,
    after,
    dismissed,
    next_step,
    noted,
    outlived,
    troubles_of,
)
from tenax.lifecycle.offer import RestCause, rest_s
from tenax.scheduler.demand import MachineStage, RentedMachine, ScalingLimits, retired
from tests.kits.cases import collect


@pytest.mark.parametrize(
    ("state", "age_s", "max_run_s", "before", "due"),
    [
        ("JOINED", 1e9, None, "", ""),
        ("JOINED", 2999.0, 3600.0, "", ""),
        ("JOINED", 3000.0, 3600.0, "", "LEAVE"),
        ("LEAVING", 3000.0, 3600.0, "LEAVE", ""),
        ("LEAVING", 3000.0, 3600.0, "NOW", ""),
        ("LEAVING", 3600.0, 3600.0, "LEAVE", "NOW"),
        ("JOINED", 3600.0, 3600.0, "", "NOW"),
        ("LEAVING", 3600.0, 3600.0, "NOW", ""),
        ("JOINED", 75.0, 100.0, "", "LEAVE"),
        ("STARTING", 3600.0, 3600.0, "", ""),
        ("ENDING", 3600.0, 3600.0, "", ""),
    ],
)
def test_the_limit_of_a_life(state: str, age_s: float, max_run_s: float | None, before: str, due: str) -> None:
    """It asks for the end before it comes, and again when it has come; never for less than was asked for."""
    assert outlived(MachineState(state), age_s, max_run_s, Dismissal(before)) is Dismissal(due)


FACTS = st.builds(
    MachineFacts,
    st.sampled_from(MachineState),
    st.sampled_from(Sighting),
    st.sampled_from([0.0, LAG_S, 1e5]),
    st.sampled_from([0.0, 1201.0]),
    away_s=st.sampled_from([0.0, AWAY_S + 1]),
    connected=st.booleans(),
    idle=st.booleans(),
    renting=st.booleans(),
    new=st.booleans(),
    sent=st.integers(0, 3),
    noticed=st.booleans(),
    takes_work=st.booleans(),
    dismissal=st.sampled_from(Dismissal),
)


def test_what_no_state_allows_raises() -> None:
    """And what has ended meets nothing any more."""
    for state, event in itertools.product(MachineState, MachineEvent):
        if (state, event) not in TRANSITIONS:
            with pytest.raises(Impossible, match=state.value):
                after(state, event)
    assert not ENDED & {state for state, _ in TRANSITIONS}


@given(FACTS)
def test_a_step_is_one_that_the_state_allows(facts: MachineFacts) -> None:
    """Whatever is known of a machine."""
    events = {
        MachineStep.TAKE: MachineEvent.ANSWERED,
        MachineStep.REMOVE: MachineEvent.REMOVED,
        **{step: MachineEvent[step.name] for step in MachineStep if step.name in MachineEvent.__members__},
    }
    step = next_step(facts)
    if step is MachineStep.SEND and facts.state is MachineState.ASKED:
        return
    if step in events:
        after(facts.state, events[step])
    else:
        assert step is MachineStep.WAIT or facts.state is MachineState.ENDING


@given(FACTS)
def test_while_nobody_has_looked_nothing_is_taken_for_gone(facts: MachineFacts) -> None:
    """Nor sent again."""
    step = next_step(replace(facts, sighting=Sighting.UNKNOWN))
    assert step not in (MachineStep.STOPPED, MachineStep.REMOVE, MachineStep.TAKE)
    assert step is not MachineStep.SEND or facts.state is MachineState.PLANNED


def test_it_is_sent_again_only_once_lists_cannot_lag_behind() -> None:
    """A machine that was made a moment ago may be missing."""
    missing = MachineFacts(MachineState.ASKED, Sighting.MISSING, LAG_S)
    assert next_step(missing) is MachineStep.WAIT
    assert next_step(replace(missing, age_s=LAG_S + 1)) is MachineStep.SEND
    assert next_step(replace(missing, age_s=LAG_S + 1, renting=False)) is MachineStep.WITHDRAW


def test_what_is_connected_is_not_taken_for_gone_because_it_is_missing() -> None:
    """Its mark may have been taken away: it works on, and is ended by its provider's name, again and again."""
    works = MachineFacts(MachineState.JOINED, Sighting.MISSING, 1e5, connected=True)
    assert next_step(works) is MachineStep.WAIT
    assert next_step(replace(works, connected=False)) is MachineStep.STOPPED
    ending = replace(works, state=MachineState.ENDING)
    assert next_step(ending) is MachineStep.END
    assert next_step(replace(ending, connected=False)) is MachineStep.REMOVE
    assert next_step(replace(ending, sighting=Sighting.ENDED)) is MachineStep.REMOVE


def test_what_nobody_answered_for_is_sent_again_later_each_time() -> None:
    """Ten minutes after the time before at most."""
    twice = MachineFacts(MachineState.ASKED, Sighting.MISSING, LAG_S + 1, sent=2)
    assert next_step(twice) is MachineStep.WAIT
    assert next_step(replace(twice, age_s=61.0)) is MachineStep.SEND
    assert next_step(replace(twice, age_s=601.0, sent=50)) is MachineStep.SEND


def test_rests_after_failures_grow() -> None:
    """To half an hour, where it may pass; else an offer is off until its settings change."""
    assert [rest_s(RestCause.NO_CAPACITY, count) for count in (1, 2, 3, 20)] == [60.0, 120.0, 240.0, 1800.0]
    assert rest_s(RestCause.REFUSED, 2) == 120.0
    assert rest_s(RestCause.OVER_QUOTA, 1) == 1800.0
    assert rest_s(RestCause.NOT_ALLOWED, 1) is None
    assert rest_s(RestCause.BAD_ORDER, 1) is None
    assert [rest_s(RestCause.NEVER_JOINED, count) for count in (1, 2, 3)] == [60.0, 120.0, None]


@pytest.mark.parametrize("case", collect("scaledecider", "terminate"))
def test_which_are_ended_in_determined(case: Mapping[str, Any]) -> None:
    """What stopped or was not heard for long goes in any case; idle ones down to the least; the rest above the most.

    A machine that works is not ended for being one too many, as there: it takes nothing new, and is ended once idle.
    """
    state = case["state"]
    instances = (
        state["instances"] if isinstance(state["instances"], dict) else {name: {} for name in state["instances"]}
    )
    ended: list[str] = []
    left: list[RentedMachine] = []
    for name, about in instances.items():
        facts = MachineFacts(
            MachineState.JOINED,
            Sighting.ENDED if name in state.get("stopped", ()) else Sighting.RUNNING,
            away_s=AWAY_S + 1 if name in state.get("long_disconnected", ()) else 0.0,
        )
        idle_s = 0.0 if name in state.get("idle_since_ago_s", ()) else None
        idle_s = 1e4 if name in state.get("long_idle", ()) else idle_s
        if next_step(facts) is MachineStep.WAIT:
            since = -float(about.get("launched_ago_s", 0))
            left.append(RentedMachine(AgentId(name), MachineStage.HERE, since, idle_s))
        else:
            ended.append(name)
    end, drain = retired(left, ScalingLimits(case["min_instances"], case["max_instances"], 1e4))
    assert {*ended, *end, *drain} == set(case["expect_terminate"])


def test_a_machine_of_which_there_is_a_notice_leaves_and_stays_when_that_is_taken_back() -> None:
    """Unless it is idle and ended by then."""
    facts = MachineFacts(MachineState.JOINED, noticed=True)
    assert next_step(facts) is MachineStep.NOTICE
    leaving = MachineFacts(after(MachineState.JOINED, MachineEvent.NOTICE), noticed=True)
    assert next_step(leaving) is MachineStep.WAIT
    assert next_step(replace(leaving, idle=True)) is MachineStep.RETIRE
    assert next_step(replace(leaving, noticed=False, takes_work=True, idle=True)) is MachineStep.STAY
    assert after(MachineState.LEAVING, MachineEvent.STAY) is MachineState.JOINED
    assert next_step(replace(leaving, takes_work=True, renting=False)) is MachineStep.WAIT


def test_what_was_asked_to_end_is_not_sent_again_and_ends_before_it_joins() -> None:
    """What had no row is asked first what it holds, unless it is to end at once."""
    facts = MachineFacts(MachineState.PLANNED, dismissal=Dismissal.LEAVE)
    assert next_step(facts) is MachineStep.WITHDRAW
    asked = replace(facts, state=MachineState.ASKED, sighting=Sighting.MISSING, age_s=1e5)
    assert next_step(asked) is MachineStep.WITHDRAW
    assert next_step(replace(asked, sighting=Sighting.UNKNOWN)) is MachineStep.WAIT
    assert next_step(replace(asked, sighting=Sighting.RUNNING)) is MachineStep.TAKE
    starting = replace(facts, state=MachineState.STARTING)
    assert after(starting.state, MachineEvent[next_step(starting).name]) is MachineState.ENDING
    adopted = replace(starting, sent=0)
    assert next_step(adopted) is MachineStep.WAIT
    assert next_step(replace(adopted, dismissal=Dismissal.NOW)) is MachineStep.DISMISS


def test_a_machine_that_was_asked_to_end_leaves_and_stays_when_its_agent_is_enabled() -> None:
    """To end at once it does not wait for an agent that is away, nor for work without end."""
    joined = MachineFacts(MachineState.JOINED, connected=True, dismissal=Dismissal.LEAVE)
    assert after(joined.state, MachineEvent[next_step(joined).name]) is MachineState.LEAVING
    leaving = replace(joined, state=MachineState.LEAVING)
    assert next_step(leaving) is MachineStep.WAIT
    assert next_step(replace(leaving, connected=False)) is MachineStep.WAIT
    assert next_step(replace(leaving, idle=True)) is MachineStep.RETIRE
    assert next_step(replace(leaving, idle=True, takes_work=True)) is MachineStep.STAY
    now = replace(leaving, dismissal=Dismissal.NOW)
    assert next_step(now) is MachineStep.WAIT
    assert next_step(replace(now, connected=False)) is MachineStep.CUT
    assert next_step(replace(now, age_s=CUT_S + 1)) is MachineStep.CUT


def test_whose_end_may_be_asked_for() -> None:
    """Of what has not ended, once; and after that it ends at once, once."""
    can = {
        (state, before, asked)
        for state, before, asked in itertools.product(MachineState, Dismissal, (Dismissal.LEAVE, Dismissal.NOW))
        if _may_end(state, before, asked)
    }
    open_states = set(MachineState) - ENDED - {MachineState.ENDING}
    steps = {
        (Dismissal.NONE, Dismissal.LEAVE),
        (Dismissal.NONE, Dismissal.NOW),
        (Dismissal.LEAVE, Dismissal.NOW),
    }
    assert can == {(state, *step) for state in open_states for step in steps}
    with pytest.raises(NotNow, match=r"^machine m-1 has ended \(GONE\) already$"):
        dismissed("m-1", MachineState.GONE, Dismissal.NONE, Dismissal.NOW, "")


def _may_end(state: MachineState, before: Dismissal, dismissal: Dismissal) -> bool:
    try:
        dismissed("m-1", state, before, dismissal, "because")
    except NotNow:
        return False
    return True


@given(
    st.lists(st.tuples(st.sampled_from(Trouble), st.sampled_from(["", "no answer", "denied; allow: x"])), max_size=8)
)
def test_what_stands_in_the_way_is_said_once_and_taken_back(steps: list[tuple[Trouble, str]]) -> None:
    """Whatever came before it, the last word on each holds, in one order; what it was rented for stays in front."""
    story = "rented for 1.a.1: it is the first that serves"
    last: dict[Trouble, str] = {}
    for trouble, why in steps:
        story = noted(story, trouble, why)
        last[trouble] = why
        assert noted(story, trouble, why) == story
    assert troubles_of(story) == [f"{each.value}: {last[each]}" for each in Trouble if last.get(each)]
    for trouble in Trouble:
        story = noted(story, trouble)
    assert story == "rented for 1.a.1: it is the first that serves"
