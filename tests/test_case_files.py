"""Every shared case file is run by tests, part by part, or waits for its feature in one list that shrinks."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.kits import cases
from tests.kits.departures import DEPARTURES, MANUAL

_TESTS = Path(__file__).resolve().parent
_ARCHITECTURE = cases.FOLDER.parent / "design" / "architecture.md"
#: Files whose parts are run under names of their own, not under the ones that they have in the file.
_WHOLE = frozenset({"api_records", "job_queue", "metrics", "run_metadata", "asha"})


def _named() -> list[set[str]]:
    """Of each module of tests the words that its code has, as a part of a file is named: alone, or as ``file/part``.

    Only those that name a file are parsed: the others run no part of one.
    """
    a_file = re.compile(rf"""["'](?:{"|".join(re.escape(path.stem) for path in cases.files())})["'/]""")
    modules = [path for path in _TESTS.rglob("*.py") if path.parent.name != "kits" and path.name != Path(__file__).name]
    return [_words(ast.parse(text)) for path in modules if a_file.search(text := path.read_text())]


def _words(module: ast.Module) -> set[str]:
    """Texts of its code; what stands alone is a docstring, and runs nothing. Of `answers` see `_answered`."""
    nodes = list(ast.walk(module))
    left_out = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    left_out |= {id(text) for call in _answers(module) for text in call.args}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {str(node.value) for node in texts if id(node) not in left_out}


def _answers(module: ast.Module) -> list[ast.Call]:
    """Where it stands above a test."""
    tests = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    calls = [call for test in tests for call in test.decorator_list if isinstance(call, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "answers"]


def _answered() -> dict[str, set[str]]:
    """Of each part that says its cases in words those that a test shows, as the tests name them."""
    answered: dict[str, set[str]] = defaultdict(set)
    for path in _TESTS.rglob("test_*.py"):
        text = path.read_text()
        for call in _answers(ast.parse(text)) if "@answers(" in text else ():
            place, *told = (ast.literal_eval(text) for text in call.args)
            answered[place].update(told)
    return answered


def test_a_docstring_runs_nothing() -> None:
    """What only is written about is not run."""
    written = '"""misc"""\n@answers("a/b", "c")\ndef test():\n    """d/e"""\n    load("grid")\n    "alone"\n'
    module = ast.parse(written)
    assert _words(module) == {"grid"}


def test_every_case_file_is_run_or_waits_for_its_feature() -> None:
    """A test names each part of a file; what is run waits no longer, and what waits is there."""
    named, answered = _named(), _answered()
    places: set[str] = set()
    run: set[str] = set()
    for path in cases.files():
        document = json.loads(path.read_text())
        for part in [path.stem] if path.stem in _WHOLE else document.keys() - cases.IN_WORDS:
            place = f"{path.stem}/{part}"
            places.add(place)
            in_words = place in answered and {cases.label(case) for case in document[part]} == answered[place]
            if in_words or any({path.stem, part} <= words or place in words for words in named):
                run.add(place)
    waiting = {place for place in places if {place, place.partition("/")[0]} & cases.WAITING.keys()}
    assert sorted(places - run - waiting) == []
    assert sorted(run & waiting) == []
    if places:
        known = places | {place.partition("/")[0] for place in places}
        assert sorted(cases.WAITING.keys() - known) == []


@pytest.mark.skipif(not _ARCHITECTURE.is_file(), reason="the design is not there")
def test_departures_cite_where_they_are_written_down() -> None:
    """Each by the number of a section of the architecture, or of a point of its sixth; or it stands in the manual."""
    text = _ARCHITECTURE.read_text()
    sections = dict(re.findall(r"^## (\d+)\.(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    points = {f"6.{number}" for number in re.findall(r"^(\d+)\. ", sections["6"], re.MULTILINE)}
    assert {entry.point for entry in DEPARTURES if entry.point != MANUAL} <= sections.keys() | points


def test_departures_of_the_manual_are_in_it() -> None:
    """In the words that give the reason."""
    manual = " ".join((_TESTS.parent / MANUAL).read_text().split())
    assert [entry.case for entry in DEPARTURES if entry.point == MANUAL and entry.why not in manual] == []
