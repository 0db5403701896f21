"""What every runtime promises: one kit, which the fake and the real ones pass.

A test class inherits `RuntimeKit` and gives a `Bench`: how runtimes are made on one machine, and how a program of the
kit is asked for. Programs are Python source here; the fake has its own plays of the same names.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import tarfile
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, cast

import pytest

from tenax.runtime.port import ContainerStatus, OutputStream, Placement, Runtime, StartFailed
from tenax.wire.agents import ContainerSpec, Exit, TaskFile
from tenax.wire.task_names import SEGMENTS, SPOOL_FORMATS

#: Bytes that are no text, without a newline at the end.
RAW = b"\xff\xfe\x00raw\rbar\xe2\x82" + b"\n" + b"tail without newline"
LONG = 3_000_000

PROGRAMS = {
    "hello": "import sys; print('hello'); print('oops', file=sys.stderr); sys.exit(3)",
    "aborts": "import os; os.abort()",
    "waits": "import signal; print('ready', flush=True); signal.sigwait({signal.SIGUSR1})",
    "stubborn": (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
        "while True: signal.pause()"
    ),
    "raw": f"import sys; sys.stdout.buffer.write({RAW!r})",
    "long line": f"print('x' * {LONG}); print('y' * 20000); print('end')",
    "steps": (
        "import os, time\nprint('one', flush=True)\n"
        "while not os.path.exists(os.environ['DET_RUN_DIR'] + '/go'): time.sleep(0.005)\nprint('two')"
    ),
    "spools": "import os; open(os.environ['DET_RUN_DIR'] + '/spool/a.jsonl', 'w').write('{}\\n')",
    "environment": "import os\nfor name, value in sorted(os.environ.items()): print(name + '=' + repr(value))",
    "reads": "import os; print(open('code.txt').read(), open(os.environ['DET_RUN_DIR'] + '/note').read())",
    "lingers": (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    while not os.path.exists(os.environ['DET_RUN_DIR'] + '/go'): time.sleep(0.005)\n"
        "    print('last words', flush=True)\n"
        "    os._exit(0)\n"
        "print('ready', flush=True)\n"
    ),
    "daemons": (
        "import os, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(n, signal.SIG_IGN)\n"
        "        print('ready', flush=True)\n"
        "        while True: time.sleep(60)\n"
        "    os._exit(0)\n"
        "while not os.path.exists(os.environ['DET_RUN_DIR'] + '/go'): time.sleep(0.005)\n"
    ),
}


class Bench(Protocol):
    """One machine."""

    async def runtime(self) -> Runtime:
        """A new runtime object, as a new agent makes it."""

    def ask(self, program: str) -> dict[str, object]:
        """Fields of a specification that run this program."""

    def run_directory(self, container_id: str) -> Path:
        """``DET_RUN_DIR``, as this test reaches it."""


def spec(bench: Bench, program: str, **changes: object) -> ContainerSpec:
    name = str(uuid.uuid4())
    parts = bench.ask(program)
    env = {**cast("dict[str, str]", parts.pop("env", {})), "GREETING": "hi there"}
    values: dict[str, object] = {
        "container_id": name,
        "allocation_id": f"a.{name}",
        "task_id": "t",
        "rank": 0,
        "members": 1,
        "slots": [],
        "env": env,
        **parts,
        **changes,
    }
    return ContainerSpec(**values)  # type: ignore[arg-type]


def placement(archive: Path | None = None) -> Placement:
    return Placement(
        env={"DET_MASTER": "http://master:8080", "DET_AGENT_ID": "box", "C10D_PORT": "29416"},
        device_uuids=(),
        device_kind="cpu",
        context_archive=str(archive) if archive is not None else None,
        cluster_id="cluster",
        generation=7,
    )


async def until(runtime: Runtime, holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait by the runtime's own news; look now and then without, as an agent does."""
    async with asyncio.timeout(240):
        while not await holds():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    async for _ in runtime.changed():
                        break


async def until_exited(runtime: Runtime, container_id: str) -> ContainerStatus:
    async def exited() -> bool:
        status = await runtime.inspect(container_id)
        return status is not None and status.state == "exited"

    await until(runtime, exited)
    status = await runtime.inspect(container_id)
    assert status is not None
    return status


async def until_printed(runtime: Runtime, container_id: str, text: bytes) -> None:
    async def printed() -> bool:
        return text in await output(runtime, container_id)

    await until(runtime, printed)


async def output(
    runtime: Runtime, container_id: str, stream: OutputStream = "stdout", offset: int = 0, limit: int = 1 << 20
) -> bytes:
    """All that is there from ``offset`` on."""
    parts = []
    while True:
        first, data = await runtime.read_output(container_id, stream, offset, limit)
        if not data:
            return b"".join(parts)
        assert first == offset
        parts.append(data)
        offset += len(data)


