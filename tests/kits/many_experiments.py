"""A database as large as those of big teams: 100,000 experiments with trials, validations and checkpoints, in a minute.

    async with database.transaction() as conn:
        await seed(conn, Amount(experiments=100_000))
    async with database.connection() as conn:
        await settle(conn)

The rows are what the product itself would have written (configurations are resolved, tallies counted), the same ones
for the same amount. Experiments are numbered 1 to ``experiments``; the newest few are live, the others have ended. The
database may hold users and the first project, and no experiments.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from asyncpg import Connection

from tenax.config.resolve import parse_experiment
from tenax.jsonvalue import JsonObject

_BEGIN = datetime(2025, 1, 1, tzinfo=timezone.utc)
_WORDS = ("amber", "brisk", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jolly", "karst", "lunar")
_LABELS = ("baseline", "paper", "sweep", "debug", "vision", "speech")
_SEARCHES: tuple[JsonObject, ...] = (
    {"name": "single", "metric": "loss"},
    {"name": "random", "metric": "accuracy", "smaller_is_better": False, "max_trials": 4},
    {"name": "adaptive_asha", "metric": "loss", "max_trials": 8, "time_metric": "batches", "max_time": 1000},
)
_ENDS = ("COMPLETED", "COMPLETED", "COMPLETED", "CANCELED", "ERROR")


@dataclass(frozen=True)
class Amount:
    """How much there is to be."""

    experiments: int = 100_000
    trials_each: int = 2
    #: Every so many trials have a checkpoint.
    checkpoint_every: int = 4
    users: int = 20
    #: Beside the first one.
    projects: int = 10
    #: Of the newest experiments so many have not ended.
    live: int = 200


async def seed(conn: Connection, amount: Amount = Amount()) -> None:
    """Write it. In a transaction of the caller's."""
    rng = random.Random(amount.experiments)
    people = await _people(conn, amount.users)
    places = await _places(conn, amount.projects, people[0])
    made = [_experiment(number, rng, amount, people, places) for number in range(1, amount.experiments + 1)]
    # Counted once in the end instead of at each row.
    await _tallying(conn, "disable")
    await _copy_experiments(conn, made)
    await _documents(conn, made)
    await _copy_trials(conn, made, amount, rng)
    await _as_triggers_would(conn)
    await _tallying(conn, "enable")
    await conn.execute("select tenax_tally(null)")
    for table in ("experiments", "trials"):
        await conn.execute(f"select setval(pg_get_serial_sequence('{table}', 'id'), (select max(id) from {table}))")


async def settle(conn: Connection) -> None:
    """What the database does by itself in time, before anything is measured. Outside a transaction."""
    await conn.execute("vacuum analyze")


@dataclass(frozen=True)
class _Experiment:
    id: int
    job_id: str
    owner_id: int
    project_id: int
    parent_id: int | None
    state: str
    archived: bool
    made: datetime
    ended: datetime | None
    search: int
    name: str
    labels: list[str]


def _experiment(number: int, rng: random.Random, amount: Amount, people: list[int], places: list[int]) -> _Experiment:
    made = _BEGIN + timedelta(minutes=number, seconds=rng.randrange(60))
    live = number > amount.experiments - amount.live
    return _Experiment(
        id=number,
        job_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        owner_id=rng.choice(people),
        project_id=rng.choice(places),
        parent_id=rng.randrange(1, number) if number > 1 and rng.random() < 0.05 else None,
        state=rng.choice(("ACTIVE", "PAUSED")) if live else rng.choice(_ENDS),
        archived=not live and rng.random() < 0.1,
        made=made,
        ended=None if live else made + timedelta(seconds=rng.randrange(30, 100_000)),
        search=rng.randrange(len(_SEARCHES)),
        name=f"{rng.choice(_WORDS)}-{rng.choice(_WORDS)}-{rng.randrange(100_000)}",
        labels=rng.sample(_LABELS, rng.randrange(3)),
    )


async def _people(conn: Connection, count: int) -> list[int]:
    await conn.executemany(
        "insert into users (username) values ($1) on conflict do nothing",
        [(f"user{number:03d}",) for number in range(count)],
    )
    return [row["id"] for row in await conn.fetch("select id from users order by id")]


async def _places(conn: Connection, count: int, owner: int) -> list[int]:
    await conn.execute("insert into workspaces (name, owner_id) values ('large', $1) on conflict do nothing", owner)
    workspace = await conn.fetchval("select id from workspaces where name = 'large'")
    for number in range(count):
        await conn.execute(
            "insert into projects (workspace_id, name, owner_id) values ($1, $2, $3) on conflict do nothing",
            workspace,
            f"project {number}",
            owner,
        )
    return [row["id"] for row in await conn.fetch("select id from projects order by id")]


async def _as_triggers_would(conn: Connection) -> None:
    """Hyperparameters by key, numbers of runs and counts, a statement each instead of one for each row."""
    for key in ("lr", "width"):
        await conn.execute(
            "insert into run_hparams (trial_id, key, number_value) select id, $1, (hparams ->> $1)::float8 from trials",
            key,
        )
    await conn.execute(
        """
        insert into run_numbers (trial_id, project_id, local_id)
        select t.id, e.project_id, row_number() over (partition by e.project_id order by t.id)
        from trials t join experiments e on e.id = t.experiment_id
        """
    )
    await conn.execute(
        "insert into project_counters (project_id, last_run)"
        " select project_id, max(local_id) from run_numbers group by project_id"
    )
    await conn.execute(
        "insert into experiment_progress (experiment_id, progress, settled, share)"
        " select e.id, n.progress, n.progress, 0 from experiments e cross join lateral ("
        "   select case when e.state = 'COMPLETED' then 1 else (e.id % 97) / 97.0::float8 end as progress) n"
    )
    await conn.execute(
        "insert into experiment_counts select project_id, owner_id, state, archived, count(*) from experiments"
        " group by project_id, owner_id, state, archived"
    )


