"""When an agent is taken out by itself."""

from __future__ import annotations

import pytest

from tenax.lifecycle.agent import LIMIT, Setback, ends_the_row, is_setback, why_taken_out
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending, report

PLATFORM = Ending(reason="could not start", platform=True)


def ended(ending: Ending, desired: Desired = Desired.RUN) -> tuple[Container, Container]:
    before = Container("c", ContainerState.STARTING, desired, None, False)
    return before, report(before, ContainerState.TERMINATED, ending)


@pytest.mark.parametrize(
    ("pair", "setback", "row_ends"),
    [
        (ended(PLATFORM), True, False),
        (ended(Ending(code=1, reason="its own", platform=True, disk_full=True)), True, False),
        # Whose end somebody waits for is ended in whatever way it goes.
        (ended(PLATFORM, Desired.KILL), False, False),
        (ended(Ending(code=0)), False, True),
        (ended(Ending(code=1)), False, True),
        (ended(Ending(signal=9), Desired.KILL), False, False),
    ],
)
def test_what_an_end_says_of_its_agent(pair: tuple[Container, Container], setback: bool, row_ends: bool) -> None:
    assert (is_setback(*pair), ends_the_row(*pair)) == (setback, row_ends)
    # What is reported again is no news.
    assert not is_setback(pair[1], pair[1])
    assert not ends_the_row(pair[1], pair[1])


def test_the_third_in_a_row_takes_it_out() -> None:
    admin = [Setback(1, True, f"reason {number}") for number in range(LIMIT)]
    assert why_taken_out(admin[:-1]) == ""
    assert why_taken_out(admin) == ("3 runs in a row failed here for reasons that were not theirs, the last: reason 2")


def test_one_person_takes_it_from_nobody_else() -> None:
    own = [Setback(7, False, "no space left") for _ in range(10)]
    assert why_taken_out(own) == ""
    assert why_taken_out([*own, Setback(8, False, "no space left")])


def test_a_long_reason_is_cut() -> None:
    assert len(why_taken_out([Setback(1, True, "x" * 5000)] * LIMIT)) < 500