class RuntimeKit:
    """Inherit, and give a fixture ``bench``."""

    async def test_a_container_runs_and_ends(self, bench: Bench) -> None:
        """Both streams, the exit code in words, and whose it is."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "hello")
        await runtime.start(task_spec, placement())
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit == Exit(code=3, reason="exited with code 3")
        assert (status.cluster_id, status.generation, status.spec) == ("cluster", 7, task_spec)
        assert status.placed["C10D_PORT"] == "29416"
        assert await output(runtime, task_spec.container_id) == b"hello\n"
        assert await output(runtime, task_spec.container_id, "stderr") == b"oops\n"

    async def test_a_start_is_done_once(self, bench: Bench) -> None:
        """Starting again does nothing, while it runs, after its end, and by another agent."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "hello")
        await runtime.start(task_spec, placement())
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        await runtime.start(task_spec, placement())
        again = await bench.runtime()
        await again.start(task_spec, placement())
        assert await output(again, task_spec.container_id) == b"hello\n"

    async def test_death_by_a_signal(self, bench: Bench) -> None:
        """The signal is told, not a code, and that nobody asked for it."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "aborts")
        await runtime.start(task_spec, placement())
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert (status.exit.code, status.exit.signal) == (None, signal.SIGABRT)
        assert "not by the platform" in status.exit.reason
        assert not status.exit.platform

    async def test_sigterm_ends_what_does_not_resist(self, bench: Bench) -> None:
        """The main process gets the signal as if it ran alone; when it was first sent is remembered."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "waits")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        before = await runtime.inspect(task_spec.container_id)
        assert before is not None
        assert (before.state, before.stopping_since) == ("running", None)
        await runtime.signal(task_spec.container_id, signal.SIGTERM)
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert status.exit.signal == signal.SIGTERM
        assert status.exit.reason.endswith("as asked")
        assert status.stopping_since is not None

    async def test_switched_off(self, bench: Bench) -> None:
        """It ends at once and by the platform's fault; its output stays, and the next agent sees the same."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "stubborn")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready\n")
        await runtime.switch_off(task_spec.container_id)
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert status.exit.platform
        await runtime.switch_off(task_spec.container_id)
        again = await bench.runtime()
        later = await again.inspect(task_spec.container_id)
        assert later is not None
        assert later.exit == status.exit
        assert await output(again, task_spec.container_id) == b"ready\n"

    async def test_sigkill_ends_what_resists(self, bench: Bench) -> None:
        """SIGTERM does not impress it; SIGKILL does."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "stubborn")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        await runtime.signal(task_spec.container_id, signal.SIGTERM)
        status = await runtime.inspect(task_spec.container_id)
        assert status is not None
        assert status.state == "running"
        await runtime.signal(task_spec.container_id, signal.SIGKILL)
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert status.exit.signal == signal.SIGKILL
        assert status.exit.reason.endswith("as asked")

    async def test_signals_to_what_is_not_there(self, bench: Bench) -> None:
        """Nothing happens to what has ended or never was."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "hello")
        await runtime.start(task_spec, placement())
        status = await until_exited(runtime, task_spec.container_id)
        for number in (signal.SIGTERM, signal.SIGKILL):
            await runtime.signal(task_spec.container_id, number)
            await runtime.signal("never-was", number)
        after = await runtime.inspect(task_spec.container_id)
        assert after is not None
        assert after.exit == status.exit

    async def test_output_is_bytes_with_offsets(self, bench: Bench) -> None:
        """Bytes come as they were written, in pieces of any size, from any offset."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "raw")
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        whole = await output(runtime, task_spec.container_id)
        assert whole.rstrip(b"\n") == RAW
        for limit in (1, 7):
            assert await output(runtime, task_spec.container_id, limit=limit) == whole
        assert await output(runtime, task_spec.container_id, offset=5) == whole[5:]
        assert await output(runtime, task_spec.container_id, offset=len(whole)) == b""

    async def test_much_output(self, bench: Bench) -> None:
        """A line of megabytes is one line."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "long line")
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        assert await output(runtime, task_spec.container_id) == b"x" * LONG + b"\n" + b"y" * 20000 + b"\nend\n"

    async def test_a_new_agent_finds_what_runs(self, bench: Bench) -> None:
        """State, specification and output are there again; what comes later is seen by the new one."""
        first = await bench.runtime()
        task_spec = spec(bench, "steps")
        await first.start(task_spec, placement())
        await until_printed(first, task_spec.container_id, b"one\n")
        await first.close()
        second = await bench.runtime()
        statuses = await second.find()
        assert [(status.container_id, status.state, status.spec) for status in statuses] == [
            (task_spec.container_id, "running", task_spec)
        ]
        assert await output(second, task_spec.container_id, offset=2) in (b"e\n", b"")
        (bench.run_directory(task_spec.container_id) / "go").touch()
        ended = await until_exited(second, task_spec.container_id)
        assert ended.exit == Exit(code=0)
        assert await output(second, task_spec.container_id, offset=2) == b"e\ntwo\n"

    async def test_a_new_agent_finds_what_ended(self, bench: Bench) -> None:
        """Exit and output of a container that ended while no agent was there."""
        first = await bench.runtime()
        task_spec = spec(bench, "hello")
        await first.start(task_spec, placement())
        await first.close()
        second = await bench.runtime()
        status = await until_exited(second, task_spec.container_id)
        assert status.exit == Exit(code=3, reason="exited with code 3")
        assert await output(second, task_spec.container_id) == b"hello\n"

    async def test_the_spool_outlives_the_container(self, bench: Bench) -> None:
        """What a task wrote to its spool can be read by the agent after its end."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "spools")
        await runtime.start(task_spec, placement())
        status = await until_exited(runtime, task_spec.container_id)
        assert (Path(status.spool_directory) / "a.jsonl").read_text() == "{}\n"

    async def test_removal_leaves_nothing(self, bench: Bench) -> None:
        """Whether it ended, runs on stubbornly or never was; twice is as good as once."""
        runtime = await bench.runtime()
        ended, running = spec(bench, "hello"), spec(bench, "stubborn")
        await runtime.start(ended, placement())
        await until_exited(runtime, ended.container_id)
        await runtime.start(running, placement())
        await until_printed(runtime, running.container_id, b"ready")
        for name in (ended.container_id, running.container_id, "never-was"):
            await runtime.remove(name)
            await runtime.remove(name)
            assert await runtime.inspect(name) is None
        assert await runtime.find() == []
        assert not bench.run_directory(running.container_id).exists()

    async def test_a_program_that_is_not_there(self, bench: Bench) -> None:
        """By the request's fault, either the start fails in words or it ends as a shell says it (127)."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "hello", argv=["/no/such/program"])
        refused = None
        try:
            await runtime.start(task_spec, placement())
        except StartFailed as failed:
            refused = failed
        if refused is not None:
            assert "no/such/program" in refused.message
            assert not refused.platform
            assert await runtime.inspect(task_spec.container_id) is None
        else:
            status = await until_exited(runtime, task_spec.container_id)
            assert status.exit == Exit(code=127, reason="exited with code 127")

    async def test_news_come_by_themselves(self, bench: Bench) -> None:
        """A container that says something or ends is named without being asked for."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "hello")
        await runtime.start(task_spec, placement())
        async with asyncio.timeout(240):
            async for container_id in runtime.changed():
                if container_id == task_spec.container_id:
                    break


