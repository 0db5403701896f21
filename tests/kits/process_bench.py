"""The process runtime on the bench of the runtime kit."""

from __future__ import annotations

from pathlib import Path

from tenax.runtime.directory import Home
from tenax.runtime.port import Runtime
from tenax.runtime.process import ProcessRuntime
from tests.kits.runtime_kit import PROGRAMS


class ProcessBench:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._runtimes: list[ProcessRuntime] = []

    async def runtime(self) -> Runtime:
        self._runtimes.append(ProcessRuntime(self.directory))
        return self._runtimes[-1]

    def ask(self, program: str) -> dict[str, object]:
        return {"argv": ["{python}", "-c", PROGRAMS[program]]}

    def run_directory(self, container_id: str) -> Path:
        return self.directory / "containers" / container_id / "run"

    def supervisor(self, container_id: str) -> int:
        supervision = Home(self.directory / "containers" / container_id).supervision()
        assert supervision is not None
        return supervision.pid

    async def clean(self) -> None:
        """Leave nothing, whatever happened."""
        for runtime in self._runtimes:
            await runtime.close()
        last = ProcessRuntime(self.directory)
        for found in await last.find():
            await last.remove(found.container_id)
        await last.close()
