"""The program that deletes files of checkpoints on an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.errors import InvalidInput
from tenax.exec.gc import carry_out
from tenax.jsonvalue import Json, JsonObject

UUIDS = [f"0d6e4079-4c8e-4f5f-9a39-{number:012d}" for number in range(120)]


def saved(base: Path, uuid: str) -> Path:
    folder = base / uuid
    folder.mkdir(parents=True)
    (folder / "a.bin").write_text("a")
    (folder / "b.pt").write_text("bb")
    return folder


def run(base: Path, *requested: tuple[str, list[str]]) -> tuple[int, list[list[Json]]]:
    """Exit code, and what was told at once, in order."""
    reports: list[list[Json]] = []
    removals: list[Json] = [{"uuid": uuid, "globs": list(globs)} for uuid, globs in requested]
    storage: JsonObject = {"type": "directory", "container_path": str(base)}
    code = carry_out({"storage": storage, "removals": removals}, reports.append)
    return code, reports


def test_what_is_named_goes_and_is_told(tmp_path: Path) -> None:
    """Whole, by pattern, and what broke off before; what is gone already counts as done."""
    saved(tmp_path, UUIDS[0])
    part = saved(tmp_path, UUIDS[1])
    saved(tmp_path, f".{UUIDS[2]}.partial")
    saved(tmp_path, f".{UUIDS[2]}.deleted")
    kept = saved(tmp_path, UUIDS[3])
    code, reports = run(tmp_path, (UUIDS[0], ["**/*"]), (UUIDS[1], ["*.pt"]), (UUIDS[2], ["**/*"]))
    assert code == 0
    assert reports == [
        [
            {"uuid": UUIDS[0], "resources": {}},
            {"uuid": UUIDS[1], "resources": {"a.bin": 1}},
            {"uuid": UUIDS[2], "resources": {}},
        ]
    ]
    assert sorted(tmp_path.iterdir()) == [part, kept]


def test_a_storage_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    """Each is told with the reason; nothing counts as deleted."""
    for base in (tmp_path / "absent", tmp_path):
        code, reports = run(base, (UUIDS[0], ["**/*"]))
        assert code == 1
        ((report,),) = reports
        assert isinstance(report, dict)
        assert "is it mounted there?" in str(report["failure"])


def test_a_name_that_leads_out_is_a_failure(tmp_path: Path) -> None:
    """And nothing is touched; the others are done."""
    base = tmp_path / "base"
    saved(base, UUIDS[0])
    outside = saved(tmp_path, UUIDS[1])
    code, reports = run(base, (f"../{UUIDS[1]}", ["**/*"]), (UUIDS[0], ["**/*"]))
    assert code == 1
    assert ["failure" in report for report in reports[0] if isinstance(report, dict)] == [True, False]
    assert outside.exists()


def test_many_are_told_in_parts(tmp_path: Path) -> None:
    """So that what was done is known when the task is killed."""
    for uuid in UUIDS:
        saved(tmp_path, uuid)
    code, reports = run(tmp_path, *((uuid, ["**/*"]) for uuid in UUIDS))
    assert (code, [len(part) for part in reports]) == (0, [50, 50, 20])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("document", [{}, {"storage": {}, "removals": 3}, {"storage": [], "removals": []}])
def test_nonsense_is_refused(document: JsonObject) -> None:
    """Before anything is deleted."""
    with pytest.raises(InvalidInput):
        carry_out(document, lambda _: None)


def test_tensorboard_files_go_too(tmp_path: Path) -> None:
    """Before anything is told; what is not there is no failure, and nothing behind a link goes."""
    base, secret = tmp_path / "base", tmp_path / "secret"
    for place in (base / "c" / "tensorboard" / "experiment" / "1", base / "other", secret):
        place.mkdir(parents=True)
        (place / "events").write_text("e")
    (base / "link").symlink_to(secret)
    reports: list[list[Json]] = []
    document: JsonObject = {"storage": {"type": "directory", "container_path": str(base)}, "removals": []}
    paths: list[Json] = ["c/tensorboard/experiment/1", "c/tensorboard/experiment/2"]
    assert carry_out({**document, "tensorboards": paths}, reports.append) == 0
    assert carry_out({**document, "tensorboards": ["link", "../secret"]}, reports.append) == 1
    assert sorted(path.parent.name for path in tmp_path.rglob("events")) == ["other", "secret"]
    assert reports == []
