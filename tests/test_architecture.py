"""The shape of the code, checked over its syntax trees.

What import-linter cannot see: sizes, frozen values, and that the pure folders take time, ids and randomness as
arguments. An exception is allowed where it reads better; it stands here with its reason.
"""

from __future__ import annotations

import ast
import functools
import gc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.config.schema import searcher as schema_searcher
from tenax.config.schema import storage as schema_storage
from tenax.host.runtimes import RUNTIMES
from tenax.master.provision.registry import PROVIDERS
from tenax.runtime.gpus.registry import GPUS
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.registry import POLICIES
from tenax.search.methods.registry import METHODS
from tenax.storage.registry import KINDS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tenax"
PURE = ("search", "scheduler", "lifecycle", "master/telemetry")
MAX_FILE = 500
MAX_FUNCTION = 60
MAX_ENTRIES = 25
#: Nobody opens them: the second tells type checkers that the package has types.
NO_ENTRIES = frozenset({"__pycache__", "py.typed"})
MAX_FILES_OF_MASTER = 6

#: Calls and names that the pure folders never use.
FORBIDDEN_NAMES = {"open", "print", "input", "exec", "eval", "__import__"}
#: ``random`` may be imported for its type and for a generator with a seed only.
FORBIDDEN_ATTRIBUTES = {("random", name) for name in ("random", "randint", "choice", "shuffle", "uniform", "seed")}

#: Dataclasses of pure folders that may change, each with the reason.
MUTABLE: dict[str, str] = {}

#: What sends a statement, or what it becomes, to a database.
SENDING = frozenset(
    {
        *("execute", "executemany", "fetch", "fetchmany", "fetchrow", "fetchval", "cursor", "prepare"),
        *("copy_records_to_table", "copy_to_table", "copy_from_query", "copy_from_table"),
    }
)
#: (file, what stands there) that is called like one of those and sends nothing.
NO_CONNECTION: dict[tuple[str, str], str] = {
    ("cli/local/backup.py", "state.prepare"): "the directory of a local cluster",
    ("local/supervise/control.py", "state.prepare"): "the directory of a local cluster",
    ("master/api/metrics/profiler.py", "series.fetch"): "a function of the store",
    ("master/api/metrics/routes.py", "series.fetch"): "a function of the store",
    ("runtime/forking/forkserver.py", "main_process.execute"): "becomes the user's program",
    ("runtime/main_process.py", "self.execute"): "becomes the user's program",
    ("exec/zygote.py", "main_process.execute"): "becomes the user's program",
}

#: Where the system cannot say whether a path is there, `Path.exists` says no on newer Pythons; here nothing hangs on it
EXISTS_WILL_DO: dict[str, str] = {
    "agent/contexts.py": "is fetched once more",
    "runtime/contents.py": "a link is not made over what is there",
    "runtime/docker/engine.py": "an engine that cannot be looked at now does not answer either",
    "runtime/processes.py": "works without a cgroup of its own",
}

#: Messages of the API whose names others have, too: OpenAPI publishes the name of the class as the schema's, so that it
#: stays; the SDK's object, or the value of a pure folder, is the same noun and keeps it as well.
PUBLISHED = frozenset(
    """
    Agent Checkpoint Command Container Delivery Experiment Group Job Model ModelVersion Note Project
    Rung Slot State Task TaskState Template Trial Trigger User Webhook Workspace
    """.split()  # noqa: SIM905
)

