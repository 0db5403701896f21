"""Which Python a task runs in, and whether that Python has ``tenax`` itself. Asked once per interpreter and version."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenax.runtime.port import StartFailed

OLDEST = (3, 9)
_ASK = (
    "import importlib.util as u, sys; "
    "print(sys.version_info[0], sys.version_info[1], int(u.find_spec('tenax') is not None))"
)
_ANSWER_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can run tasks."""

    path: Path
    version: tuple[int, int]
    #: False: tasks need our library on PYTHONPATH.
    has_tenax: bool


class Interpreters:
    """Remembers each answer until the interpreter's file changes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Interpreter] = {}

    async def find(self, name: str, search: Mapping[str, str]) -> Interpreter:
        """The interpreter ``name``: a path, or looked up in ``search["PATH"]``. Raises StartFailed."""
        path = name if os.path.isabs(name) else shutil.which(name, path=search.get("PATH"))
        if path is None or not os.access(path, os.X_OK):
            raise StartFailed(
                f"there is no Python interpreter {name!r} on this machine: give the path of one in the variable "
                "DET_PYTHON_EXECUTABLE of the experiment, or leave it out to use the agent's own",
                platform=False,
            )
        key = (path, os.stat(path).st_mtime_ns)
        if key not in self._known:
            self._known[key] = await _ask(path)
        return self._known[key]


async def _ask(path: str) -> Interpreter:
    """Isolated (``-I``), so that the answer does not depend on the agent's own variables."""
    try:
        process = await asyncio.create_subprocess_exec(
            path, "-I", "-c", _ASK, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise StartFailed(f"cannot run {path}: {error.strerror}", platform=False) from None
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            output, errors = await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise StartFailed(f"{path} did not answer within {_ANSWER_WITHIN_S:.0f} s", platform=True) from None
    fields = output.decode(errors="replace").split()
    if process.returncode != 0 or len(fields) != 3:
        last_line = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise StartFailed(f"{path} is not a Python that runs: {last_line or 'it gave no answer'}", platform=False)
    version = (int(fields[0]), int(fields[1]))
    if version < OLDEST:
        raise StartFailed(
            f"{path} is Python {version[0]}.{version[1]}: tasks need {OLDEST[0]}.{OLDEST[1]} or newer", platform=False
        )
    return Interpreter(Path(path), version, fields[2] == "1")
