"""When an agent is taken out by itself."""

from __future__ import annotations

import pytest

from tenax.lifecycle.agent import LIMIT, Setback, ends_the_row, is_setback, why_taken_out
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending, report

PLATFORM = Ending(reason="could not start", platform=True)
STARTING, RUNNING, TERMINATED = ContainerState.STARTING, ContainerState.RUNNING, ContainerState.TERMINATED


def changed(
    ending: Ending | None = None, before: ContainerState = STARTING, desired: Desired = Desired.RUN
) -> tuple[Container, Container]:
    """A container before and after its agent said that it runs, or how it ended."""
    was = Container("c", before, desired, None, False)
    return was, report(was, RUNNING if ending is None else TERMINATED, ending)


@pytest.mark.parametrize(
    ("pair", "setback", "row_ends"),
    [
        (changed(PLATFORM), True, False),
        (changed(), False, True),
        # It ran: the machine was started again, its supervisor is lost, the disk was full.
        (changed(PLATFORM, RUNNING), False, False),
        (changed(Ending(code=1, platform=True, disk_full=True), RUNNING), False, False),
        # Whose end somebody waits for is ended in whatever way it goes.
        (changed(PLATFORM, desired=Desired.KILL), False, False),
        # So short that nobody heard of its start.
        (changed(Ending(code=0)), False, True),
        (changed(Ending(code=1)), False, True),
        (changed(Ending(signal=9), desired=Desired.KILL), False, False),
    ],
)
def test_what_a_report_says_of_its_agent(pair: tuple[Container, Container], setback: bool, row_ends: bool) -> None:
    assert (is_setback(*pair), ends_the_row(*pair)) == (setback, row_ends)
    # What is reported again is no news.
    assert not is_setback(pair[1], pair[1]) or pair[1].state is not TERMINATED
    assert not ends_the_row(pair[1], pair[1])


def test_the_third_in_a_row_takes_it_out() -> None:
    admin = [Setback(1, True, f"reason {number}") for number in range(LIMIT)]
    assert why_taken_out(admin[:-1], others_start=True) == ""
    assert why_taken_out(admin, others_start=True) == (
        "3 starts in a row failed here, while others succeeded elsewhere, the last: reason 2; it is tried again after "
        "10 minutes"
    )


def test_what_fails_everywhere_is_no_machines_fault() -> None:
    """As of a registry that is away."""
    assert why_taken_out([Setback(1, True, "no answer")] * 10, others_start=False) == ""


def test_one_person_takes_it_from_nobody_else() -> None:
    own = [Setback(7, False, "no space left") for _ in range(10)]
    assert why_taken_out(own, others_start=True) == ""
    assert why_taken_out([*own, Setback(8, False, "no space left")], others_start=True)


def test_a_long_reason_is_cut() -> None:
    assert len(why_taken_out([Setback(1, True, "x" * 5000)] * LIMIT, others_start=True)) < 500
