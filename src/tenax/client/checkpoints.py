"""Checkpoints as values, how they are fetched, and which of an experiment's a policy keeps and why."""

from __future__ import annotations

import datetime
import shutil
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple, Union, cast

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, LiveAnswer, made, part
from tenax.client.connection.session import BrokenStream, Query, Session, at
from tenax.errors import AlreadyExists, InvalidInput, NotFound
from tenax.host.disk import says_full
from tenax.jsonvalue import Json, JsonObject

if TYPE_CHECKING:
    import httpx2

    from tenax.client.trials import Reports


#: Ways to the files of a checkpoint: whichever works, its storage, the master.
DOWNLOAD_MODES = ("auto", "direct", "master")
#: States of checkpoints that can be downloaded.
HAVING_FILES = ("COMPLETED", "PARTIALLY_DELETED")


def _sizes(value: JsonObject, key: str) -> Dict[str, int]:
    files = reading.record(value, key)
    return {name: reading.integer(files, name) for name in files}


@dataclass(frozen=True)
class Checkpoint(LiveAnswer):
    """Files that a trial saved at some step."""

    uuid: str = part(reading.text, "uuid")
    state: str = part(reading.state, "state")
    #: What the script recorded about it; ``steps_completed`` is always there.
    metadata: JsonObject = part(reading.record, "metadata")
    #: Size in bytes of each file, by path; directories end in a slash.
    resources: Dict[str, int] = part(_sizes, "resources")
    trial_id: int = part(reading.integer, "training", "trialId")
    experiment_id: int = part(reading.integer, "training", "experimentId")
    hparams: JsonObject = part(reading.record, "training", "hparams")
    #: The searcher's metric at its step, where it was reported.
    searcher_metric: Optional[float] = part(reading.measure, "training", "searcherMetric")
    reported: Optional[datetime.datetime] = part(reading.moment, "reportTime")
    #: Why its files are being deleted, and why that did not work yet; empty: they are not.
    going: str = part(reading.text, "going")

    @property
    def steps(self) -> int:
        return reading.integer(self.metadata, "steps_completed")

    @property
    def has_files(self) -> bool:
        """Whether there is something to download: whole, or without some of its files."""
        return self.state in HAVING_FILES

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(self.resources.values())

    @property
    def storage(self) -> JsonObject:
        """``checkpoint_storage`` of its experiment."""
        config = reading.record(reading.record(self.raw, "training"), "experimentConfig")
        return reading.record(config, "checkpoint_storage")

    def path(self) -> Optional[Path]:
        """Where it lies, if this machine sees that directory; a link there leads to whatever its maker likes.

        What a run by hand saved on this machine lies where such runs keep it, whatever its experiment's storage is.
        """
        from tenax.local.user_data import checkpoint_directory

        for base in (storage_directory(self.storage), Path(checkpoint_directory())):
            here = base / self.uuid if base is not None else None
            if here is not None and here.is_dir() and not here.is_symlink():
                return here
        return None

    def reload(self) -> Checkpoint:
        """The checkpoint as it is now."""
        return get_checkpoint(self.session, self.uuid)

    def delete(self) -> None:
        """Delete its files; the record of it stays. Raises NotNow where a live trial would start from it."""
        self.session.call("DELETE", "/api/v1/checkpoints", body={"checkpointUuids": [self.uuid]})

    def remove_files(self, globs: Sequence[str]) -> None:
        """Delete the files that match (``**`` crosses directories); none: update its record."""
        body: JsonObject = {"checkpointUuids": [self.uuid], "checkpointGlobs": list(globs)}
        self.session.call("POST", "/api/v1/checkpoints/rm", body=body)

    def add_metadata(self, metadata: JsonObject) -> Checkpoint:
        """Add metadata; values under the same names are replaced. The checkpoint as it is then."""
        return self._write_metadata({**self.reload().metadata, **metadata})

    def remove_metadata(self, names: Sequence[str]) -> Checkpoint:
        """Remove metadata by name; the steps at which it was saved stay."""
        return self._write_metadata(
            {name: value for name, value in self.reload().metadata.items() if name not in names}
        )

    def metrics(self, group: str = "") -> Reports:
        """Metrics of trials that reported using it; without a ``group``, of every group."""
        from tenax.client.trials import Report, Reports

        answer = self.session.get(at("/api/v1/checkpoints/{}/metrics", self.uuid), {"metricGroup": group})
        return Reports(Report.read(report) for report in reading.records(answer, "metrics"))

    def _write_metadata(self, metadata: JsonObject) -> Checkpoint:
        body: JsonObject = {"checkpoint": {"uuid": self.uuid, "metadata": metadata}}
        answer = self.session.post(at("/api/v1/checkpoints/{}/metadata", self.uuid), body)
        return Checkpoint.read(reading.record(answer, "checkpoint"), self.session)

    def download(self, to: Union[str, Path, None] = None, *, mode: str = "auto") -> Path:
        """Fetch its files into a new directory (``checkpoints/<uuid>`` below the current one); returns it.

        Copied where this machine sees the storage, else through the master, else from the storage with the credentials
        of whoever asks, unless it is on a server that somebody else has named; ``mode``: ``master``, or ``direct`` for
        the storage, whoever named it. Raises AlreadyExists, NotFound, StorageFailed, InvalidInput for another mode.
        """
        if mode not in DOWNLOAD_MODES:
            raise InvalidInput(f"mode must be one of {', '.join(DOWNLOAD_MODES)}, not {mode!r}")
        target = Path(to) if to is not None else Path("checkpoints") / self.uuid
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise AlreadyExists(f"{target} exists already: name another directory, or remove it.")
        if self.state == "DELETED":
            raise NotFound(f"The files of checkpoint {self.uuid} were deleted.")
        half = target.with_name(f".{target.name}.part")
        shutil.rmtree(half, ignore_errors=True)
        try:
            source = self.path() if mode != "master" else None
            if source is not None:
                # Who saved it says what a link in it leads to: it stays one, as in an archive.
                shutil.copytree(source, half, symlinks=True)
            elif mode != "direct":
                self._through_master(half, alone=mode == "master")
            elif not self._from_store(half):
                raise NotFound(
                    f"The files of checkpoint {self.uuid} are in {self._place()}, which is not seen from here."
                )
            if target.exists():
                target.rmdir()
            half.replace(target)
        except BaseException as error:
            shutil.rmtree(half, ignore_errors=True)
            if says_full(error):
                from tenax.storage.port import StorageFailed

                raise StorageFailed(f"{target.parent.absolute()} is full: make room, or name another place.") from error
            raise
        return target

    def _place(self) -> str:
        directory = storage_directory(self.storage)
        return (reading.text(self.storage, "type") or "a storage") + (f" at {directory}" if directory else "")

    def _through_master(self, into: Path, *, alone: bool) -> None:
        from tenax.client.connection.transport import httpx2

        into.mkdir(parents=True)
        path = at("/checkpoints/{}", self.uuid)
        try:
            with self.session.stream("GET", path, accept="application/gzip") as response:
                with tarfile.open(fileobj=cast("IO[bytes]", _Pieces(response)), mode="r|gz") as archive:
                    for member in archive:
                        _extract(archive, member, into)
        except (NotFound, InvalidInput) as refusal:
            server = None if alone else self._server_of_others()
            if server is not None:
                raise NotFound(
                    f"The files of checkpoint {self.uuid} are at {server}, which whoever made experiment "
                    f"{self.experiment_id} has named: your credentials go there only if you say so (mode direct)."
                ) from None
            if not alone and self._from_store(into):
                return
            if isinstance(refusal, InvalidInput):
                raise
            raise NotFound(
                f"The files of checkpoint {self.uuid} are in {self._place()}, which this machine does not see, and the "
                "master cannot send them: fetch them on a machine that sees that place."
            ) from None
        except (httpx2.TransportError, tarfile.TarError, EOFError) as error:
            raise BrokenStream(f"The download of checkpoint {self.uuid} broke off: {error}. Try again.") from None

    def _server_of_others(self) -> Optional[str]:
        """The server of a store, where it is neither the vendor's nor named by whoever asks: it could be anybody's."""
        from tenax.client.experiments import get_experiment
        from tenax.client.users import whoami
        from tenax.storage.registry import kind_of

        kind = kind_of(self.storage)
        server = kind.server(self.storage) if kind is not None else None
        if server is None or get_experiment(self.session, self.experiment_id).owner == whoami(self.session).username:
            return None
        return server

    def _from_store(self, into: Path) -> bool:
        """From a store of objects, with what credentials there are here; False: it is none. Raises StorageFailed."""
        from tenax.display.secrets import OF_STORAGE
        from tenax.storage.objects import ObjectStorage
        from tenax.storage.registry import from_config, kind_of

        section = {key: value for key, value in self.storage.items() if key not in OF_STORAGE}
        if kind_of(section) is None:
            return False
        storage = from_config(section)
        if not isinstance(storage, ObjectStorage):
            return False
        storage.download(self.uuid, str(into))
        return True


