"""The docker runtime passes the kit on a real engine, and keeps what only it promises."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.runtime.docker import DockerRuntime, open_docker
from tenax.runtime.port import Runtime
from tests.kits.runtime_kit import PROGRAMS, RealRuntimeKit

pytestmark = pytest.mark.docker


class DockerBench:
    def __init__(self, directory: Path, host: str, image: str) -> None:
        self.directory = directory
        self.host = host
        self.image = image
        self._runtimes: list[DockerRuntime] = []

    async def runtime(self) -> Runtime:
        self._runtimes.append(await open_docker(self.directory, self.host, "host"))
        return self._runtimes[-1]

    def ask(self, program: str) -> dict[str, object]:
        return {"argv": ["{python}", "-c", PROGRAMS[program]], "images": {"cpu": self.image}}

    def run_directory(self, container_id: str) -> Path:
        return self.directory / "docker" / container_id / "run"

    async def clean(self) -> None:
        """Leave nothing, whatever happened."""
        for runtime in self._runtimes:
            await runtime.close()
        last = await open_docker(self.directory, self.host, "host")
        for found in await last.find():
            await last.remove(found.container_id)
        await last.close()


@pytest.fixture
async def bench(tmp_path: Path, docker_host: str, docker_image: str) -> AsyncIterator[DockerBench]:
    machine = DockerBench(tmp_path / "agent", docker_host, docker_image)
    yield machine
    await machine.clean()


class TestDocker(RealRuntimeKit):
    """All of the kit."""
