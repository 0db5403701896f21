"""The steps of a post migration: each done once, noted, and not done again after a run that was broken off.

A file is one step, or several that begin with a line that says their kind and what they do:

- ``-- step: drop the old column``: statements in one transaction;
- ``-- batches: fill the new column``: one statement that changes some thousand rows of those that it has not changed
  yet; repeated, each time in a transaction of its own, until it changes none;
- ``-- alone: index the new column``: one statement that cannot be in a transaction, such as
  ``create index concurrently if not exists``. It is safe to be repeated; an index that a broken-off build left is
  dropped before.

All run beside masters at work: a lock that cannot be had at once is tried for again, so that nobody queues behind it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from asyncpg import Connection

from tenax.backoff import Backoff
from tenax.errors import Impossible, TryAgain
from tenax.master.store.database.faults import translated
from tenax.master.store.database.queries import load

Q = load("database")
_HEADER = re.compile(r"^-- (step|batches|alone): (.+)$", re.MULTILINE)
#: Between tries of a step that met a lock, in seconds.
_AGAIN = Backoff(first=0.2, ceiling=5.0)
#: Gets a sentence now and then.
Progress = Callable[[str], None]


def quiet(message: str) -> None:
    """A Progress that says nothing."""


class StepKind(Enum):
    """How a step is run."""

    STEP = "step"
    BATCHES = "batches"
    ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Step:
    """One step."""

    kind: StepKind
    #: What it does, for people.
    title: str
    sql: str


def steps_of(sql: str) -> list[Step]:
    """The steps of a file. Raises Impossible for statements before the first of several."""
    head, *parts = _HEADER.split(sql)
    if not parts:
        return [Step(StepKind.STEP, "all of it", sql)]
    if any(line.strip() and not line.startswith("--") for line in head.splitlines()):
        raise Impossible("a migration of several steps begins with a statement that belongs to none")
    return [
        Step(StepKind(kind), title.strip(), body) for kind, title, body in zip(parts[::3], parts[1::3], parts[2::3])
    ]


async def is_begun(conn: Connection, migration: str) -> bool:
    """Whether one was broken off. Raises TryAgain."""
    with translated():
        return bool(await conn.fetch(Q.steps_of, migration))


async def apply_steps(conn: Connection, migration: str, sql: str, say: Progress = quiet) -> None:
    """Do what is left of a migration's steps. Raises TryAgain where the connection is lost; what is done stays done."""
    noted = {row["step"]: row for row in await conn.fetch(Q.steps_of, migration)}
    steps = steps_of(sql)
    for number, step in enumerate(steps):
        before = noted.get(number)
        if before is not None and before["done"]:
            continue
        name = f"{migration}: {step.title}" if len(steps) > 1 else migration
        say(name)
        await _Running(conn, migration, number, step, name, say).to_the_end(0 if before is None else before["rows"])


@dataclass(slots=True)
class _Running:
    """A step under way."""

    conn: Connection
    migration: str
    number: int
    step: Step
    name: str
    say: Progress

    async def to_the_end(self, rows: int) -> None:
        """``rows``: what was changed before."""
        if self.step.kind is StepKind.ALONE:
            await self._patiently(self._alone)
            return
        while changed := await self._patiently(self._once):
            rows += changed
            self.say(f"{self.name}: {rows:,} rows")

    async def _once(self) -> int:
        """One transaction; how many rows it changed, 0 when the step is done."""
        async with self.conn.transaction():
            await self.conn.execute(Q.wait_shortly_for_locks)
            status = await self.conn.execute(self.step.sql)
            changed = _rows(status) if self.step.kind is StepKind.BATCHES else 0
            await self.conn.execute(Q.note_step, self.migration, self.number, changed, changed == 0)
        return changed

    async def _alone(self) -> int:
        for row in await self.conn.fetch(Q.broken_indexes):
            await self.conn.execute(row[0])
        await self.conn.execute(self.step.sql)
        await self.conn.execute(Q.note_step, self.migration, self.number, 0, True)
        return 0

    async def _patiently(self, attempt: Callable[[], Awaitable[int]]) -> int:
        tries = 0
        while True:
            try:
                with translated():
                    return await attempt()
            except TryAgain as error:
                if self.conn.is_closed():
                    raise
                tries += 1
                self.say(f"{self.name}: tries again shortly ({error.__cause__ or error})")
                await asyncio.sleep(_AGAIN.after(tries))


def _rows(status: str) -> int:
    """Of "UPDATE 12", "INSERT 0 12" and the like."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0