class _Pieces:
    """A streaming answer as a file that tarfile can read."""

    def __init__(self, response: httpx2.Response) -> None:
        self._pieces = response.iter_raw()
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        while len(self._rest) < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._rest += piece
        content, self._rest = self._rest[:size], self._rest[size:]
        return content


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """Files and directories alone, and none outside: the archive comes from another machine."""
    target = (into / member.name).resolve()
    if into.resolve() not in (target, *target.parents):
        raise InvalidInput(
            f"The archive holds {member.name!r}, which lies outside the target directory: it was not unpacked."
        )
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
    elif member.isfile():
        target.parent.mkdir(parents=True, exist_ok=True)
        source = archive.extractfile(member)
        with open(target, "wb") as file:
            if source is not None:
                shutil.copyfileobj(source, file)


def storage_directory(storage: JsonObject) -> Optional[Path]:
    """The directory that holds checkpoints, for the kinds of storage that are one; None for object stores."""
    # Not at the top: commands that show a checkpoint do not wait for what copies its files.
    from tenax.storage.registry import kind_of

    kind = kind_of(storage)
    place = None if kind is None else kind.place(storage)
    return None if place is None else Path(place[0], *place[1])


def get_checkpoint(session: Session, uuid: str) -> Checkpoint:
    """The checkpoint of that uuid. Raises NotFound."""
    answer = session.get(at("/api/v1/checkpoints/{}", uuid))
    return Checkpoint.read(reading.record(answer, "checkpoint"), session)


