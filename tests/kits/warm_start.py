"""Trials of scripts that tell whether what they import was loaded already, and an environment of their own for them."""

from __future__ import annotations

import venv
from pathlib import Path

import msgspec

from tenax.runtime.process import ProcessRuntime
from tenax.wire.agents import ContainerSpec, TaskFile
from tests.kits.process_bench import ProcessBench
from tests.kits.trial_spec import Result, result_of, trial

#: How a script begins that tells it.
TELLING = "import sys\nprint('loaded' if 'colorsys' in sys.modules else 'not loaded')\nimport colorsys\n"
LOADED, NOT_LOADED = b"loaded\n", b"not loaded\n"


class Installed:
    """An environment of its own, with packages that a test installs."""

    def __init__(self, place: Path) -> None:
        venv.create(place, with_pip=False)
        self.python = str(place / "bin" / "python")
        self.packages = next(place.glob("lib/python*/site-packages"))

    def install(self, name: str, content: str) -> None:
        (self.packages / f"{name}.py").write_text(content)


def scripted(bench: ProcessBench, script: str, entrypoint: object = "python3 train.py", **env: str) -> ContainerSpec:
    return with_files(trial(bench, entrypoint, **env), {"train.py": script})


def with_files(task_spec: ContainerSpec, files: dict[str, str]) -> ContainerSpec:
    """With model code, which all tests here take for the same."""
    code = [TaskFile(f"workdir/{name}", content, 0o644) for name, content in files.items()]
    return msgspec.structs.replace(task_spec, files=[*task_spec.files, *code], context_hash="c" * 64)


async def three(runtime: ProcessRuntime, task_spec: ContainerSpec) -> list[Result]:
    """By itself, noting its imports, and where they are loaded: the same container each time."""
    return [await result_of(runtime, task_spec) for _ in range(3)]
