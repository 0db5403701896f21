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

from tenax.runtime.port import Found, Placement, Runtime, StartFailed, Stream
from tenax.wire.agents import ContainerSpec, Exit, File

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
    asked = bench.ask(program)
    env = {**cast("dict[str, str]", asked.pop("env", {})), "GREETING": "hi there"}
    values: dict[str, object] = {
        "container_id": name,
        "allocation_id": f"a.{name}",
        "task_id": "t",
        "rank": 0,
        "members": 1,
        "slots": [],
        "env": env,
        **asked,
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
    async with asyncio.timeout(60):
        while not await holds():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    async for _ in runtime.changed():
                        break


async def until_exited(runtime: Runtime, container_id: str) -> Found:
    async def exited() -> bool:
        found = await runtime.look(container_id)
        return found is not None and found.state == "exited"

    await until(runtime, exited)
    found = await runtime.look(container_id)
    assert found is not None
    return found


async def until_said(runtime: Runtime, container_id: str, text: bytes) -> None:
    async def said() -> bool:
        return text in await output(runtime, container_id)

    await until(runtime, said)


async def output(
    runtime: Runtime, container_id: str, stream: Stream = "stdout", offset: int = 0, limit: int = 1 << 20
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
        wanted = spec(bench, "hello")
        await runtime.start(wanted, placement())
        found = await until_exited(runtime, wanted.container_id)
        assert found.exit == Exit(code=3, reason="exited with code 3")
        assert (found.cluster_id, found.generation, found.spec) == ("cluster", 7, wanted)
        assert found.placed["C10D_PORT"] == "29416"
        assert await output(runtime, wanted.container_id) == b"hello\n"
        assert await output(runtime, wanted.container_id, "stderr") == b"oops\n"

    async def test_a_start_is_done_once(self, bench: Bench) -> None:
        """Starting again does nothing, while it runs, after its end, and by another agent."""
        runtime = await bench.runtime()
        wanted = spec(bench, "hello")
        await runtime.start(wanted, placement())
        await runtime.start(wanted, placement())
        await until_exited(runtime, wanted.container_id)
        await runtime.start(wanted, placement())
        again = await bench.runtime()
        await again.start(wanted, placement())
        assert await output(again, wanted.container_id) == b"hello\n"

    async def test_death_by_a_signal(self, bench: Bench) -> None:
        """The signal is told, not a code, and that nobody asked for it."""
        runtime = await bench.runtime()
        wanted = spec(bench, "aborts")
        await runtime.start(wanted, placement())
        found = await until_exited(runtime, wanted.container_id)
        assert found.exit is not None
        assert (found.exit.code, found.exit.signal) == (None, signal.SIGABRT)
        assert "not by the platform" in found.exit.reason
        assert not found.exit.platform

    async def test_sigterm_ends_what_does_not_resist(self, bench: Bench) -> None:
        """The main process gets the signal as if it ran alone; when it was first sent is remembered."""
        runtime = await bench.runtime()
        wanted = spec(bench, "waits")
        await runtime.start(wanted, placement())
        await until_said(runtime, wanted.container_id, b"ready")
        before = await runtime.look(wanted.container_id)
        assert before is not None
        assert (before.state, before.stopping_since) == ("running", None)
        await runtime.signal(wanted.container_id, signal.SIGTERM)
        found = await until_exited(runtime, wanted.container_id)
        assert found.exit is not None
        assert found.exit.signal == signal.SIGTERM
        assert found.exit.reason.endswith("as asked")
        assert found.stopping_since is not None

    async def test_switched_off(self, bench: Bench) -> None:
        """It ends at once and by the platform's fault; its output stays, and the next agent sees the same."""
        runtime = await bench.runtime()
        wanted = spec(bench, "stubborn")
        await runtime.start(wanted, placement())
        await until_said(runtime, wanted.container_id, b"ready\n")
        await runtime.switch_off(wanted.container_id)
        found = await until_exited(runtime, wanted.container_id)
        assert found.exit is not None
        assert found.exit.platform
        await runtime.switch_off(wanted.container_id)
        again = await bench.runtime()
        later = await again.look(wanted.container_id)
        assert later is not None
        assert later.exit == found.exit
        assert await output(again, wanted.container_id) == b"ready\n"

    async def test_sigkill_ends_what_resists(self, bench: Bench) -> None:
        """SIGTERM does not impress it; SIGKILL does."""
        runtime = await bench.runtime()
        wanted = spec(bench, "stubborn")
        await runtime.start(wanted, placement())
        await until_said(runtime, wanted.container_id, b"ready")
        await runtime.signal(wanted.container_id, signal.SIGTERM)
        found = await runtime.look(wanted.container_id)
        assert found is not None
        assert found.state == "running"
        await runtime.signal(wanted.container_id, signal.SIGKILL)
        found = await until_exited(runtime, wanted.container_id)
        assert found.exit is not None
        assert found.exit.signal == signal.SIGKILL
        assert found.exit.reason.endswith("as asked")

    async def test_signals_to_what_is_not_there(self, bench: Bench) -> None:
        """Nothing happens to what has ended or never was."""
        runtime = await bench.runtime()
        wanted = spec(bench, "hello")
        await runtime.start(wanted, placement())
        found = await until_exited(runtime, wanted.container_id)
        for number in (signal.SIGTERM, signal.SIGKILL):
            await runtime.signal(wanted.container_id, number)
            await runtime.signal("never-was", number)
        after = await runtime.look(wanted.container_id)
        assert after is not None
        assert after.exit == found.exit

    async def test_output_is_bytes_with_offsets(self, bench: Bench) -> None:
        """Bytes come as they were written, in pieces of any size, from any offset."""
        runtime = await bench.runtime()
        wanted = spec(bench, "raw")
        await runtime.start(wanted, placement())
        await until_exited(runtime, wanted.container_id)
        whole = await output(runtime, wanted.container_id)
        assert whole.rstrip(b"\n") == RAW
        for limit in (1, 7):
            assert await output(runtime, wanted.container_id, limit=limit) == whole
        assert await output(runtime, wanted.container_id, offset=5) == whole[5:]
        assert await output(runtime, wanted.container_id, offset=len(whole)) == b""

    async def test_much_output(self, bench: Bench) -> None:
        """A line of megabytes is one line."""
        runtime = await bench.runtime()
        wanted = spec(bench, "long line")
        await runtime.start(wanted, placement())
        await until_exited(runtime, wanted.container_id)
        assert await output(runtime, wanted.container_id) == b"x" * LONG + b"\n" + b"y" * 20000 + b"\nend\n"

    async def test_a_new_agent_finds_what_runs(self, bench: Bench) -> None:
        """State, specification and output are there again; what comes later is seen by the new one."""
        first = await bench.runtime()
        wanted = spec(bench, "steps")
        await first.start(wanted, placement())
        await until_said(first, wanted.container_id, b"one\n")
        await first.close()
        second = await bench.runtime()
        found = await second.find()
        assert [(one.container_id, one.state, one.spec) for one in found] == [(wanted.container_id, "running", wanted)]
        assert await output(second, wanted.container_id, offset=2) in (b"e\n", b"")
        (bench.run_directory(wanted.container_id) / "go").touch()
        ended = await until_exited(second, wanted.container_id)
        assert ended.exit == Exit(code=0)
        assert await output(second, wanted.container_id, offset=2) == b"e\ntwo\n"

    async def test_a_new_agent_finds_what_ended(self, bench: Bench) -> None:
        """Exit and output of a container that ended while no agent was there."""
        first = await bench.runtime()
        wanted = spec(bench, "hello")
        await first.start(wanted, placement())
        await first.close()
        second = await bench.runtime()
        found = await until_exited(second, wanted.container_id)
        assert found.exit == Exit(code=3, reason="exited with code 3")
        assert await output(second, wanted.container_id) == b"hello\n"

    async def test_the_spool_outlives_the_container(self, bench: Bench) -> None:
        """What a task wrote to its spool can be read by the agent after its end."""
        runtime = await bench.runtime()
        wanted = spec(bench, "spools")
        await runtime.start(wanted, placement())
        found = await until_exited(runtime, wanted.container_id)
        assert (Path(found.spool_directory) / "a.jsonl").read_text() == "{}\n"

    async def test_removal_leaves_nothing(self, bench: Bench) -> None:
        """Whether it ended, runs on stubbornly or never was; twice is as good as once."""
        runtime = await bench.runtime()
        ended, running = spec(bench, "hello"), spec(bench, "stubborn")
        await runtime.start(ended, placement())
        await until_exited(runtime, ended.container_id)
        await runtime.start(running, placement())
        await until_said(runtime, running.container_id, b"ready")
        for name in (ended.container_id, running.container_id, "never-was"):
            await runtime.remove(name)
            await runtime.remove(name)
            assert await runtime.look(name) is None
        assert await runtime.find() == []
        assert not bench.run_directory(running.container_id).exists()

    async def test_a_program_that_is_not_there(self, bench: Bench) -> None:
        """By the request's fault, either the start fails in words or it ends as a shell says it (127)."""
        runtime = await bench.runtime()
        wanted = spec(bench, "hello", argv=["/no/such/program"])
        refused = None
        try:
            await runtime.start(wanted, placement())
        except StartFailed as failed:
            refused = failed
        if refused is not None:
            assert "no/such/program" in refused.message
            assert not refused.platform
            assert await runtime.look(wanted.container_id) is None
        else:
            found = await until_exited(runtime, wanted.container_id)
            assert found.exit == Exit(code=127, reason="exited with code 127")

    async def test_news_come_by_themselves(self, bench: Bench) -> None:
        """A container that says something or ends is named without being asked for."""
        runtime = await bench.runtime()
        wanted = spec(bench, "hello")
        await runtime.start(wanted, placement())
        async with asyncio.timeout(60):
            async for container_id in runtime.changed():
                if container_id == wanted.container_id:
                    break


class RealRuntimeKit(RuntimeKit):
    """What only processes can show."""

    async def test_the_environment_is_the_tasks(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """What specification and placement say, where its directories are, and no secret of the agent."""
        monkeypatch.setenv("AGENTS_SECRET", "hush")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
        runtime = await bench.runtime()
        wanted = spec(bench, "environment")
        await runtime.start(wanted, placement())
        await until_exited(runtime, wanted.container_id)
        lines = (await output(runtime, wanted.container_id)).decode().splitlines()
        env = {name: value.strip("'") for name, _, value in (line.partition("=") for line in lines)}
        assert env["GREETING"] == "hi there"
        assert env["DET_MASTER"] == "http://master:8080"
        assert env["DET_CONTAINER_ID"] == wanted.container_id
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
        files = [File("note", "first"), File("/run/determined/deep/note", "second")]
        wanted = spec(bench, "reads", files=files)
        await runtime.start(wanted, placement(archive))
        await until_exited(runtime, wanted.container_id)
        assert await output(runtime, wanted.container_id) == b"code first\n"
        assert (bench.run_directory(wanted.container_id) / "deep/note").read_text() == "second"

    async def test_nothing_outlives_the_main_process(self, bench: Bench) -> None:
        """A daemon that left session and parent and ignores signals ends with the container."""
        from tenax.runtime.processes import belonging_to

        runtime = await bench.runtime()
        wanted = spec(bench, "daemons")
        await runtime.start(wanted, placement())
        await until_said(runtime, wanted.container_id, b"ready")
        assert len(belonging_to(wanted.container_id)) >= 2
        (bench.run_directory(wanted.container_id) / "go").touch()
        found = await until_exited(runtime, wanted.container_id)
        assert found.exit == Exit(code=0)
        assert belonging_to(wanted.container_id) == []