def delete_checkpoints(session: Session, uuids: Sequence[str]) -> None:
    """Delete the files of all of these, or of none. Raises NotFound, NotNow."""
    session.call("DELETE", "/api/v1/checkpoints", body={"checkpointUuids": list(uuids)})


def files_are_gone(session: Session, uuids: Sequence[str]) -> None:
    """Note that no file of these is left: whoever had them has deleted them. Raises NotFound, Forbidden."""
    nothing: List[Json] = [{"uuid": uuid, "resources": {"resources": {}}} for uuid in uuids]
    session.call("PATCH", "/api/v1/checkpoints", body={"checkpoints": nothing})


@dataclass(frozen=True)
class GcPolicy:
    """How many checkpoints an experiment keeps: those that any of the three numbers keeps."""

    experiment_best: int
    trial_best: int
    trial_latest: int


#: Its name for scripts.
Policy = GcPolicy


@dataclass(frozen=True)
class GcDecision(Answer):
    """Whether a policy keeps a checkpoint, and why."""

    uuid: str = part(reading.text, "uuid")
    trial_id: int = part(reading.integer, "trialId")
    steps: int = part(reading.integer, "stepsCompleted")
    #: The searcher's metric at its step, where it was reported.
    metric: Optional[float] = part(reading.measure, "searcherMetric")
    #: Bytes.
    size: int = part(reading.integer, "size")
    keep: bool = part(reading.flag, "keep")
    #: Every reason to keep it, or the one for which it is deleted.
    reasons: Tuple[str, ...] = made(lambda value: tuple(reading.texts(value, "reasons")))


@dataclass(frozen=True)
class Removal(Answer):
    """Files that are being deleted."""

    uuid: str = part(reading.text, "uuid")
    #: Of an upload that its task began and never reported.
    unreported: bool = part(reading.flag, "unreported")
    reason: str = part(reading.text, "reason")
    tries: int = part(reading.integer, "tries")
    #: Why the last try failed; empty: none did.
    failure: str = part(reading.text, "failure")


@dataclass(frozen=True)
class GcPreview:
    """What a policy keeps and deletes of an experiment's checkpoints, and what is being deleted already."""

    policy: GcPolicy
    metric: str
    checkpoints: Tuple[GcDecision, ...]
    removals: Tuple[Removal, ...]
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)

    @property
    def going(self) -> Tuple[GcDecision, ...]:
        return tuple(checkpoint for checkpoint in self.checkpoints if not checkpoint.keep)

    @property
    def freed(self) -> int:
        """Bytes that the policy frees."""
        return sum(checkpoint.size for checkpoint in self.going)


def garbage_of(
    session: Session,
    experiment: int,
    *,
    experiment_best: Optional[int] = None,
    trial_best: Optional[int] = None,
    trial_latest: Optional[int] = None,
) -> GcPreview:
    """What its policy, with these numbers in place, keeps of an experiment; nothing is changed. Raises NotFound."""
    query: Query = {
        "saveExperimentBest": experiment_best,
        "saveTrialBest": trial_best,
        "saveTrialLatest": trial_latest,
    }
    value = session.get(at("/api/v1/experiments/{}/garbage", experiment), query)
    policy = reading.record(value, "policy")
    return GcPreview(
        policy=GcPolicy(
            reading.integer(policy, "saveExperimentBest"),
            reading.integer(policy, "saveTrialBest"),
            reading.integer(policy, "saveTrialLatest"),
        ),
        metric=reading.text(value, "metric"),
        checkpoints=tuple(GcDecision.read(checkpoint) for checkpoint in reading.records(value, "checkpoints")),
        removals=tuple(Removal.read(removal) for removal in reading.records(value, "removals")),
        raw=value,
    )


def set_policy(session: Session, experiment: int, policy: GcPolicy) -> None:
    """Keep so many from now on; what is not kept is deleted at once. Raises NotFound, Forbidden."""
    body: JsonObject = {
        "checkpointStorage": {
            "saveExperimentBest": policy.experiment_best,
            "saveTrialBest": policy.trial_best,
            "saveTrialLatest": policy.trial_latest,
        }
    }
    session.call("PATCH", at("/api/v1/experiments/{}", experiment), body=body)
