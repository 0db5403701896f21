"""Where the system cannot say whether something is there, a runtime does not take it for gone."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenax.config.agent import AllowedSettings
from tenax.host.disk import is_there
from tenax.runtime import library, main_process, processes, procfs
from tenax.runtime import process as process_runtime
from tenax.runtime.directory import Home, Homes
from tenax.runtime.docker.credentials import auth_header
from tenax.runtime.limits import check_unchangeable
from tenax.runtime.main_process import ExecPlan, Main
from tenax.runtime.port import StartFailed
from tenax.runtime.process import ProcessRuntime
from tenax.runtime.processes import Identity, belonging_to, identity_of, is_running, kill_belonging, open_pidfd, send
from tenax.runtime.wakes import Wakes
from tenax.wire.agents import ContainerSpec, Exit, Mount
from tests.kits.machine_errors import FailingCall, no_descriptors
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import placement, spec, until_exited, until_printed

pytestmark = pytest.mark.skipif(not processes.LINUX, reason="there is no /proc elsewhere")
#: Looked for among all processes of this machine, on which the same test may run beside.
NAME = f"{uuid.uuid4()}-of-a-test"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(tmp_path / "agent")
    yield machine
    await machine.clean()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={"DET_CONTAINER_ID": NAME})
    yield started
    started.kill()
    started.communicate()


@pytest.fixture
def identity(process: subprocess.Popen[bytes]) -> Identity:
    seen = identity_of(process.pid)
    assert seen is not None
    return seen


def test_a_process_that_cannot_be_looked_at_may_run(identity: Identity) -> None:
    """And does not take part in what is only for those that have ended."""
    with no_descriptors():
        assert is_running(identity)
    assert is_running(identity)


@pytest.mark.parametrize(
    "ask",
    [
        lambda identity: open_pidfd(identity),
        lambda identity: send(identity, signal.SIGTERM),
        lambda identity: identity_of(identity.pid),
        lambda _: belonging_to(NAME),
        lambda _: kill_belonging(NAME, ""),
    ],
)
def test_who_asks_for_a_process_hears_of_the_error(identity: Identity, ask: Callable[[Identity], object]) -> None:
    """Instead of that it has ended."""
    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        ask(identity)


def test_a_process_whose_environment_cannot_be_read_may_belong(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody says that nothing is left before it was looked at."""
    failing = FailingCall(open, errno.ENFILE, lambda path, *_, **__: path == f"/proc/{identity.pid}/environ")
    failing.left = 1
    monkeypatch.setattr("builtins.open", failing)
    with pytest.raises(OSError, match="Too many open files in system"):
        kill_belonging(NAME, "")
    assert not kill_belonging(NAME, "")
    assert processes.wait_for_end([identity], 60) == []


def test_a_process_amid_the_start_of_a_program_is_waited_for() -> None:
    """It shows no environment for a moment, about one in five times right after it was started."""
    for _ in range(50):
        with subprocess.Popen(["sleep", "60"], env={"DET_CONTAINER_ID": NAME}) as started:
            try:
                assert processes._names(started.pid, NAME)
            finally:
                started.kill()


@pytest.mark.parametrize("memory", [b"1", b"0"])
def test_a_process_without_an_environment_is_nobodys(
    identity: Identity, monkeypatch: pytest.MonkeyPatch, memory: bytes
) -> None:
    """Whether it was started with none, or is one of the kernel's or has ended: nothing is waited for."""
    fields = [b"0"] * 50
    fields[processes._VSIZE], fields[processes._ENV_END] = memory, b"1"
    monkeypatch.setattr(processes, "_read_environment", lambda _: b"")
    monkeypatch.setattr(procfs, "stat_fields", lambda _: fields)
    monkeypatch.setattr(processes, "_EXEC_S", float("inf"))
    assert not processes._names(identity.pid, NAME)


def test_processes_that_have_ended_are_gone(identity: Identity, process: subprocess.Popen[bytes]) -> None:
    """Which is no error."""
    process.kill()
    process.communicate()
    assert (is_running(identity), open_pidfd(identity), send(identity, signal.SIGTERM)) == (False, None, False)
    assert kill_belonging(NAME, "")


@pytest.mark.parametrize(("number", "left"), [(errno.EIO, True), (errno.ENODEV, False), (errno.EOPNOTSUPP, False)])
def test_a_cgroup_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, left: bool, identity: Identity
) -> None:
    """May hold something, unless it was removed or never tells; what is seen by its environment is killed meanwhile."""
    failing = FailingCall(io.open, number, lambda path, *_, **__: str(path).endswith("cgroup.procs"))
    failing.left = float("inf")
    monkeypatch.setattr(io, "open", failing)
    if left:
        with pytest.raises(OSError, match="Input/output error"):
            kill_belonging(NAME, str(tmp_path))
    else:
        assert not kill_belonging(NAME, str(tmp_path))
    assert failing.failed == 1
    monkeypatch.undo()
    assert processes.wait_for_end([identity], 60) == []


