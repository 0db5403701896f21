"""When and how a training's state becomes a checkpoint: at once, or copied at once and stored in the background.

All ranks call, in step; the chief stores. What is large is stored in the background, where there is memory for a copy
and no callback looks into the directory before it is stored. Either way it is the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

import torch

from tenax.core.pending import PendingCheckpoint
from tenax.core.sharding import OtherRankFailed
from tenax.core.spool import say
from tenax.host.disk import size_text
from tenax.pytorch import state as states
from tenax.pytorch.callback import PyTorchCallback
from tenax.pytorch.context import PyTorchTrialContext
from tenax.pytorch.state_copy import StateCopy, bytes_of
from tenax.pytorch.trial import TrialClass

#: What is smaller is stored at once by itself: it takes a fraction of a second.
_LARGE = 64 * 1024 * 1024


class CheckpointSaver:
    """Saves of one training. ``in_background`` None: where it pays and there is memory for it."""

    def __init__(
        self,
        context: PyTorchTrialContext,
        callbacks: Mapping[str, PyTorchCallback],
        trial: TrialClass,
        in_background: Optional[bool],
    ) -> None:
        self._context = context
        self._ranks = context.distributed
        self._chief = context.distributed.rank == 0
        self._callbacks = callbacks
        self._trial = trial
        self._in_background = in_background
        self._copy = StateCopy()
        #: The id of the checkpoint that is being stored, on all ranks; empty: none is.
        self._storing = ""
        self._pending: Optional[PendingCheckpoint] = None
        self._warned = False

    def save(self, position: states.Position, *, leaving: bool) -> None:
        """A checkpoint of now. ``leaving``: nothing is trained after it. Raises InvalidInput, StorageFailed, and what
        the save before failed with."""
        self.settle()
        randoms: Any = self._ranks.gather(states.random_state(self._context.device))
        parameters = states.trained(self._context)
        storage_id = ""
        if self._chief:
            storage_id = self._store(position, randoms, parameters, leaving)
        outcome: Any = self._ranks.broadcast((storage_id, self._pending is not None))
        storage_id, pending = outcome
        if pending:
            self._storing = storage_id
        else:
            self._announce(storage_id)

    def settle(self, *, wait: bool = True) -> None:
        """Once the checkpoint in the background is stored, callbacks get to know; ``wait`` until it is. Raises what it
        failed with."""
        if not self._storing:
            return
        failure: Optional[Exception] = None
        ended = True
        if self._pending is not None:
            ended = wait or self._pending.done()
            if ended:
                try:
                    self._pending.wait()
                except Exception as error:  # the other ranks have to hear of it before it goes its way
                    failure = error
        description = None if failure is None else f"{type(failure).__name__}: {failure}"
        outcome: Any = self._ranks.broadcast((ended, description))
        ended, description = outcome
        if not ended:
            return
        storage_id, self._storing, self._pending = self._storing, "", None
        if failure is not None:
            raise failure
        if description is not None:
            raise OtherRankFailed(f"the chief could not store checkpoint {storage_id}: {description}")
        self._announce(storage_id)

    def _announce(self, storage_id: str) -> None:
        for callback in self._callbacks.values():
            callback.on_checkpoint_upload_end(uuid=storage_id)

    def _store(self, position: states.Position, randoms: list[Any], parameters: dict[str, Any], leaving: bool) -> str:
        about = {
            "steps_completed": position.batches_trained,
            "framework": f"torch-{torch.__version__}",
            "format": "pickle",
        }
        state = states.collect(self._context, self._callbacks, position, randoms, parameters)
        files = states.described(self._context, self._trial, position)
        if not leaving and self._may_go_on(state):
            try:
                self._pending = self._context.core.checkpoint.store_async(lambda: self._take(state, files), about)
                return self._pending.storage_id
            except (MemoryError, OSError) as error:
                self._warn(f"there is no memory for a copy of the state ({error})")
        with self._context.core.checkpoint.store_path(about) as (directory, storage_id):
            states.save(state, directory)
            files.write(directory)
            for callback in self._callbacks.values():
                callback.on_checkpoint_end(str(directory))
                callback.on_checkpoint_write_end(str(directory))
        return storage_id

    def _take(self, state: dict[str, Any], files: states.SmallFiles) -> Any:
        write_state = self._copy.take(state, states.STATE)

        def write(directory: Path) -> None:
            write_state(directory)
            files.write(directory)

        return write

    def _may_go_on(self, state: dict[str, Any]) -> bool:
        """Whether the loop may go on while this is stored."""
        if self._in_background is False:
            return False
        size = bytes_of(state)
        if self._in_background is None and size < _LARGE:
            return False
        reading = [name for name, callback in self._callbacks.items() if _reads_directory(callback)]
        if reading:
            self._warn(f"the callback {reading[0]!r} works on each checkpoint's directory before it is stored")
            return False
        if not self._copy.has_room(size):
            self._warn(f"a copy of the state takes {size_text(size)}, more than half of the memory that is left")
            return False
        return True

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            say(f"the training waits while checkpoints are stored: {why}")


def _reads_directory(callback: PyTorchCallback) -> bool:
    kind, base = type(callback), PyTorchCallback
    return (
        kind.on_checkpoint_end is not base.on_checkpoint_end
        or kind.on_checkpoint_write_end is not base.on_checkpoint_write_end
    )
