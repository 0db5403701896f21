"""Our training loop beside that of the real package: the same trial, the same story, off a cluster."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

from tests.compat.client import ENVIRONMENT

SCRIPT = Path(__file__).with_name("training_story.py")


def story(python: Path, name: str, root: Path, *how: str) -> list[object]:
    """What came to pass, in order."""
    output, place = root / f"{name}.json", root / name
    # Whose checkpoints hold all that lies where it was started.
    place.mkdir()
    done = subprocess.run(
        [str(python), str(SCRIPT), name, str(output), *how],
        cwd=place,
        env={"HOME": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    turns: list[object] = json.loads(output.read_text())
    return turns


def test_a_trial_has_the_same_story_under_both_names(tmp_path: Path) -> None:
    """Each batch with its loss and rate, each callback in its order, each metric, what is in a checkpoint."""
    how = "STEP_EVERY_EPOCH", "2"
    theirs = story(ENVIRONMENT / "bin" / "python", "determined", tmp_path, *how)
    ours = story(Path(sys.executable), "tenax", tmp_path, *how)
    different = [turns for turns in zip_longest(theirs, ours) if not alike(*turns)]
    assert not different
    assert len(theirs) > 100


def alike(one: object, other: object) -> bool:
    """The same, but for how the last digits of a mean were summed."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=2e-5)
    return one == other
