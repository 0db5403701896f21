"""Members of an allocation, and what the whole becomes of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenax.lifecycle.allocation import AllocationState, after_members, given_up
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending, raise_desired, report

C, W = ContainerState, Desired


def member(
    name: str, state: C = C.RUNNING, *, want: W = W.RUN, ending: Ending | None = None, daemon: bool = False
) -> Container:
    return Container(name, state, want, ending, daemon)


def test_it_is_where_its_least_advanced_member_is() -> None:
    """One that still starts holds the whole back."""
    assert after_members((member("a"), member("b", C.STARTING))).state is AllocationState.STARTING
    assert after_members((member("a"), member("b"))).state is AllocationState.RUNNING


def test_the_first_failure_ends_the_others_and_is_the_ending() -> None:
    """A gang dies as one, and its reason is the one that broke first."""
    broken = member("a", C.TERMINATED, ending=Ending(code=3, reason="code 3"))
    outcome = after_members((member("b"), broken))
    assert outcome.state is AllocationState.TERMINATING
    assert outcome.containers[0].desired is W.KILL
    ended = report(outcome.containers[0], C.TERMINATED, Ending(signal=9))
    final = after_members((ended, broken))
    assert final.state is AllocationState.TERMINATED
    assert final.ending == Ending(code=3, reason="code 3")


def test_a_machine_that_is_lost_is_the_ending_though_its_peers_failed_first() -> None:
    """Their scripts break at once, its silence is noticed later: nothing is decided before that."""
    broken = member("a", C.TERMINATED, ending=Ending(code=1, reason="NCCL error"))
    waits = after_members((broken, member("b")))
    assert waits.ending is None
    lost = report(waits.containers[1], C.TERMINATED, given_up("node lost", failed_at=100.0, heard_at=98.0))
    ending = after_members((broken, lost)).ending
    assert ending is not None
    assert (ending.platform, ending.reason) == (True, "node lost")


def test_a_machine_that_is_lost_after_a_failure_is_not_its_cause() -> None:
    """It was heard when the other had failed long before."""
    broken = member("a", C.TERMINATED, ending=Ending(code=1, reason="code 1"))
    waits = after_members((broken, member("b")))
    lost = report(waits.containers[1], C.TERMINATED, given_up("node lost", failed_at=100.0, heard_at=120.0))
    ending = after_members((broken, lost)).ending
    assert ending is not None
    assert (ending.failed, ending.reason) == (True, "code 1")


def test_a_member_that_ends_as_it_was_asked_to_leaves_the_others_their_time() -> None:
    """A kill is of all members; the first that obeys does not take the others' time to save."""
    asked = tuple(raise_desired(member(name), W.STOP) for name in "ab")
    first = report(asked[0], C.TERMINATED, Ending(code=143))
    assert after_members((first, asked[1])).containers[1].desired is W.STOP


def test_one_member_that_finished_leaves_the_others_running() -> None:
    """A clean exit ends nobody else, as long as a worker is left."""
    done = member("a", C.TERMINATED, ending=Ending(code=0))
    outcome = after_members((done, member("b")))
    assert outcome.containers[1].desired is W.RUN
    assert outcome.ending is None


def test_daemons_end_when_all_others_have() -> None:
    """They do not keep the allocation alive, and their end is no error."""
    done = member("a", C.TERMINATED, ending=Ending(code=0))
    outcome = after_members((done, member("d", daemon=True)))
    assert outcome.containers[1].desired is W.KILL
    for ending in (Ending(signal=9), Ending(code=3), Ending(reason="node lost", platform=True)):
        ended = report(outcome.containers[1], C.TERMINATED, ending)
        assert after_members((done, ended)).ending == Ending(code=0)
        assert after_members((ended, done)).ending == Ending(code=0)


def test_a_daemon_that_fails_takes_the_others_with_it() -> None:
    """It helped them: without it they have not finished."""
    failed = member("d", C.TERMINATED, ending=Ending(code=3), daemon=True)
    outcome = after_members((member("a"), failed))
    assert outcome.containers[0].desired is W.KILL
    killed = report(outcome.containers[0], C.TERMINATED, Ending(signal=9))
    assert after_members((killed, failed)).ending == Ending(code=3)


def test_an_exit_that_we_asked_for_is_no_error() -> None:
    """Whatever signal it died of."""
    ended = report(raise_desired(member("a"), W.KILL), C.TERMINATED, Ending(signal=9, reason="killed by signal 9"))
    assert ended.ending is not None
    assert ended.ending.requested
    assert not ended.ending.failed


def test_old_news_changes_nothing() -> None:
    """A report of an earlier state, or a second ending, leaves the very same object."""
    running = member("a")
    assert report(running, C.STARTING, None) is running
    ended = report(running, C.TERMINATED, Ending(code=0))
    assert report(ended, C.TERMINATED, Ending(code=1)) is ended
    assert raise_desired(raise_desired(running, W.GONE), W.KILL).desired is W.GONE


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(list(C)), st.sampled_from([0, 1])), max_size=30))
def test_a_gang_always_reaches_its_end(reports: list[tuple[int, C, int]]) -> None:
    """Whatever is reported in whatever order, then all end: the allocation is TERMINATED once, and has an ending."""
    members = tuple(member(name, C.ASSIGNED) for name in "abc")
    for place, state, code in [*reports, *((n, C.TERMINATED, 0) for n in range(3))]:
        ending = Ending(code=code) if state is C.TERMINATED else None
        changed = report(members[place], state, ending)
        outcome = after_members((*members[:place], changed, *members[place + 1 :]))
        assert (outcome.state is AllocationState.TERMINATED) == (outcome.ending is not None)
        members = outcome.containers
    assert all(each.ending is not None for each in members)
