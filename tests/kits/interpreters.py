"""The Pythons under which the task side is tested: this one, the system's, a 3.9 and the newest of pyenv's.

A 3.9 is taken from PATH, from pyenv, or from where `tests/setup/system.py` puts Debian 11's. What none of the machines
has is checked by its syntax and the library that it uses (`tests/test_pythons.py`).
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

#: Made by `tests/setup/system.py`: the packages of Debian 11, unpacked.
DEBIAN_11 = Path(__file__).resolve().parents[2] / ".pythons" / "debian-11"
OLDEST = "3.9"


@functools.cache
def interpreters() -> list[str]:
    """Paths of interpreters that start, each of another version."""
    pyenv = [(_version(str(python)), str(python)) for python in Path.home().glob(".pyenv/versions/3.*/bin/python")]
    newest = max(((_numbers(version), python) for version, python in pyenv if version), default=((), ""))[1]
    oldest = [
        shutil.which(f"python{OLDEST}") or "",
        *(python for version, python in pyenv if version.startswith(f"{OLDEST}.")),
        str(DEBIAN_11 / "bin" / f"python{OLDEST}"),
    ]
    first = next((python for python in oldest if _version(python).startswith(f"{OLDEST}.")), "")
    found: dict[str, str] = {}
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/bin") or "", first, newest):
        version = _version(python)
        if _numbers(version) >= _numbers(OLDEST):
            found.setdefault(version, python)
    return list(found.values())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


@functools.cache
def _version(python: str) -> str:
    """Empty for what does not start, such as pyenv's stand-in for a version that is not chosen."""
    command = [python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""
