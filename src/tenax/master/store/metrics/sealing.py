"""Sealing: reports as they came become packed columns, one row per metric.

Rules:
- What is packed is never changed. A late report, or one that adds to an earlier one, is a new row in the tail, and is
  packed in its turn.
- One transaction moves rows: it holds the group's row, so nothing is appended meanwhile, and a reader sees them once.
- Packing itself (`pack`) has no database and is for a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
from asyncpg import Connection, Record

from tenax.jsonvalue import Json
from tenax.master.store.database.queries import load
from tenax.master.store.metrics.packing import pack_integers, pack_lines, pack_present, pack_values

Q = load("metrics")

#: So many reports in the tail of a group are worth packing.
SEAL_AT = 1024
#: The most reports in one block.
_BLOCK = 4096
_BLOCK_COLUMNS = [
    *("month", "trial_id", "grp", "first_ord", "run_id", "reports"),
    *("first_step", "last_step", "steps", "times", "batches"),
]
_CHUNK_COLUMNS = ["month", "trial_id", "grp", "metric", "first_ord", "present", "data"]


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows to write."""

    blocks: list[tuple[object, ...]]
    chunks: list[tuple[object, ...]]


async def seal(
    conn: Connection, trial_id: int, group: str, in_thread: Callable[[list[Record]], Awaitable[Packed]]
) -> int:
    """Pack the tail of a group; returns how many reports. ``in_thread`` runs `pack`. In the caller's transaction."""
    head = await conn.fetchrow(Q.lock, trial_id, group)
    if head is None or head["sealed_ord"] == head["next_ord"]:
        return 0
    rows = await conn.fetch(Q.tail, head["month"], trial_id, group)
    packed = await in_thread(rows)
    await conn.copy_records_to_table("metric_blocks", records=packed.blocks, columns=_BLOCK_COLUMNS)
    await conn.copy_records_to_table("metric_chunks", records=packed.chunks, columns=_CHUNK_COLUMNS)
    await conn.execute(Q.drop_tail, head["month"], trial_id, group)
    await conn.execute(Q.sealed, trial_id, group, head["next_ord"])
    return int(head["next_ord"] - head["sealed_ord"])


async def finished(conn: Connection, limit: int) -> list[tuple[int, str]]:
    """(trial, group) of trials that have ended and still have a tail."""
    return [(row["trial_id"], row["grp"]) for row in await conn.fetch(Q.finished, limit)]


def pack(rows: list[Record]) -> Packed:
    """Rows of the tail of one group, as blocks and chunks: the reports of each run together, in the order they came."""
    packed = Packed([], [])
    by_run: dict[int, list[Record]] = {}
    for row in rows:
        by_run.setdefault(row["run_id"], []).append(row)
    for run_id, of_run in by_run.items():
        for block in _blocks(of_run):
            _pack_block(packed, run_id, block)
    return packed


@dataclass(slots=True)
class _Block:
    """Reports that become one block."""

    key: tuple[int, int, str]
    first_ord: int
    steps: list[int]
    times: list[int]
    bodies: list[bytes]
    batches: list[bytes]


def _blocks(rows: list[Record]) -> Iterator[_Block]:
    block: _Block | None = None
    for row in rows:
        if block is None:
            block = _Block((row["month"], row["trial_id"], row["grp"]), row["first_ord"], [], [], [], [])
        count = len(row["steps"])
        block.steps += row["steps"]
        block.times += row["times"]
        block.bodies += row["bodies"].split(b"\n")
        block.batches += [b"null"] * count if row["batches"] is None else row["batches"].split(b"\n")
        if len(block.steps) >= _BLOCK:
            yield block
            block = None
    if block is not None:
        yield block


def _pack_block(packed: Packed, run_id: int, block: _Block) -> None:
    columns: dict[str, tuple[list[int], list[Json]]] = {}
    for place, body in enumerate(block.bodies):
        for name, value in msgspec.json.decode(body).items():
            places, values = columns.setdefault(name, ([], []))
            places.append(place)
            values.append(value)
    steps = np.array(block.steps, np.int64)
    batches = pack_lines(block.batches) if any(line != b"null" for line in block.batches) else None
    packed.blocks.append(
        (
            *block.key,
            block.first_ord,
            run_id,
            len(steps),
            int(steps.min()),
            int(steps.max()),
            pack_integers(steps),
            pack_integers(np.array(block.times, np.int64)),
            batches,
        )
    )
    for name, (places, values) in columns.items():
        present = np.zeros(len(steps), np.bool_)
        present[places] = True
        packed.chunks.append((*block.key, name, block.first_ord, pack_present(present), pack_values(values)))
