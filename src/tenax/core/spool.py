"""Reports of this process on their way to the master: written to a file at once, shipped by a thread.

``report`` writes a line (a few microseconds, no network) and returns. What was written survives the death of the
process by ``kill -9``: the agent ships what is left after the container's end. The thread sends lines in order, in
groups, as long as the process lives; with the master away it tries again with growing pauses, and reports go on.

At the end ``close`` waits until all is with the master, so that a refusal can still fail the script:

- master answers: milliseconds;
- master away: up to ``DET_REPORT_WAIT`` seconds (600), then one line says that the agent sends the rest;
- the script is failing anyway: at most :data:`FAILING_WAIT` seconds.

A refused report is an error of the script: it is raised by the next report (which is recorded all the same), or by
``close``. A fatal one (the master ends the trial for it) is raised by every call from then on, and by
``should_preempt``.

Thread-safe, and to be used in the handlers of signals. After a fork the child has a stream of its own.
"""

from __future__ import annotations

import os
import sys
import threading
from time import monotonic

from tenax.client.task import MasterAway, TaskClient, retry
from tenax.core.info import run_dir
from tenax.core.spooling.file import SpoolFile
from tenax.errors import NotNow, TenaxError, UserError
from tenax.wire.task_names import SEGMENTS, SPOOL_FORMATS, masters_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

    from tenax.core.info import ClusterInfo
    from tenax.jsonvalue import Json
    from tenax.wire.spool_records import SpoolLines

#: Seconds between two sendings while nothing urgent waits: a training loop is not to share its core with the shipper.
GROUP_SECONDS = 0.2
#: Seconds that a script which is failing waits for its reports; the agent ships the rest.
FAILING_WAIT = 5.0
#: Seconds of waiting after which a line says what is waited for.
_SAY_AFTER = 5.0


