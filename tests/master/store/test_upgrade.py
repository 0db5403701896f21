"""A database of the first release, with everything in it, becomes today's."""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tenax.local.postgres import EmbeddedPostgres
from tenax.master.store.database.connection import prepare
from tenax.master.store.database.migrate import migrate, shipped
from tests.kits.database import database_in

#: How many migrations the first release had.
FIRST = 3
STATES = ("ACTIVE", "PAUSED", "STOPPING_KILLED", "STOPPING_ERROR", "COMPLETED", "CANCELED", "ERROR", "DELETING")
_ENDED = STATES[4:]
ROWS = """
insert into users (username) values ('a');
insert into workspaces (name, immutable) values ('Uncategorized', true), ('w', false);
insert into projects (workspace_id, name, immutable) values (1, 'Uncategorized', true), (2, 'p', false);
insert into storage_backends (config) values ('{"type": "directory", "container_path": "/c"}');
insert into agents (agent_id, pool, credential_hash) values ('a1', 'default', decode(repeat('00', 32), 'hex'));
"""


@pytest.fixture
async def first(postgres: EmbeddedPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A database as the first release left it: an experiment in each state, each with two trials."""
    name = f"first_{uuid.uuid4().hex}"
    admin = await asyncpg.connect(postgres.dsn)
    await admin.execute(f"create database {name}")
    conn = await asyncpg.connect(database_in(postgres.dsn, name))
    await prepare(conn)
    await migrate(conn, migrations=shipped()[:FIRST])
    await conn.execute(ROWS)
    for number, state in enumerate(STATES, 1):
        await _experiment(conn, number, state)
    yield conn
    await conn.close()
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


async def _experiment(conn: asyncpg.Connection, number: int, state: str) -> None:
    over = state in _ENDED
    await conn.execute(
        "insert into jobs (job_id, pool, priority, queue_position, owner_id) values ($1, 'default', 42, 1, 1)",
        f"j{number}",
    )
    await conn.execute(
        "insert into experiments (job_id, owner_id, project_id, state, ended_at)"
        " values ($1, 1, $2, $3, case when $4 then now() end)",
        *(f"j{number}", 1 + number % 2, state, over),
    )
    config = {"searcher": {"name": "random", "smaller_is_better": number % 2 == 0, "max_trials": 2}}
    await conn.execute(
        "insert into experiment_documents (experiment_id, name, original_config, config, seed)"
        " values ($1, 'n', '', $2, 1)",
        *(number, config),
    )
    for which in (1, 2):
        await _trial(conn, number, which, "COMPLETED" if over or which == 1 else "ACTIVE")


async def _trial(conn: asyncpg.Connection, experiment: int, which: int, state: str) -> None:
    live = state == "ACTIVE"
    task, attempt = f"t{experiment}-{which}", f"t{experiment}-{which}.1"
    trial = await conn.fetchval(
        "insert into trials (experiment_id, request_id, journal_seq, task_id, state, run_id, hparams, seed, ended_at)"
        " values ($1, $2::text, $3, $4, $5, 1, $6, 1, case when $5 <> 'ACTIVE' then now() end) returning id",
        *(experiment, str(which), which, task, state, {"lr": 0.1, "net": {"depth": 3}}),
    )
    await conn.execute("insert into trial_telemetry (trial_id, best_metric) values ($1, $2)", trial, float(which))
    await conn.execute(
        "insert into search_inbox (experiment_id, trial_id, kind, at_key, fact) values ($1, $2, 'validation', 5, $3)",
        *(experiment, trial, {"v": 1, "type": "validated", "metric": 0.5 if live else "NaN"}),
    )
    await conn.execute(
        "insert into tasks (task_id, kind, job_id, trial_id) values ($1, 'TRIAL', $2, $3)",
        task,
        f"j{experiment}",
        trial,
    )
    await conn.execute(
        "insert into allocations (allocation_id, task_id, run_id, state, slots, ended_at)"
        " values ($1, $2, 1, $3, 1, case when $4 then null else now() end)",
        *(attempt, task, "RUNNING" if live else "TERMINATED", live),
    )
    await conn.execute(
        "insert into containers (container_id, allocation_id, rank, agent_id, slots, state, want, exit, ended_at)"
        " values ($1, $2, 0, 'a1', '{0}', $3, $4, $5, case when $3 = 'TERMINATED' then now() end)",
        *(f"c-{attempt}", attempt, "RUNNING" if live else "TERMINATED", "RUN" if live else "GONE"),
        None if live else {"code": 0},
    )
    await conn.execute(
        "insert into checkpoints (uuid, task_id, trial_id, allocation_id, run_id, state, steps_completed, size_bytes,"
        " storage_id) values ($1, $2, $3, $4, 1, 'COMPLETED', 1, 7, 1)",
        *(str(uuid.uuid4()), task, trial, attempt),
    )


async def test_what_was_there_is_counted_numbered_and_found(first: asyncpg.Connection) -> None:
    """Tallies, numbers of runs, hyperparameters by key and accounts tell what the rows of before tell."""
    applied = await migrate(first, post=True)
    assert applied == [migration.name for migration in shipped()[FIRST:]]
    for row in await first.fetch("select * from experiment_tallies order by experiment_id"):
        ended = 2 if STATES[row["experiment_id"] - 1] in _ENDED else 1
        assert (row["trials"], row["trials_ended"], row["checkpoints"], row["checkpoint_bytes"]) == (2, ended, 2, 14)
        assert row["expected_trials"] == 2
        assert row["best_metric"] == (1.0 if row["experiment_id"] % 2 == 0 else 2.0)
    assert await first.fetchval("select count(*) from experiment_tallies") == len(STATES)
    assert await first.fetchval("select count(*) from run_hparams where key in ('lr', 'net.depth')") == 4 * len(STATES)
    numbers = await first.fetch(
        "select project_id, array_agg(local_id order by trial_id) n from run_numbers group by 1"
    )
    assert all(row["n"] == list(range(1, len(STATES) + 1)) for row in numbers)
    assert await first.fetchval("select count(*) from usage where ended_at is null") == 4
    assert await first.fetchval("select count(*) from usage where username = 'a'") == 2 * len(STATES)
    validated = await first.fetch("select v.* from validations v join search_inbox i using (trial_id) order by i.id")
    assert [row["step"] for row in validated] == [5] * 2 * len(STATES)
    assert [math.isnan(row["metric"]) for row in validated[:4]] == [True, False, True, False]
    assert [row["key"] for row in await first.fetch("select key from projects order by id")] == ["UNC", "P2"]
