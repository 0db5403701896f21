"""docs/web-checks.md: each thing that the page is held to is shown by tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKS = 25


def rows() -> dict[int, tuple[str, list[tuple[str, str]], bool]]:
    """By number: what holds, the tests that show it, and whether one of them is said to be long."""
    text = (ROOT / "docs" / "web-checks.md").read_text()
    found = re.findall(r"^\| (\d+) \| (.+?) \|(.*)\|$", text, re.MULTILINE)
    return {
        int(number): (what, re.findall(r"`(test_\w+\.py)::(test_\w+)`", tests), "(long)" in tests)
        for number, what, tests in found
    }


def written_in(name: str) -> dict[str, str]:
    """The tests of a file of tests/web: what is written above each."""
    tree = ast.parse((ROOT / "tests" / "web" / name).read_text())
    return {
        node.name: " ".join(map(ast.unparse, node.decorator_list))
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def test_each_check_is_shown() -> None:
    """All numbers are there, once and in order, and none without a test."""
    assert list(rows()) == list(range(1, CHECKS + 1))
    assert [number for number, (_, tests, _) in rows().items() if not tests] == []


def test_the_tests_that_are_named_are_there() -> None:
    """None is skipped, and which are long is said."""
    for number, (_, tests, long) in rows().items():
        written = {name: written_in(file)[name] for file, name in tests}
        assert not [name for name, above in written.items() if "skip" in above or "xfail" in above], number
        assert any("mark.long" in above for above in written.values()) is long, number
        assert not written or not all("mark.long" in above for above in written.values()), number
