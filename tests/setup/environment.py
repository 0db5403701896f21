"""Makes the development environment: ``python tests/setup/environment.py --venv .venv``. Safe to run again.

Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Create the environment where it is not there, and bring its packages up to date with pyproject.toml."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    directory = parser.parse_args().venv.absolute()
    if sys.version_info < (3, 11):
        print(f"Python 3.11 or newer is needed, and {sys.executable} is {sys.version.split()[0]}.", file=sys.stderr)
        print("Name another: make PYTHON=/path/to/python3.11 ... This brings one, for you alone:", file=sys.stderr)
        print("  pip install uv && uv python install 3.12 && make PYTHON=$(uv python find 3.12) ...", file=sys.stderr)
        return 2
    python = directory / "bin" / "python"
    # A Python without ensurepip, as Debian's is without python3-venv, leaves an environment in which there is no pip.
    if not (directory / "bin" / "pip").exists():
        print(f"Making the environment in {directory}", file=sys.stderr)
        venv.create(directory, with_pip=True)
    print("Installing tenax and its development packages (a few minutes the first time)", file=sys.stderr)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    quiet = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
    return subprocess.run([*pip, "--editable", f"{ROOT}[dev]"], env=quiet, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