#: What is an open set has one registry. With each, the files that may name its members: the registry, that of the layer
#: which builds on it, and the members' own.
REGISTRIES: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "search methods": (frozenset(METHODS), ("search/methods/", "config/schema/searcher.py")),
    "scheduler policies": (
        frozenset(POLICIES),
        ("scheduler/registry.py", "scheduler/priority.py", "scheduler/fair_share.py", "scheduler/least_attained.py"),
    ),
    "runtimes": (frozenset(RUNTIMES), ("host/runtimes.py", "runtime/docker/runtime.py", "runtime/process.py")),
    "kinds of storage": (
        frozenset(KINDS),
        (
            *("storage/registry.py", "storage/shared_fs.py", "storage/local_directory.py", "storage/s3.py"),
            *("storage/gcs.py", "storage/azure.py", "config/schema/storage.py"),
        ),
    ),
    "providers of machines": (frozenset(PROVIDERS), ("master/provision/registry.py", "config/provider/")),
    "kinds of GPU": (frozenset(GPUS), ("runtime/gpus/", "scheduler/devices.py", "pytorch/devices.py")),
}
#: Who sends signals by number, each with what it has verified before.
SENDS_SIGNALS = {
    "core/hangs/processes.py": "the process with this start time",
    "exec/in_place.py": "itself",
    "host/leash.py": "the group of a child that leads its session and is not collected yet",
    "exec/zygote.py": "its own child, which is not collected yet",
    "local/supervise/services.py": "the group of a child that leads its session and is not collected yet",
    "runtime/forking/zygotes.py": "the group of a child that leads its session and is not collected yet",
    "runtime/main_process.py": "a descendant of this supervisor",
    "runtime/processes.py": "the process with this start time, or what carries the container's id in its environment",
    "runtime/supervisor.py": "its own child, which is not collected yet",
}
EVERY_NAME = frozenset(name for names, _ in REGISTRIES.values() for name in names)
#: Who else names one, each with the reason.
NAMED: dict[tuple[str, str], str] = {
    ("cli/console/follow.py", "single"): "the CLI runs on Python 3.9, where the search is not there to be asked",
    ("core/local_runs/sending.py", "single"): "the same, in a script",
    **{
        ("cli/experiment/from_script/configuration.py", name): "chosen for whoever names none; CLI, Python 3.9"
        for name in ("single", "random", "grid", "adaptive_asha")
    },
    ("cli/queue.py", "priority"): "a field of a job, not a policy",
    ("runtime/metadata_guard.py", "docker"): "a group of accounts, whose members can become root",
    (
        "local/supervise/cluster.py",
        "shared_fs",
    ): "what `tenax up` sets for its cluster; the storage is beside it",
}
#: Words that say what something is: a member's name as the value of one of them is an offence.
TELLING = {"type", "kind", "name", "method", "policy", "runtime", "searcher", "searcher_type", "scheduler_type"}


def _files(*folders: str) -> list[Path]:
    roots = [ROOT / folder for folder in folders]
    return sorted(path for root in roots if root.is_dir() for path in root.rglob("*.py"))


def _pure_files() -> list[Path]:
    return [path for folder in PURE for path in sorted((SOURCE / folder).rglob("*.py"))]


@pytest.fixture(scope="module", autouse=True)
def _trees_are_let_go() -> Iterator[None]:
    """After the last test: they fill some hundred megabytes."""
    yield
    _tree.cache_clear()


@functools.cache
def _tree(path: Path) -> ast.Module:
    """Parsed once for all tests. The garbage collector, which would look through all of them again and again, waits."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


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
        for node in _functions(_tree(path))
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION
    ]
    assert not long


def test_only_the_store_speaks_sql() -> None:
    """Statements are sent from one folder; elsewhere a connection is only handed on, whatever it is called there."""
    sent = [
        (str(path.relative_to(SOURCE)), node.lineno, f"{ast.unparse(node.value)}.{node.attr}")
        for path in sorted(SOURCE.rglob("*.py"))
        if SOURCE / "master" / "store" not in path.parents
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute) and node.attr in SENDING and isinstance(node.ctx, ast.Load)
    ]
    wrong = [f"{file}:{line} {name}" for file, line, name in sent if (file, name) not in NO_CONNECTION]
    assert not wrong
    assert {(file, name) for file, _, name in sent} == set(NO_CONNECTION), "an exception is no longer needed"


def test_folders_can_be_taken_in_at_a_glance() -> None:
    """No folder of the source has more entries than that; the master's own files are few."""
    built = SOURCE / "_webui"
    folders = [
        path
        for path in (SOURCE, *sorted(SOURCE.rglob("*")))
        if path.is_dir() and path.name != "__pycache__" and built not in (path, *path.parents)
    ]
    entries = {
        str(folder.relative_to(ROOT)): [p for p in folder.iterdir() if p.name not in NO_ENTRIES and p != built]
        for folder in folders
    }
    assert not {folder: len(paths) for folder, paths in entries.items() if len(paths) > MAX_ENTRIES}
    assert len([path for path in entries["src/tenax/master"] if path.is_file()]) <= MAX_FILES_OF_MASTER


def test_a_class_has_a_name_of_its_own() -> None:
    """One public class name, one meaning. `tenax.experimental` is the SDK in other people's names."""
    places: dict[str, list[str]] = {}
    for path in _files("src"):
        if SOURCE / "experimental" in path.parents:
            continue
        for node in _tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    twice = {name: files for name, files in places.items() if len(files) > 1}
    assert not PUBLISHED - {name for name, files in twice.items() if any(map(_of_the_api, files))}, "not needed"
    for name in PUBLISHED:
        twice[name] = [file for file in twice[name] if not _of_the_api(file)]
    assert not {name: files for name, files in twice.items() if len(files) > 1}


def _of_the_api(file: str) -> bool:
    return file.startswith("master/api/")


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
        for line, name in _imported(_tree(path))
        if name.startswith("tests.") and name.split(".")[-1].startswith(("test_", "conftest"))
    )
    assert not wrong