def test_a_boot_that_cannot_be_read_is_no_other_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be remembered, and all that runs be taken for what a restart of the machine has ended."""
    processes.boot_id.cache_clear()
    failing = FailingCall(io.open, errno.EMFILE, lambda path, *_, **__: str(path).endswith("boot_id"))
    failing.left = 1
    monkeypatch.setattr(io, "open", failing)
    with pytest.raises(OSError, match="Too many open files"):
        processes.boot_id()
    assert processes.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_counts_that_cannot_be_read_make_no_kill() -> None:
    """Of the out-of-memory killer."""
    with no_descriptors():
        assert procfs.oom_kills() is None


async def test_an_end_that_cannot_be_watched_is_tried_again(
    tmp_path: Path, identity: Identity, process: subprocess.Popen[bytes]
) -> None:
    """With the next look."""
    wakes = Wakes(tmp_path / "wake")
    with no_descriptors():
        wakes.watch(NAME, identity)
    wakes.watch(NAME, identity)
    process.kill()
    async for container_id in wakes.changed():
        assert container_id == NAME
        break
    wakes.close()


def test_a_supervisor_that_cannot_look_goes_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It does not end itself over what it cannot kill now, says so once, and kills it later."""
    main = Main(ExecPlan(b""), lambda *_: None)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    # Nobody else's of this test run.
    monkeypatch.setattr(main_process, "descendants", lambda root: ([child.pid], procfs.descendants(root)[1]))
    with no_descriptors():
        main.kill_all()
        main.kill_all()
    assert child.poll() is None
    assert capfd.readouterr().err.count("Too many open files") == 1
    main.kill_all()
    assert child.wait() == -signal.SIGKILL
    child.communicate()


async def test_a_signal_is_sent_once_it_can_be(bench: ProcessBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try fails and says so; nothing is taken for done."""
    runtime = await bench.runtime()
    task_spec = spec(bench, "waits")
    await runtime.start(task_spec, placement())
    await until_printed(runtime, task_spec.container_id, b"ready")
    failing = FailingCall(os.pidfd_open, errno.EMFILE)
    monkeypatch.setattr(os, "pidfd_open", failing)
    failing.left = 1
    with pytest.raises(OSError, match="Too many open files"):
        await runtime.signal(task_spec.container_id, signal.SIGTERM)
    await runtime.signal(task_spec.container_id, signal.SIGTERM)
    status = await until_exited(runtime, task_spec.container_id)
    assert status.exit is not None
    assert status.exit.signal == signal.SIGTERM


async def test_a_lost_container_has_ended_only_when_all_was_seen(
    bench: ProcessBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of it is looked for until the system says what there is."""
    runtime = await bench.runtime()
    assert isinstance(runtime, ProcessRuntime)
    task_spec = spec(bench, "daemons")
    await runtime.start(task_spec, placement())
    await until_printed(runtime, task_spec.container_id, b"ready")
    failing = FailingCall(os.listdir, errno.EMFILE, lambda path=".", *_: path == "/proc")
    failing.left = 2

    def listed(*arguments: Any) -> Any:
        return failing(*arguments)

    monkeypatch.setattr(os, "listdir", listed)
    os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
    status = await until_exited(runtime, task_spec.container_id)
    assert failing.failed == 2
    assert status.exit is not None
    assert "supervisor was killed" in status.exit.reason
    assert belonging_to(task_spec.container_id) == []


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (b'{"v": 1, "code": 0}', Exit(code=0)),
        (b'{"v": 2, "how": "well"', None),
    ],
)
async def test_a_recorded_exit_is_never_replaced_by_a_loss(
    bench: ProcessBench, monkeypatch: pytest.MonkeyPatch, recorded: bytes, expected: Exit | None, links: bool
) -> None:
    """Whoever recorded it while what was left was looked for, and in whatever form."""
    runtime = await bench.runtime()
    task_spec = spec(bench, "waits")
    await runtime.start(task_spec, placement())
    await until_printed(runtime, task_spec.container_id, b"ready")
    place = bench.run_directory(task_spec.container_id).parent / "exit.json"

    def sweep(container_id: str, cgroup: str) -> bool:
        if container_id == task_spec.container_id:
            place.write_bytes(recorded)
        return kill_belonging(container_id, cgroup)

    monkeypatch.setattr(process_runtime, "kill_belonging", sweep)
    failing = FailingCall(os.link, errno.EPERM)
    failing.left = 0 if links else 1
    monkeypatch.setattr(os, "link", failing)
    os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
    status = await until_exited(runtime, task_spec.container_id)
    assert status.exit is not None
    assert status.exit == expected or (expected is None and "cannot read" in status.exit.reason)
    assert place.read_bytes() == recorded