class ReportRefused(UserError):
    """The master refused a report."""

    def __init__(self, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        #: The trial ends for it.
        self.fatal = fatal


class Spool:
    """The stream of this process. ``client`` None: off the cluster, lines are kept in the file and sent nowhere."""

    def __init__(self, file: SpoolFile, client: Optional[TaskClient], allocation_id: str, container_id: str) -> None:
        self._file = file
        self._client = client
        self._target = f"/api/v1/allocations/{allocation_id}/spool"
        self._container_id = container_id
        self._reset()
        if client is not None:
            _spools.append(self)

    def _reset(self) -> None:
        #: Of all below. `report` takes it without the calls of a Condition in Python. Its thread may take it again: in
        #: the handler of a signal.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._thread: Optional[threading.Thread] = None
        #: A record is being written; what the handler of a signal reports meanwhile is written after it.
        self._writing = False
        self._interrupting: list[tuple[str, Union[str, bytes], bool, bool]] = []
        #: The shipper waits for a line (or for an urgent one): ``report`` has to wake it.
        self._idle = False
        self._spacing = False
        self._urgent_n = 0
        self._hurry = False
        self._failures = 0
        self._closing = False
        self._refusal: Optional[ReportRefused] = None
        self._broken: Optional[TenaxError] = None

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def packs(self) -> bool:
        """Whether packed metrics cost less than JSON."""
        return self._file.packs

    def report(self, kind: str, body: Union[str, bytes], *, urgent: bool = False, durable: bool = False) -> int:
        """Write a record down and return how many there are now (for ``wait``); ``body``: as
        `SpoolFile.append` takes it.

        ``urgent``: somebody waits for it, send it now. ``durable``: it outlives a power cut.
        Raises SpoolWriteFailed when the disk does not take it, ReportRefused for an earlier report.
        """
        with self._lock:
            if self._closing:
                raise NotNow("the context of core.init() is closed: report inside its with-block")
            if self._writing:
                self._interrupting.append((kind, body, urgent, durable))
                return self._file.written_in_all + len(self._interrupting)
            self._writing = True
            try:
                n = self._file.append(kind, body, durable)
            finally:
                self._writing = False
            if urgent:
                self._urgent_n = n
            if self._idle and (urgent or not self._spacing):
                self._idle = False
                self._changed.notify_all()
            elif self._thread is None and self._client is not None:
                self._start()
            if self._interrupting:
                self._write_interrupting()
        if self._refusal is not None:
            self.check()
        return n

    def _write_interrupting(self) -> None:
        while self._interrupting:
            kind, body, urgent, durable = self._interrupting.pop(0)
            self.report(kind, body, urgent=urgent, durable=durable)

    def check(self, fatal_only: bool = False) -> None:
        """Raise what the master refused; a refusal that is not fatal is raised once."""
        refusal = self._refusal
        if refusal is None or (fatal_only and not refusal.fatal):
            return
        if not refusal.fatal:
            self._refusal = None
        raise refusal

    def wait(self, n: int, seconds: float, *, while_away: bool = True) -> bool:
        """Wait until the master has the first ``n`` records; False: not within ``seconds``.

        ``while_away`` False: only as long as the master can be reached. In the handler of a signal that has interrupted
        a report nothing is waited for: that report has to be written first.
        """
        if self._client is None:
            return True
        deadline = monotonic() + seconds
        with self._changed:
            if self._writing:
                return False
            failures = self._failures
            self._hurry = True
            self._changed.notify_all()
            while self._file.acked_in_all < n and self._broken is None:
                left = deadline - monotonic()
                if left <= 0 or (self._failures > failures and not while_away):
                    break
                self._changed.wait(left)
            self._hurry = False
            return self._file.acked_in_all >= n

    def flush(self, seconds: float) -> bool:
        """Wait until the master has all reports so far."""
        return self.wait(self._file.written_in_all, seconds)

    def close(self, *, failing: bool = False) -> None:
        """Wait as the module's docstring says, stop the thread, and raise a refusal unless the script is failing."""
        with self._lock:
            self._write_interrupting()
        thread = self._thread
        if self._client is not None and thread is not None:
            self._drain(min(report_wait(), FAILING_WAIT) if failing else report_wait())
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            self._client.abort()
            thread.join(2.0)
            if not thread.is_alive():
                self._client.close()
        with self._changed:
            self._closing = True
            if thread is None or not thread.is_alive():  # one that hangs may read it yet
                self._file.close()
        if self in _spools:
            _spools.remove(self)
        if not failing:
            self.check()

    def _drain(self, seconds: float) -> None:
        assert self._client is not None
        last = self._file.written_in_all
        if self.wait(last, min(seconds, _SAY_AFTER)):
            return
        waiting = last - self._file.acked_in_all
        master = self._client.master_url
        if self._broken is None and seconds > _SAY_AFTER:
            say(f"waiting up to {seconds:.0f} s for the master at {master} to take {waiting} reports")
            if self.wait(last, seconds - _SAY_AFTER):
                return
        why = f": {self._broken}" if self._broken is not None else ""
        say(
            f"{last - self._file.acked_in_all} reports are not with the master at {master}{why}. "
            f"They stay in {self._file.path}; the agent sends them after the end of this task."
        )

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="tenax-shipper", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        """The thread. Whatever breaks it stops the sending, not the training: the agent has the file."""
        try:
            self._ship()
        except Exception as error:
            say(f"reports are no longer sent by this process: {type(error).__name__}: {error}")
            with self._changed:
                self._broken = TenaxError(f"{type(error).__name__}: {error}")
                self._changed.notify_all()

    def _ship(self) -> None:
        """Send, take the answer in, again; pause while the master is away."""
        attempts = retry()
        after = monotonic() + GROUP_SECONDS
        while self._await_lines(after):
            # Without the lock: to make text of many reports takes as long as hundreds of them.
            batch = self._file.next_batch()
            try:
                moved = self._take_in(batch, self._send(batch))
            except MasterAway as away:
                self._note_failure()
                self._pause(attempts.pause(away.retry_after))
                continue
            except TenaxError as error:
                self._give_up(error)
                return
            if moved:
                attempts.reset()
                after = monotonic() + GROUP_SECONDS
            else:
                self._pause(attempts.pause())

    def _await_lines(self, not_before: float) -> bool:
        """Wait for lines, and for company to the first; False: closing."""
        file = self._file
        with self._changed:
            while not self._closing:
                if file.written_n > file.acked_n:
                    left = not_before - monotonic()
                    if left <= 0 or self._hurry or self._urgent_n > file.acked_in_all:
                        return True
                    self._idle = self._spacing = True
                    self._changed.wait(left)
                else:
                    self._idle, self._spacing = True, False
                    self._changed.wait()
                self._idle = False
            return False

    def _send(self, batch: SpoolLines) -> Json:
        assert self._client is not None
        query = {"container_id": self._container_id, "stream": self._file.name}
        return self._client.attempt("POST", self._target, query=query, raw=batch.data)

    def _take_in(self, batch: SpoolLines, reply: Json) -> bool:
        """Note what the master has and what it refused; False: it has nothing more than before."""
        if not isinstance(reply, dict) or not isinstance(reply.get("acked"), int):
            raise MasterAway("the master's answer to a report is not understood")
        acked = reply["acked"]
        assert isinstance(acked, int)
        with self._changed:
            refused = reply.get("refused")
            for refusal in refused if isinstance(refused, list) else ():
                if isinstance(refusal, dict):
                    self._note_refusal(str(refusal.get("message", "")), bool(refusal.get("fatal")))
            lines = min(acked - batch.first + 1, len(batch.ends))
            if lines > 0:
                self._file.acknowledge(batch, lines)
                self._file.turn()
            elif lines < 0:
                self._file.rewind()
            self._changed.notify_all()
            return lines > 0

    def _note_refusal(self, message: str, fatal: bool) -> None:
        """The first refusal counts, but a fatal one always."""
        if self._refusal is None or (fatal and not self._refusal.fatal):
            self._refusal = ReportRefused(f"the master refused a report: {message}", fatal=fatal)

    def _note_failure(self) -> None:
        with self._changed:
            self._failures += 1
            self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        deadline = monotonic() + seconds
        with self._changed:
            hurried = self._hurry
            while not self._closing and self._hurry == hurried:
                left = deadline - monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def _give_up(self, error: TenaxError) -> None:
        """The master will never take reports of this task (its token has ended, or it is unknown)."""
        with self._changed:
            self._broken = error
            self._refusal = ReportRefused(f"the master takes no more reports of this task: {error}", fatal=True)
            self._changed.notify_all()

    def forget(self) -> None:
        """After a fork, in the child."""
        if self._client is not None:
            self._client.forget()
        self._file.forget()
        self._reset()


def client_of(info: ClusterInfo) -> TaskClient:
    """The master, for a task."""
    return TaskClient(
        masters_of({**os.environ, "DET_MASTER": info.master_url}),
        info.session_token,
        cert_file=info.master_cert_file or "",
        cert_name=info.master_cert_name or "",
    )


def spool_of(info: ClusterInfo) -> Spool:
    """The stream of this process of a task."""
    container = os.environ.get("DET_CONTAINER_ID") or os.environ.get("DET_RESOURCES_ID") or ""
    segments = SEGMENTS in os.environ.get(SPOOL_FORMATS, "").split(",")
    file = SpoolFile(os.path.join(run_dir(), "spool"), segments=segments)
    return Spool(file, client_of(info), info.allocation_id, container)


def report_wait() -> float:
    """Seconds that the end of a script waits for a master that is away: ``DET_REPORT_WAIT``, 600."""
    text = os.environ.get("DET_REPORT_WAIT", "")
    try:
        return max(0.0, float(text)) if text else 600.0
    except ValueError:
        say(f"DET_REPORT_WAIT is not a number of seconds: {text!r}; 600 is used")
        return 600.0


def say(message: str) -> None:
    """A line to the person who reads the task's log."""
    sys.stderr.write(f"tenax: {message}\n")
    sys.stderr.flush()


_spools: list[Spool] = []


def _after_fork_in_child() -> None:
    for spool in _spools:
        spool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
