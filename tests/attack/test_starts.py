"""A user whose tasks run under a uid of their own holds up the starts of others on an agent that is root.

Until it is its program, what a supervisor forks is a process of that user, who may stop it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.runtime.port import Runtime
from tenax.wire.agents import ContainerSpec
from tests.agent import host as hosts
from tests.agent.master_double import MasterDouble
from tests.kits.ports import free_port
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import placement, spec, until_exited

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does")

#: Nobody else's: what is stopped below is whatever starts under the first of them, in tests that run beside as well.
MALLORY, VICTIM = (32_000 + free_port() for _ in range(2))
#: Stops every new process of its user that is a supervisor's fork, and prints its number.
STOPS = """
import os, signal, time
load = os.open("/proc/loadavg", os.O_RDONLY)
seen, new = int(os.pread(load, 128, 0).split()[-1]), {}
print("ready", flush=True)
while True:
    last = int(os.pread(load, 128, 0).split()[-1])
    new.update((pid, time.monotonic() + 0.5) for pid in range(seen + 1, last + 1))
    seen = last
    for pid, until in list(new.items()):
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            if time.monotonic() > until:
                del new[pid]
            continue
        del new[pid]
        try:
            name, state = "", ""
            while state not in ("T", "Z"):
                with open(f"/proc/{pid}/stat") as file:
                    name, _, rest = file.read().partition("(")[2].rpartition(")")
                    state = rest.split()[0]
            if name == "supervisor":
                print(pid, flush=True)
            else:
                os.kill(pid, signal.SIGCONT)
        except OSError:
            pass
"""

#: A program is looked for in all of these: that takes a while.
LONG_WAY = "x:" * 50_000 + "/usr/bin:/bin"
#: No Python, so that nothing but the question comes to a start.
ASKED = {"DET_PYTHON_EXECUTABLE": "true"}


@pytest.fixture
async def stopper() -> AsyncIterator[asyncio.StreamReader]:
    """What the attacker's program prints: numbers of processes that it stopped."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", STOPS, stdout=asyncio.subprocess.PIPE, user=MALLORY, group=MALLORY
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    yield process.stdout
    process.kill()
    await process.wait()