async def test_a_loss_that_a_full_disk_does_not_take_is_one(
    bench: ProcessBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported all the same."""
    runtime = await bench.runtime()
    task_spec = spec(bench, "waits")
    await runtime.start(task_spec, placement())
    await until_printed(runtime, task_spec.container_id, b"ready")
    failing = FailingCall(os.open, errno.ENOSPC, lambda path, *_, **__: "exit" in str(path))
    failing.left = float("inf")
    monkeypatch.setattr(os, "open", failing)
    os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
    status = await until_exited(runtime, task_spec.container_id)
    assert failing.failed > 0
    assert status.exit is not None
    assert "supervisor was killed" in status.exit.reason


async def test_a_directory_that_is_not_deleted_holds_up_nothing(
    bench: ProcessBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its container is gone, and its files go with the next that is removed."""
    runtime = await bench.runtime()
    ids = []
    for _ in range(2):
        task_spec = spec(bench, "hello")
        ids.append(task_spec.container_id)
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
    failing = FailingCall(os.rmdir, errno.EIO, lambda path, *_, **__: str(path) == "run")
    failing.left = 1
    monkeypatch.setattr(os, "rmdir", failing)
    root = bench.directory / "containers"
    await runtime.remove(ids[0])
    assert failing.failed == 1
    assert await runtime.inspect(ids[0]) is None
    assert [path.name for path in root.iterdir() if path.name != ids[1]] == [f".gone-{ids[0]}"]
    await runtime.remove(ids[1])
    assert list(root.iterdir()) == []


def test_what_cannot_be_looked_at_may_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On every Python: newer ones say of a path like that that there is none."""
    (tmp_path / "file").touch()
    assert [is_there(tmp_path / name) for name in ("file", "none", "file/below")] == [True, False, False]
    failing = FailingCall(os.stat, errno.EIO, lambda path, *_, **__: "file" in str(path))
    failing.left = float("inf")
    monkeypatch.setattr(os, "stat", failing)
    with pytest.raises(OSError, match="Input/output error"):
        is_there(tmp_path / "file")
    monkeypatch.undo()


def test_a_library_stays_while_it_is_not_known_who_runs_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code beneath a running task is not deleted because its record cannot be read."""
    Homes(tmp_path / "containers")
    home = Home(tmp_path / "containers" / "a")
    home.path.mkdir()
    (home.path / "container.json").write_text("{}")
    old, new = tmp_path / "lib" / "old", tmp_path / "lib" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    for call in ("scandir", "listdir", "stat"):
        # With each of them the system may be asked for what there is.
        failing = FailingCall(getattr(os, call), errno.EACCES, lambda path=".", *_, **__: "containers" in str(path))
        failing.left = float("inf")
        with monkeypatch.context() as patched:
            patched.setattr(os, call, failing)
            library.prune(tmp_path, new)
        assert old.is_dir()


async def test_a_login_that_cannot_be_read_is_not_none(tmp_path: Path) -> None:
    """Without it a private image would be refused, and the refusal be the task's."""
    (tmp_path / "config.json").write_text("{}")
    environ = {"DOCKER_CONFIG": str(tmp_path)}
    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        await auth_header("ghcr.io/x", {}, environ)
    (tmp_path / "config.json").write_text('{"credsStore": "none-of-that-name"}')
    assert await auth_header("ghcr.io/x", {}, environ) == ""


@pytest.mark.parametrize("blind", [True, False])
def test_a_mount_that_cannot_be_looked_at_is_the_machines_failure(tmp_path: Path, blind: bool) -> None:
    """And that of whoever named it only where the path says so."""
    mount = Mount(str(tmp_path / "data"), "/data")
    values = {"argv": ["true"], "env": {}, "uid": os.geteuid() or 1000, "mounts": [mount]}
    task_spec = ContainerSpec("c", "a", "t", 0, 1, [], **values)  # type: ignore[arg-type]
    with contextlib.ExitStack() as stack:
        if blind:
            stack.enter_context(no_descriptors())
        with pytest.raises(StartFailed) as failed:
            check_unchangeable(task_spec, AllowedSettings(bind_mounts=(str(tmp_path),)))
    assert failed.value.platform is blind
