"""Every report that the master keeps, of every run, also those that a newer run has made invisible."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path

import asyncpg
import numpy as np

from tenax.master.store.metrics.packing import unpack_integers, unpack_present, unpack_values
from tests.e2e.books import Row
from tests.kits.machine import Machine, wait_for

Stored = dict[tuple[int, int], list[Row]]


def stored_rows(place: Machine, trial_ids: list[int]) -> Stored:
    """By (trial, run): (group, step, loss), read from the tables themselves."""
    return rows_at(database_url(place), trial_ids)


def rows_at(url: str, trial_ids: list[int]) -> Stored:
    """The same of a database at ``url``."""
    return asyncio.run(_read(url, trial_ids))


def database_url(place: Machine) -> str:
    """Where the master's database is: as its own environment says."""
    pid = wait_for(lambda: place.pid("master"), "a running master")
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == b"TENAX_MASTER_DB__URL":
            return value.decode().strip('"')
    raise AssertionError("the master was started without its database")


def count(url: str, sql: str) -> int:
    """One number from the database."""

    async def ask() -> int:
        conn = await asyncpg.connect(url)
        try:
            return int(await conn.fetchval(sql))
        finally:
            await conn.close()

    return asyncio.run(ask())


async def _read(url: str, trial_ids: list[int]) -> Stored:
    conn = await asyncpg.connect(url)
    rows: Stored = defaultdict(list)
    try:
        async with conn.transaction(isolation="repeatable_read"):
            for row in await conn.fetch("select * from metric_tail where trial_id = any($1)", trial_ids):
                values = [json.loads(body)["loss"] for body in row["bodies"].split(b"\n")]
                rows[row["trial_id"], row["run_id"]] += zip([row["grp"]] * len(values), row["steps"], values)
            for row in await conn.fetch("select * from metric_blocks where trial_id = any($1)", trial_ids):
                chunk = await conn.fetchrow(
                    "select * from metric_chunks"
                    " where trial_id = $1 and grp = $2 and first_ord = $3 and metric = 'loss'",
                    row["trial_id"],
                    row["grp"],
                    row["first_ord"],
                )
                steps = np.asarray(unpack_integers(row["steps"]))
                present = np.asarray(unpack_present(chunk["present"], row["reports"]))
                values = [float(str(value)) for value in unpack_values(chunk["data"])]
                where = [int(step) for step in steps[present.astype(bool)]]
                rows[row["trial_id"], row["run_id"]] += zip([row["grp"]] * len(values), where, values)
    finally:
        await conn.close()
    return rows
