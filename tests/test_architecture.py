"""The shape of the code, checked over its syntax trees.

What import-linter cannot see: sizes, frozen values, and that the pure folders take time, ids and randomness as
arguments. An exception is allowed where it reads better; it stands here with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tenax"
PURE = ("search", "scheduler", "lifecycle", "master/telemetry")
MAX_FILE = 500
MAX_FUNCTION = 60

#: Calls and names that the pure folders never use.
FORBIDDEN_NAMES = {"open", "print", "input", "exec", "eval", "__import__"}
#: ``random`` may be imported for its type and for a generator with a seed only.
FORBIDDEN_ATTRIBUTES = {("random", name) for name in ("random", "randint", "choice", "shuffle", "uniform", "seed")}

#: Dataclasses of pure folders that may change, each with the reason.
MUTABLE: dict[str, str] = {}


def _files(*folders: str) -> list[Path]:
    roots = [ROOT / folder for folder in folders]
    return sorted(path for root in roots if root.is_dir() for path in root.rglob("*.py"))


def _pure_files() -> list[Path]:
    return [path for folder in PURE for path in sorted((SOURCE / folder).rglob("*.py"))]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def test_no_file_is_over_500_lines() -> None:
    """A longer file is two rooms in one."""
    files = _files("src", "tests", "benchmarks", "examples")
    long = {str(path.relative_to(ROOT)): n for path in files if (n := len(path.read_text().splitlines())) > MAX_FILE}
    assert not long


def test_no_function_is_over_60_lines() -> None:
    """A longer function does more than one thing."""
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for path in _files("src", "tests", "benchmarks", "examples")
        for node in _functions(ast.parse(path.read_text()))
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION
    ]
    assert not long


def test_only_the_store_speaks_sql() -> None:
    """Statements are sent from one folder; elsewhere a connection is only handed on."""
    sending = {"fetch", "fetchrow", "fetchval", "executemany", "copy_records_to_table"}
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.attr}"
        for path in _files("src/tenax/master")
        if SOURCE / "master" / "store" not in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in sending and _is_connection(node.value)
    ]
    assert not wrong


def _is_connection(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("conn", "connection")


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of whatever is imported; of ``from a import b``, both ``a`` and ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{name.name}") for name in node.names)


def test_nothing_is_imported_from_tests() -> None:
    """What tests share stands in `tests/kits`, or in a helper module beside them; fixtures need no import."""
    wrong = sorted(
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in _files("src", "tests", "benchmarks", "examples")
        for line, name in _imported(ast.parse(path.read_text()))
        if name.startswith("tests.") and name.split(".")[-1].startswith(("test_", "conftest"))
    )
    assert not wrong


def test_every_module_says_what_it_is() -> None:
    """Every module of the package opens with a docstring."""
    silent = [str(p.relative_to(ROOT)) for p in _files("src") if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


@pytest.mark.parametrize("path", _pure_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_pure_folders_decide_over_values(path: Path) -> None:
    """No async, no I/O, no unseeded randomness in search, scheduler and lifecycle."""
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, (ast.AsyncFunctionDef, ast.Await)), f"line {node.lineno}: async"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_NAMES, f"line {node.lineno}: {node.func.id}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in FORBIDDEN_ATTRIBUTES, f"line {node.lineno}: unseeded randomness"


@pytest.mark.parametrize("path", _pure_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_values_of_pure_folders_are_frozen(path: Path) -> None:
    """Dataclasses of the pure folders are frozen, but for the listed ones."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ClassDef) or f"{path.stem}.{node.name}" in MUTABLE:
            continue
        for decorator in node.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(name, ast.Name) and name.id == "dataclass":
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                assert any(k.arg == "frozen" for k in keywords), f"line {node.lineno}: {node.name} is not frozen"