class RealRuntimeKit(RuntimeKit):
    """What only processes can show."""

    async def test_the_environment_is_the_tasks(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """What specification and placement say, where its directories are, and no secret of the agent."""
        monkeypatch.setenv("AGENTS_SECRET", "hush")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
        runtime = await bench.runtime()
        task_spec = spec(bench, "environment")
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        lines = (await output(runtime, task_spec.container_id)).decode().splitlines()
        env = {name: value.strip("'") for name, _, value in (line.partition("=") for line in lines)}
        assert env["GREETING"] == "hi there"
        assert env["DET_MASTER"] == "http://master:8080"
        assert env["DET_CONTAINER_ID"] == task_spec.container_id
        # The agent that starts it reads what such a task writes.
        assert env[SPOOL_FORMATS] == SEGMENTS
        assert env["DET_WORKDIR"] == env["DET_RUN_DIR"] + "/workdir"
        assert not [name for name, value in env.items() if "hush" in value]

    async def test_code_and_files_are_placed(self, bench: Bench, tmp_path: Path) -> None:
        """Model code in the work directory, files where the specification wants them."""
        archive = tmp_path / "code.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            info = tarfile.TarInfo("code.txt")
            info.size = 4
            tar.addfile(info, io.BytesIO(b"code"))
        runtime = await bench.runtime()
        files = [TaskFile("note", "first"), TaskFile("/run/determined/deep/note", "second")]
        task_spec = spec(bench, "reads", files=files)
        await runtime.start(task_spec, placement(archive))
        await until_exited(runtime, task_spec.container_id)
        assert await output(runtime, task_spec.container_id) == b"code first\n"
        assert (bench.run_directory(task_spec.container_id) / "deep/note").read_text() == "second"

    async def test_nothing_outlives_the_main_process(self, bench: Bench) -> None:
        """A daemon that left session and parent and ignores signals ends with the container."""
        from tenax.runtime.processes import belonging_to

        runtime = await bench.runtime()
        task_spec = spec(bench, "daemons")
        task_spec.env["DET_LOG_WAIT_TIME"] = "0"
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        assert len(belonging_to(task_spec.container_id)) >= 2
        (bench.run_directory(task_spec.container_id) / "go").touch()
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit == Exit(code=0)
        assert belonging_to(task_spec.container_id) == []
