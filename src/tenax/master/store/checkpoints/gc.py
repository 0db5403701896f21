"""Checkpoint gc as rows: marks of experiments whose policy is to be applied, removals of files, announced uploads.

Rules:
- An experiment is marked in the transaction that changes what its checkpoints' fate depends on; whoever has applied
  its policy clears the mark, unless it was raised meanwhile.
- A removal is requested, begun, and finished, each in a transaction of its own; files go between the last two. Once
  begun it is not called off; until then what has become needed is kept.
- An upload is announced before its files are there, and dropped when its checkpoint is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection, Record

from tenax.errors import Forbidden, InvalidInput, NotNow
from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle.garbage import Judgement, OwningTrial, RetentionPolicy, SavedCheckpoint, judge
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.database.queries import existing, load
from tenax.master.store.database.wakeups import notify
from tenax.storage.port import EVERYTHING

Q = load("checkpoints")

#: Kind of the wake-ups of the loop `checkpoint_gc`.
KIND = "checkpoint_gc"
#: Policies as the configuration spells them, and their defaults.
_KEYS = (("save_experiment_best", 0), ("save_trial_best", 1), ("save_trial_latest", 1))


@dataclass(frozen=True, slots=True)
class Mark:
    """The policy of an experiment is to be applied."""

    stamp: int
    #: By a person.
    requested: bool


@dataclass(frozen=True, slots=True)
class GcInputs:
    """All that the fate of an experiment's checkpoints depends on."""

    policy: RetentionPolicy
    metric: str
    smaller_is_better: bool
    #: It runs elsewhere: its policy is applied only when a person asks.
    unmanaged: bool
    saved: tuple[SavedCheckpoint, ...]
    trials: dict[int, OwningTrial]
    #: By uuid, in bytes.
    sizes: dict[str, int]

    def fates(self, policy: RetentionPolicy | None = None) -> tuple[Judgement, ...]:
        """What becomes of each, under its policy or another one."""
        applied = self.policy if policy is None else policy
        return judge(applied, self.saved, self.trials, metric=self.metric, smaller_is_better=self.smaller_is_better)


@dataclass(frozen=True, slots=True)
class RemovalRow:
    """Files that are being deleted."""

    uuid: str
    #: Of an upload that was never reported.
    unreported: bool
    globs: tuple[str, ...]
    reason: str
    #: Begun just now: before, nothing of it was deleted.
    fresh: bool
    tries: int
    failure: str
    task_id: str
    experiment_id: int | None
    owner_id: int | None
    #: Of the experiment; None for other tasks.
    config: JsonObject | None
    #: Where the files are, as reported.
    storage: JsonObject | None
    resources: dict[str, int]
    #: Of what was trained outside of the cluster.
    elsewhere: bool


@dataclass(frozen=True, slots=True)
class RemovalView:
    """A removal, as people see it."""

    uuid: str
    unreported: bool
    reason: str
    tries: int
    failure: str
    retry_at: datetime
    asked_at: datetime


async def mark(conn: Connection, experiment_id: int, *, requested: bool = False) -> None:
    """Let its policy be applied. Call it last: the row is held until the transaction ends.

    ``requested``: by a person; the checkpoints of an unmanaged experiment are left alone otherwise.
    """
    await conn.execute(Q.mark, experiment_id, requested)
    await notify(conn, KIND, experiment_id)


async def trials_ended(conn: Connection, trial_ids: Sequence[int]) -> None:
    """Let the policies of their experiments be applied, where the end of a trial can change the fate of a checkpoint.

    That is its own ones, and the one that it started from. As `mark`, call it last.
    """
    for row in await conn.fetch(Q.mark_by_trials, list(trial_ids)):
        await notify(conn, KIND, row["experiment_id"])


async def marked(conn: Connection, limit: int) -> list[int]:
    """Experiments that are marked."""
    return [row["experiment_id"] for row in await conn.fetch(Q.marked, limit)]


async def mark_of(conn: Connection, experiment_id: int) -> Mark | None:
    """Its mark as it is now; None: it is not marked. Read it before anything else."""
    row = await conn.fetchrow(Q.mark_of, experiment_id)
    return None if row is None else Mark(row["stamp"], row["asked"])


