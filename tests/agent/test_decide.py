"""What is done next about a container: the ordered cases, and what never happens whatever the situation."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.agent.decide import (
    KILL_AGAIN_S,
    ContainerSituation,
    Gone,
    KeeperAction,
    NeverRan,
    Remove,
    Rest,
    Settle,
    Signal,
    Start,
    Vanished,
    decide,
)
from tenax.runtime.port import ContainerStatus
from tenax.wire.agents import ContainerSpec, DesiredGone, DesiredRun, DesiredState, DesiredStop, Exit

SPEC = ContainerSpec("c", "a.1", "a", 0, 1, [], ["true"], {})
DONE = Exit(code=0)
NOTHING_LEFT = "nothing is left of it on the agent's machine"


def container(state: str, *, stopping_since: float | None = None, spec: ContainerSpec | None = SPEC) -> ContainerStatus:
    exit = DONE if state == "exited" else None
    return ContainerStatus("c", "cluster", 1, state, 1, exit, spec, "/spool", {}, stopping_since)  # type: ignore[arg-type]


def act(
    want: DesiredState | None,
    there: ContainerStatus | None,
    *,
    ours: bool = True,
    settled: Exit | None = None,
    killed_at: float | None = None,
    now: float = 100.0,
    gone_before: bool = False,
    ran: bool = False,
) -> KeeperAction:
    ours = ours and there is not None
    return decide(ContainerSituation(want, there, ours, settled, killed_at, now, gone_before, ran))


RUN, RUN_KNOWN, GONE = DesiredRun("c", SPEC), DesiredRun("c"), DesiredGone("c")
STOP = DesiredStop("c", 10.0)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (act(RUN, None), Start(SPEC)),
        (act(RUN, None, ran=True), Vanished()),
        (act(STOP, None, ran=True), Vanished()),
        (act(GONE, None, ran=True), Gone()),
        (act(RUN, None, gone_before=True), NeverRan(Exit(reason=NOTHING_LEFT, platform=True))),
        (act(RUN_KNOWN, container("starting")), Start(SPEC)),
        (act(RUN_KNOWN, container("running")), Rest()),
        (act(RUN_KNOWN, container("exited")), Settle(DONE)),
        (act(RUN_KNOWN, container("exited"), settled=DONE), Rest()),
        (act(RUN_KNOWN, None, settled=DONE), Rest()),
        (act(STOP, None), NeverRan(Exit(reason="stopped before it was started"))),
        (act(STOP, container("starting")), Remove()),
        (act(STOP, container("running")), Signal(signal.SIGTERM)),
        (act(STOP, container("running", stopping_since=95.0)), Rest(105.0)),
        (act(STOP, container("running", stopping_since=89.0)), Signal(signal.SIGKILL)),
        (act(STOP, container("running", stopping_since=89.0), killed_at=99.0), Rest(99.0 + KILL_AGAIN_S)),
        (act(STOP, container("running", stopping_since=89.0), killed_at=94.0), Signal(signal.SIGKILL)),
        (act(DesiredStop("c", 0.0), container("running")), Signal(signal.SIGKILL)),
        (act(STOP, container("exited")), Settle(DONE)),
        (act(GONE, None), Gone()),
        (act(GONE, container("starting")), Remove()),
        (act(GONE, container("running")), Signal(signal.SIGKILL)),
        (act(GONE, container("running"), killed_at=99.0), Rest(99.0 + KILL_AGAIN_S)),
        (act(GONE, container("exited")), Settle(DONE)),
        (act(GONE, container("exited"), settled=DONE), Remove()),
        (act(None, container("running")), Rest()),
        (act(None, container("exited")), Settle(DONE)),
        (act(None, None), Rest()),
    ],
)
def test_cases(action: KeeperAction, expected: KeeperAction) -> None:
    """First match wins."""
    assert action == expected


def test_a_run_of_which_nothing_is_left_is_the_platforms_failure() -> None:
    """The master believes that the agent has it; it does not."""
    action = act(RUN_KNOWN, None)
    assert isinstance(action, NeverRan)
    assert action.exit.platform


def test_a_shorter_time_holds_at_once() -> None:
    """A stop that becomes a kill does not wait for the stop's time."""
    assert act(DesiredStop("c", 1000.0), container("running", stopping_since=99.0)) == Rest(1099.0)
    assert act(DesiredStop("c", 0.0), container("running", stopping_since=99.0)) == Signal(signal.SIGKILL)


WANTS = st.one_of(
    st.none(),
    st.sampled_from([RUN, RUN_KNOWN, GONE]),
    st.builds(DesiredStop, st.just("c"), st.floats(0, 1000)),
)
THERE = st.one_of(
    st.none(),
    st.builds(
        lambda state, since: container(state, stopping_since=since),
        st.sampled_from(["starting", "running", "exited"]),
        st.one_of(st.none(), st.floats(0, 100)),
    ),
)


@given(want=WANTS, there=THERE, settled=st.sampled_from([None, DONE]), now=st.floats(100, 5000))
def test_absence_never_kills(
    want: DesiredState | None, there: ContainerStatus | None, settled: Exit | None, now: float
) -> None:
    """Without a stop or a removal that names it, nothing is signalled or removed."""
    action = act(want, there, settled=settled, now=now)
    if not isinstance(want, (DesiredStop, DesiredGone)):
        assert not isinstance(action, (Signal, Remove, Gone))


@given(want=WANTS, there=THERE, settled=st.sampled_from([None, DONE]))
def test_what_is_foreign_is_never_touched(
    want: DesiredState | None, there: ContainerStatus | None, settled: Exit | None
) -> None:
    """Of another cluster: kept, whatever is wanted."""
    if there is not None:
        assert act(want, there, ours=False, settled=settled) == Rest()


@given(want=WANTS, there=THERE)
def test_nothing_ends_unsettled(want: DesiredState | None, there: ContainerStatus | None) -> None:
    """What has ended is settled before anything else is done, also where it is to be removed."""
    if there is not None and there.state == "exited":
        assert act(want, there) == Settle(DONE)
