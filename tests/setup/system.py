"""Installs what tests need from the system, where it may: a Docker engine, curl. Safe to run again.

As root on Debian or Ubuntu it installs them with apt. Elsewhere it says what is missing and which tests will
not run; in CI (the variable ``CI`` is set) that is an error, because there nothing may be skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

#: Program -> its package, and what its absence means.
PACKAGES = {
    "dockerd": ("docker.io", "the tests marked 'docker' are not run"),
    "curl": ("curl", "the test of `det dev curl` fails"),
}


def main() -> int:
    """Install what is missing. Returns 1 where CI lacks something."""
    missing = [program for program in PACKAGES if shutil.which(program, path=_path()) is None]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        _install([PACKAGES[program][0] for program in missing])
        missing = [program for program in missing if shutil.which(program, path=_path()) is None]
    for program in missing:
        package, until_then = PACKAGES[program]
        print(f"{program} is not installed and cannot be installed here: install {package}.", file=sys.stderr)
        print(f"Until then {until_then}.", file=sys.stderr)
    return 1 if missing and os.environ.get("CI") else 0


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _install(packages: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print(f"Installing {', '.join(packages)} with apt", flush=True)
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False)
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    raise SystemExit(main())
