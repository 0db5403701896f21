"""Where the shared case files are, if this checkout has them beside it.

A clone without them is tested by the project's own golden values; with them, every case is collected.
"""

from __future__ import annotations

import json
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "cases"


def load(name: str) -> dict[str, object] | None:
    """The document of ``name`` (without ``.json``), or None where the case files are not there."""
    path = _FOLDER / f"{name}.json"
    if not path.is_file():
        return None
    document = json.loads(path.read_text())
    assert isinstance(document, dict)
    return document