def test_every_module_says_what_it_is() -> None:
    """Every module of the package opens with a docstring."""
    silent = [str(p.relative_to(ROOT)) for p in _files("src") if not ast.get_docstring(_tree(p))]
    assert not silent


@pytest.mark.parametrize("path", _pure_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_pure_folders_decide_over_values(path: Path) -> None:
    """No async, no I/O, no unseeded randomness in search, scheduler and lifecycle."""
    for node in ast.walk(_tree(path)):
        assert not isinstance(node, (ast.AsyncFunctionDef, ast.Await)), f"line {node.lineno}: async"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_NAMES, f"line {node.lineno}: {node.func.id}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in FORBIDDEN_ATTRIBUTES, f"line {node.lineno}: unseeded randomness"


@pytest.mark.parametrize("path", _pure_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_values_of_pure_folders_are_frozen(path: Path) -> None:
    """Dataclasses of the pure folders are frozen, but for the listed ones."""
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.ClassDef) or f"{path.stem}.{node.name}" in MUTABLE:
            continue
        for decorator in node.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(name, ast.Name) and name.id == "dataclass":
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                assert any(k.arg == "frozen" for k in keywords), f"line {node.lineno}: {node.name} is not frozen"


def test_members_of_a_registry_are_named_in_it_alone() -> None:
    """A search method, policy, runtime or storage is asked what it can; nothing else lists or compares their names."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {name!r}, one of the {what}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, name in _named(_tree(path), EVERY_NAME)
        for what, (names, own) in REGISTRIES.items()
        if name in names and not str(path.relative_to(SOURCE)).startswith(own)
        if (str(path.relative_to(SOURCE)), name) not in NAMED
    ]
    wrong += [
        f"{path.relative_to(ROOT)}: {name!r}"
        for path in sorted(SOURCE.rglob("*.sql"))
        if "migrations" not in path.parts
        for name in re.findall(r"'(\w+)'", path.read_text())
        if name in EVERY_NAME
    ]
    assert not wrong


def test_an_exception_for_a_name_is_still_needed() -> None:
    """What no longer names a member is no longer listed here."""
    for file, name in NAMED:
        found = {each for _, each in _named(_tree(SOURCE / file), EVERY_NAME)}
        assert name in found, f"{file} does not name {name!r}"


def test_registries_of_two_layers_agree() -> None:
    """Each search method and each storage has its schema, each kind of device is a GPU's or the CPU.

    Only storages may have a schema before they are served.
    """
    assert set(schema_searcher.SCHEMAS) == set(METHODS)
    assert set(schema_storage.SCHEMAS) >= set(KINDS)
    assert {kind.value for kind in DeviceKind} == {*GPUS, DeviceKind.CPU.value}


def test_signals_go_to_verified_processes() -> None:
    """What sends a signal by number stands in a list with what it has verified; all else asks `tenax.processes`."""
    senders = {
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("kill", "killpg", "pidfd_send_signal")
        if isinstance(node.value, ast.Name) and node.value.id in ("os", "signal", "_signal")
    }
    assert senders == set(SENDS_SIGNALS)


def test_what_cannot_be_looked_at_is_not_taken_for_gone() -> None:
    """Agents, runtimes and local clusters ask `tenax.host.disk.is_there`, which says so."""
    asking = {
        str(path.relative_to(SOURCE))
        for folder in ("agent", "runtime", "local")
        for path in (SOURCE / folder).rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "exists"
    }
    assert asking == set(EXISTS_WILL_DO)


def _named(tree: ast.AST, names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Where one of ``names`` stands as a value that something is decided by: line and name."""
    for node in ast.walk(tree):
        for value in _deciding(node):
            if isinstance(value, ast.Constant) and value.value in names:
                yield value.lineno, value.value
        # A name that is no word of the language means the member wherever it stands.
        if isinstance(node, ast.Constant) and node.value in names and "_" in node.value:
            yield node.lineno, node.value


def _deciding(node: ast.AST) -> list[ast.expr]:
    """The parts of a node that would name a member: compared, listed, or the value of a telling word."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return elements if all(isinstance(each, ast.Constant) for each in elements) else []
        case ast.MatchValue(value=value):
            return [value]
        case ast.Subscript(value=ast.Name(id="Literal"), slice=value):
            return [value]
        case ast.keyword(arg=str(name), value=value) if name in TELLING:
            return [value]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return [value for key, value in pairs if isinstance(key, ast.Constant) and key.value in TELLING]
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.lower() in TELLING:
            return [value]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name.lower() in TELLING:
            return [value]
    return []
