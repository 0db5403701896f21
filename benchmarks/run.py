"""Runs the benchmarks one after another, each in its own process: ``python -m benchmarks.run [name ...]``.

Prints what they print, one JSON line each; one that fails gives a line that says so, and the exit status is 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def names() -> list[str]:
    """The benchmarks there are: modules here that are no helpers."""
    found = sorted(path.stem for path in HERE.glob("*.py"))
    return [name for name in found if not name.startswith("_") and name != "run"]


def main(wanted: list[str]) -> int:
    """Run those that are wanted, or all."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"No benchmark {', '.join(unknown)}; there are: {', '.join(names())}.", file=sys.stderr)
        return 2
    failed = False
    for name in wanted or names():
        status = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=HERE.parent, check=False).returncode
        if status:
            failed = True
            print(json.dumps({"benchmark": name, "failed": f"exit status {status}"}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
