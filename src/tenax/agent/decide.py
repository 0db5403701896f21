"""What to do next about one container: a function of what is wanted and what there is. Pure.

Ordered cases, first match wins. Rules it keeps:

- Absence never kills: without a want nothing is done; one of a foreign cluster is never touched.
- A container counts as exited only when its output and its spool were seen to (``settled``); nothing that ran is
  removed before: one that was given up as lost, and is back, delivers what it has.
- A stop is SIGTERM once, then SIGKILL when its time is over, counted from the SIGTERM on this machine's monotonic
clock.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from tenax.runtime.port import Found
from tenax.wire.agents import ContainerSpec, Exit, Want, WantGone, WantRun, WantStop

#: Seconds after which a SIGKILL that did not end it is sent again.
KILL_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the decision looks at; times are monotonic seconds."""

    want: Want | None
    found: Found | None
    #: It is of the cluster whose wants are obeyed.
    ours: bool
    #: How it ended, all told; also for one that never ran.
    settled: Exit | None
    killed_at: float | None
    now: float


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
class Remove:
    """Leave nothing of it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing of it is left: say so and forget it."""


Action = Rest | Start | Signal | Settle | NeverRan | Remove | Gone


def decide(now: Situation) -> Action:
    """The next thing to do."""
    found = now.found
    if found is not None and not now.ours:
        return Rest()
    if isinstance(now.want, WantGone):
        return _remove(now, found)
    if found is not None and found.state == "exited":
        return Rest() if now.settled is not None else _settle(found)
    if isinstance(now.want, WantStop):
        return _stop(now, now.want, found)
    if isinstance(now.want, WantRun):
        return _run(now, now.want, found)
    return Rest()


def _settle(found: Found) -> Settle:
    return Settle(found.exit or Exit(reason="it ended", platform=True))


def _remove(now: Situation, found: Found | None) -> Action:
    if found is None:
        return Gone()
    if found.state == "starting" or now.settled is not None:
        return Remove()
    return _settle(found) if found.state == "exited" else _kill(now)


def _kill(now: Situation) -> Action:
    again = None if now.killed_at is None else now.killed_at + KILL_AGAIN_S
    return Signal(signal.SIGKILL) if again is None or now.now >= again else Rest(again)


def _stop(now: Situation, want: WantStop, found: Found | None) -> Action:
    if found is None:
        return Rest() if now.settled is not None else NeverRan(Exit(reason="stopped before it was started"))
    if found.state == "starting":
        return Remove()
    deadline = now.now + want.within_s if found.stopping_since is None else found.stopping_since + want.within_s
    if now.now >= deadline:
        return _kill(now)
    return Signal(signal.SIGTERM) if found.stopping_since is None else Rest(deadline)


def _run(now: Situation, want: WantRun, found: Found | None) -> Action:
    if found is None:
        if now.settled is not None:
            return Rest()
        if want.spec is None:
            return NeverRan(Exit(reason="nothing is left of it on the agent's machine", platform=True))
        return Start(want.spec)
    if found.state == "starting":
        spec = found.spec or want.spec
        return Start(spec) if spec is not None else NeverRan(Exit(reason="its records are damaged", platform=True))
    return Rest()
