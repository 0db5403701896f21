"""The least-attained policy: who has held little comes first, nobody is asked twice in a row, nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tenax.ids import AllocationId, JobId
from tenax.scheduler.least_attained import BANDS, FIRST, KEPT, MAX_WAIT, WIDER, band_of
from tenax.scheduler.registry import changes_at, counts_attained, in_turns, queue
from tenax.scheduler.snapshot import PoolRules
from tests.kits.builders.pool import Pool, agent

RULES = PoolRules("least_attained")
_RUNNING = AllocationId("running")


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


@pytest.mark.parametrize(("held_s", "leaves"), [(0.0, False), (KEPT - 1, False), (KEPT, True)])
def test_what_left_for_another_is_kept_for_an_hour(held_s: float, leaves: bool) -> None:
    """Not until it ends: long jobs that have all left once do not fill the pool."""
    there = pool(2)
    there.at = 1e6
    there.job("long", attained=1e9).job("new")
    there.run("again", 2, "a0", "long", left_before=True, requested_at=there.at - held_s)
    there.requests[AllocationId("again")] = replace(there.requests[AllocationId("again")], waited=0.0)
    there.ask("waiting", 2, "new", requested_at=there.at)
    assert names(there.plan().preempt) == ({"again"} if leaves else set())
    moment = changes_at(there.snapshot)
    assert moment is not None
    assert leaves or there.at < moment <= there.at + KEPT - held_s + 1


def test_what_is_kept_still_leaves_for_urgent_work_and_for_its_own_cap() -> None:
    """It is kept from its like alone."""
    there = pool(2)
    there.job("long", 50, attained=1e9).job("urgent", 10, attained=1e9)
    there.run("again", 2, "a0", "long", left_before=True).ask("waiting", 2, "urgent")
    assert names(there.plan().preempt) == {"again"}
    there = pool(2)
    there.job("long", attained=1e9, max_slots=1)
    for number in range(2):
        there.jobs[JobId("long")] = replace(there.jobs[JobId("long")], max_slots=None)
        there.run(f"r{number}", 1, "a0", "long", left_before=True)
    there.jobs[JobId("long")] = replace(there.jobs[JobId("long")], max_slots=1)
    assert names(there.plan().preempt) == {"r1"}


def test_what_had_to_leave_may_start_beside_a_gang_that_does_not_fit() -> None:
    """It gives its place back like any other."""
    there = pool(4, 4)
    there.job("gang", attained=0.0).job("left", attained=1e9).job("full", 1)
    there.run("fixed", 3, "a0", "full", preemptible=False).run("fixed too", 3, "a1", "full", preemptible=False)
    there.ask("big", 8, "gang").ask("back", 1, "left", left_before=True)
    assert names(there.plan().placements) == {"back"}


def test_what_cannot_be_asked_takes_from_less_urgent_work_alone() -> None:
    """A command would keep for ever what it took from a trial."""
    there = pool(2)
    there.job("long", attained=1e9).job("command")
    there.run("training", 2, "a0", "long").ask("shell", 2, "command", preemptible=False)
    assert not there.plan().preempt
    there.jobs[JobId("long")] = replace(there.jobs[JobId("long")], priority=60)
    assert names(there.plan().preempt) == {"training"}


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
        assert "(priority 42, waited for a day; this one: priority 42, 4 slot hours" in decided.preempt[_RUNNING]
        there.end("running")
        there.ask("back", 2, "short", requested_at=there.at, left_before=True)
        decided = there.plan()
        assert names(decided.placements) == {"overdue"}
        there.apply(decided)
        assert not there.plan().preempt
        # Until it has held as much as the first band is wide.
        there.at += FIRST / 2 + 1
        assert names(there.plan().preempt) == {"overdue"}


def test_a_gang_that_waited_for_a_day_takes_from_the_first_band() -> None:
    """A stream of short jobs, none of which leaves it, does not put it off."""
    there = pool(2, 2)
    there.at = 1e6
    for number in range(4):
        there.run(f"short{number}", 1, f"a{number // 2}", requested_at=there.at)
    there.ask("gang", 4, "gang", requested_at=there.at - MAX_WAIT)
    assert len(there.plan().preempt) == 4


def test_what_cannot_be_asked_and_gets_nothing_is_in_nobodys_way() -> None:
    """Of the same kind: who may be asked takes what the other may not."""
    there = pool(2)
    there.job("long", attained=1e9).job("command").job("trial")
    there.run("training", 2, "a0", "long")
    there.ask("shell", 2, "command", preemptible=False).ask("waits", 2, "trial")
    assert names(there.plan().preempt) == {"training"}


def test_a_small_request_of_the_same_job_takes_nothing_from_the_one_that_waited() -> None:
    """Also once it runs; nor does one that fits nowhere."""
    there = pool(4)
    there.at = 1e6
    there.job("long", attained=1e9).job("job", attained=1e9)
    there.run("holder", 3, "a0", "long", requested_at=there.at)
    there.ask("vast", 64, "job", requested_at=there.at - MAX_WAIT - 9)
    there.ask("large", 2, "job", requested_at=there.at - MAX_WAIT - 1)
    there.ask("small", 1, "job", requested_at=there.at - MAX_WAIT)
    decided = there.plan()
    assert (names(decided.preempt), names(decided.placements)) == ({"holder"}, {"small"})
    there.apply(decided)
    there.end("holder")
    there.ask("back", 3, "long", requested_at=there.at, left_before=True)
    assert names(there.plan().placements) == {"large"}


def test_one_request_that_waited_does_not_carry_its_search_along() -> None:
    """Only the first of a job that holds nothing; what its own cap holds back has not waited for others."""
    there = pool(1)
    there.at = 1e6
    there.job("search", attained=1e9, max_slots=1).job("new")
    for number in range(3):
        there.ask(f"trial{number}", 1, "search", requested_at=there.at - MAX_WAIT - 10 + number)
    there.ask("short", 1, "new", requested_at=there.at)
    assert [str(each.allocation_id) for each in queue(there.snapshot)] == ["trial0", "short", "trial1", "trial2"]
    there.run("of it", 1, "a0", "search", requested_at=there.at)
    assert str(queue(there.snapshot)[0].allocation_id) == "short"
