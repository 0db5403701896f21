"""``context.preempt``: whether this task should save and leave. Standard library only, Python 3.9.

The signal has one form and many causes (pause, a more urgent task, a searcher's stop, a machine that goes). A script
that sees it saves a checkpoint and exits; because it acknowledged the signal, its exit means "to be continued" and not
"done".

A thread asks the master with long polls. It begins at the first ``should_preempt``, or a little after the start, so
that a task shorter than that asks nothing. With the master away the answer stays what it was, unless the agent asks in
its place, by a file: on a machine that is going to end as nobody hears from any master. The acknowledgement is a
record of the spool, on the disk before ``should_preempt`` returns True; the exit of a task is judged only after its
spool.
"""

from __future__ import annotations

import os
import threading
from time import monotonic

from tenax.client.task import MasterAway, TaskClient, retry
from tenax.core.hangs import beats
from tenax.core.modes import PreemptMode
from tenax.core.spool import Spool
from tenax.errors import NotNow, TenaxError
from tenax.wire.spool_names import ACK_PREEMPTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional, Union

    from tenax.core.distributed import DistributedContext
    from tenax.core.local_runs.trace import ResumeTrace

#: Seconds that one long poll lasts.
LONG_POLL = 60
#: Seconds after the start at which the watcher asks even if nobody called ``should_preempt``.
_QUIET_START = 0.5
#: Seconds that the first ``should_preempt`` waits for the first answer.
_FIRST_ANSWER = 2.0
#: Seconds that an acknowledgement waits for a master that can be reached; it is safe on the disk before.
_ACK_WAIT = 2.0
#: Shortest time between two polls, whatever the master answers.
_POLL_GAP = 1.0
#: So often a loop of several ranks looks whether to stop.
_LOOK_S = 2.0


class PreemptionWatcher:
    """The thread that asks the master; one per process that needs the answer."""

    def __init__(self, client: TaskClient, allocation_id: str, leave_file: str = "") -> None:
        """``leave_file``: the signal, too, once it is there."""
        self._client = client
        self._leave_file = leave_file
        self._path = f"/api/v1/allocations/{allocation_id}/signals/preemption"
        self._pid = os.getpid()
        self._begin()

    def _begin(self) -> None:
        self._signalled = False
        self._answered = threading.Event()
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="tenax-preemption", daemon=True)
        self._thread.start()

    def signalled(self) -> bool:
        """Whether the signal was seen. The first call waits a moment for the first answer of the master."""
        if self._pid != os.getpid():  # a fork took the thread away
            self._pid = os.getpid()
            self._client.forget()
            self._begin()
        if not self._answered.is_set():
            self._wake.set()
            self._answered.wait(_FIRST_ANSWER)
            self._answered.set()  # at most one wait per process
        return self._signalled

    def close(self) -> None:
        self._closing = True
        self._wake.set()
        self._client.abort()
        self._thread.join(1.0)
        if not self._thread.is_alive():
            # Left to the end of the interpreter, Python 3.13 prints a traceback of its own about it.
            self._client.close()

    def _run(self) -> None:
        self._wake.wait(_QUIET_START)
        self._wake.clear()
        attempts = retry()
        seconds = 0
        while not self._closing:
            if self._leave_file and os.path.exists(self._leave_file):
                self._signalled = True
                self._answered.set()
                return
            began = monotonic()
            try:
                answer = self._client.attempt(
                    "GET", self._path, query={"timeout_seconds": seconds}, timeout=seconds + 10.0
                )
            except MasterAway as away:
                self._answered.set()  # nobody waits for a master that is away
                self._pause(attempts.pause(away.retry_after))
                continue
            except TenaxError:
                # The allocation or its token is no longer known: nobody will signal. Ask again, seldom.
                self._pause(LONG_POLL / 2)
                continue
            attempts.reset()
            if isinstance(answer, dict) and answer.get("preempt") is True:
                self._signalled = True
                self._answered.set()
                return
            self._answered.set()
            if seconds:
                self._pause(_POLL_GAP - (monotonic() - began))
            seconds = LONG_POLL

    def _pause(self, seconds: float) -> None:
        if seconds > 0 and not self._closing:
            self._wake.wait(seconds)
            self._wake.clear()


class PreemptContext:
    """``watcher`` is None where this process does not ask the master (off the cluster, or not its part)."""

    def __init__(
        self,
        spool: Spool,
        distributed: DistributedContext,
        mode: PreemptMode,
        watcher: Optional[Union[PreemptionWatcher, ResumeTrace]],
    ) -> None:
        self._spool = spool
        self._distributed = distributed
        self._mode = PreemptMode(mode)
        self._watcher = watcher
        self._acknowledged = False

    def should_preempt(self, auto_ack: bool = True) -> bool:
        """True: save and exit. Cheap enough for every batch on one process; under WorkersAskChief it is a broadcast.

        ``auto_ack``: acknowledge at the first True; with False, call ``acknowledge_preemption_signal`` yourself before
        exiting, or the exit counts as the end of the trial. Raises ReportRefused when the master has ended this trial.
        """
        beats.OWN.beat()
        self._spool.check(fatal_only=True)
        chief = self._distributed.rank == 0
        if self._mode is PreemptMode.ChiefOnly and not chief:
            raise NotNow(f"preempt_mode is ChiefOnly and this is rank {self._distributed.rank}: only the chief may ask")
        asks = chief or self._mode is PreemptMode.WorkersAskMaster
        answer = self._watcher.signalled() if asks and self._watcher is not None else False
        if answer and auto_ack:
            self.acknowledge_preemption_signal()
        if self._mode is PreemptMode.WorkersAskChief and self._distributed.size > 1:
            # With it goes how far the chief is: of the others, who do not report, nobody would know.
            news = self._distributed.broadcast((answer, beats.OWN.step))
            assert isinstance(news, tuple)
            if not chief and news[1] >= 0:
                beats.OWN.at(news[1])
            return bool(news[0])
        return answer

    def acknowledge_preemption_signal(self) -> None:
        """Tell the master that this task exits because it was asked to, and wants to go on later."""
        if self._acknowledged or self._watcher is None:
            return
        n = self._spool.report(ACK_PREEMPTION, "{}", urgent=True, durable=True)
        self._acknowledged = True
        self._spool.wait(n, _ACK_WAIT, while_away=False)

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()


class NextLook:
    """When a loop looks whether to stop: each few seconds, told in batches: all ranks look after the same one."""

    def __init__(self) -> None:
        self._next = 1
        self._last = 0
        self._since = monotonic()

    @property
    def due_at(self) -> int:
        """The batch after which to look."""
        return self._next

    def is_due(self, batches: int) -> bool:
        return batches >= self._next

    def was_at(self, batches: int, agree: Callable[[int], int]) -> None:
        """It was looked after so many batches; ``agree``: the chief's number, on all ranks."""
        now = monotonic()
        each = (now - self._since) / max(1, batches - self._last)
        self._next = agree(batches + max(1, int(_LOOK_S / max(each, 1e-6))))
        self._last, self._since = batches, now
