"""TensorBoard files: the format, and what becomes of reports and of files of the script's own."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tenax.core import tfevents
from tenax.core.tensorboard import MAX_REPORTS, Tensorboard, scalars_of, thinned
from tenax.core.values import metrics_body
from tenax.jsonvalue import Json
from tenax.storage.local_directory import from_directory
from tenax.storage.port import Storage


def records(data: bytes) -> list[bytes]:
    """The data of each record, whose checksums are right."""
    bodies = []
    while data:
        length = data[:8]
        size = struct.unpack("<Q", length)[0]
        body = data[12 : 12 + size]
        assert data[8:12] == struct.pack("<I", tfevents.masked_crc(length))
        assert data[12 + size : 16 + size] == struct.pack("<I", tfevents.masked_crc(body))
        bodies.append(body)
        data = data[16 + size :]
    return bodies


class Board:
    """A trial's files, and the storage that they are copied to."""

    def __init__(self, root: Path, *, writes: bool, first_step: int = 0) -> None:
        self.kept = root / "kept"
        self.made: list[Storage] = []
        self.board = Tensorboard(str(root / "local"), "c/tb/1", self._storage, writes=writes, first_step=first_step)

    def _storage(self) -> Storage:
        self.made.append(from_directory(str(self.kept)))
        return self.made[-1]

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.kept)) for path in self.kept.rglob("*") if path.is_file())


def test_checksum() -> None:
    """CRC-32C has its published check value, masked as the format says."""
    crc = 0xE3069283
    assert tfevents.masked_crc(b"123456789") == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_record_is_a_protobuf_message() -> None:
    """A scalar is written byte for byte as protobuf's own library writes it."""
    (event,) = records(tfevents.scalars(2.0, 300, {"loss": 0.5}))
    value = b"\x0a\x04loss\x15" + struct.pack("<f", 0.5)
    assert event == b"\x09" + struct.pack("<d", 2.0) + b"\x10\xac\x02" + b"\x2a\x0d\x0a\x0b" + value


@pytest.mark.parametrize(
    ("value", "kept"), [(1e39, "inf"), (-1e300, "-inf"), (10**400, "inf"), (3.4e38, "3.4e+38"), (2**70, "1.18e+21")]
)
def test_a_loss_that_diverges(value: float, kept: str) -> None:
    """What four bytes do not hold is infinite there, and costs no other report its place."""
    step, values = scalars_of({"group": "training", "stepsCompleted": 1, "metrics": {"loss": value}})
    (event,) = records(tfevents.scalars(2.0, step, values))
    assert f"{struct.unpack('<f', event[-4:])[0]:.3g}" == kept


def test_names_of_scalars() -> None:
    """Names are those that Determined gives; what is no number is left out, special numbers are not."""
    body: dict[str, Json] = {
        "stepsCompleted": 7,
        "metrics": {"loss": 1, "x": "NaN", "text": "a", "ok": True, "per": {"a": 2.5}},
    }
    step, scalars = scalars_of({"group": "training", **body})
    assert step == 7
    assert list(scalars) == ["Determined/loss", "Determined/x", "Determined/per/a"]
    named: Json = {"group": "validation", "stepsCompleted": 7, "metrics": {"val_loss": 1.0, "acc": 2.0}}
    assert list(scalars_of(named)[1]) == ["Determined/val_loss", "Determined/val_acc"]
    assert next(iter(scalars_of({"group": "mine", **body})[1])) == "Determined/mine_loss"


def test_reports_are_kept_at_the_end(tmp_path: Path) -> None:
    """A short trial leaves one file with all that it reported, and nothing was stored before its end."""
    place = Board(tmp_path, writes=True, first_step=3)
    for step in (4, 5):
        place.board.report(metrics_body("training", step, {"loss": 1.0 / step}))
    assert place.made == []
    place.board.close()
    (name,) = place.files()
    assert name.startswith("c/tb/1/events.out.tfevents.")
    head, again, *steps = records((place.kept / name).read_bytes())
    assert b"brain.Event:2" in head
    assert again.endswith(b"\x10\x04\x3a\x02\x08\x01")
    assert [b"Determined/loss" in event for event in steps] == [True, True]


def test_a_trial_that_reports_nothing_leaves_nothing(tmp_path: Path) -> None:
    """No file, no directory, no storage."""
    place = Board(tmp_path, writes=True)
    place.board.close()
    assert place.made == []
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_scripts_own(tmp_path: Path) -> None:
    """What the script writes is copied when it has changed, under the names that it wants."""
    place = Board(tmp_path, writes=False)
    directory = place.board.path()
    (directory / "a.pb").write_text("1")
    (directory / "b.txt").write_text("1")
    place.board.upload(lambda path: path.suffix == ".pb", lambda path, rank: path.with_name(f"{path.name}#{rank}"), 2)
    assert place.files() == ["c/tb/1/a.pb#2"]
    (directory / "a.pb").write_text("22")
    place.board.upload()
    assert place.files() == ["c/tb/1/a.pb", "c/tb/1/a.pb#2", "c/tb/1/b.txt"]
    place.board.close()


def test_a_storage_that_fails_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said once, and the trial ends well."""
    (tmp_path / "kept").write_text("in the way")
    place = Board(tmp_path, writes=True)
    place.board.report(metrics_body("training", 1, {"loss": 1.0}))
    place.board.close()
    assert capsys.readouterr().err.count("TensorBoard files are not kept") == 1


def test_many_reports_are_thinned() -> None:
    """Evenly, and the last one stays."""
    many = [(float(n), "") for n in range(MAX_REPORTS * 3 + 1)]
    few = thinned(many)
    assert len(few) <= MAX_REPORTS
    assert few[-1] == many[-1]
    assert thinned(few) == few
