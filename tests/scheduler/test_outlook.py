"""When a request is likely to start: the pool played on."""

from __future__ import annotations

from tenax.ids import AllocationId, JobId
from tenax.scheduler.outlook import LikelyStart, Spans, Sureness, likely_start
from tests.kits.builders.pool import Pool, agent, rules

NAME = AllocationId("mine")


def pool(slots: int = 4, **changes: object) -> Pool:
    made = Pool([agent("a", slots)], rules(**changes))
    made.at = 1000.0
    return made


def test_what_runs_ends_by_its_progress_or_as_those_of_its_job_did() -> None:
    """The sooner of what it takes; it is likely, not sure."""
    here = pool(2).run("one", 1, "a", "j").run("two", 1, "a", "k").ask("mine", 2)
    spans = Spans(held={AllocationId("two"): 20.0}, left={AllocationId("one"): 60.0}, of_job={JobId("k"): 100.0})
    assert likely_start(here.snapshot, NAME, spans) == LikelyStart(1080.0, Sureness.LIKELY)


def test_without_anything_better_it_is_a_guess() -> None:
    """What is usual in the pool, else that what runs is half way; with nothing at all nobody says anything."""
    here = pool(1).run("one", 1, "a", "j").ask("mine", 1)
    held = {AllocationId("one"): 80.0}
    assert likely_start(here.snapshot, NAME, Spans(held, usual=100.0)) == LikelyStart(1020.0, Sureness.GUESS)
    assert likely_start(here.snapshot, NAME, Spans(held)) == LikelyStart(1080.0, Sureness.GUESS)
    assert likely_start(here.snapshot, NAME, Spans({AllocationId("one"): 59.0})) is None


def test_a_time_limit_is_the_longest() -> None:
    """Whatever others took: and where it comes first, it is no guess."""
    here = pool(1)
    here.run("one", 1, "a", "j", time_limit=30.0).ask("mine", 1)
    assert likely_start(here.snapshot, NAME, Spans(usual=100.0)) == LikelyStart(1030.0, Sureness.LIKELY)


def test_what_a_search_will_still_ask_for_is_ahead() -> None:
    """Its next trials stand where the job does, before those behind it."""
    here = pool(1).run("t1", 1, "a", "search").ask("mine", 1)
    spans = Spans(of_job={JobId("search"): 10.0}, to_come={JobId("search"): 3})
    assert likely_start(here.snapshot, NAME, spans) == LikelyStart(1040.0, Sureness.LIKELY)


def test_those_who_are_asked_to_leave_come_back() -> None:
    """They leave within half a minute, and ask again behind."""
    here = pool(1, preemption=True).job("mine", 10).run("less", 1, "a").ask("mine", 1, "mine").ask("last", 1)
    spans = Spans(of_job={JobId(name): 100.0 for name in ("mine", "less", "last")})
    assert likely_start(here.snapshot, NAME, spans) == LikelyStart(1030.0, Sureness.LIKELY)
    last = likely_start(here.snapshot, AllocationId("last"), spans)
    assert last == LikelyStart(1230.0, Sureness.LIKELY)


def test_what_never_starts_has_no_start() -> None:
    """Too large, or beyond a limit for ever."""
    here = pool(1).run("one", 1, "a", "j").ask("mine", 2)
    assert likely_start(here.snapshot, NAME, Spans(usual=1.0)) is None
    here = pool(1).limit("ana", 0).job("mine", limits=("ana",)).ask("mine", 1, "mine").run("one", 1, "a", "j")
    assert likely_start(here.snapshot, NAME, Spans(usual=1.0)) is None


def test_nothing_is_said_of_what_is_too_far_away() -> None:
    """A search of a thousand trials, one at a time, stands ahead."""
    here = pool(1).run("t1", 1, "a", "search").ask("mine", 1)
    spans = Spans(of_job={JobId("search"): 10.0}, to_come={JobId("search"): 1000})
    assert likely_start(here.snapshot, NAME, spans) is None
