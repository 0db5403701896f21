"""Checkpoint files as the master itself can reach them: shared_fs and directory, where they are mounted here, too.

Users say where their checkpoints are, and the master may read and delete more than they may. So:

- it touches only places below a root that the operator has listed (`tenax.master.checkpoints.roots`), never the state
  of a master or an agent, wherever that lies;
- there it touches only directories named by a UUID (and what TensorBoard wrote for an experiment);
- below the root nothing is opened through a link, however it is swapped meanwhile: every step goes from one open
  directory to the next; a link inside a checkpoint is deleted or packed as a link;
- of a user who is linked with a uid it reads what belongs to that uid, or to one that was theirs alone, or what
  everybody may read, and deletes from directories of these uids; of others it touches nothing that is such a user's. A
  name proves nothing: whoever owns the directory around it gives it to any directory, whose files stay its owner's;
- a checkpoint is renamed before it is deleted: nobody finds half of one;
- what is nested deeper than `MAX_DEPTH`, or has more than `MAX_ENTRIES`, is left to a task on an agent: here it would
  take the files and the memory of everybody.

Blocking: call it in a thread.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenax.errors import NotFound, NotNow
from tenax.master.store.users.rows import FileOwner
from tenax.storage.directory import being_staged, half_deleted, trimmed
from tenax.storage.port import EVERYTHING, StorageFailed
from tenax.storage.private_directory import CHECKPOINTS, is_inside_private, is_private

if TYPE_CHECKING:
    from tenax.storage.port import Files

#: Directories inside of one another: each is an open file while one is gone through.
MAX_DEPTH = 100
MAX_ENTRIES = 1_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINK = _FOLDER | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class CheckpointPlace:
    """A directory with checkpoints: a root as the operator has listed it, and the way below it."""

    root: str
    below: tuple[str, ...] = ()
    #: Of the files there that are asked for; None: whose they are is not asked.
    owner: FileOwner | None = None

    def __str__(self) -> str:
        return os.path.join(self.root, *self.below)

    @contextmanager
    def opened(self, *further: str) -> Iterator[int]:
        """The directory, or one below it, as an open descriptor. Raises NotNow, NotFound (something ``further``)."""
        way: list[int] = []
        if is_inside_private(self.root):
            raise _private(self.root)
        try:
            way.append(_opened(self.root, _FOLDER, self.root))
            for name in self.below:
                if is_private(way[-1]) and name != CHECKPOINTS:
                    raise _private(str(self))
                way.append(_opened(name, _NO_LINK, str(self), way[-1]))
            if is_private(way[-1]):
                raise _private(str(self))
            for name in further:
                try:
                    way.append(os.open(name, _NO_LINK, dir_fd=way[-1]))
                except FileNotFoundError:
                    raise NotFound(f"{os.path.join(*further)} not found in {self}") from None
                except OSError as error:
                    if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                        raise
                    raise NotNow(f"{name} in {self} is no directory: it leads elsewhere and is left alone") from None
                if is_private(way[-1]):
                    raise _private(f"{name} in {self}")
            yield way[-1]
        finally:
            for descriptor in reversed(way):
                os.close(descriptor)

    @contextmanager
    def opened_own(self, *further: str) -> Iterator[int]:
        """A directory below it, if it is its owner's. Raises NotNow, NotFound."""
        with self.opened(*further) as folder:
            uid = os.fstat(folder).st_uid
            if not self.is_own(uid):
                raise NotNow(f"{further[-1]} in {self} belongs to uid {uid}, which is not its owner's here: left alone")
            yield folder

    def is_own(self, uid: int) -> bool:
        """Whether files of a user of the operating system are the owner's, or that is not asked."""
        return self.owner is None or self.owner.owns(uid)

    def check_readable(self, path: str, status: os.stat_result) -> None:
        """Raises NotNow for a file or a directory that is not the owner's, and not for everybody to read."""
        everybody = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else 0)
        if not self.is_own(status.st_uid) and status.st_mode & everybody != everybody:
            raise NotNow(
                f"{path!r} in it belongs to uid {status.st_uid}, who alone may read it, and which is not the "
                "checkpoint's owner's here: it is not sent"
            )


