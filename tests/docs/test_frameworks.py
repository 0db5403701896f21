"""What the page about frameworks shows is in the examples, which tests train, pause and resume."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_what_the_page_shows_is_the_examples() -> None:
    """Word for word, each block of it; each example is shown, and has its configuration."""
    page = (ROOT / "docs" / "frameworks.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    examples = {path.name: path.read_text() for path in (ROOT / "examples" / "frameworks").glob("with_*.py")}
    shown = [[name for name, text in examples.items() if block in text] for block in blocks]
    assert all(len(names) == 1 for names in shown)
    assert {names[0] for names in shown} == set(examples)
    assert all((ROOT / "examples" / "frameworks" / name).with_suffix(".yaml").exists() for name in examples)
