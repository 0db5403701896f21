"""Rows of checkpoints: reported once or again, superseded when their run is not current, trimmed after a removal.

Rules: a report is an upsert on its uuid, so a repeated one changes nothing; one of a run that is not current is
kept and never resumed from; sizes and states follow from the map of files; a checkpoint that is registered as a version
of a model is never deleted.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from asyncpg import Connection, ProgramLimitExceededError, Record

from tenax.errors import InvalidInput, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.store.database.queries import existing, load, row_as
from tenax.wire.spool_names import MANIFEST_FILE, METADATA_FILE

Q = load("checkpoints")

_STATES = ("ACTIVE", "COMPLETED", "ERROR")
#: Of a checkpoint: every list of them has all that is said about each. A report of more is refused; of what is on a
#: disk already, `kept_files` are listed.
_MAX_FILES, _MAX_FILES_BYTES, _MAX_METADATA_BYTES, _MAX_PLACE_BYTES = 20_000, 1 << 20, 256 * 1024, 2 * 1024
#: What a checkpoint holds beside the files of its task.
_ADDED = (METADATA_FILE, MANIFEST_FILE)


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """What a task reports about a checkpoint that it has written."""

    uuid: str
    steps_completed: int
    #: path -> bytes; directories end in "/".
    resources: dict[str, int]
    metadata: JsonObject = field(default_factory=dict)
    storage_id: int | None = None
    state: str = "COMPLETED"
    #: What the uuid was made of, where it is one of those (`tenax.storage.port.claimed_id`).
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports; the run is that of the token."""

    task_id: str
    #: None for what is trained elsewhere.
    allocation_id: str | None
    trial_id: int | None
    run_id: int | None


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One row."""

    uuid: str
    task_id: str
    allocation_id: str | None
    trial_id: int | None
    run_id: int | None
    storage_id: int | None
    state: str
    superseded: bool
    steps_completed: int
    metadata: JsonObject
    resources: dict[str, int]
    size_bytes: int
    reported_at: datetime


async def upsert(conn: Connection, reporter: Reporter, report: CheckpointReport, upload_s: float | None = None) -> None:
    """Store a reported checkpoint; one of a run that is not current as superseded. Raises InvalidInput, NotNow.

    ``upload_s``: seconds that storing its files took, if that is known.
    """
    _check_metadata(report.metadata)
    _check_files(report.uuid, report.resources)
    if report.state not in _STATES:
        raise InvalidInput(f"a checkpoint cannot be reported as {report.state!r}: {', '.join(_STATES)} are possible")
    stored = await conn.fetchval(
        Q.upsert,
        report.uuid,
        reporter.task_id,
        reporter.allocation_id,
        reporter.trial_id,
        reporter.run_id,
        report.storage_id,
        report.state,
        report.steps_completed,
        report.metadata,
        dict(report.resources),
        sum(report.resources.values()),
        upload_s,
    )
    if stored is None:
        raise NotNow(f"checkpoint {report.uuid} belongs to another task or was deleted already: use a new uuid")


def _check_metadata(metadata: JsonObject) -> None:
    size = len(msgspec.json.encode(metadata))
    if size > _MAX_METADATA_BYTES:
        raise InvalidInput(
            f"the metadata of a checkpoint has {size} bytes as JSON, and at most {_MAX_METADATA_BYTES} are taken: save "
            "what is long as a file of the checkpoint"
        )


def _check_files(uuid: str, resources: dict[str, int]) -> None:
    if _are_too_many(resources):
        raise InvalidInput(
            f"checkpoint {uuid} has {_count(resources)} files and folders, and at most {_MAX_FILES} are taken, in a "
            f"list of at most {_MAX_FILES_BYTES} bytes: put many small ones into one archive"
        )


def kept_files(resources: dict[str, int], known: Collection[str]) -> dict[str, int]:
    """As many of these files as a checkpoint may have: those that are ``known`` first, then others as they come."""
    if not _are_too_many(resources):
        return resources
    kept: dict[str, int] = {}
    size = len("{}")
    for name in itertools.chain((name for name in known if name in resources), resources):
        if name in kept:
            continue
        size += len(msgspec.json.encode({name: resources[name]})) - 1
        if (_count(kept) == _MAX_FILES and name not in _ADDED) or size > _MAX_FILES_BYTES:
            break
        kept[name] = resources[name]
    return kept


def _are_too_many(resources: dict[str, int]) -> bool:
    return _count(resources) > _MAX_FILES or len(msgspec.json.encode(resources)) > _MAX_FILES_BYTES


def _count(resources: dict[str, int]) -> int:
    """Of what its task has saved; the files with the metadata and the manifest were added to it."""
    return len(resources) - sum(name in resources for name in _ADDED)


async def get(conn: Connection, uuid: str) -> CheckpointRow:
    """Raises NotFound."""
    return row_as(CheckpointRow, await existing(conn, f"checkpoint {uuid}", Q.get, uuid))


async def latest(conn: Connection, trial_id: int) -> CheckpointRow | None:
    """Where the trial goes on from: its COMPLETED checkpoint with the most steps, of those not superseded."""
    row = await conn.fetchrow(Q.latest, trial_id)
    return None if row is None else row_as(CheckpointRow, row)


async def is_in_doubt(conn: Connection, uuid: str) -> bool:
    """Whether its files may be gone: the database was put back to a copy that knows nothing of their deletion."""
    return await conn.fetchval(Q.is_in_doubt, uuid) is True


async def set_files(conn: Connection, uuid: str, resources: dict[str, int]) -> CheckpointRow:
    """What is left: nothing makes it DELETED, another map of files PARTIALLY_DELETED. Raises NotFound.

    A DELETED one keeps the list of what it had, with no bytes. Of too many files `kept_files` are listed, and the bytes
    of all count.
    """
    before = row_as(CheckpointRow, await _locked(conn, uuid))
    size = sum(resources.values())
    resources = kept_files(resources, before.resources)
    if not resources:
        state, resources = "DELETED", dict(before.resources)
    elif resources != before.resources:
        state = "PARTIALLY_DELETED"
    else:
        state = before.state
    row = await conn.fetchrow(Q.set_files, uuid, state, dict(resources), size)
    return row_as(CheckpointRow, row)


async def keep_files(conn: Connection, uuid: str, left: Mapping[str, int]) -> CheckpointRow:
    """What is listed and not ``left`` is gone: of a removal beside another, which may have listed before or after it.

    A DELETED one stays so. Raises NotFound.
    """
    before = row_as(CheckpointRow, await _locked(conn, uuid))
    if before.state == "DELETED":
        return before
    return await set_files(conn, uuid, {name: size for name, size in before.resources.items() if name in left})


async def set_metadata(conn: Connection, uuid: str, metadata: JsonObject) -> CheckpointRow:
    """Replace what its owner wrote about it. Raises NotFound, InvalidInput."""
    _check_metadata(metadata)
    await _locked(conn, uuid)
    return row_as(CheckpointRow, await conn.fetchrow(Q.set_metadata, uuid, metadata))


async def trials_using(conn: Connection, uuid: str, kind: str | None) -> list[int]:
    """Trials that reported to use it, for inference, for fine-tuning, or (None) for either."""
    return [row["trial_id"] for row in await conn.fetch(Q.trials_using, uuid, kind)]


async def storage_backend(conn: Connection, config: JsonObject) -> int:
    """The number of a storage; the same storage has the same number forever. Raises InvalidInput."""
    size = len(msgspec.json.encode(config))
    if size > _MAX_PLACE_BYTES:
        raise InvalidInput(f"what says where the files are has {size} bytes, and at most {_MAX_PLACE_BYTES} are taken")
    known: int | None = await conn.fetchval(Q.known_storage, config)
    if known is not None:
        return known
    try:
        number: int = await conn.fetchval(Q.storage_backend, config)
    except ProgramLimitExceededError:
        # Of many small entries the index has room for fewer.
        raise InvalidInput(f"what says where the files are has {size} bytes, which are too many entries") from None
    return number


async def _locked(conn: Connection, uuid: str) -> Record:
    return await existing(conn, f"checkpoint {uuid}", Q.lock, uuid)


async def registered(conn: Connection, uuids: Collection[str]) -> dict[str, str]:
    """Those of ``uuids`` that are registered: uuid -> ``version 3 of model bert``."""
    rows = await conn.fetch(Q.registered, list(uuids))
    return {row["uuid"]: f"version {row['version']} of model {row['model']}" for row in rows}


async def check_none_registered(conn: Connection, uuids: Collection[str]) -> None:
    """Raises InvalidInput, naming the first, if any of ``uuids`` is registered."""
    for uuid, where in (await registered(conn, uuids)).items():
        raise InvalidInput(f"checkpoint {uuid} is {where}, so it cannot be deleted: delete that version first")


async def registered_of_experiment(conn: Connection, experiment_id: int) -> str | None:
    """Which checkpoint of an experiment is registered, and as what, with what to do; None: none is."""
    row = await conn.fetchrow(Q.registered_of_experiment, experiment_id)
    if row is None:
        return None
    return (
        f"its checkpoint {row['uuid']} is version {row['version']} of model {row['model']}: delete that version first"
    )
