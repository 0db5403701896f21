"""A machine that only submits work has none of the servers' packages: what runs there, and what the others say."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.cli.console import exits

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tenax"
#: What a machine without the servers runs.
CLIENT_SIDE = ("cli", "client", "core", "exec", "launch", "experimental")
#: Commands that need the servers, and ask for them before they import anything of theirs.
ASKS_FIRST = {
    *(f"cli/local/{name}.py" for name in ("up", "backup", "upgrade", "demo")),
    # Of `tenax master invite` and `join`, and of `tenax machine policy`.
    "cli/master/joining.py",
    "cli/agents/machine.py",
}
#: Hides packages as if they were not installed, then runs what follows.
HIDING = """
import sys
from importlib.machinery import PathFinder
hidden, find = set({hidden!r}), PathFinder.find_spec
def find_others(name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find(name, path, target)
PathFinder.find_spec = find_others
"""


def packages_of_the_servers() -> list[str]:
    """The modules of what the extra `server` alone brings."""
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {re.split(r"[\s<>=\[;]", line)[0].lower() for line in extras["server"]}
    return [
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if names & {owner.lower() for owner in owners}
    ]


def without_servers(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = HIDING.format(hidden=packages_of_the_servers()) + code
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": variables.get("TENAX_DIR", "/nowhere"), **variables},
    )


@pytest.mark.parametrize(
    "command",
    [
        ["up"],
        ["up", "--foreground"],
        ["down", "--kill-tasks"],
        ["backup", "copy"],
        ["restore", "."],
        ["upgrade-database"],
        ["demo"],
        ["master", "--config", "master.yaml"],
        ["master", "invite", "invitation"],
        ["master", "join", os.devnull],
        ["agent", "--master-url", "http://127.0.0.1:1"],
    ],
    ids=" ".join,
)
def test_commands_that_need_the_servers_say_so(command: list[str], tmp_path: Path) -> None:
    """What is missing and how it is installed; nothing is made."""
    state = tmp_path / "cluster"
    done = without_servers("from tenax.cli.main import main; main()", *command, TENAX_DIR=str(state))
    assert done.returncode == exits.FAILED, done.stderr
    assert re.search(r"servers of Tenax are not installed here \(.*pydantic.* missing\): pip install ", done.stderr)
    assert "[server]'" in done.stderr
    assert "internal error" not in done.stderr
    assert not state.exists()


@pytest.mark.parametrize("command", [["down"], ["status"], ["sync"], ["local", "list"]], ids=" ".join)
def test_other_commands_run(command: list[str], tmp_path: Path) -> None:
    """They need nothing of the servers."""
    variables = {"TENAX_DIR": str(tmp_path), "TENAX_DATA_DIR": str(tmp_path / "data")}
    done = without_servers("from tenax.cli.main import main; main()", *command, **variables)
    assert done.returncode in (exits.OK, exits.UNREACHABLE), done.stderr


def test_what_the_client_side_imports_is_there_without_the_servers() -> None:
    """At the head of a module or within a function, but for the commands that ask first."""
    importers: dict[str, set[str]] = {}
    for path in sorted(path for folder in CLIENT_SIDE for path in (SOURCE / folder).rglob("*.py")):
        for module in imported(ast.parse(path.read_text())):
            importers.setdefault(module, set()).add(path.relative_to(SOURCE).as_posix())
    code = (
        "import importlib, json\nfailed = {}\n"
        "for module in sys.argv[1:]:\n"
        "    try:\n        importlib.import_module(module)\n"
        "    except ImportError as error:\n        failed[module] = str(error)\n"
        "print(json.dumps(failed))"
    )
    failed = json.loads(without_servers(code, *importers).stdout.splitlines()[-1])
    assert "tenax.local.supervise.cluster" in failed, "nothing was hidden"
    assert {
        f"{importer} imports {module}: {failed[module]}"
        for module in failed
        for importer in importers[module]
        if importer not in ASKS_FIRST
    } == set()


def imported(tree: ast.AST) -> set[str]:
    """Modules of ours that a file imports when it runs."""
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tenax"):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("tenax")}
        found |= imported(node)
    return found
