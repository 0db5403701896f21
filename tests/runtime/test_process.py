"""The process runtime passes the kit, and keeps what only it promises."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import os
import pwd
import shutil
import signal
import subprocess
import tarfile
import tempfile
import venv
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from tenax.runtime.directory import Home
from tenax.runtime.port import StartFailed
from tenax.runtime.process import ProcessRuntime
from tenax.runtime.processes import belonging_to
from tenax.wire.agents import Exit
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import LONG, RealRuntimeKit, output, placement, spec, until_exited, until_printed


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(tmp_path / "agent")
    yield machine
    await machine.clean()


@contextlib.contextmanager
def reachable_directory() -> Iterator[Path]:
    """One to which other users can come down."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


#: Waits for a file, then is refused by the disk.
WRITES = (
    "import os, sys, time; print('ready', flush=True)\n"
    "while not os.path.exists('{go}'): time.sleep(0.01)\n"
    "open('report', 'wb').write(bytes(1 << 20))"
)
FILLS = "print('ready', flush=True)\nwith open('mine', 'wb', 0) as file:\n    while True: file.write(bytes(1 << 16))"


@contextlib.contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of its own."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=755", "small", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(disk: Path) -> None:
    """Until it takes no more."""
    with contextlib.suppress(OSError), (disk / "somebodys").open("wb", 0) as file:
        while True:
            file.write(bytes(1 << 12))


async def until_gone(pid: int) -> None:
    """Until a process that is nobody's child here is no more."""
    while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC110, ASYNC240 - nobody tells of its end
        await asyncio.sleep(0.01)


def short_links() -> list[str]:
    return [str(path) for path in Path(tempfile.gettempdir()).glob("tenax-*") if path.is_symlink()]


