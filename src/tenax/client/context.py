"""Code on its way to the master: which files of a directory go along, and how they are packed.

``.detignore`` in the directory's root leaves files out, in the syntax of ``.gitignore``. Some are never taken
(`NEVER`), nor is the state of a cluster or an agent, in which passwords and tokens are. Links are followed, as a copy
would.

Without the script that the entrypoint runs every trial would fail, so it is looked for before anything is sent; what
that is, `tenax.wire.entrypoints` says. What a startup hook or a mount could bring is not judged.
"""

from __future__ import annotations

import base64
import os
import stat
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.storage.port import SHARED_FS_MOUNT
from tenax.storage.private_directory import MARK
from tenax.wire.entrypoints import code_run_by
from tenax.wire.task_names import OWN_HOOK

IGNORE_FILE = ".detignore"
#: Sum of the file sizes; the message that carries them is a third larger.
LIMIT_BYTES = 95 * 1024 * 1024
#: In the syntax of ``.gitignore``: what no task needs, and what would end up in the database for ever.
NEVER = (
    "__pycache__/",
    "*.py[cod]",
    "*$py.class",
    ".git/",
    ".hg/",
    ".svn/",
    ".terraform/",
    "terraform.tfstate*",
    "terraform_data/",
    ".idea/",
    ".vscode/",
    ".ipynb_checkpoints/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".DS_Store",
    SHARED_FS_MOUNT,
)
_REGULAR, _DIRECTORY = 48, 53
_NAMED = 5


@dataclass(frozen=True)
class ContextEntry:
    """A file or a directory that goes along."""

    #: Below the root of the code, with slashes.
    path: str
    source: Path
    size: int
    is_directory: bool


def read_context(root: Optional[Path], includes: Sequence[Path] = (), limit: int = LIMIT_BYTES) -> List[JsonObject]:
    """The files below ``root`` (if there is one) and ``includes`` (each under its own name), as the master takes them.

    Raises InvalidInput when there is no such directory, when two would have one name, and when they are too large.
    """
    items = collect(root, includes)
    total = sum(item.size for item in items)
    if total > limit:
        raise InvalidInput(_too_large(root or Path(), items, total, limit))
    return [_packed(item) for item in items]


def collect(root: Optional[Path], includes: Sequence[Path] = ()) -> List[ContextEntry]:
    """What would go along, directories before what they hold."""
    if root is not None and not root.is_dir():
        there = "is a file" if root.exists() else "does not exist"
        raise InvalidInput(f"{root} {there}: name the directory that holds the code.")
    for named in [root, *includes]:
        if named is not None and _is_state(named):
            raise InvalidInput(
                f"{named} holds the state of a cluster or an agent, with its passwords and tokens, which is not sent: "
                "name the directory that holds the code."
            )
    ignored = _ignored(root)
    items = [] if root is None else list(_walk(root, "", ignored, ()))
    for include in includes:
        if not include.exists():
            raise InvalidInput(f"{include} does not exist: --include takes files and directories.")
        items.extend(_included(include, ignored))
    seen: Dict[str, Path] = {}
    for item in items:
        if item.path in seen and not item.is_directory:
            raise InvalidInput(f"{seen[item.path]} and {item.source} would both be {item.path}: rename one of them.")
        seen[item.path] = item.source
    return items


def check_script(text: str, files: Sequence[JsonObject]) -> None:
    """Raises InvalidInput where what a configuration (YAML) runs is not sent; other faults the master tells of."""
    config = _plain_document(text)
    code = code_run_by(config.get("entrypoint"))
    mounts = config.get("bind_mounts")
    relative = any(
        isinstance(mount, dict) and not str(mount.get("container_path", "/")).startswith("/")
        for mount in (mounts if isinstance(mounts, list) else [])
    )
    names = {os.path.normpath(str(file.get("path", ""))) for file in files}
    if code is None or relative or OWN_HOOK in names:
        return
    if not code.is_missing(names, installed=code.needs_code and _may_be_installed(code.module, config)):
        return
    installed = (
        " If it is installed where the task runs, name its folder in PYTHONPATH (environment.environment_variables)."
        if code.needs_code
        else ""
    )
    if files:
        raise InvalidInput(
            f"The entrypoint runs {code}, which is not among the files that are sent: name the directory that "
            f"has it, or take it out of {IGNORE_FILE}.{installed}"
        )
    raise InvalidInput(
        f"The entrypoint runs {code}, and no code is sent: name its directory, as in "
        f"tenax experiment create CONFIG DIRECTORY.{installed}"
    )


