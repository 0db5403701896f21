"""The classes on the page about scripts are those of the examples, which tests run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("heading", "name", "count"),
    [("A loop to fill in", "trial.py", 2), ("A data set through a model", "predict.py", 2)],
)
def test_what_is_on_the_page_is_the_examples(heading: str, name: str, count: int) -> None:
    """Word for word, each block of its section."""
    page = (ROOT / "docs" / "training.md").read_text()
    section = page.partition(f"## {heading}")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    example = (ROOT / "examples" / "digits" / name).read_text()
    assert len(blocks) == count
    assert all(block in example for block in blocks)