def delete_checkpoint(place: CheckpointPlace, checkpoint: str, globs: Sequence[str] = EVERYTHING) -> Files | None:
    """Delete files of a checkpoint, or of an upload that never became one; what is left, by names `as_text`.

    None: there was nothing of it. Raises NotNow, StorageFailed.
    """
    name = _checked(checkpoint)
    with _explained(place, f"checkpoint {name} cannot be deleted"), place.opened() as base:
        if tuple(globs) == EVERYTHING:
            folders = (name, *_traces_of(name))
            for each in folders:
                with suppress(NotFound), place.opened_own(each):
                    pass  # Refused where it is a link, private, or a stranger's.
            deleted = [_delete_folder(each, base, place) for each in folders]
            return {} if any(deleted) else None
        try:
            with place.opened_own(name) as folder:
                files = _listing(folder, place)
                matched = trimmed(files, globs)
                left = {path: size for path, size in files.items() if path not in matched}
                if any(not path.endswith("/") for path in left):
                    _delete_paths(folder, sorted(matched, reverse=True), place)
                    return {as_text(path): size for path, size in left.items()}
        except NotFound:
            return None
        _delete_folder(name, base, place)
        return {}


def files_of(place: CheckpointPlace, checkpoint: str) -> Files:
    """The files of a checkpoint as they are now, by names `as_text`; links count as files.

    Raises NotFound, NotNow, StorageFailed.
    """
    name = _checked(checkpoint)
    with _explained(place, f"checkpoint {name} cannot be read"), opened_checkpoint(place, name) as folder:
        return {as_text(path): size for path, size in _listing(folder, place, to_read=True).items()}


def as_text(name: str) -> str:
    """A name of a file, any bytes, as it can be stored and sent."""
    return os.fsencode(name).decode(errors="replace")


@contextmanager
def opened_checkpoint(place: CheckpointPlace, checkpoint: str) -> Iterator[int]:
    """The directory of a checkpoint as an open descriptor. Raises NotFound, NotNow."""
    name = _checked(checkpoint)
    try:
        with place.opened_own(name) as folder:
            yield folder
    except NotFound:
        raise NotFound(f"files of checkpoint {name} not found: they are not in {place} any more") from None


def delete_tensorboard(
    place: CheckpointPlace, cluster_id: str, experiment_id: int, trial_id: int | None = None
) -> bool:
    """Delete what TensorBoard wrote for an experiment, or for one trial of it; False: there was nothing.

    Raises NotNow, StorageFailed.
    """
    way = (_checked(cluster_id), "tensorboard", "experiment", str(experiment_id), "trial", str(trial_id))
    *above, last = way if trial_id is not None else way[:4]
    with _explained(place, f"the TensorBoard files of experiment {experiment_id} cannot be deleted"):
        try:
            with place.opened(*above) as folder:
                with suppress(NotFound), place.opened_own(*above, last):
                    pass  # Refused where it is a stranger's.
                return _delete_folder(last, folder, place)
        except NotFound:
            return False


def is_empty(place: CheckpointPlace) -> bool:
    """Whether nothing at all is there, as in the directory of a file system that is not mounted. Raises NotNow."""
    with _explained(place, "the storage cannot be read"), place.opened() as base:
        return not os.listdir(base)


def _checked(checkpoint: str) -> str:
    """The id, if it is a UUID as it is written in full. Raises NotNow."""
    try:
        regular = str(uuid.UUID(checkpoint)) == checkpoint.lower()
    except ValueError:
        regular = False
    if not regular:
        raise NotNow(f"{checkpoint!r} is not the directory of a checkpoint (a UUID is expected): it is left alone")
    return checkpoint


def _private(shown: str) -> NotNow:
    return NotNow(f"{shown} is, or lies in, the state directory of a master or an agent, which is never touched")


def _traces_of(name: str) -> tuple[str, str]:
    """What an upload, or a deletion, that broke off leaves."""
    return being_staged(name), half_deleted(name)


def _opened(path: str, flags: int, shown: str, parent: int | None = None) -> int:
    """An open descriptor; ``shown``: what a message calls it. Raises NotNow."""
    try:
        return os.open(path, flags, dir_fd=parent)
    except FileNotFoundError:
        raise NotNow(
            f"the master cannot reach {shown}: mount it on the master's machine, or delete the files yourself"
        ) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NotNow(f"{shown} leads through a link, which the master does not follow") from None
        raise


