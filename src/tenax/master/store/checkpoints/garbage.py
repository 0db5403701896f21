"""Collecting checkpoints: which experiments are to be looked at, what was decided, and how far it has come.

Rules:
- An experiment is marked in the transaction that changes what its checkpoints' fate hangs on; a mark is taken away by
  whoever looked, unless it was raised meanwhile.
- A removal is decided (`doom`), begun, and finished, each in a transaction of its own; files go between the last two.
  Once begun it is not called off; until then what has become needed is kept.
- An upload is announced before its files are there, and forgotten when its checkpoint is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection, Record

from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle.garbage import Judgement, OwningTrial, RetentionPolicy, SavedCheckpoint, judge
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify
from tenax.storage.port import EVERYTHING

Q = load("checkpoints")

#: Kind of the wake-ups of the loop that collects.
KIND = "garbage"
#: Policies as the configuration spells them, and their defaults.
_KEYS = (("save_experiment_best", 0), ("save_trial_best", 1), ("save_trial_latest", 1))


@dataclass(frozen=True, slots=True)
class Mark:
    """That an experiment is to be looked at."""

    stamp: int
    #: Somebody has asked for it.
    asked: bool


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the fate of an experiment's checkpoints hangs on."""

    policy: RetentionPolicy
    metric: str
    smaller_is_better: bool
    #: It runs elsewhere: collected only when somebody asks.
    unmanaged: bool
    saved: tuple[SavedCheckpoint, ...]
    trials: dict[int, OwningTrial]
    #: By uuid, in bytes.
    sizes: dict[str, int]

    def fates(self, policy: RetentionPolicy | None = None) -> tuple[Judgement, ...]:
        """What becomes of each, under its policy or another one."""
        chosen = self.policy if policy is None else policy
        return judge(chosen, self.saved, self.trials, metric=self.metric, smaller_is_better=self.smaller_is_better)


@dataclass(frozen=True, slots=True)
class Removal:
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


@dataclass(frozen=True, slots=True)
class Pending:
    """What is told of a removal."""

    uuid: str
    unreported: bool
    reason: str
    tries: int
    failure: str
    retry_at: datetime
    asked_at: datetime


async def mark(conn: Connection, experiment_id: int, *, asked: bool = False) -> None:
    """Its checkpoints are to be looked at. Call it last: the row is held until the transaction ends.

    ``asked``: by a person; those of an experiment that is not managed here are left alone otherwise.
    """
    await conn.execute(Q.mark, experiment_id, asked)
    await notify(conn, KIND, experiment_id)


async def trial_ended(conn: Connection, trial_id: int) -> None:
    """The checkpoints of its experiment are to be looked at, if the end of this trial can change the fate of any.

    That is its own ones, and the one that it began with. As `mark`, call it last.
    """
    experiment_id = await conn.fetchval(Q.mark_by_trial, trial_id)
    if experiment_id is not None:
        await notify(conn, KIND, experiment_id)


async def due(conn: Connection, limit: int) -> list[int]:
    """Experiments that are marked."""
    return [row["experiment_id"] for row in await conn.fetch(Q.due, limit)]


async def seen(conn: Connection, experiment_id: int) -> Mark | None:
    """Its mark as it is now; None: it is not marked. Read it before anything else."""
    row = await conn.fetchrow(Q.stamp, experiment_id)
    return None if row is None else Mark(row["stamp"], row["asked"])


async def settle(conn: Connection, experiment_id: int, mark_seen: Mark) -> None:
    """It was looked at, as it was when its mark was this."""
    await conn.execute(Q.settle, experiment_id, mark_seen.stamp)


