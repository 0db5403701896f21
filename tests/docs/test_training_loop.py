"""The class on the page about scripts is that of the example, which tests train."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_loop_on_the_page_is_the_examples() -> None:
    """Word for word, each block of its section."""
    page = (ROOT / "docs" / "training.md").read_text()
    section = page.partition("## A loop to fill in")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    example = (ROOT / "examples" / "digits" / "trial.py").read_text()
    assert len(blocks) == 2
    assert all(block in example for block in blocks)
