"""How long a save holds the training loop, how soon the checkpoint is safe, and what ten of them take on the disk.

One state of tensors of 16 MiB, on the GPU where there is one, off a cluster, two threads. In turns, in milliseconds:
how long the loop is held (``stall_ms``) and until all is flushed and reported (``durable_ms``), for ``store_async``
of `tenax.core` with a `tenax.pytorch.StateCopy`, for ``store_path`` with ``torch.save`` in it, for ``torch.save``
alone, and for ``torch.distributed.checkpoint`` (``save``, ``async_save``). The floors: the copy of the state into
memory that is there already, and one write of its bytes with ``fsync``. ``stored_mib``: ten checkpoints of ten
layers, of which one has changed each time, a file a layer. Run as ``python -m benchmarks.checkpoint_stall``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._measure import LONG, Line, extremes

os.environ["OMP_NUM_THREADS"] = "2"

import torch
import torch.distributed.checkpoint as dcp

from tenax import core, pytorch

MIB, ROUNDS = (1024, 7) if LONG else (256, 5)
LAYER = 16 * 2**20 // 4
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

State = dict[str, torch.Tensor]


def state_of(mib: int) -> State:
    generator = torch.Generator().manual_seed(0)
    return {f"layer{number}.weight": torch.randn(LAYER, generator=generator).to(DEVICE) for number in range(mib // 16)}


class Ways:
    """Each way to save: (seconds of stall, seconds until it is durable)."""

    def __init__(self, context: core.Context, state: State, directory: Path) -> None:
        self._checkpoint = context.checkpoint
        self._state = state
        self._directory = directory
        self._state_copy = pytorch.StateCopy()
        self._buffers = {
            name: torch.empty_like(value, device="cpu", pin_memory=value.is_cuda) for name, value in state.items()
        }

    def copy(self) -> tuple[float, float]:
        began = time.perf_counter()
        for name, value in self._state.items():
            self._buffers[name].copy_(value)
        took = time.perf_counter() - began
        return took, took

    def write_and_fsync(self) -> tuple[float, float]:
        began = time.perf_counter()
        with open(self._directory / "raw", "wb", buffering=0) as file:
            for value in self._state.values():
                file.write(memoryview(value.cpu().numpy()).cast("B"))
            os.fsync(file.fileno())
        took = time.perf_counter() - began
        return took, took

    def tenax_async(self) -> tuple[float, float]:
        began = time.perf_counter()
        pending = self._checkpoint.store_async(lambda: self._state_copy.take(self._state), {"steps_completed": 1})
        stall = time.perf_counter() - began
        storage_id = pending.wait()
        took = time.perf_counter() - began
        self._checkpoint.delete(storage_id)
        return stall, took

    def tenax_sync(self) -> tuple[float, float]:
        began = time.perf_counter()
        with self._checkpoint.store_path({"steps_completed": 1}) as (path, storage_id):
            torch.save(self._state, path / "state.pt")
        took = time.perf_counter() - began
        self._checkpoint.delete(storage_id)
        return took, took

    def torch_save(self) -> tuple[float, float]:
        """Not flushed."""
        began = time.perf_counter()
        torch.save(self._state, self._directory / "state.pt")
        took = time.perf_counter() - began
        return took, took

    def dcp_save(self) -> tuple[float, float]:
        """Flushes its files."""
        began = time.perf_counter()
        dcp.save(self._state, checkpoint_id=self._directory / "sync", no_dist=True)
        took = time.perf_counter() - began
        return took, took

    def dcp_async_save(self) -> tuple[float, float]:
        began = time.perf_counter()
        future: Any = dcp.async_save(self._state, checkpoint_id=self._directory / "async", no_dist=True)
        stall = time.perf_counter() - began
        future.result()
        return stall, time.perf_counter() - began


def stored_bytes(directory: Path) -> int:
    """On the disk: of a file with several names once."""
    statuses = [path.lstat() for path in directory.rglob("*") if path.is_file()]
    return sum({status.st_ino: status.st_blocks * 512 for status in statuses}.values())


def ten_checkpoints(context: core.Context, storage: Path, directory: Path) -> dict[str, float]:
    """MiB of ten checkpoints of ten layers, of which one changes between two."""
    state = state_of(160)
    before = stored_bytes(storage)

    def tenax_files(_: int) -> None:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _id):
            for name, value in state.items():
                torch.save(value, path / f"{name}.pt")

    def torch_save(number: int) -> None:
        torch.save(state, directory / f"{number}.pt")

    def dcp_save(number: int) -> None:
        dcp.save(state, checkpoint_id=directory / f"dcp{number}", no_dist=True)

    stored: dict[str, float] = {}
    ways: dict[str, Callable[[int], None]] = {
        "tenax_files": tenax_files,
        "torch_save": torch_save,
        "dcp_save": dcp_save,
    }
    for name, save in ways.items():
        for number in range(10):
            state[f"layer{number}.weight"].add_(1.0)
            save(number)
        taken = stored_bytes(storage) - before if name.startswith("tenax") else stored_bytes(directory)
        stored[name] = round(taken / 2**20, 1)
        shutil.rmtree(directory)
        directory.mkdir()
    return stored


def main() -> None:
    torch.set_num_threads(2)
    line = Line("checkpoint_stall")
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(sys.stderr):
        os.environ["TENAX_DATA_DIR"] = place
        storage, directory = Path(place, "storage"), Path(place, "peers")
        directory.mkdir()
        with core.init(checkpoint_storage=str(storage)) as context:
            ways = Ways(context, state_of(MIB), directory)
            names = [name for name in vars(Ways) if not name.startswith("_")]
            stall: dict[str, list[float]] = {name: [] for name in names}
            durable: dict[str, list[float]] = {name: [] for name in names}
            for turn in range(ROUNDS + 1):  # the first makes buffers
                # Each is first once: whoever is first finds less room.
                first = turn % len(names)
                for name in (*names[first:], *names[:first]):
                    held, safe = getattr(ways, name)()
                    if turn or name == "tenax_async" or name == "dcp_async_save":
                        stall[name].append(held * 1e3)
                        durable[name].append(safe * 1e3)
            stored = ten_checkpoints(context, storage, directory)
    first = {name: round(stall[name].pop(0), 1) for name in ("tenax_async", "dcp_async_save")}
    for name in first:
        durable[name].pop(0)
    held = {name: extremes(values) for name, values in stall.items()}
    safe = {name: extremes(values)["p50"] for name, values in durable.items()}
    line.add(
        mib=MIB,
        device=DEVICE,
        stall_ms=held,
        first_stall_ms=first,
        durable_ms=safe,
        stored_mib=stored,
        ratio={
            "stall_to_copy": round(held["tenax_async"]["p50"] / held["copy"]["p50"], 2),
            "stall_to_dcp_async_save": round(held["tenax_async"]["p50"] / held["dcp_async_save"]["p50"], 2),
            "stall_to_torch_save": round(held["tenax_async"]["p50"] / held["torch_save"]["p50"], 2),
            "durable_to_write_and_fsync": round(safe["tenax_async"] / safe["write_and_fsync"], 2),
            "durable_to_dcp_async_save": round(safe["tenax_async"] / safe["dcp_async_save"], 2),
            "stored_to_dcp_save": round(stored["tenax_files"] / stored["dcp_save"], 2),
        },
    )
    line.emit()


if __name__ == "__main__":
    main()
