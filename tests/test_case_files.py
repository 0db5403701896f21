"""Every shared case file is run by tests, part by part, or waits for its feature in one list that shrinks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.kits import cases
from tests.kits.departures import DEPARTURES

_TESTS = Path(__file__).resolve().parent
_ARCHITECTURE = cases.FOLDER.parent / "design" / "architecture.md"
#: Files whose parts are run under names of their own, not under the ones that they have in the file.
_WHOLE = frozenset({"api_records", "job_queue", "metrics", "run_metadata", "asha"})


def _named() -> list[set[str]]:
    """Of each module of tests the words in quotes, as a part of a file is named: alone, or as ``file/part``."""
    modules = [path for path in _TESTS.rglob("*.py") if path.parent.name != "kits" and path.name != Path(__file__).name]
    return [set(re.findall(r"""["']([\w/]+)["']""", path.read_text())) for path in modules]


def test_every_case_file_is_run_or_waits_for_its_feature() -> None:
    """A test names each part of a file; what is run waits no longer, and what waits is there."""
    named = _named()
    places: set[str] = set()
    run: set[str] = set()
    for path in cases.files():
        parts = [path.stem] if path.stem in _WHOLE else json.loads(path.read_text()).keys() - cases.IN_WORDS
        for part in parts:
            place = f"{path.stem}/{part}"
            places.add(place)
            if any({path.stem, part} <= words or place in words for words in named):
                run.add(place)
    waiting = {place for place in places if {place, place.partition("/")[0]} & cases.WAITING.keys()}
    assert sorted(places - run - waiting) == []
    assert sorted(run & waiting) == []
    if places:
        known = places | {place.partition("/")[0] for place in places}
        assert sorted(cases.WAITING.keys() - known) == []


@pytest.mark.skipif(not _ARCHITECTURE.is_file(), reason="the design is not there")
def test_departures_cite_the_architecture() -> None:
    """Each by the number of a section, or of a point of the sixth."""
    text = _ARCHITECTURE.read_text()
    sections = dict(re.findall(r"^## (\d+)\.(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    points = {f"6.{number}" for number in re.findall(r"^(\d+)\. ", sections["6"], re.MULTILINE)}
    assert {entry.point for entry in DEPARTURES} <= sections.keys() | points
