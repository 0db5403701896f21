"""What to do next about one container: a function of its desired state and what there is. Pure.

Ordered cases, first match wins. Rules it keeps:

- Absence never kills: without a desired state nothing is done; one of a foreign cluster is never touched.
- A container counts as exited only when its output and its spool were seen to (``settled``); nothing that ran is
  removed before: one that was given up as lost, and is back, delivers what it has.
- A stop is SIGTERM once, then SIGKILL when its time is over, counted from the SIGTERM on this machine's
  monotonic clock.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from tenax.runtime.port import ContainerStatus
from tenax.wire.agents import ContainerSpec, DesiredGone, DesiredRun, DesiredState, DesiredStop, Exit

#: Seconds after which a SIGKILL that did not end it is sent again.
KILL_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class ContainerSituation:
    """All that the decision looks at; times are monotonic seconds."""

    desired: DesiredState | None
    container: ContainerStatus | None
    #: It is of the cluster whose desired states are obeyed.
    ours: bool
    #: How it ended, once its output and spool were shipped; also for one that never ran.
    settled: Exit | None
    killed_at: float | None
    now: float
    #: It was here, and nothing of it was left: whoever desires it again does not know that, as a restored master.
    gone_before: bool = False
    #: It was seen to run, or to have run, by this agent.
    ran: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do before ``until`` (None: before something changes)."""

    until: float | None = None


@dataclass(frozen=True, slots=True)
class Start:
    spec: ContainerSpec


@dataclass(frozen=True, slots=True)
class Signal:
    number: int


@dataclass(frozen=True, slots=True)
class Settle:
    """It has ended: ship what is left of its output and spool, then say so."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class NeverRan:
    """It has ended without having run."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class Vanished:
    """Its directory is gone while it was to run: end what is left of it."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Leave nothing of it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing of it is left: say so and forget it."""


KeeperAction = Rest | Start | Signal | Settle | NeverRan | Vanished | Remove | Gone


def decide(now: ContainerSituation) -> KeeperAction:
    """The next thing to do."""
    container = now.container
    if container is not None and not now.ours:
        return Rest()
    if isinstance(now.desired, DesiredGone):
        return _remove(now, container)
    if container is not None and container.state == "exited":
        return Rest() if now.settled is not None else _settle(container)
    if isinstance(now.desired, DesiredStop):
        return _stop(now, now.desired, container)
    if isinstance(now.desired, DesiredRun):
        return _run(now, now.desired, container)
    return Rest()


def _settle(container: ContainerStatus) -> Settle:
    return Settle(container.exit or Exit(reason="it ended", platform=True))


def _remove(now: ContainerSituation, container: ContainerStatus | None) -> KeeperAction:
    if container is None:
        return Gone()
    if container.state == "starting" or now.settled is not None:
        return Remove()
    return _settle(container) if container.state == "exited" else _kill(now)


def _kill(now: ContainerSituation) -> KeeperAction:
    again = None if now.killed_at is None else now.killed_at + KILL_AGAIN_S
    return Signal(signal.SIGKILL) if again is None or now.now >= again else Rest(again)


def _stop(now: ContainerSituation, desired: DesiredStop, container: ContainerStatus | None) -> KeeperAction:
    if container is None:
        if now.settled is None and now.ran:
            return Vanished()
        return Rest() if now.settled is not None else NeverRan(Exit(reason="stopped before it was started"))
    if container.state == "starting":
        return Remove()
    deadline = (
        now.now + desired.within_s if container.stopping_since is None else container.stopping_since + desired.within_s
    )
    if now.now >= deadline:
        return _kill(now)
    return Signal(signal.SIGTERM) if container.stopping_since is None else Rest(deadline)


def _run(now: ContainerSituation, desired: DesiredRun, container: ContainerStatus | None) -> KeeperAction:
    if container is None:
        if now.settled is not None:
            return Rest()
        if now.ran:
            return Vanished()
        if desired.spec is None or now.gone_before:
            return NeverRan(Exit(reason="nothing is left of it on the agent's machine", platform=True))
        return Start(desired.spec)
    if container.state == "starting":
        spec = container.spec or desired.spec
        return Start(spec) if spec is not None else NeverRan(Exit(reason="its records are damaged", platform=True))
    return Rest()
