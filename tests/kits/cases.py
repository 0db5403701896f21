"""The shared case files, if this checkout has them beside it: whole documents, or their cases as parameters.

A clone without them is tested by the project's own golden values; with them, every case is collected.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "cases"


def load(name: str) -> dict[str, object] | None:
    """The document of ``name`` (without ``.json``), or None where the case files are not there."""
    path = _FOLDER / f"{name}.json"
    if not path.is_file():
        return None
    document = json.loads(path.read_text())
    assert isinstance(document, dict)
    return document


def collect(file: str, part: str) -> list[Any]:
    """The cases of one part of a file as parameters; none where the files are not there."""
    document = load(file)
    if document is None:
        return []
    part_cases = document[part]
    assert isinstance(part_cases, list)
    return [pytest.param(case, id=str(case["id"])) for case in part_cases]