async def situation(conn: Connection, experiment_id: int) -> Situation:
    """What the fate of its checkpoints hangs on. Raises NotFound."""
    documents = await conn.fetchrow(Q.policy, experiment_id)
    if documents is None:
        raise NotFound(f"there is no experiment {experiment_id}")
    rows = await conn.fetch(Q.candidates, experiment_id)
    registered = await checkpoints.registered(conn, [row["uuid"] for row in rows])
    searcher = documents["config"].get("searcher") or {}
    return Situation(
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
    await mark(conn, experiment_id, asked=True)


async def doom(
    conn: Connection, reasons: dict[str, str], *, globs: Sequence[str] = EVERYTHING, wait_s: float = 0.0
) -> list[str]:
    """Decide that files of these checkpoints go (uuid -> why); those of which there was anything left.

    ``wait_s``: for so long the loop leaves it to the caller.
    """
    uuids = sorted(reasons)
    words = [reasons[uuid] for uuid in uuids]
    found = [row["uuid"] for row in await conn.fetch(Q.doom, uuids, words, list(globs), wait_s)]
    if found:
        await notify(conn, KIND, "")
    return found


async def doom_uploads(conn: Connection, uuids: Sequence[str], reason: str) -> None:
    """Decide that files of these uploads go."""
    await conn.execute(Q.doom_uploads, list(uuids), reason)
    if uuids:
        await notify(conn, KIND, "")


async def announce(conn: Connection, uuid: str, task_id: str, allocation_id: str, storage_id: int) -> None:
    """An upload begins."""
    await conn.execute(Q.announce, uuid, task_id, allocation_id, storage_id)


async def withdraw(conn: Connection, uuid: str, task_id: str) -> None:
    """The task itself has thrown away what it had uploaded; nothing if no upload of it was announced."""
    await conn.execute(Q.withdraw, uuid, task_id)


async def upload_ends(conn: Connection, uuid: str) -> None:
    """An upload is reported as a checkpoint. Raises NotNow if its files were given up."""
    row = await conn.fetchrow(Q.lock_upload, uuid)
    if row is None:
        return
    if row["collected_at"] is not None or await conn.fetchval(Q.is_given_up, uuid):
        raise NotNow(f"the files of checkpoint {uuid} were deleted, as its task had ended without reporting it")
    await conn.execute(Q.drop_upload, uuid)


async def any_upload(conn: Connection) -> bool:
    """Whether there is an upload that is no checkpoint yet."""
    found: bool = await conn.fetchval(Q.any_upload)
    return found


async def doom_abandoned(conn: Connection) -> list[str]:
    """Decide that files go which no task can report any more."""
    return [row["uuid"] for row in await conn.fetch(Q.doom_abandoned)]


async def waiting(conn: Connection, limit: int) -> list[str]:
    """Removals whose time has come, the one that waits longest first."""
    return [row["uuid"] for row in await conn.fetch(Q.waiting, limit)]


async def next_retry_s(conn: Connection) -> float | None:
    """Seconds until the next removal is to be tried; None: none waits."""
    seconds: float | None = await conn.fetchval(Q.next_retry)
    return seconds


async def begin(conn: Connection, uuid: str) -> Removal | None:
    """From here on files may be gone; None: there is no such removal any more, or it was called off."""
    await conn.execute(Q.lock_checkpoint, uuid)
    row = await conn.fetchrow(Q.begin, uuid)
    if row is None:
        return None
    return Removal(
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
    )


async def failed(conn: Connection, uuid: str, failure: str, wait_s: float, *, untouched: bool) -> None:
    """It did not work, and is tried again in a while; ``untouched``: nothing of it was deleted yet."""
    await conn.execute(Q.failed, uuid, failure, wait_s, untouched)


async def finish(conn: Connection, uuid: str, *, unreported: bool) -> None:
    """The files are gone, and the checkpoint's record says so already; ``unreported``: there is none."""
    await conn.execute(Q.finish, uuid)
    await conn.execute(Q.collected if unreported else Q.spare, uuid)


async def forget(conn: Connection, uuid: str) -> None:
    """The files of a checkpoint are gone by somebody else's doing: there is nothing left to remove."""
    await conn.execute(Q.finish, uuid)


async def of_experiment(conn: Connection, experiment_id: int) -> list[Pending]:
    """What is being removed, in the order of asking."""
    return [Pending(**row) for row in await conn.fetch(Q.garbage_of_experiment, experiment_id)]


async def of_checkpoint(conn: Connection, uuid: str) -> Pending | None:
    """The removal of one checkpoint's files."""
    row = await conn.fetchrow(Q.of_checkpoint, uuid)
    return None if row is None else Pending(**row)


async def uploads(conn: Connection, experiment_id: int) -> list[tuple[str, JsonObject]]:
    """Files of an experiment's tasks that are no checkpoints: uuid and place."""
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
