"""The Pythons that people have: what the code needs by its syntax and the library that it uses, and what is refused.

A version that no machine here has is checked in this way alone; `tests/kits/interpreters.py` says which ones ran.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.local.supervise.python import OLDEST, PythonTooOld, refuse_old_python

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tenax"
#: What only the servers import.
SERVERS = ("search", "scheduler", "lifecycle", "config", "master", "agent", "runtime", "local")
#: Of these folders, what tasks and the command line import as well.
BEFORE_THE_SERVERS = (
    "local/__init__.py",
    "local/requirements.py",
    "local/state_dir.py",
    "local/supervise/__init__.py",
    "local/supervise/python.py",
)
#: Beside those folders.
OF_SERVERS_ALONE = ("wire/message.py",)


def files(*, of_servers: bool) -> list[Path]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        of_folder = name.split("/")[0] in SERVERS and name not in BEFORE_THE_SERVERS
        servers = of_folder or name in OF_SERVERS_ALONE
        if servers is of_servers:
            found.append(path)
    return found


@pytest.mark.parametrize(("version", "of_servers"), [("3.9", False), ("3.11", True)])
def test_syntax_and_library(version: str, of_servers: bool) -> None:
    """The task side and the command line need Python 3.9, the servers 3.11, and nothing that came later."""
    minor = int(version.split(".")[1])
    for path in files(of_servers=of_servers):
        ast.parse(path.read_text(), feature_version=(3, minor))
    vermin = str(Path(sys.executable).with_name("vermin"))
    options = [f"--target={version}-", "--no-tips", "--violations"]
    names = map(str, files(of_servers=of_servers))
    checked = subprocess.run([vermin, *options, *names], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("version", [(3, 9, 2), (3, 10, 12)])
def test_an_old_python_is_refused_by_name(version: tuple[int, int, int]) -> None:
    """The servers say which Python they met, which they need, and the line that brings one."""
    with pytest.raises(
        PythonTooOld, match=r"need Python 3\.11 or newer, and .* is Python 3\.(9\.2|10\.12)\. .*uv venv"
    ):
        refuse_old_python(version)


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 11, 2), (3, 12, 0), (3, 13, 5), (3, 14, 0)])
def test_newer_ones_are_not(version: tuple[int, int, int]) -> None:
    """From 3.11.0 on all are taken."""
    refuse_old_python(version)


def test_an_old_python_is_refused_when_it_installs_the_servers() -> None:
    """Under an older one the only requirement is a version that cannot be, whose name says why."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first, *others = project["optional-dependencies"]["server"]
    oldest = ".".join(map(str, OLDEST))
    says = f"the.servers.of.tenax.need.python.{oldest}.or.newer.docs.quickstart.has.a.line.that.brings.one"
    assert first.endswith(f"== 0+{says} ; python_version < '{oldest}'")
    assert "uv venv --python" in (ROOT / "docs" / "quickstart.md").read_text()
    assert all(other.endswith(f" ; python_version >= '{oldest}'") for other in others)
