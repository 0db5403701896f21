"""The files that the pages name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.named_files import ROOT, homes, named_files

WRITTEN = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
PAGES = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / f"{name}.md" for name in ("checklists", "glossary", "internals"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    """Whoever follows a page through the tree finds what it speaks of."""
    names = set(named_files(page.read_text()))
    assert len(names) > 5
    assert not {name for name in names if not homes(name)}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    """By its dotted name, as in ``tenax.client``; what follows a module is something in it."""
    names = set(re.findall(r"`(tenax(?:\.\w+)+)(?:\(\))?`", page.read_text()))
    assert not {name for name in names if not _is_there(name)}


def _is_there(name: str) -> bool:
    """Whether a dotted name leads to a module, or to something that its module has."""
    place, left = ROOT / "src", name.split(".")
    while left and (place / left[0]).is_dir():
        place /= left.pop(0)
    module = place / f"{left[0]}.py" if left else place / "__init__.py"
    if left and module.is_file():
        left.pop(0)
    else:
        module = place / "__init__.py"
    return not left or left[0] in module.read_text()


def test_what_is_not_there_is_found_out() -> None:
    """The check above sees names of files, and placeholders in them, and misses what is no file."""
    text = "`lifecycle/trial.py`, `store/<noun>/rows.py`, `lifecycle/no_such.py`, `search/`, `POST /x`, `a/b`, `x.py`"
    names = list(named_files(text))
    assert names == ["lifecycle/trial.py", "store/<noun>/rows.py", "lifecycle/no_such.py", "search/"]
    assert [bool(homes(name)) for name in names] == [True, True, False, True]
    assert [_is_there(f"tenax.{name}") for name in ("client", "core.init", "backoff", "nosuch", "core.nosuch")] == [
        *(True, True, True),
        *(False, False),
    ]