def _delete_folder(name: str, parent: int, place: CheckpointPlace) -> bool:
    """Delete a directory with all that is in it; False: it is not there. Raises NotNow for anything else."""
    try:
        mode = os.lstat(name, dir_fd=parent).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(mode):
        raise NotNow(f"{name} is no directory: it leads elsewhere and is left alone")
    hidden = name if name.startswith(".") else half_deleted(name)
    if hidden != name:
        with suppress(FileNotFoundError):
            _delete_tree(hidden, parent, place)
        os.rename(name, hidden, src_dir_fd=parent, dst_dir_fd=parent)
    _delete_tree(hidden, parent, place)
    return True


def _delete_tree(name: str, parent: int, place: CheckpointPlace, depth: int = 0) -> None:
    """Raises OSError, StorageFailed."""
    _check_depth(depth)
    folder = os.open(name, _NO_LINK, dir_fd=parent)
    try:
        with os.scandir(folder) as entries:
            inside = list(entries)
        if inside:
            _check_may_change(name, folder, place)
            for entry in inside:
                if entry.is_dir(follow_symlinks=False):
                    _delete_tree(entry.name, folder, place, depth + 1)
                else:
                    os.unlink(entry.name, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=parent)


def _check_may_change(name: str, folder: int, place: CheckpointPlace) -> None:
    # What lies in a directory is deleted by whoever owns the directory.
    uid = os.fstat(folder).st_uid
    if not place.is_own(uid):
        raise StorageFailed(f"the directory {name!r} in it belongs to uid {uid}, which is not its owner's here")


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise StorageFailed(
            f"it has directories nested more than {MAX_DEPTH} deep, which the master does not go through"
        )


def entries_of(folder: int, place: CheckpointPlace) -> Iterator[tuple[str, str, int]]:
    """Everything below an open directory, by path: path, name, and the open directory that it is in.

    No link is followed. Raises StorageFailed for more than the master goes through, NotNow for a stranger's directory.
    """
    count = 0
    for base, folders, files, descriptor in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        _check_depth(0 if base == "." else base.count("/"))
        place.check_readable(base, os.fstat(descriptor))
        folders.sort()
        prefix = "" if base == "." else base.removeprefix("./") + "/"
        count += len(folders) + len(files)
        if count > MAX_ENTRIES:
            raise StorageFailed(f"it has more than {MAX_ENTRIES} files, which the master does not go through")
        for name in sorted(folders + files):
            yield prefix + name, name, descriptor


def _listing(folder: int, place: CheckpointPlace, *, to_read: bool = False) -> Files:
    """Everything below an open directory: files and links with their bytes, directories as ``name/`` with 0.

    Raises NotNow for what the owner may not read; ``to_read``: files, too.
    """
    listed: Files = {}
    for path, name, parent in entries_of(folder, place):
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if to_read and stat.S_ISREG(status.st_mode):
            place.check_readable(path, status)
        if stat.S_ISDIR(status.st_mode):
            listed[f"{path}/"] = 0
        else:
            listed[path] = status.st_size
    return listed


def _delete_paths(folder: int, paths: Sequence[str], place: CheckpointPlace) -> None:
    """Delete these, what lies in a directory before the directory."""
    for path in paths:
        *way, name = path.rstrip("/").split("/")
        opened: list[int] = []
        try:
            for part in way:
                opened.append(os.open(part, _NO_LINK, dir_fd=opened[-1] if opened else folder))
            parent = opened[-1] if opened else folder
            _check_may_change("/".join(way) or ".", parent, place)
            if path.endswith("/"):
                os.rmdir(name, dir_fd=parent)
            else:
                os.unlink(name, dir_fd=parent)
        except FileNotFoundError:
            continue
        finally:
            for descriptor in opened:
                os.close(descriptor)


@contextmanager
def _explained(place: CheckpointPlace, what: str) -> Iterator[None]:
    """Turn an error of the file system into a message that says where, who and what to do."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"{what}: {place}, as uid {os.getuid()} on {os.uname().nodename}: {error.strerror or error}. "
            "Let that user write there, or delete the files yourself."
        ) from error
