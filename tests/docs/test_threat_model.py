"""The threat model names the tests that hold it."""

from __future__ import annotations

import re

from tests.docs.named_files import ROOT

ATTACKS = ROOT / "tests" / "attack"
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
NAMED = re.findall(r"\| `tests/attack/(test_\w+\.py)::(test_\w+)` \|", PAGE)


def test_every_file_of_attacks_is_in_the_table() -> None:
    """Whoever tries a new attack says so."""
    assert {path.name for path in ATTACKS.glob("test_*.py")} <= {file for file, _ in NAMED}


def test_every_test_of_the_table_is_there() -> None:
    """In the file that is named, if it came."""
    gone = [f"{file}::{name}" for file, name in NAMED if f"def {name}(" not in (ATTACKS / file).read_text()]
    assert not gone


def test_the_pages_that_people_look_for_lead_there() -> None:
    """The first page and the one about reports."""
    for page in ("README.md", "SECURITY.md"):
        assert "(docs/threat-model.md)" in (ROOT / page).read_text()
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text()
