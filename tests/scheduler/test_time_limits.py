"""Places in time: what time limits promise to whoever waits for room, and to those who are gone by then."""

from __future__ import annotations

from dataclasses import replace

from tenax.ids import AllocationId, JobId
from tenax.scheduler.explain import Remedy, RemedyKind, explain
from tenax.scheduler.snapshot import Phase
from tests.kits.builders.pool import Pool, agent, rules

#: 2023-11-14 22:13:20 UTC.
AT = 1_700_000_000.0


def busy(*, limit: float | None = 3600.0) -> Pool:
    """Eight slots, some of them free, the others held until a time limit; and a request for all of them."""
    pool = Pool([agent("a", 8)], rules(reservation=True))
    pool.at = AT
    pool.job("runs").job("wide", 10).job("next", 10).job("late", 90)
    pool.run("runs", 6, "a", "runs", time_limit=limit)
    return pool.ask("wide", 8, "wide")


def test_who_is_gone_by_then_starts_in_reserved_places() -> None:
    """Who stays longer, or says nothing, does not."""
    pool = busy()
    for number, limit in enumerate((None, 3601.0, 3600.0, 60.0)):
        pool.ask(f"n{number}", 1, "next", time_limit=limit)
    assert list(pool.plan().placements) == ["n2", "n3"]
    assert pool.plan().starts_by == {"wide": AT + 3600}


def test_the_time_is_told() -> None:
    """To whom it is promised, and to those behind, who learn how they may start before it."""
    pool = busy().ask("n", 1, "next")
    waiting = pool.plan().waiting
    assert waiting[AllocationId("wide")].endswith(
        "; 2 free slots are kept for it; by the time limits of what runs it starts by 2023-11-14 23:14 UTC at the "
        "latest, unless work that is ahead of it asks for more"
    )
    assert (
        "2 free slots are kept for wide, which needs 8 and starts by 2023-11-14 23:14 UTC at the latest: what is gone "
        "by then may use them (resources.time_limit)"
    ) in waiting[AllocationId("n")]


def test_without_time_limits_nobody_knows() -> None:
    """Its places are kept all the same, from everybody."""
    pool = busy(limit=None).ask("n", 1, "next", time_limit=1.0)
    decided = pool.plan()
    assert (decided.placements, decided.starts_by) == ({}, {})
    assert "latest" not in "".join(decided.waiting.values())


def test_only_as_many_free_places_are_kept_as_it_needs_then() -> None:
    """What comes free by then comes to it: the rest is for anybody."""
    pool = Pool([agent("a", 8)], rules(reservation=True))
    pool.at = AT
    pool.job("next", 42, 9.0).run("runs", 6, "a", time_limit=3600.0).ask("wide", 6)
    pool.ask("n0", 1, "next").ask("n1", 1, "next")
    decided = pool.plan()
    assert list(decided.placements) == ["n0", "n1"]
    assert decided.starts_by == {"wide": AT + 3600}


def test_the_machine_that_is_free_first_is_waited_for() -> None:
    """Of those that could take it whole."""
    pool = Pool([agent("a", 4), agent("b", 4)], rules(reservation=True))
    pool.at = AT
    pool.run("late", 4, "a", time_limit=7200.0).run("soon", 3, "b", time_limit=60.0).ask("wide", 4)
    pool.ask("n", 1, time_limit=3600.0)
    decided = pool.plan()
    assert decided.starts_by == {"wide": AT + 60}
    assert decided.placements == {}


def test_the_machines_that_are_free_first_are_waited_for_by_a_gang() -> None:
    """Not those that it would have on the empty pool; without limits these."""
    for limits in ((60.0, 7200.0, 300.0), (7200.0, 60.0, 300.0), (300.0, 60.0, 7200.0)):
        pool = Pool([agent(name, 4) for name in "abc"], rules(reservation=True))
        pool.at = AT
        for name, limit in zip("abc", limits):
            pool.run(f"on {name}", 4, name, time_limit=limit)
        pool.ask("gang", 8)
        assert pool.plan().starts_by == {"gang": AT + 300}


def test_less_urgent_ones_pass_if_they_put_off_nobody() -> None:
    """They are gone before the only one that waits needs its places; behind two that wait they wait, too."""
    pool = busy().ask("late", 1, "late", time_limit=60.0)
    assert list(pool.plan().placements) == ["late"]
    pool.ask("next", 8, "next")
    assert list(pool.plan().placements) == []


def test_whose_time_was_over_stands_behind() -> None:
    """Of its priority: what was promised to whoever waited is theirs, not its again."""
    pool = busy()
    for name in ("wide", "runs"):
        pool.jobs[JobId(name)] = replace(pool.jobs[JobId(name)], priority=42)
    pool.at = AT + 3600
    pool.end("runs")
    pool.ask("runs.2", 6, "runs", again=True, requested_at=AT + 3600)
    assert list(pool.plan().placements) == ["wide"]


def test_the_end_of_what_is_more_urgent_is_none() -> None:
    """It would ask again, and be served before."""
    pool = busy()
    pool.jobs[JobId("runs")] = replace(pool.jobs[JobId("runs")], priority=1)
    assert pool.plan().starts_by == {}


def test_the_end_of_a_search_that_asks_for_more_is_none() -> None:
    """Its next trial stands where the job does: before what came later, behind what came earlier."""
    pool = busy()
    for name, position in (("runs", 0.0), ("wide", 1.0)):
        changes = {"priority": 42, "queue_position": position, "asks_more": name == "runs"}
        pool.jobs[JobId(name)] = replace(pool.jobs[JobId(name)], **changes)  # type: ignore[arg-type]
    assert pool.plan().starts_by == {}
    pool.jobs[JobId("runs")] = replace(pool.jobs[JobId("runs")], queue_position=2.0)
    assert pool.plan().starts_by == {"wide": AT + 3600}


def test_what_is_being_released_may_take_its_time() -> None:
    """It is free when that is over, at the latest."""
    pool = Pool([agent("a", 2)], rules(reservation=True))
    pool.at = AT
    pool.run("leaves", 1, "a").run("runs", 1, "a", time_limit=60.0).ask("wide", 2)
    left = pool.requests[AllocationId("leaves")]
    pool.requests[AllocationId("leaves")] = replace(left, phase=Phase.RELEASING, ends_at=AT + 600)
    for priority in (42, 1):
        pool.jobs[JobId("leaves")] = replace(pool.jobs[JobId("leaves")], priority=priority)
        assert pool.plan().starts_by == {"wide": AT + 600}


def test_a_time_limit_is_advised() -> None:
    """Where it would help: in whole minutes, and it does."""
    pool = busy().ask("n", 1, "next")
    pool.at = AT + 30.5
    # Not "59m": that would be over before somebody has typed it.
    found = explain(JobId("next"), "default", {"default": pool.snapshot})
    assert found is not None
    assert Remedy(RemedyKind.TIME_LIMIT, "58m") in found.remedies