async def clear_mark(conn: Connection, experiment_id: int, applied: Mark) -> None:
    """Its policy was applied to what there was under this mark; a newer one stays."""
    await conn.execute(Q.clear_mark, experiment_id, applied.stamp)


async def load_inputs(conn: Connection, experiment_id: int) -> GcInputs:
    """What the fate of its checkpoints depends on. Raises NotFound."""
    documents = await existing(conn, f"experiment {experiment_id}", Q.policy, experiment_id)
    rows = await conn.fetch(Q.candidates, experiment_id)
    registered = await checkpoints.registered(conn, [row["uuid"] for row in rows])
    searcher = documents["config"].get("searcher") or {}
    return GcInputs(
        policy=policy_of(documents["config"]),
        metric=str(searcher.get("metric") or "the metric"),
        smaller_is_better=searcher.get("smaller_is_better") is not False,
        unmanaged=documents["unmanaged"],
        saved=tuple(_saved(row, registered.get(row["uuid"])) for row in rows),
        trials={row["id"]: OwningTrial(True, row["validated_to"]) for row in await conn.fetch(Q.live, experiment_id)},
        sizes={row["uuid"]: row["size_bytes"] for row in rows},
    )


def policy_of(config: JsonObject) -> RetentionPolicy:
    """The policy of a configuration."""
    storage = config.get("checkpoint_storage")
    section = storage if isinstance(storage, dict) else {}
    return RetentionPolicy(*(_count(section.get(key), default) for key, default in _KEYS))


async def set_policy(conn: Connection, experiment_id: int, policy: RetentionPolicy) -> None:
    """Store another policy, and let it be applied. Raises InvalidInput where the experiment has no storage."""
    values = (policy.experiment_best, policy.trial_best, policy.trial_latest)
    document = {key: value for (key, _), value in zip(_KEYS, values)}
    if await conn.fetchval(Q.set_policy, experiment_id, document) is None:
        raise InvalidInput(f"experiment {experiment_id} has no checkpoint storage, so there is no policy to change")
    await mark(conn, experiment_id, requested=True)


async def request_removals(
    conn: Connection, reasons: dict[str, str], *, globs: Sequence[str] = EVERYTHING, wait_s: float = 0.0
) -> list[str]:
    """Request that files of these checkpoints are removed (uuid -> why); returns those that have any left.

    ``wait_s``: for so long the loop leaves it to the caller.
    """
    uuids = sorted(reasons)
    await conn.fetch(Q.hold_checkpoints, uuids)
    rows = await conn.fetch(
        Q.request_removals, uuids, [reasons[uuid] for uuid in uuids], list(globs), wait_s, list(EVERYTHING)
    )
    if rows:
        await notify(conn, KIND, "")
    return [row["uuid"] for row in rows]


async def request_upload_removals(conn: Connection, uuids: Sequence[str], reason: str) -> None:
    """Request that files of these uploads are removed."""
    await conn.execute(Q.request_upload_removals, list(uuids), reason)
    if uuids:
        await notify(conn, KIND, "")


async def announce(conn: Connection, uuid: str, task_id: str, allocation_id: str, storage_id: int) -> None:
    """An upload begins."""
    await conn.execute(Q.announce, uuid, task_id, allocation_id, storage_id)


async def withdraw(conn: Connection, uuid: str, task_id: str) -> None:
    """The task itself has deleted what it had uploaded; nothing if no upload of it was announced."""
    await conn.execute(Q.withdraw, uuid, task_id)


async def upload_ends(conn: Connection, uuid: str, task_id: str) -> float | None:
    """A task reports its upload as a checkpoint; the seconds that it took, of one that was announced.

    Raises NotNow (files were given up), Forbidden (another task's).
    """
    row = await conn.fetchrow(Q.lock_upload, uuid)
    if row is None:
        return None
    if row["task_id"] != task_id:
        raise Forbidden(f"checkpoint {uuid} is being uploaded by another task, which alone can report it")
    if row["collected_at"] is not None or await conn.fetchval(Q.is_given_up, uuid):
        raise NotNow(f"the files of checkpoint {uuid} were deleted, as its task had ended without reporting it")
    await conn.execute(Q.drop_upload, uuid)
    took_s: float = row["took_s"]
    return took_s


