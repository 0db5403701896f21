"""A save in the background: the loop goes on while a thread stores the checkpoint. Standard library only, Python 3.9.

What was copied is stored as by any other save: announced, whole, then reported. So until the report there is nothing
that anybody takes for a checkpoint, whatever becomes of the process. An error is raised once: by ``wait``, by the next
save, or by the end of the context.
"""

from __future__ import annotations

import os
import threading

from tenax.core.hangs import beats
from tenax.errors import NotNow, TenaxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional


class SaveUnfinished(TenaxError):
    """A checkpoint was still being stored when the waiting for it ended."""


class PendingCheckpoint:
    """A checkpoint on its way. Thread-safe; of use in the process alone that began it."""

    def __init__(self, storage_id: str, store: Callable[[], None]) -> None:
        """Begin it: ``store`` is called in a thread, and has reported the checkpoint when it returns."""
        #: A checkpoint of this id is there once `wait` has returned.
        self.storage_id = storage_id
        self._store = store
        self._error: Optional[BaseException] = None
        self._raised = False
        self._ended = threading.Event()
        self._pid = os.getpid()
        # A daemon: the end of the process waits for it as long as `CheckpointContext.close` says, and no longer.
        threading.Thread(target=self._run, name="tenax-checkpoint", daemon=True).start()

    def done(self) -> bool:
        """Whether it was stored and reported, or has failed."""
        return self._ended.is_set()

    def wait(self, seconds: Optional[float] = None) -> str:
        """Until it is stored and reported: its id. Raises what the save raised, SaveUnfinished after ``seconds``."""
        if not self.is_own():
            raise NotNow(f"checkpoint {self.storage_id} is stored by process {self._pid}: wait for it there")
        with beats.OWN.during(beats.SAVE):
            ended = self._ended.wait(seconds)
        if not ended:
            raise SaveUnfinished(f"checkpoint {self.storage_id} is not stored yet, after {seconds:.0f} s")
        if self._error is not None:
            self._raised = True
            raise self._error
        return self.storage_id

    def ends_within(self, seconds: float) -> bool:
        """Wait so long; whether it has ended."""
        return self._ended.wait(seconds)

    def is_own(self) -> bool:
        """Whether this process stores it: one that was forked meanwhile does not."""
        return self._pid == os.getpid()

    def failure(self) -> Optional[BaseException]:
        """What it failed with, if nobody was given that yet; from now on somebody was."""
        error = None if self._raised else self._error
        self._raised = self._raised or error is not None
        return error

    def _run(self) -> None:
        try:
            self._store()
        except BaseException as error:  # whatever it is, whoever waits gets it
            self._error = error
        finally:
            del self._store  # with the copy that it holds
            self._ended.set()
