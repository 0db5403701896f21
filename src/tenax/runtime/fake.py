"""A runtime without processes, for tests in virtual time and at full speed: a coroutine plays each container.

It passes the kit that the real ones pass. What runs is in a `FakeMachine`, which outlives the runtime objects upon it
as a real machine outlives its agents.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tenax.runtime.exit_reason import SWITCHED_OFF, killed_by
from tenax.runtime.port import ContainerStatus, OutputStream, Placement, StartFailed
from tenax.runtime.wakes import News
from tenax.wire.agents import ContainerSpec, Exit
from tenax.wire.task_names import SEGMENTS, SPOOL_FORMATS


class Died(Exception):
    """Raised by a play to end by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stage:
    """What a play may do; it is cancelled by SIGKILL."""

    def __init__(
        self, spec: ContainerSpec, environment: Mapping[str, str], run: Path, news: Callable[[], None]
    ) -> None:
        self.spec = spec
        #: As the task would see it.
        self.environment = environment
        #: ``DET_RUN_DIR``.
        self.run = run
        #: Set by SIGTERM.
        self.terminated = asyncio.Event()
        self._output = {"stdout": bytearray(), "stderr": bytearray()}
        self._news = news

    def write(self, stream: OutputStream, data: bytes) -> None:
        self._output[stream] += data
        self._news()

    def written(self, stream: OutputStream) -> bytes:
        return bytes(self._output[stream])


#: Plays one container and returns its exit code. Raises Died, or LookupError where there is no such program.
Play = Callable[[Stage], Awaitable[int]]


@dataclass(slots=True)
class _Container:
    spec: ContainerSpec
    placement: Placement
    stage: Stage
    task: asyncio.Task[None] | None = None
    exit: Exit | None = None
    stopping_since: float | None = None


@dataclass(slots=True)
class FakeMachine:
    """``directory``: for spools, which are files. ``play`` is given every container that starts."""

    directory: Path
    play: Play
    #: Raises LookupError where there is no such program.
    check: Callable[[ContainerSpec], None] = lambda spec: None
    containers: dict[str, _Container] = field(default_factory=dict)
    runtimes: list[FakeRuntime] = field(default_factory=list)

    def news(self, container_id: str) -> None:
        for runtime in self.runtimes:
            runtime.wake(container_id)


class FakeRuntime:
    """See `tenax.runtime.port.Runtime`."""

    name = "fake"
    by_engine = False

    def __init__(self, machine: FakeMachine, clock: Callable[[], float] = time.monotonic) -> None:
        self._machine = machine
        self._clock = clock
        self._news = News()
        machine.runtimes.append(self)

    def wake(self, container_id: str) -> None:
        self._news.wake(container_id)

    async def pull(self, spec: ContainerSpec, device_kind: str) -> None:
        """Nothing."""

    async def start(self, spec: ContainerSpec, placement: Placement) -> None:
        name = spec.container_id
        if name in self._machine.containers:
            return
        try:
            self._machine.check(spec)
        except LookupError as error:
            raise StartFailed(f"could not start: there is no {error}", platform=False) from None
        run = self._machine.directory / name
        (run / "spool").mkdir(parents=True)
        own = {"DET_CONTAINER_ID": name, "DET_RUN_DIR": str(run), SPOOL_FORMATS: SEGMENTS}
        environment = {**spec.env, **placement.env, **own}
        stage = Stage(spec, environment, run, lambda: self._machine.news(name))
        container = self._machine.containers[name] = _Container(spec, placement, stage)
        container.task = asyncio.create_task(self._run(container))

    async def find(self) -> list[ContainerStatus]:
        return [_status(container) for container in self._machine.containers.values()]

    async def inspect(self, container_id: str) -> ContainerStatus | None:
        container = self._machine.containers.get(container_id)
        return _status(container) if container is not None else None

    def changed(self) -> AsyncIterator[str]:
        return self._news.changed()

    async def signal(self, container_id: str, number: int) -> None:
        container = self._machine.containers.get(container_id)
        if container is None or container.task is None or container.exit is not None:
            return
        if number == signal.SIGKILL:
            container.task.cancel()
            await asyncio.gather(container.task, return_exceptions=True)
            self._end(container, Exit(signal=number, reason=killed_by(number, requested=True)))
        elif number == signal.SIGTERM:
            container.stopping_since = container.stopping_since or self._clock()
            container.stage.terminated.set()

    async def switch_off(self, container_id: str) -> None:
        container = self._machine.containers.get(container_id)
        if container is not None and container.task is not None and container.exit is None:
            container.task.cancel()
            await asyncio.gather(container.task, return_exceptions=True)
            self._end(container, Exit(reason=SWITCHED_OFF, platform=True))

    async def read_output(self, container_id: str, stream: OutputStream, offset: int, limit: int) -> tuple[int, bytes]:
        container = self._machine.containers.get(container_id)
        written = container.stage.written(stream) if container is not None else b""
        return offset, written[offset : offset + limit]

    async def output_time(self, container_id: str, stream: OutputStream, offset: int) -> tuple[float, int | None]:
        return 0.0, None

    async def trim_output(self, container_id: str, stream: OutputStream, offset: int) -> None:
        """Nothing: it is in memory."""

    async def remove(self, container_id: str) -> None:
        await self.signal(container_id, signal.SIGKILL)
        if self._machine.containers.pop(container_id, None) is not None:
            await asyncio.to_thread(_delete, self._machine.directory / container_id)

    async def close(self) -> None:
        self._machine.runtimes.remove(self)

    async def _run(self, container: _Container) -> None:
        try:
            code = await self._machine.play(container.stage)
            exit = Exit(code=code, reason="" if code == 0 else f"exited with code {code}")
        except Died as died:
            requested = container.stopping_since is not None
            exit = Exit(signal=died.number, reason=killed_by(died.number, requested=requested))
        self._end(container, exit)

    def _end(self, container: _Container, exit: Exit) -> None:
        if container.exit is None:
            container.exit = exit
            self._machine.news(container.spec.container_id)


def _status(container: _Container) -> ContainerStatus:
    return ContainerStatus(
        container_id=container.spec.container_id,
        cluster_id=container.placement.cluster_id,
        generation=container.placement.generation,
        state="exited" if container.exit is not None else "running",
        pid=None,
        exit=container.exit,
        spec=container.spec,
        spool_directory=str(container.stage.run / "spool"),
        placed=container.placement.env,
        stopping_since=container.stopping_since,
    )


def _delete(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