async def any_upload(conn: Connection) -> bool:
    """Whether there is an upload that is no checkpoint yet."""
    return bool(await conn.fetchval(Q.any_upload))


async def request_abandoned_removals(conn: Connection) -> list[str]:
    """Request that the files of uploads are removed which no task can report any more; returns the uploads."""
    return [row["uuid"] for row in await conn.fetch(Q.request_abandoned_removals)]


async def due_removals(conn: Connection, limit: int) -> list[str]:
    """Removals whose time has come, the one that waits longest first."""
    return [row["uuid"] for row in await conn.fetch(Q.due_removals, limit)]


async def next_retry_s(conn: Connection) -> float | None:
    """Seconds until the next removal is to be tried; None: none waits."""
    seconds: float | None = await conn.fetchval(Q.next_retry)
    return seconds


async def begin_removal(conn: Connection, uuid: str) -> RemovalRow | None:
    """From here on files may be gone; None: there is no such removal any more, or it was called off."""
    await conn.execute(Q.lock_checkpoint, uuid)
    row = await conn.fetchrow(Q.begin_removal, uuid)
    if row is None:
        return None
    return RemovalRow(
        uuid=row["uuid"],
        unreported=row["upload"] is not None,
        globs=tuple(row["globs"]),
        reason=row["reason"],
        fresh=row["fresh"],
        tries=row["tries"],
        failure=row["failure"],
        task_id=row["task_id"],
        experiment_id=row["experiment_id"],
        owner_id=row["owner_id"],
        config=row["config"],
        storage=row["storage"],
        resources=row["resources"] or {},
        elsewhere=row["elsewhere"],
    )


async def removal_failed(conn: Connection, uuid: str, failure: str, wait_s: float, *, untouched: bool) -> None:
    """It failed, and is tried again after ``wait_s``; ``untouched``: nothing of it was deleted yet."""
    await conn.execute(Q.removal_failed, uuid, failure, wait_s, untouched)


async def finish_removal(conn: Connection, uuid: str, *, unreported: bool, globs: Sequence[str] | None = None) -> bool:
    """The files are gone; ``unreported``: of what is no checkpoint.

    False, and nothing is noted, where others than ``globs`` were requested meanwhile, which the loop then removes, or
    where another removal has ended before. None: whatever was requested.
    """
    await conn.execute(Q.lock_checkpoint, uuid)
    if await conn.fetchval(Q.end_removal, uuid, None if globs is None else list(globs)) is None:
        await notify(conn, KIND, "")
        return False
    await conn.execute(Q.upload_removed if unreported else Q.removal_done, uuid)
    return True


async def drop_removal(conn: Connection, uuid: str) -> None:
    """The files of a checkpoint are gone already, or are to stay: there is nothing left to remove."""
    await conn.execute(Q.drop_removal, uuid)


async def removals_of_experiment(conn: Connection, experiment_id: int) -> list[RemovalView]:
    """Removals of its checkpoints and uploads, in the order of their requests."""
    return [RemovalView(**row) for row in await conn.fetch(Q.removals_of_experiment, experiment_id)]


async def uploads(conn: Connection, experiment_id: int) -> list[tuple[str, JsonObject]]:
    """Files of an experiment's tasks that are no checkpoints: uuid and storage."""
    return [(row["uuid"], row["storage"]) for row in await conn.fetch(Q.uploads, experiment_id)]


def _saved(row: Record, registered: str | None) -> SavedCheckpoint:
    return SavedCheckpoint(
        uuid=row["uuid"],
        trial_id=row["trial_id"],
        steps=row["steps_completed"],
        metric=row["metric"],
        reported=row["reported"],
        whole=row["state"] == "COMPLETED",
        superseded=row["superseded"],
        registered=registered,
        source_of=row["source_of"],
    )


def _count(value: Json, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