class TestProcess(RealRuntimeKit):
    """All of the kit, and what is the process runtime's own."""

    async def test_a_killed_supervisor_takes_its_task_along(self, bench: ProcessBench) -> None:
        """kill -9 of the supervisor: main process and daemons end; it is reported lost when nothing is left."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "daemons")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert status.exit.platform
        assert "supervisor was killed" in status.exit.reason
        assert belonging_to(task_spec.container_id) == []
        again = await (await bench.runtime()).inspect(task_spec.container_id)
        assert again is not None
        assert again.exit == status.exit

    async def test_a_full_disk_keeps_nobody_from_ending_what_fills_it(
        self, bench: ProcessBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When the end was asked for cannot be noted, and is remembered."""

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        runtime = await bench.runtime()
        task_spec = spec(bench, "stubborn")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        monkeypatch.setattr(Home, "write", full)
        await runtime.signal(task_spec.container_id, signal.SIGTERM)
        status = await runtime.inspect(task_spec.container_id)
        assert status is not None
        assert (status.state, status.stopping_since is not None) == ("running", True)
        await runtime.signal(task_spec.container_id, signal.SIGKILL)
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert status.exit.signal == signal.SIGKILL

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")
    @pytest.mark.parametrize("own", [False, True])
    async def test_a_failure_on_a_full_disk_says_so(self, tmp_path: Path, own: bool) -> None:
        """It is the platform's where somebody else has filled it, and the task's where its own files do."""
        with small_disk(tmp_path / "disk") as disk:
            bench = ProcessBench(disk / "agent")
            runtime = await bench.runtime()
            go = tmp_path / "go"
            task_spec = spec(bench, "waits")
            program = FILLS if own else WRITES
            task_spec = msgspec.structs.replace(task_spec, argv=["{python}", "-c", program.format(go=go)])
            await runtime.start(task_spec, placement())
            await until_printed(runtime, task_spec.container_id, b"ready")
            if not own:
                await asyncio.to_thread(fill, disk)
            go.touch()
            status = await until_exited(runtime, task_spec.container_id)
            assert status.exit is not None
            assert (status.exit.platform, status.exit.disk_full, status.exit.code) == (not own, not own, 1)
            assert f"the disk of {disk}/agent/containers on the agent's machine is full" in status.exit.reason
            assert ("with its own files" in status.exit.reason) is own
            await bench.clean()

    async def test_a_supervisor_that_was_stopped_is_woken_for_the_end(self, bench: ProcessBench) -> None:
        """Whoever asks for an end gets it."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "waits")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        os.kill(bench.supervisor(task_spec.container_id), signal.SIGSTOP)
        await runtime.signal(task_spec.container_id, signal.SIGKILL)
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert status.exit.reason.endswith("as asked")

    async def test_a_forkserver_that_hangs_is_replaced(
        self, bench: ProcessBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The start that it held up fails by the platform's fault and leaves nothing; the next one works."""
        runtime = await bench.runtime()
        assert isinstance(runtime, ProcessRuntime)
        first, held, last = (spec(bench, "hello") for _ in range(3))
        await runtime.start(first, placement())
        forkserver = runtime._forkserver._process
        assert forkserver is not None
        forkserver.send_signal(signal.SIGSTOP)
        monkeypatch.setattr("tenax.runtime.forking.launching._READY_WITHIN_S", 0.2)
        with pytest.raises(StartFailed, match="did not answer") as failed:
            await runtime.start(held, placement())
        assert failed.value.platform
        assert await runtime.inspect(held.container_id) is None
        monkeypatch.undo()
        await runtime.start(last, placement())
        assert (await until_exited(runtime, last.container_id)).exit == Exit(code=3, reason="exited with code 3")

    async def test_a_supervisor_that_hangs_before_it_says_so_is_killed(
        self, bench: ProcessBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It holds the lock, and nobody knows yet what it watches."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "waits")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        home = Home(bench.directory / "containers" / task_spec.container_id)
        os.kill(bench.supervisor(task_spec.container_id), signal.SIGSTOP)
        (home.path / "state.json").unlink()
        await runtime.remove(task_spec.container_id)
        assert belonging_to(task_spec.container_id) == []

    async def test_a_directory_that_was_deleted_leaves_nothing(self, bench: ProcessBench) -> None:
        """No container is found; removing what is left ends its processes, its supervisor, and its link."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "daemons")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        supervisor = bench.supervisor(task_spec.container_id)
        home = Home(bench.directory / "containers" / task_spec.container_id)
        card = home.card()
        assert card is not None
        assert card.temporary
        seen = await runtime.inspect(task_spec.container_id)
        assert seen is not None
        shutil.rmtree(home.path)
        assert await runtime.inspect(task_spec.container_id) is None
        await runtime.remove(task_spec.container_id)
        assert belonging_to(task_spec.container_id) == []
        assert not Path(card.temporary).is_symlink()  # noqa: ASYNC240
        await until_gone(supervisor)

    async def test_nothing_runs_on_in_a_directory_that_was_deleted(self, bench: ProcessBench) -> None:
        """Also where no agent is left that could end it, as of a cluster that was deleted while it was up."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "daemons")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready")
        supervisor = bench.supervisor(task_spec.container_id)
        shutil.rmtree(bench.directory / "containers" / task_spec.container_id)
        await until_gone(supervisor)
        assert belonging_to(task_spec.container_id) == []

    async def test_what_a_program_left_in_the_background_says_its_last_words(self, bench: ProcessBench) -> None:
        """For so long as DET_LOG_WAIT_TIME says, while it holds the output; the exit is that of the program."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "lingers")
        await runtime.start(task_spec, placement())
        await until_printed(runtime, task_spec.container_id, b"ready\n")
        # The program itself has ended, and been collected by its supervisor.
        (bench.run_directory(task_spec.container_id) / "go").touch()
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit == Exit(code=0)
        assert await output(runtime, task_spec.container_id) == b"ready\nlast words\n"

    async def test_who_holds_no_output_is_waited_for_by_nobody(self, bench: ProcessBench) -> None:
        """What closed its output has nothing more to say, and is ended with the program."""
        runtime = await bench.runtime()
        closed = "import os, time\nif os.fork() == 0:\n    os.close(1); os.close(2)\n    while True: time.sleep(60)\n"
        task_spec = spec(bench, "waits", argv=["{python}", "-c", closed])
        await runtime.start(task_spec, placement())
        status = await until_exited(runtime, task_spec.container_id)
        assert (status.exit, belonging_to(task_spec.container_id)) == (Exit(code=0), [])

    async def test_it_is_news_when_a_supervisor_is_killed(self, bench: ProcessBench) -> None:
        """Nobody can send a message then; the container is named all the same."""
        first = await bench.runtime()
        task_spec = spec(bench, "waits")
        await first.start(task_spec, placement())
        await until_printed(first, task_spec.container_id, b"ready")
        await first.close()
        runtime = await bench.runtime()
        await runtime.find()
        os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
        async with asyncio.timeout(240):
            async for container_id in runtime.changed():
                status = await runtime.inspect(container_id)
                if status is not None and status.state == "exited":
                    break

    async def test_a_start_cut_short_is_gone_on_with(
        self, bench: ProcessBench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An agent that was killed between preparing and starting leaves a container that the next one starts, once."""

        async def killed(*_: object) -> None:
            raise KeyboardInterrupt

        first = await bench.runtime()
        task_spec = spec(bench, "hello")
        monkeypatch.setattr("tenax.runtime.process.launch", killed)
        with pytest.raises(KeyboardInterrupt):
            await first.start(task_spec, placement())
        monkeypatch.undo()
        second = await bench.runtime()
        assert [status.state for status in await second.find()] == ["starting"]
        await second.start(task_spec, placement())
        await until_exited(second, task_spec.container_id)
        assert await output(second, task_spec.container_id) == b"hello\n"

    async def test_what_started_is_never_started_again(self, bench: ProcessBench) -> None:
        """Where ``started`` stands and nothing runs, the container is lost, not run a second time."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "waits")
        await runtime.start(task_spec, placement())
        os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
        await until_exited(runtime, task_spec.container_id)
        again = await bench.runtime()
        await again.start(task_spec, placement())
        status = await again.inspect(task_spec.container_id)
        assert status is not None
        assert status.state == "exited"

    async def test_an_end_that_the_disk_did_not_take_is_known(self, bench: ProcessBench) -> None:
        """Reading ends where the output ended, not where the segments do: what lies between can be counted."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "hello")
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        for segment in (bench.directory / "containers" / task_spec.container_id / "out").iterdir():
            segment.unlink()
        assert await runtime.read_output(task_spec.container_id, "stdout", 0, 100) == (6, b"")
        assert await runtime.read_output(task_spec.container_id, "stderr", 2, 100) == (5, b"")

    async def test_a_machine_that_was_restarted(self, bench: ProcessBench, monkeypatch: pytest.MonkeyPatch) -> None:
        """What ran before the restart is lost by the platform's fault."""
        first = await bench.runtime()
        task_spec = spec(bench, "waits")
        await first.start(task_spec, placement())
        os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
        monkeypatch.setattr("tenax.runtime.process.boot_id", lambda: "another boot")
        status = await until_exited(await bench.runtime(), task_spec.container_id)
        assert status.exit is not None
        assert status.exit.platform
        assert "restarted" in status.exit.reason

    async def test_output_beyond_the_cap_drops_the_oldest(self, bench: ProcessBench) -> None:
        """What is there keeps its raw offsets; what was dropped is skipped over."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "long line", output_cap_bytes=1_000_000)
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        first, data = await runtime.read_output(task_spec.container_id, "stdout", 0, 10)
        size = LONG + 1 + 20001 + 4
        assert first >= size - 1_000_000 - 64 * 1024
        assert data == b"x" * 10
        assert await output(runtime, task_spec.container_id, offset=size - 6) == b"y\nend\n"

    async def test_output_that_was_stored_is_dropped(self, bench: ProcessBench) -> None:
        """Whole segments before the offset go; offsets of the rest stay."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "long line", output_cap_bytes=8_000_000)
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        await runtime.trim_output(task_spec.container_id, "stdout", 2_000_000)
        first, _ = await runtime.read_output(task_spec.container_id, "stdout", 0, 10)
        assert 1_000_000 < first <= 2_000_000
        assert await output(runtime, task_spec.container_id, offset=LONG) == b"\n" + b"y" * 20000 + b"\nend\n"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tasks as others")
    async def test_a_task_as_another_user(self) -> None:
        """Under root a task that names a uid runs as it, in its own directories, away from the agent's records."""
        with reachable_directory() as folder:
            bench = ProcessBench(folder)
            runtime = await bench.runtime()
            script = 'id -u; id -g; cat "$DET_RUN_DIR/../spec.json" || echo no; echo x > mine; echo $HOME'
            task_spec = spec(bench, "hello", argv=["/bin/sh", "-c", script], uid=65534, gid=65534)
            await runtime.start(task_spec, placement())
            status = await until_exited(runtime, task_spec.container_id)
            assert status.exit == Exit(code=0)
            printed = (await output(runtime, task_spec.container_id)).decode().splitlines()
            assert printed[:3] == ["65534", "65534", "no"]
            assert (bench.run_directory(task_spec.container_id) / "workdir/mine").stat().st_uid == 65534
            await bench.clean()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tasks as others")
    @pytest.mark.parametrize(("user", "group"), [("mallory", "readers"), ("root", "x:0:mallory"), ("", "")])
    async def test_a_user_without_a_name_on_this_machine(self, user: str, group: str) -> None:
        """Has the one that the administrator wrote, or one made of its number; never one that is another's."""
        with reachable_directory() as folder:
            bench = ProcessBench(folder)
            runtime = await bench.runtime()
            script = "id -un; id -gn; echo $USER; ls -ld . | cut -d' ' -f3-4; getent passwd root | cut -d: -f3"
            task_spec = spec(bench, "hello", argv=["/bin/sh", "-c", script], uid=4711, gid=4712, user=user, group=group)
            await runtime.start(task_spec, placement())
            await until_exited(runtime, task_spec.container_id)
            name, its_group = ("mallory", "readers") if user == "mallory" else ("uid-4711", "gid-4712")
            printed = (await output(runtime, task_spec.container_id)).decode().splitlines()
            assert printed == [name, its_group, name, f"{name} {its_group}", "0"]
            with pytest.raises(KeyError):
                pwd.getpwuid(4711)
            await bench.clean()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can run tasks as others")
    async def test_a_directory_that_the_user_cannot_reach_is_named(self, bench: ProcessBench) -> None:
        """The start fails in words, and no parent's mode is changed."""
        bench.directory.parent.chmod(0o700)
        runtime = await bench.runtime()
        with pytest.raises(StartFailed, match="is closed to others"):
            await runtime.start(spec(bench, "hello", uid=65534), placement())
        assert bench.directory.parent.stat().st_mode & 0o777 == 0o700

    async def test_an_interpreter_that_is_not_there(self, bench: ProcessBench) -> None:
        """The message names it and the variable to change."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "hello", env={"DET_PYTHON_EXECUTABLE": "/no/such/python"})
        with pytest.raises(StartFailed, match=r"/no/such/python.*DET_PYTHON_EXECUTABLE") as failed:
            await runtime.start(task_spec, placement())
        assert not failed.value.platform

    async def test_copies_of_our_library_are_kept_for_those_who_run_from_them(self, bench: ProcessBench) -> None:
        """A runtime that starts deletes the copies that no container was started from, and those alone."""
        first = await bench.runtime()
        task_spec = spec(bench, "waits")
        await first.start(task_spec, placement())
        lib = bench.directory / "lib"
        (current,) = lib.iterdir()
        home = Home(bench.directory / "containers" / task_spec.container_id)
        card = home.card()
        assert card is not None
        assert card.library == current.name
        (lib / "used-by-it").mkdir()
        home.write("container.json", msgspec.structs.replace(card, library="used-by-it"))
        (lib / "used-by-nobody").mkdir()
        second = await bench.runtime()
        assert {path.name for path in lib.iterdir()} == {current.name, "used-by-it"}
        home.write("container.json", msgspec.structs.replace(card, library=""))
        (lib / "of-an-older-agent").mkdir()
        await bench.runtime()
        assert (lib / "of-an-older-agent").exists()
        await second.remove(task_spec.container_id)
        await bench.runtime()
        assert {path.name for path in lib.iterdir()} == {current.name}

    async def test_another_interpreter_finds_our_library_and_nothing_else(self, bench: ProcessBench) -> None:
        """An interpreter without tenax imports a copy of it; the agent's other packages stay away."""
        bare = bench.directory.parent / "bare"
        venv.create(bare, with_pip=False, symlinks=True)
        runtime = await bench.runtime()
        code = "import tenax, sys, importlib.util as u; print(sys.prefix, tenax.__file__, u.find_spec('aiohttp'))"
        task_spec = spec(
            bench, "hello", argv=["{python}", "-c", code], env={"DET_PYTHON_EXECUTABLE": f"{bare}/bin/python"}
        )
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        prefix, file, spec_of_aiohttp = (await output(runtime, task_spec.container_id)).decode().split()
        assert prefix == str(bare)
        assert file.startswith(str(bench.directory / "lib"))
        assert spec_of_aiohttp == "None"

    async def test_gpus_are_narrowed(self, bench: ProcessBench) -> None:
        """The vendor's variable names the devices of the container; without devices it hides all."""
        runtime = await bench.runtime()
        seen = {}
        for kind, uuids in (("cuda", ("GPU-1", "GPU-2")), ("rocm", ("GPU-3",)), ("cpu", ())):
            task_spec = spec(bench, "environment")
            where = dataclasses.replace(placement(), device_kind=kind, device_uuids=uuids)
            await runtime.start(task_spec, where)
            await until_exited(runtime, task_spec.container_id)
            lines = (await output(runtime, task_spec.container_id)).decode().splitlines()
            seen[kind] = sorted(line for line in lines if "VISIBLE_DEVICES" in line)
        assert seen == {
            "cuda": ["CUDA_VISIBLE_DEVICES='GPU-1,GPU-2'"],
            "rocm": ["ROCR_VISIBLE_DEVICES='GPU-3'"],
            "cpu": ["CUDA_VISIBLE_DEVICES=''", "ROCR_VISIBLE_DEVICES=''"],
        }

    async def test_sockets_fit_below_the_temporary_folder(self, bench: ProcessBench) -> None:
        """However deep the agent's directory lies, unix sockets in TMPDIR have paths that the system takes."""
        deep = ProcessBench(bench.directory / ("d" * 60))
        code = (
            "import socket, tempfile; folder = tempfile.mkdtemp(prefix='pymp-'); "
            "socket.socket(socket.AF_UNIX).bind(folder + '/listener-12345678'); print('bound')"
        )
        runtime = await deep.runtime()
        task_spec = spec(deep, "hello", argv=["{python}", "-c", code])
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        assert await output(runtime, task_spec.container_id) == b"bound\n"
        card = Home(deep.directory / "containers" / task_spec.container_id).card()
        assert card is not None
        assert card.temporary in short_links()
        await deep.clean()
        assert card.temporary not in short_links()

    async def test_model_code_that_would_escape_is_refused(self, bench: ProcessBench, tmp_path: Path) -> None:
        """An archive with a name outside of the work directory is not unpacked, and nothing is left of the start."""
        archive = tmp_path / "bad.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.addfile(tarfile.TarInfo("../../../escaped"))
        runtime = await bench.runtime()
        with pytest.raises(StartFailed, match="cannot be unpacked") as failed:
            await runtime.start(spec(bench, "hello"), placement(archive))
        assert not failed.value.platform
        assert os.listdir(bench.directory / "containers") == []


@pytest.mark.parametrize("record", ["card", "spec", "supervision", "exit", "stopping_since", "begun"])
def test_a_record_that_cannot_be_read_now_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    """A run that goes on was begun a second time, and one that had ended well was run again."""
    home = Home(tmp_path)
    assert getattr(home, record)() is None

    def failing(*arguments: object, **options: object) -> object:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "read_bytes", failing)
    monkeypatch.setattr(Path, "read_text", failing)
    with pytest.raises(OSError, match="Input/output"):
        getattr(home, record)()
