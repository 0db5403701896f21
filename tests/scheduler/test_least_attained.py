"""The least-attained policy: who has held little comes first, nobody is asked twice in a row, nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tenax.ids import AllocationId
from tenax.scheduler.least_attained import BANDS, FIRST, MAX_WAIT, WIDER, band_of
from tenax.scheduler.registry import counts_attained, in_turns, queue
from tenax.scheduler.snapshot import PoolRules
from tests.kits.builders.pool import Pool, agent

RULES = PoolRules("least_attained")


def pool(*slots: int) -> Pool:
    return Pool([agent(f"a{number}", count) for number, count in enumerate(slots)], RULES)


def names(given: Iterable[object]) -> set[str]:
    return set(map(str, given))


def test_bands() -> None:
    """The first ends at four slot hours, each is four times as wide as the one before, the last has no end."""
    edges = [FIRST * WIDER**number for number in range(BANDS - 1)]
    assert [band_of(edge - 1) for edge in edges] == [0, 1, 2]
    assert [band_of(edge) for edge in edges] == [1, 2, 3]
    assert (band_of(0.0), band_of(1e12)) == (0, BANDS - 1)
    assert (in_turns("least_attained"), counts_attained("least_attained"), counts_attained("")) == (True, True, False)


def test_who_has_held_little_takes_from_who_has_held_much() -> None:
    """The smallest set that helps, of the last band; what it says is what each has held."""
    there = pool(2, 2)
    there.job("long", attained=100 * 3600.0).job("longer", attained=1000 * 3600.0).job("new")
    there.run("held", 2, "a0", "long").run("more", 2, "a1", "longer").ask("small", 2, "new")
    decided = there.plan()
    assert names(decided.preempt) == {"more"}
    reason = decided.preempt[AllocationId("more")]
    assert "ahead of it (priority 42, 0 slot hours so far; this one: priority 42, 1e+03 slot hours so far)" in reason


def test_in_a_band_nobody_is_asked() -> None:
    """Whoever came first."""
    there = pool(2)
    there.job("first").job("second", attained=FIRST - 1)
    there.run("running", 2, "a0", "second").ask("waiting", 2, "first")
    assert not there.plan().preempt


def test_priorities_come_before_what_was_held() -> None:
    """More urgent work takes slots, however much it has held; less urgent work does not, however little."""
    there = pool(2)
    there.job("urgent", 10, attained=1e9).job("usual", 42)
    there.run("running", 2, "a0", "usual").ask("waiting", 2, "urgent")
    assert names(there.plan().preempt) == {"running"}
    there = pool(2)
    there.job("idle", 90).job("usual", 42, attained=1e9)
    there.run("running", 2, "a0", "usual").ask("waiting", 2, "idle")
    decided = there.plan()
    assert not decided.preempt
    assert "waits for 2 free slots" in decided.waiting[AllocationId("waiting")]


def test_the_order_of_the_queue() -> None:
    """By priority, band and place; a reason says who is ahead."""
    there = pool(1)
    there.job("much", attained=1e9).job("little", attained=100.0).job("none").job("urgent", 1, attained=1e9)
    there.run("full", 1, "a0", "urgent", preemptible=False)
    for job in ("much", "little", "none", "urgent"):
        there.ask(f"of {job}", 1, job)
    waiting = [str(each.allocation_id) for each in queue(there.snapshot) if each.allocation_id != "full"]
    assert waiting == ["of urgent", "of little", "of none", "of much"]
    reason = there.plan().waiting[AllocationId("of much")]
    assert reason.endswith("; 3 requests of higher priority, or that held less so far are ahead")
    assert "1 request of the same priority that held about as much" in there.plan().waiting[AllocationId("of none")]


def test_nobody_is_asked_twice_in_a_row() -> None:
    """What had to leave holds what it gets then."""
    there = pool(2)
    there.job("long", attained=1e9).job("new")
    there.run("again", 2, "a0", "long", left_before=True).ask("waiting", 2, "new")
    assert not there.plan().preempt


@pytest.mark.parametrize("waited", [MAX_WAIT - 1, MAX_WAIT])
def test_who_has_waited_for_a_day_comes_first(waited: float) -> None:
    """And keeps what it got: a plan that was carried out is not taken back by the next."""
    there = pool(2)
    there.at = 1e6
    there.job("long", attained=1e9).job("short", attained=FIRST)
    there.run("running", 2, "a0", "short", requested_at=there.at - 10)
    there.ask("overdue", 2, "long", requested_at=there.at - waited)
    decided = there.plan()
    assert names(decided.preempt) == ({"running"} if waited >= MAX_WAIT else set())
    if decided.preempt:
        there.end("running")
        there.ask("back", 2, "short", requested_at=there.at, left_before=True)
        decided = there.plan()
        assert names(decided.placements) == {"overdue"}
        there.apply(decided)
        assert not there.plan().preempt