async def caught(
    runtime: Runtime, bench: ProcessBench, stopper: asyncio.StreamReader, **env: str
) -> tuple[ContainerSpec, asyncio.Task[None], int]:
    """A start whose fork was stopped before it was its program; more are made until one is."""
    stopped = asyncio.create_task(stopper.readline())
    while True:
        task_spec = spec(bench, "hello", uid=MALLORY, gid=MALLORY, argv=["true"], env={"PATH": LONG_WAY, **env})
        start = asyncio.create_task(runtime.start(task_spec, placement()))
        await asyncio.wait({start, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            return task_spec, start, int(stopped.result())
        await asyncio.gather(start, return_exceptions=True)


async def until_gone(pid: int) -> None:
    while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC110, ASYNC240 - nobody tells of its end
        await asyncio.sleep(0.01)


async def starts_for_the_victim(runtime: Runtime, bench: ProcessBench) -> None:
    theirs = spec(bench, "hello", uid=VICTIM, gid=VICTIM)
    await runtime.start(theirs, placement())
    await until_exited(runtime, theirs.container_id)


async def test_a_question_that_is_stopped(bench: ProcessBench, stopper: asyncio.StreamReader) -> None:
    """Who gives a start up is not held by an interpreter that was stopped before it ran, and nothing of it is left."""
    runtime = await bench.runtime()
    _, start, pid = await caught(runtime, bench, stopper, **ASKED)
    start.cancel()
    async with asyncio.timeout(240):
        await asyncio.gather(start, return_exceptions=True)
        await until_gone(pid)
    assert os.listdir(bench.directory / "questions") == []
    await starts_for_the_victim(runtime, bench)


async def test_a_question_that_is_stopped_while_the_agent_is_restarted(
    bench: ProcessBench, stopper: asyncio.StreamReader
) -> None:
    """The next agent finds its containers at once, and ends what the last one was asking."""
    first = await bench.runtime()
    _, start, pid = await caught(first, bench, stopper, **ASKED)
    second = await bench.runtime()
    async with asyncio.timeout(240):
        assert await second.find() == []
        await until_gone(pid)
        # Of the last agent, which is not killed here.
        await asyncio.gather(start, return_exceptions=True)
    await starts_for_the_victim(second, bench)


async def test_nobody_waits_for_a_question_that_does_not_end(
    bench: ProcessBench, stopper: asyncio.StreamReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system does not end it either: the agent gives it up, and the next one starts all the same."""
    first = await bench.runtime()
    monkeypatch.setattr("tenax.runtime.interpreters._ENDED_WITHIN_S", 0.1)
    monkeypatch.setattr("tenax.runtime.interpreters.is_locked", lambda _: True)
    _, start, pid = await caught(first, bench, stopper, **ASKED)
    start.cancel()
    async with asyncio.timeout(240):
        await asyncio.gather(start, return_exceptions=True)
        assert await (await bench.runtime()).find() == []
        monkeypatch.undo()
        await (await bench.runtime()).find()
        await until_gone(pid)


async def test_a_container_that_is_stopped(bench: ProcessBench, stopper: asyncio.StreamReader) -> None:
    """It holds none of the agent's files, and an end that is asked for ends it."""
    first = await bench.runtime()
    task_spec, start, pid = await caught(first, bench, stopper)
    files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert [path for path in files if path.startswith(str(bench.directory))] == []
    second = await bench.runtime()
    async with asyncio.timeout(240):
        await second.signal(task_spec.container_id, signal.SIGKILL)
        await asyncio.gather(start, return_exceptions=True)
        status = await until_exited(second, task_spec.container_id)
        await until_gone(pid)
    assert status.exit is not None
    assert status.exit.signal == signal.SIGKILL


async def test_a_container_that_is_stopped_and_its_supervisor_with_it(
    bench: ProcessBench, stopper: asyncio.StreamReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the supervisor cannot end it, the agent ends both."""
    monkeypatch.setattr("tenax.runtime.forking.launching._HEEDS_WITHIN_S", 0.0)
    first = await bench.runtime()
    task_spec, start, pid = await caught(first, bench, stopper)
    start.cancel()
    second = await bench.runtime()
    async with asyncio.timeout(240):
        await second.remove(task_spec.container_id)
        await until_gone(pid)
    assert task_spec.container_id not in os.listdir(bench.directory / "containers")


async def test_interpreters_that_never_answer(ground: Path) -> None:
    """Others start meanwhile, and a kill of what asks one is not held up by it."""
    slow = ground / "python3"
    slow.write_text("#!/bin/sh\nexec sleep 1000\n")
    slow.chmod(0o755)
    asks = {"env": {"DET_PYTHON_EXECUTABLE": str(slow)}, "uid": MALLORY, "gid": MALLORY}
    async with MasterDouble() as master:
        machine = hosts.Host(ground / "agent", master.url)
        try:
            machine.start()
            await master.until(lambda: master.hellos)
            mallorys = [hosts.spec("pass", **asks) for _ in range(10)]
            for task_spec in mallorys:
                await master.run(task_spec)
            theirs = hosts.spec("print('hello')", uid=VICTIM, gid=VICTIM)
            await master.run(theirs)
            await master.until(lambda: master.exited(theirs.container_id))
            assert master.text(theirs.container_id) == "hello\n"
            assert {master.state(task_spec.container_id) for task_spec in mallorys} == {"pulling"}
            for task_spec in mallorys:
                await master.stop(task_spec.container_id, 0)
            await master.until(lambda: all(master.exited(task_spec.container_id) for task_spec in mallorys))
            reasons = {exit.reason for s in mallorys if (exit := master.reports[s.container_id].exit) is not None}
            assert reasons == {"stopped before it was started"}
        finally:
            await machine.clean()
