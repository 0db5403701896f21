"""What every store of objects must do besides `tests.kits.storage_kit`. A test module inherits ``ObjectKit`` and gives
the fixture ``place``."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tenax.backoff import Backoff
from tenax.storage import objects
from tenax.storage.port import CheckpointMissing, Storage, StorageFailed
from tests.kits.object_places import EMULATOR, PREFIX, ObjectPlace
from tests.kits.object_server import BROKEN, GONE, REFUSED, Between, between
from tests.kits.storage_kit import PATHS, SIZES, STORAGE_ID, TWO, StorageKit, put

#: Bytes of a file that every one of these stores takes in parts.
_LARGE = 80 << 20


@pytest.fixture
def broken(place: ObjectPlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """A server that fails where a test wants it."""
    with between(place.server, place.refusal) as made:
        if not place.setting:
            monkeypatch.setenv(EMULATOR, made.url)
        yield made


class ObjectKit(StorageKit):
    @pytest.fixture
    def storage(self, place: ObjectPlace) -> Storage:
        storage = place.opened()
        # It is connected from here on, whatever server is named later.
        storage.validate()
        return storage

    def test_place(self, storage: Storage, source: Path, place: ObjectPlace) -> None:
        """``<prefix>/<id>/<path>`` is an object, a directory an empty one, as Determined has them; and no more."""
        put(storage, source)
        assert sorted(place.objects.names()) == sorted(f"{PREFIX}/{STORAGE_ID}/{path}" for path in PATHS)
        assert storage.direct_path(STORAGE_ID) is None

    def test_one_of_determined(self, storage: Storage, place: ObjectPlace, tmp_path: Path) -> None:
        """Its uploads have no mark; folders need no object of their own."""
        place.objects.add(f"{PREFIX}/{TWO}/a/b.bin", b"12")
        assert storage.list_files(TWO) == {"a/b.bin": 2}
        storage.download(TWO, str(tmp_path / "back"))
        assert (tmp_path / "back/a/b.bin").read_bytes() == b"12"

    def test_a_large_file(self, storage: Storage, tmp_path: Path) -> None:
        """It goes in parts, and comes back as it was."""
        (tmp_path / "large").mkdir()
        content = os.urandom(1 << 20) * 40
        (tmp_path / "large/model.bin").write_bytes(content)
        storage.stage(STORAGE_ID, str(tmp_path / "large"), ["model.bin"])
        storage.commit(STORAGE_ID)
        storage.download(STORAGE_ID, str(tmp_path / "back"))
        assert (tmp_path / "back/model.bin").read_bytes() == content

    def test_a_mark_is_not_read(self, storage: Storage, place: ObjectPlace, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever writes one chooses how large it is."""
        assert isinstance(storage, objects.ObjectStorage)
        place.objects.add(f"{PREFIX}/{TWO}/part", b"x")
        place.objects.add(f"{PREFIX}/.{TWO}.partial-of-another", b"x")
        monkeypatch.setattr(storage._bucket, "read", lambda key: pytest.fail(f"{key} was read"))
        assert storage.list_files(TWO) == {"part": 1}
        place.objects.add(f"{PREFIX}/.{TWO}.partial", b"x" * 100_000)
        with pytest.raises(CheckpointMissing):
            storage.list_files(TWO)

    def test_a_checkpoint_of_too_many_files(self, storage: Storage, place: ObjectPlace) -> None:
        """Where somebody waits it is refused, with what to do; elsewhere it is listed."""
        assert isinstance(storage, objects.ObjectStorage)
        for number in range(5):
            place.objects.add(f"{PREFIX}/{TWO}/{number}", b"")
        assert len(storage.list_files(TWO)) == 5
        storage.hurry(4)
        with pytest.raises(StorageFailed, match=r"more than 4 files.*with credentials of yours"):
            storage.list_files(TWO)
        storage.hurry(5)
        assert len(storage.list_files(TWO)) == 5

    @pytest.mark.parametrize("name", ["outputs", "hr", f"{TWO}/x", ""])
    def test_what_is_no_uuid_is_no_checkpoint(self, storage: Storage, place: ObjectPlace, name: str) -> None:
        """What else lies in the bucket is neither read nor deleted as one."""
        place.objects.add(f"{PREFIX}/outputs/x/y", b"x")
        for attempt in (storage.list_files, storage.delete, storage.abandon):
            with pytest.raises(StorageFailed, match="a UUID is expected"):
                attempt(name)
        assert place.objects.names() == [f"{PREFIX}/outputs/x/y"]

    def test_a_file_in_pieces(self, storage: Storage, place: ObjectPlace, monkeypatch: pytest.MonkeyPatch) -> None:
        """As a whole; one that is shorter than it was is told."""
        assert isinstance(storage, objects.ObjectStorage)
        monkeypatch.setattr(objects, "_PIECE", 7)
        content = bytes(range(50))
        place.objects.add(f"{PREFIX}/{TWO}/part", content)
        pieces = list(storage.pieces(TWO, "part", 50))
        assert (b"".join(pieces), {len(piece) for piece in pieces}) == (content, {7, 1})
        assert list(storage.pieces(TWO, "part", 0)) == []
        with pytest.raises(StorageFailed):
            list(storage.pieces(TWO, "part", 60))

    def test_an_upload_that_was_killed(self, storage: Storage, source: Path, place: ObjectPlace) -> None:
        """Whatever is there already is no checkpoint; it is thrown away."""
        program = (
            "import os, sys; from tenax.storage import registry\n"
            f"storage = registry.from_config({place.at()!r})\n"
            f"storage.stage({STORAGE_ID!r}, {str(source)!r}, ['model.bin', 'layers/'])\n"
            "os.kill(os.getpid(), 9)\n"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
        with pytest.raises(CheckpointMissing):
            storage.list_files(STORAGE_ID)
        assert storage.delete(STORAGE_ID) == {}
        storage.abandon(STORAGE_ID)
        assert place.objects.names() == []

    def test_a_deletion_that_breaks_off(
        self, storage: Storage, source: Path, broken: Between, place: ObjectPlace
    ) -> None:
        """Nobody finds the half of it, and the next try ends it."""
        put(storage, source)
        failing = place.opened(broken.url)
        broken.fault = lambda method, path: REFUSED if method == "DELETE" or "delete" in path else None
        with pytest.raises(StorageFailed, match="access is denied"):
            failing.delete(STORAGE_ID)
        with pytest.raises(CheckpointMissing):
            storage.list_files(STORAGE_ID)
        assert storage.delete(STORAGE_ID) == {}
        storage.abandon(STORAGE_ID)
        assert place.objects.names() == []

    def test_connections_that_break(self, source: Path, broken: Between, place: ObjectPlace, tmp_path: Path) -> None:
        """The first answer about a file breaks off in the middle: it is tried again."""
        seen: set[tuple[str, str]] = set()

        def fault(method: str, path: str) -> str | None:
            about = (method, path.partition("?")[0])
            # An empty file is refused to whoever asks for its beginning, and that answer is whole with its status.
            first = about not in seen and method in ("GET", "PUT", "POST") and "nothing.txt" not in path
            seen.add(about)
            return BROKEN if first else None

        storage = place.opened(broken.url)
        storage.validate()
        broken.fault = fault
        put(storage, source)
        storage.download(STORAGE_ID, str(tmp_path / "back"))
        assert (tmp_path / "back/model.bin").read_bytes() == b"weights" * 1000
        assert storage.list_files(STORAGE_ID) == SIZES
        assert len(seen) > 4

    def test_a_large_transfer_goes_on_where_it_broke(self, broken: Between, place: ObjectPlace, tmp_path: Path) -> None:
        """In both directions: what has come through is not sent again."""
        content = os.urandom(1 << 20) * (_LARGE >> 20)
        (tmp_path / "model.bin").write_bytes(content)
        storage = place.opened(broken.url)
        storage.validate()
        breaking = _Breaking("PUT", "POST", at=3, fault=GONE)
        broken.fault, broken.came = breaking, 0
        put_file(storage, tmp_path)
        assert breaking.broke
        assert _LARGE <= broken.came < 1.5 * _LARGE
        breaking = _Breaking("GET", at=1, fault=BROKEN)
        broken.fault, broken.went = breaking, 0
        storage.download(STORAGE_ID, str(tmp_path / "back"))
        assert breaking.broke
        assert _LARGE <= broken.went < 1.5 * _LARGE
        assert (tmp_path / "back/model.bin").read_bytes() == content

    def test_killed_in_the_middle_of_a_large_file(
        self, storage: Storage, broken: Between, place: ObjectPlace, tmp_path: Path
    ) -> None:
        """Of which some parts are there: it is no checkpoint, and is thrown away."""
        (tmp_path / "model.bin").write_bytes(os.urandom(1 << 20) * (_LARGE >> 20))
        program = (
            "from tenax.storage import registry\n"
            f"storage = registry.from_config({place.at(broken.url)!r})\n"
            f"storage.stage({STORAGE_ID!r}, {str(tmp_path)!r}, ['model.bin'])\n"
        )
        breaking = _Breaking("PUT", "POST", at=3, fault=GONE)
        process: list[subprocess.Popen[bytes]] = []

        def fault(method: str, path: str) -> str | None:
            if breaking(method, path) is None:
                return None
            process[0].kill()
            return GONE

        broken.fault = fault
        process.append(subprocess.Popen([sys.executable, "-c", program]))
        assert process[0].wait(240) == -9
        with pytest.raises(CheckpointMissing):
            storage.list_files(STORAGE_ID)
        storage.abandon(STORAGE_ID)
        assert place.objects.names() == []

    def test_a_store_that_is_away(
        self, source: Path, broken: Between, place: ObjectPlace, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        """For longer than the library tries: it is waited for, but not for ever, and not where it is only tried."""
        monkeypatch.setattr(objects, "_PAUSES", Backoff(first=0.01, ceiling=0.02))
        monkeypatch.setattr(*place.tries)
        storage = place.opened(broken.url)
        assert isinstance(storage, objects.ObjectStorage)
        storage.validate()
        broken.requests.clear()
        broken.fault = lambda *_: GONE if len(broken.requests) < 30 else None
        heard: list[None] = []
        storage.tell_waiting(lambda: heard.append(None))
        put(storage, source)
        assert storage.list_files(STORAGE_ID) == SIZES
        assert capsys.readouterr().err.count("it is tried again for up to 300 s") == 1
        # Whoever watches for hangs hears of each try.
        assert len(heard) > 3
        # Before a trial begins, too: one that starts while the store is away for a moment is no failure of its own.
        broken.requests.clear()
        broken.fault = lambda *_: GONE if len(broken.requests) < 30 else None
        storage.validate()
        broken.fault = lambda *_: GONE
        storage.waits_for_s = 0.0
        with pytest.raises(StorageFailed, match="cannot be reached"):
            put(storage, source, TWO)

    def test_rights_that_are_missing(self, broken: Between, place: ObjectPlace) -> None:
        """It is said before anything is stored."""
        storage = place.opened(broken.url)
        broken.fault = lambda method, _: REFUSED if method in ("PUT", "POST") else None
        with pytest.raises(StorageFailed, match="access is denied"):
            storage.validate()

    def test_what_lies_beside(self, storage: Storage, source: Path, place: ObjectPlace) -> None:
        """What TensorBoard wrote is put and deleted by its folder."""
        storage.put("cluster/tensorboard/experiment/7/events", str(source / "model.bin"))
        storage.put("cluster/tensorboard/experiment/77/events", str(source / "model.bin"))
        assert storage.delete_beside("cluster/tensorboard/experiment/7")
        assert not storage.delete_beside("cluster/tensorboard/experiment/7")
        assert place.objects.names() == [f"{PREFIX}/cluster/tensorboard/experiment/77/events"]


class KeyedKit:
    """Of stores that are opened with a secret of the section."""

    def test_a_secret_is_in_no_message(
        self, broken: Between, place: ObjectPlace, source: Path, tmp_path: Path, caplog: Any, capsys: Any
    ) -> None:
        """Neither of ours nor of the store's library, however much that logs, whether it works or not."""
        assert place.secrets
        caplog.set_level(logging.DEBUG)
        storage = place.opened(broken.url)
        put(storage, source)
        storage.download(STORAGE_ID, str(tmp_path / "back"))
        said = [storage.label, str(storage.identity()), repr(storage)]
        assert isinstance(storage, objects.ObjectStorage)
        storage.waits_for_s = 0.0
        for fault in (REFUSED, GONE):
            broken.fault = lambda method, _, fault=fault: fault
            with pytest.raises(StorageFailed) as failed:
                storage.list_files(STORAGE_ID)
            said += traceback.format_exception(failed.value)
        assert len(caplog.records) > 10
        said += [caplog.text, *capsys.readouterr()]
        assert not [secret for secret in place.secrets if any(secret in text for text in said)]


def put_file(storage: Storage, directory: Path) -> None:
    storage.stage(STORAGE_ID, str(directory), ["model.bin"])
    storage.commit(STORAGE_ID)


class _Breaking:
    """A fault of one request: the one with this number, from 1, of these methods."""

    def __init__(self, *methods: str, at: int, fault: str) -> None:
        self._methods = methods
        self._left = at
        self._fault = fault
        self.broke = False

    def __call__(self, method: str, path: str) -> str | None:
        if method not in self._methods or not ("model.bin" in path or "upload" in path):
            return None
        self._left -= 1
        self.broke = self.broke or self._left == 0
        return self._fault if self._left == 0 else None


def printed_without(package: str, section: Mapping[str, Any]) -> str:
    """What a program prints that names a place, and then tries it where a package is not there."""
    program = (
        "import sys; from tenax.storage import registry\n"
        f"print(registry.from_config({dict(section)!r}).identity(), {package!r} in sys.modules)\n"
        f"sys.modules[{package!r}] = None\n"
        f"try: registry.from_config({dict(section)!r}).validate()\n"
        "except Exception as error: print(error)\n"
    )
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
