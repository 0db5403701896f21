"""A launcher while its ranks run: signals, failures, and how it all ends. Standard library only, Python 3.9."""

from __future__ import annotations

import queue
import signal
import threading
import time

from tenax.core.spool import say
from tenax.launch.failures import MAILBOX, Failure, Mailbox, Peers, first_of
from tenax.launch.hangs import HangWatch
from tenax.launch.signals import on_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import Optional, Union

    from tenax.core.collectives import Star
    from tenax.core.hangs.settings import HangSettings

#: Seconds after a first failure in which others, whose news took longer, may turn out to have been earlier.
HOLD_S = 1.0
#: The same, while all that is known are ranks that lost another one.
CAUSE_S = 5.0
#: Seconds that a member whose ranks have failed waits to hear whose failure was the first.
NEWS_S = 10.0
#: Seconds that a member whose ranks were not the first to fail waits to be ended, so that the other one ends before it.
YIELD_S = 60.0
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2)


class _FirstFailure:
    """The chief's launcher says which failure was the first."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Ended:
    """torchrun has ended with ``code``, negative for a signal."""

    def __init__(self, code: int) -> None:
        self.code = code


class RankWatch:
    """Over the ranks of one member. ``launchers``: those of all members; None: it is alone. ``hang``: what is done
    where ranks hang; None: nothing."""

    def __init__(self, addresses: list[str], launchers: Optional[Star], hang: Optional[HangSettings] = None) -> None:
        self._member = launchers.rank if launchers is not None else 0
        self._addresses = addresses
        self._events: queue.SimpleQueue[Union[Failure, _FirstFailure, _Ended]] = queue.SimpleQueue()
        self._failures: list[Failure] = []
        self._first: Optional[Failure] = None
        self._ended: Optional[int] = None
        self._told_to_end = False
        #: The signal that asked for an end.
        self._signal = 0
        self._stopped = threading.Event()
        self._peers: Optional[Peers] = None
        self._hangs = HangWatch(hang, self._member, len(addresses)) if hang is not None else None
        if launchers is not None:
            decides = self._member == 0
            take = self._events.put if decides else lambda failure: self._events.put(_FirstFailure(failure))
            news = self._hangs.hear if self._hangs is not None else lambda _: None
            self._peers = Peers(launchers.detach(), take, news)
            if self._hangs is not None:
                self._hangs.tell = self._peers.tell_news
        self._mailbox = Mailbox(self._own_failure)
        #: For the ranks.
        self.environment = {MAILBOX: self._mailbox.path}
        if self._hangs is not None:
            self.environment.update(self._hangs.environment)

    def __enter__(self) -> RankWatch:
        if self._hangs is not None:
            self._hangs.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._hangs is not None:
            self._hangs.close()
        self._mailbox.close()
        if self._peers is not None:
            self._peers.close()

    def over(self, start: Callable[[], subprocess.Popen[bytes]]) -> int:
        """``start`` torchrun; the exit code for this launcher, once it has ended. Raises what ``start`` raises."""
        started = threading.Event()

        def pass_on(number: int) -> None:
            if number != signal.SIGUSR2:
                self._signal = number
                self._stopped.set()
            started.wait()
            torchrun.send_signal(number)

        # Before it runs: a signal that comes as it starts would end this program alone.
        on_signals(_PASSED_ON, pass_on)
        torchrun = start()
        started.set()
        threading.Thread(target=lambda: self._events.put(_Ended(torchrun.wait())), daemon=True).start()
        while self._ended is None or self._undecided():
            event = self._next()
            if isinstance(event, _Ended):
                self._ended = event.code
                self._ended_at = time.monotonic()
            elif isinstance(event, Failure):
                self._failures.append(event)
            elif isinstance(event, _FirstFailure):
                self._first = event.failure
            self._decide()
            if self._first is not None and self._first.member != self._member and not self._told_to_end:
                self._told_to_end = True
                torchrun.terminate()
        return self._conclude(self._ended)

    def _own_failure(self, failure: Failure) -> None:
        failure.member = self._member
        self._events.put(failure)
        if self._peers is not None and self._member:
            self._peers.tell(failure)

    def _undecided(self) -> bool:
        """Whether it may still turn out, soon, whose failure was the first."""
        if self._peers is None or self._first is not None or self._ended == 0 or self._signal:
            return False
        return time.monotonic() < self._ended_at + NEWS_S

    def _next(self) -> Union[Failure, _FirstFailure, _Ended, None]:
        """What happens next; None: nothing for a while."""
        wait = HOLD_S / 4 if self._failures or self._ended is not None else None
        try:
            return self._events.get(timeout=wait)
        except queue.Empty:
            return None

    def _decide(self) -> None:
        """The chief's launcher: the earliest of all, once later news could not change it."""
        if self._member or self._peers is None or self._first is not None or not self._failures:
            return
        first = first_of(self._failures)
        hold_s = CAUSE_S if first.follows else HOLD_S
        if time.monotonic() >= min(failure.at for failure in self._failures) + hold_s:
            self._first = first
            self._peers.tell(first)

    def _conclude(self, code: int) -> int:
        if self._signal:
            return 128 + self._signal
        if code == 0:
            return 0
        first = self._first or (first_of(self._failures) if self._failures else None)
        if first is None:
            return code if code > 0 else 128 - code
        if first.member == self._member:
            say(str(first))
        else:
            say(f"{first}, on the machine at {self._addresses[first.member]}")
            self._stopped.wait(YIELD_S)
        return first.code
