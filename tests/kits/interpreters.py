"""The Pythons under which the task side is tested: this one, and a 3.9 where the machine has one."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path


@functools.cache
def interpreters() -> list[str]:
    """Paths of interpreters that start; the oldest supported version is taken from PATH or from pyenv."""
    found = [shutil.which("python3.9"), *map(str, Path.home().glob(".pyenv/versions/3.9.*/bin/python"))]
    oldest = next((python for python in found if python and _is_3_9(python)), None)
    return [sys.executable, *([oldest] if oldest else [])]


def _is_3_9(python: str) -> bool:
    asked = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() == "(3, 9)"
