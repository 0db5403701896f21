"""Quotas on the command line: what is asked of the master, and what is shown."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kits.cli.command_line import Tenax
from tests.kits.pretend_master import PretendMaster

PATH = "/api/v1/quotas"
ANN = {
    "kind": "user", "name": "ann", "weight": 1.0, "maxSlots": 8, "slotHours": 100.0, "priority": 40,
    "heldSlots": 3, "usedSlotHours": 12.34, "recentSlotHours": 9.0,
}  # fmt: skip
THERE = {
    "kind": "association", "name": "ann in vision", "weight": 2.0, "heldSlots": 3, "usedSlotHours": 12.0,
    "recentSlotHours": 9.0, "share": 0.667, "usedShare": 0.9, "turn": 2,
}  # fmt: skip
EVERYONE = {
    "kind": "everyone", "name": "everyone else", "weight": 1.0, "maxSlots": 24, "heldSlots": 0,
    "usedSlotHours": 0.0, "recentSlotHours": 0.0,
}  # fmt: skip
STUDENTS = {
    "kind": "group", "name": "the group students", "weight": 1.0, "maxSlots": 0, "heldSlots": 0,
    "usedSlotHours": 0.0, "recentSlotHours": 0.0,
}  # fmt: skip
APPLIED = {
    "applied": True, "source": "half_life: 36h\n", "appliedBy": "admin", "appliedAt": "2026-11-27T00:00:00Z",
    "halfLifeHours": 36.0, "lines": [ANN, THERE, STUDENTS, EVERYONE], "notThere": ["group pupils"],
}  # fmt: skip


def test_without_any(master: PretendMaster, tenax: Tenax) -> None:
    """It says so, and what to do; for programs it is an answer like another."""
    master.on("GET", PATH, {"applied": False, "lines": []})
    done = tenax("quota", "show")
    assert (done.code, done.out) == (0, "")
    assert "There are no quotas: nobody is limited. To apply some: tenax quota apply FILE." in done.err
    assert json.loads(tenax("quota", "show", "--json").out) == {"applied": False, "lines": []}


def test_what_everybody_may_have(master: PretendMaster, tenax: Tenax) -> None:
    """What is limited beside its limit; what is nobody's is left empty."""
    master.on("GET", PATH, APPLIED)
    done = tenax("quota", "show")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[1] == ["ann", "1", "3", "of", "8", "12.3", "of", "100", "40"]
    assert rows[2] == ["ann", "in", "vision", "2", "2", "67", "%", "90", "%", "3", "12"]
    assert rows[3] == ["the", "group", "students", "0", "of", "0", "0"]
    assert rows[4] == ["everyone", "else", "1", "24", "each"]
    assert "No quota is of what was renamed or deleted since then: group pupils." in done.err
    assert "What was used counts half after 36 hours. Applied by admin." in done.err
    assert tenax("quota", "show", "--source").out == "half_life: 36h\n"
    only = json.loads(tenax("quota", "show", "--of", "group", "--json").out)
    assert (only["appliedBy"], only["lines"]) == ("admin", [STUDENTS])
    assert tenax("quota", "show", "--of", "user", "--csv").out.splitlines()[1] == "ann,,1,,,3 of 8,12.3 of 100,40"


def test_a_file_is_applied(master: PretendMaster, tenax: Tenax, tmp_path: Path) -> None:
    """Or only looked at; what changes is printed, for whom."""
    file = tmp_path / "quotas.yaml"
    file.write_text("everyone: {max_slots: 2}\n")
    master.on("PUT", PATH, {"changes": ["ann: at most 2 slots (was: any number of slots)"], "lines": []})
    done = tenax("quota", "apply", str(file), "--dry-run")
    assert done.out == "ann: at most 2 slots (was: any number of slots)\n"
    assert "Nothing was changed: leave out --dry-run to apply it." in done.err
    assert tenax("quota", "apply", str(file)).err == ""
    bodies = [request.body for request in master.asked if request.method == "PUT"]
    assert bodies == [{"source": "everyone: {max_slots: 2}\n", "dryRun": dry} for dry in (True, False)]
    master.on("PUT", PATH, {"changes": [], "lines": []})
    assert "Nothing changes for anybody." in tenax("quota", "apply", str(file)).err


def test_a_file_that_cannot_be_read(tenax: Tenax, tmp_path: Path) -> None:
    """It is named; nothing is asked."""
    (tmp_path / "bad").write_bytes(b"\xff\xfe")
    done = tenax("quota", "apply", str(tmp_path / "bad"))
    assert done.code == 1
    assert f"{tmp_path / 'bad'} cannot be read: " in done.err
    assert tenax("quota", "apply", str(tmp_path / "nowhere")).code == 2


def test_they_are_removed(master: PretendMaster, tenax: Tenax) -> None:
    master.on("DELETE", PATH, {})
    assert tenax("quota", "remove").code == 0
    assert master.asked[-1].method == "DELETE"
