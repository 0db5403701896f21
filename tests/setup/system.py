"""Installs what tests need from the system: Docker, curl, Chromium, Prometheus, ip, a compiler, Python 3.9. Repeatable.

As root on Debian or Ubuntu it installs them with apt. Elsewhere it says what is missing and which tests will
not run; in CI (the variable ``CI`` is set) that is an error, because there nothing may be skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: Program -> its packages, and what its absence means.
PACKAGES = {
    "dockerd": ("docker.io", "the tests marked 'docker' are not run"),
    "curl": ("curl", "the test of `det dev curl` fails"),
    "chromium": ("chromium", "the tests of the web page fail"),
    "prometheus": ("prometheus", "the test of the dashboard fails"),
    "ip": ("iproute2", "the tests in which a machine is cut off are not run"),
    "cc": ("gcc libc6-dev", "the tests in which clocks jump are not run"),
}

#: Where `tests/kits/interpreters.py` looks.
WRAPPER = Path(__file__).resolve().parents[2] / ".pythons" / "debian-11" / "bin" / "python3.9"
PYENV = ".pyenv/versions/3.9.*/bin/python"
OWN_LIBRARIES = ("libffi.so.7", "libssl.so.1.1", "libcrypto.so.1.1")


def main() -> int:
    """Install what is missing. Returns 1 where CI lacks something."""
    missing = [name for name in PACKAGES if not _is_there(name)]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        _install([package for name in missing for package in PACKAGES[name][0].split()])
        missing = [name for name in missing if not _is_there(name)]
    for name in missing:
        packages, until_then = PACKAGES[name]
        print(f"{name} is not installed and cannot be installed here: install {packages}.", file=sys.stderr)
        print(f"Until then {until_then}.", file=sys.stderr)
    if not oldest_python() and os.geteuid() == 0 and shutil.which("apt-get"):
        _bring_oldest_python()
    if not oldest_python():
        print("No Python 3.9 is here: what runs in tasks is checked for it, and not run under it.", file=sys.stderr)
    return 1 if missing and os.environ.get("CI") else 0


def oldest_python() -> bool:
    """Whether the tests find a Python 3.9."""
    places = [WRAPPER, *Path.home().glob(PYENV), *map(Path, filter(None, [shutil.which("python3.9")]))]
    # Another program may stand in for one that is not there.
    return any(subprocess.run([place, "-V"], capture_output=True).returncode == 0 for place in places if place.exists())


def _bring_oldest_python() -> None:
    """Debian 11's packages, unpacked beside the sources; its libraries, which newer systems lack, for it alone."""
    _install(["mmdebstrap"])
    root = WRAPPER.parents[1] / "root"
    print("Unpacking Debian 11's Python 3.9 (a minute, once)", flush=True)
    shutil.rmtree(root.parent, ignore_errors=True)
    root.parent.mkdir(parents=True)
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=extract",
        "--include=python3.9,python3.9-venv",
        "bullseye",
        str(root),
    ]
    try:
        done = subprocess.run(command, check=False, timeout=600, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return
    if done.returncode != 0:
        return
    own = root.parent / "lib"
    own.mkdir()
    for name in OWN_LIBRARIES:
        for library in (root / "usr" / "lib").glob(f"*/{name}"):
            (own / name).symlink_to(library.resolve())
    WRAPPER.parent.mkdir()
    python = root / "usr" / "bin" / "python3.9"
    WRAPPER.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{own}" exec "{python}" "$@"\n')
    WRAPPER.chmod(0o755)


def _is_there(name: str) -> bool:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


def _install(packages: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    print(f"Installing {', '.join(packages)} with apt", flush=True)
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False)
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    raise SystemExit(main())