def _may_be_installed(module: str, config: JsonObject) -> bool:
    """The configuration brings modules from elsewhere, or this Python has it."""
    environment = config.get("environment")
    own_image = isinstance(environment, dict) and bool(environment.get("image"))
    return (
        own_image
        or bool(config.get("bind_mounts"))
        or "PYTHONPATH" in str(environment)
        # Without the folder of the program that asks, where the code may lie that was forgotten.
        or PathFinder.find_spec(module, sys.path[1:]) is not None
    )


def _plain_document(text: str) -> JsonObject:
    """The configuration with every scalar as text; empty where it is none, or where nothing here reads YAML."""
    try:
        import yaml
    except ImportError:
        # The Python of a task need not have it.
        return {}
    try:
        document = yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError:
        return {}
    return document if isinstance(document, dict) else {}


def _ignored(root: Optional[Path]) -> Callable[[str], bool]:
    import pathspec

    lines: List[str] = []
    own = (root or Path()) / IGNORE_FILE
    if root is not None and own.is_file():
        try:
            lines = own.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{own} cannot be read: {error}.") from None
    try:
        return pathspec.GitIgnoreSpec.from_lines([*lines, *NEVER]).match_file
    except ValueError as error:
        raise InvalidInput(f"A pattern in {own} is not valid: {error}.") from None


def _walk(
    directory: Path, prefix: str, ignored: Callable[[str], bool], above: Tuple[str, ...]
) -> Iterator[ContextEntry]:
    real = os.path.realpath(directory)
    if real in above:
        raise InvalidInput(
            f"{directory} is a link to a directory that holds it: remove it, or name it in {IGNORE_FILE}."
        )
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        raise InvalidInput(f"{directory} cannot be read: {error.strerror}. Name it in {IGNORE_FILE}.") from None
    for entry in entries:
        path = prefix + entry.name
        source = Path(entry.path)
        if entry.is_dir():
            if not ignored(path + "/") and not _is_state(source):
                yield ContextEntry(path, source, 0, True)
                yield from _walk(source, path + "/", ignored, (*above, real))
        elif entry.is_file() and not ignored(path):
            yield ContextEntry(path, source, entry.stat().st_size, False)


def _is_state(directory: Path) -> bool:
    """Of a server of ours: it may lie beside the code that was submitted to it."""
    return os.path.lexists(directory / MARK)


def _included(include: Path, ignored: Callable[[str], bool]) -> Iterator[ContextEntry]:
    name = include.resolve().name
    if include.is_dir():
        yield ContextEntry(name, include, 0, True)
        yield from _walk(include, name + "/", ignored, ())
    else:
        yield ContextEntry(name, include, include.stat().st_size, False)


def _packed(item: ContextEntry) -> JsonObject:
    try:
        status = item.source.stat()
        content = b"" if item.is_directory else item.source.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{item.source} cannot be read: {error.strerror}. Name it in {IGNORE_FILE}.") from None
    kind = stat.S_IFDIR if item.is_directory else stat.S_IFREG
    return {
        "path": item.path,
        "type": _DIRECTORY if item.is_directory else _REGULAR,
        "content": base64.b64encode(content).decode("ascii"),
        "mtime": str(int(status.st_mtime)),
        "mode": kind | stat.S_IMODE(status.st_mode),
        "uid": 0,
        "gid": 0,
    }


def _too_large(root: Path, items: Sequence[ContextEntry], total: int, limit: int) -> str:
    sizes: Dict[str, int] = {}
    for item in items:
        if not item.is_directory:
            top, slash, _ = item.path.partition("/")
            sizes[top + slash] = sizes.get(top + slash, 0) + item.size
    biggest = sorted(sizes.items(), key=lambda pair: -pair[1])[:_NAMED]
    listed = "\n".join(f"  {_mib(size):>10}  {name}" for name, size in biggest)
    return (
        f"The code in {root} is too large: {_mib(total)}, and at most {_mib(limit)} can be sent. The biggest parts:\n"
        f"{listed}\nName what the task does not need in {root / IGNORE_FILE} (the syntax is that of .gitignore), "
        "and keep data outside of the code: mount it, or let the script download it."
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