async def _tallying(conn: Connection, how: str) -> None:
    for table, trigger in (
        ("experiments", "experiments_count"),
        ("experiments", "experiments_progress"),
        ("trials", "trials_made"),
        ("trials", "trials_hparams"),
        ("checkpoints", "checkpoints_tally"),
        ("trial_telemetry", "trial_telemetry_tally_first"),
    ):
        await conn.execute(f"alter table {table} {how} trigger {trigger}")


async def _copy_experiments(conn: Connection, made: list[_Experiment]) -> None:
    await conn.copy_records_to_table(
        "jobs",
        columns=["job_id", "pool", "priority", "queue_position", "owner_id", "submitted_at", "ended_at"],
        records=[
            (one.job_id, "default", 42, int(one.made.timestamp() * 1e6), one.owner_id, one.made, one.ended)
            for one in made
        ],
    )
    columns = ["id", "job_id", "owner_id", "project_id", "parent_id", "state", "archived", "created_at", "started_at"]
    await conn.copy_records_to_table(
        "experiments",
        columns=[*columns, "ended_at"],
        records=[
            (*(getattr(one, name) for name in columns[:7]), one.made, one.made, one.ended) for one in made
        ],
    )  # fmt: skip


async def _documents(conn: Connection, made: list[_Experiment]) -> None:
    """Whole configurations, a few kinds of them; each with its own name."""
    configs = [_config(search) for search in _SEARCHES]
    await conn.execute("create temporary table seeded (id bigint, name text, labels text[], search int) on commit drop")
    await conn.copy_records_to_table("seeded", records=[(one.id, one.name, one.labels, one.search) for one in made])
    await conn.execute(
        """
        insert into experiment_documents (experiment_id, name, description, labels, original_config, config, seed)
        select s.id, s.name, 'run ' || md5(s.name), s.labels, 'name: ' || s.name,
               c.config || jsonb_build_object('name', s.name), s.id
        from seeded s
        join (select ordinality - 1 as search, config from unnest($1::jsonb[]) with ordinality u (config, ordinality)) c
          on c.search = s.search
        """,
        configs,
    )


def _config(search: JsonObject) -> JsonObject:
    document: JsonObject = {
        "entrypoint": "python3 train.py",
        "hyperparameters": {"lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1}, "width": 64},
        "searcher": search,
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp/checkpoints"},
    }
    return parse_experiment(document, rng=random.Random(0)).document


async def _copy_trials(conn: Connection, made: list[_Experiment], amount: Amount, rng: random.Random) -> None:
    rows = list(_trials(made, amount, rng))
    await conn.copy_records_to_table(
        "trials",
        columns=["id", "experiment_id", "request_id", "journal_seq", "task_id", "state", "run_id", "hparams", "seed",
                 "created_at", "ended_at"],
        records=[(t.id, t.of.id, t.request, t.seq, t.task, t.state, 1, {"lr": t.lr, "width": 64}, 7, t.of.made,
                  t.of.ended) for t in rows],
    )  # fmt: skip
    await conn.copy_records_to_table(
        "tasks",
        columns=["task_id", "kind", "job_id", "trial_id", "created_at", "ended_at"],
        records=[(t.task, "TRIAL", t.of.job_id, t.id, t.of.made, t.of.ended) for t in rows],
    )
    told = [(t, rng.random()) for t in rows if rng.random() < 0.9]
    await conn.copy_records_to_table(
        "trial_telemetry",
        columns=["trial_id", "progress", "latest_validation", "best_validation", "best_metric"],
        records=[(t.id, 1.0 if t.of.ended else 0.5, _validation(t, value), _validation(t, value), value)
                 for t, value in told],
    )  # fmt: skip
    await conn.copy_records_to_table(
        "checkpoints",
        columns=["uuid", "task_id", "trial_id", "run_id", "state", "steps_completed", "metadata", "resources",
                 "size_bytes"],
        records=[(str(uuid.UUID(int=rng.getrandbits(128), version=4)), t.task, t.id, 1, "COMPLETED", 100,
                  {"steps_completed": 100}, {"model.pt": 1000}, rng.randrange(10**9))
                 for t in rows if t.id % amount.checkpoint_every == 0],
    )  # fmt: skip


@dataclass(frozen=True)
class _Trial:
    id: int
    of: _Experiment
    seq: int
    request: str
    task: str
    state: str
    lr: float


def _trials(made: list[_Experiment], amount: Amount, rng: random.Random) -> Iterator[_Trial]:
    number = 0
    for one in made:
        for place in range(1 if one.search == 0 else amount.trials_each):
            number += 1
            request = str(uuid.UUID(int=rng.getrandbits(128), version=4))
            state = "ACTIVE" if one.ended is None else one.state
            yield _Trial(number, one, place + 2, request, f"{one.id}.{request}", state, 10 ** rng.uniform(-4, -1))


def _validation(trial: _Trial, value: float) -> JsonObject:
    metric = str(_SEARCHES[trial.of.search]["metric"])
    return {"step": 100, "run_id": 1, "at": trial.of.made.isoformat(), "metrics": {metric: value}}
