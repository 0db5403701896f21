"""``checkpoint_storage``: where checkpoints go, and how many of them are kept.

The resolved document holds only keys that a task's storage code takes as arguments, beside ``type`` and ``save_*``.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Annotated, Union

from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import IntShape, TextShape
from tenax.config.structs import Struct, Tagged
from tenax.jsonvalue import Json


def _safe_prefix(value: Json, at: Path, report: ProblemReport) -> None:
    if ".." in str(value).split("/"):
        report.add(at, f"the prefix {value!r} climbs out of its bucket: leave '..' out of it")


_KEEP = IntShape(minimum=0)
_NAME = TextShape(filled=True)
_PREFIX = TextShape(rule=_safe_prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFsConfig:
    """A directory that is mounted at the same place of every agent; containers see it at a fixed path."""

    host_path: Annotated[str, TextShape(filled=True)]
    #: Below ``host_path``; relative to it, or absolute.
    storage_path: Annotated[str | None, TextShape()] = None
    container_path: Annotated[str | None, TextShape()] = None
    propagation: Annotated[str, TextShape()] = "rprivate"
    #: Best checkpoints of the experiment and of each trial, and latest of each trial, that garbage collection keeps.
    save_experiment_best: Annotated[int, _KEEP] = 0
    save_trial_best: Annotated[int, _KEEP] = 1
    save_trial_latest: Annotated[int, _KEEP] = 1

    def directory(self) -> str:
        """Where checkpoints lie, as an agent sees it."""
        return posixpath.normpath(posixpath.join(self.host_path, self.storage_path or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryConfig:
    """A path inside the task; that it is shared and durable is the user's promise."""

    container_path: Annotated[str, TextShape(filled=True)]
    save_experiment_best: Annotated[int, _KEEP] = 0
    save_trial_best: Annotated[int, _KEEP] = 1
    save_trial_latest: Annotated[int, _KEEP] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Config:
    """A bucket of S3 or of a service that speaks its protocol; without keys the task's own credentials are used."""

    bucket: Annotated[str, _NAME]
    access_key: Annotated[str | None, TextShape()] = None
    secret_key: Annotated[str | None, TextShape()] = None
    endpoint_url: Annotated[str | None, TextShape()] = None
    prefix: Annotated[str | None, _PREFIX] = None
    save_experiment_best: Annotated[int, _KEEP] = 0
    save_trial_best: Annotated[int, _KEEP] = 1
    save_trial_latest: Annotated[int, _KEEP] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsConfig:
    """A bucket of Google Cloud Storage, with application default credentials."""

    bucket: Annotated[str, _NAME]
    prefix: Annotated[str | None, _PREFIX] = None
    save_experiment_best: Annotated[int, _KEEP] = 0
    save_trial_best: Annotated[int, _KEEP] = 1
    save_trial_latest: Annotated[int, _KEEP] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureConfig:
    """A container of Azure Blob Storage."""

    container: Annotated[str, _NAME]
    connection_string: Annotated[str | None, TextShape()] = None
    account_url: Annotated[str | None, TextShape()] = None
    credential: Annotated[str | None, TextShape()] = None
    save_experiment_best: Annotated[int, _KEEP] = 0
    save_trial_best: Annotated[int, _KEEP] = 1
    save_trial_latest: Annotated[int, _KEEP] = 1


CheckpointStorage = Union[SharedFsConfig, DirectoryConfig, S3Config, GcsConfig, AzureConfig]


def _inside_host_path(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    host, below = value.get("host_path"), value.get("storage_path")
    if not isinstance(host, str) or not isinstance(below, str):
        return
    root = posixpath.normpath(host)
    place = posixpath.normpath(posixpath.join(root, below))
    if place != root and not place.startswith(root.rstrip("/") + "/"):
        message = f"{below!r} lies outside of host_path {host!r}: give a relative path, or one below host_path"
        report.add((*at, "storage_path"), message)


def _has_single_secret(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    if value.get("connection_string") is not None and value.get("credential") is not None:
        report.add(at, "credential goes with account_url, not with connection_string: remove one of the two")
    if "?" in str(value.get("account_url") or ""):
        message = "holds a signature, which is shown to nobody as credential alone: put there what follows the '?'"
        report.add((*at, "account_url"), message)


def _has_single_address(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    if (value.get("connection_string") is None) == (value.get("account_url") is None):
        report.add(at, "set exactly one of connection_string and account_url")


#: Once there to place files inside of containers; nothing reads them.
_LEGACY = {"checkpoint_path": TextShape(), "tensorboard_path": TextShape()}

SHARED_FS = Struct(SharedFsConfig, ignored=_LEGACY, rule=_inside_host_path)
DIRECTORY = Struct(DirectoryConfig)
S3_STORAGE = Struct(S3Config)
GCS = Struct(GcsConfig)
AZURE = Struct(AzureConfig, rule=_has_single_secret, complete=_has_single_address)

#: By name: the settings of each kind of `tenax.storage.registry`, and of those that are known and not served yet.
SCHEMAS = {"shared_fs": SHARED_FS, "directory": DIRECTORY, "s3": S3_STORAGE, "gcs": GCS, "azure": AZURE}

CHECKPOINT_STORAGE = Tagged(
    "type",
    SCHEMAS,
    gone={"hdfs": "hdfs is not supported: use shared_fs, directory, s3, gcs or azure"},
)
