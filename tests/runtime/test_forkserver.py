"""The process that forks supervisors: it may go at any moment, and goes with its agent; containers never notice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.runtime.port import StartFailed
from tenax.runtime.process import ProcessRuntime
from tenax.runtime.processes import Identity, open_pidfd, start_ticks
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import placement, spec, until_exited, until_printed


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(tmp_path / "agent")
    yield machine
    await machine.clean()


def forkservers(directory: Path) -> list[int]:
    """Pids of those of this agent's directory, without the supervisors, whose command line is the same."""
    program = b"/tenax/runtime/forking/forkserver.py"
    pids = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            argv = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            ours = any(word.startswith(bytes(directory)) and word.endswith(program) for word in argv)
            if ours and (entry / "comm").read_text() != "supervisor\n":
                pids.append(int(entry.name))
    return pids


async def ended(pid: int) -> None:
    """Wait for the end of a process."""
    pidfd = open_pidfd(Identity(pid, start_ticks(pid)))
    if pidfd is None:
        return
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(pidfd, over.set)
    await over.wait()
    asyncio.get_running_loop().remove_reader(pidfd)
    os.close(pidfd)


async def run_to_its_end(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    task_spec = spec(bench, "hello")
    await runtime.start(task_spec, placement())
    status = await until_exited(runtime, task_spec.container_id)
    assert status.exit is not None
    assert status.exit.code == 3


async def test_a_killed_forkserver_is_replaced(bench: ProcessBench) -> None:
    """kill -9 of it: the next container starts all the same, and one that runs is not touched."""
    runtime = ProcessRuntime(bench.directory)
    running = spec(bench, "waits")
    await runtime.start(running, placement())
    await until_printed(runtime, running.container_id, b"ready")
    before = await runtime.inspect(running.container_id)
    for pid in forkservers(bench.directory):
        os.kill(pid, signal.SIGKILL)
        await ended(pid)
    await run_to_its_end(bench, runtime)
    assert await runtime.inspect(running.container_id) == before
    await runtime.close()


async def test_it_ends_with_its_agent_and_containers_do_not(bench: ProcessBench) -> None:
    """An agent that is gone leaves its containers and nothing else running."""
    first = ProcessRuntime(bench.directory)
    running = spec(bench, "waits")
    await first.start(running, placement())
    await until_printed(first, running.container_id, b"ready")
    before = await first.inspect(running.container_id)
    server = forkservers(bench.directory)
    # What the system does with the descriptors of a killed agent.
    door = first._forkserver._door
    assert door is not None
    door.close()
    for pid in server:
        await ended(pid)
    second = ProcessRuntime(bench.directory)
    assert await second.inspect(running.container_id) == before
    await run_to_its_end(bench, second)
    await first.close()
    await second.close()


async def test_what_goes_wrong_in_a_supervisor_is_told(bench: ProcessBench) -> None:
    """A supervisor that cannot work says so in its log, and the start fails by the platform's fault."""
    runtime = ProcessRuntime(bench.directory)
    task_spec = spec(bench, "hello")
    home = runtime._homes.home(task_spec.container_id)
    home.path.mkdir(parents=True)
    with pytest.raises(StartFailed, match=r"FileNotFoundError.*plan") as refused:
        await runtime.start(task_spec, placement())
    assert refused.value.platform
    await runtime.close()
