"""The first program of a trial, run in the forkserver's child or in an interpreter of its own: nobody sees which."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import venv
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

import tenax
from tenax.runtime.planning import Machine
from tenax.runtime.process import FIRST_PROGRAMS, ProcessRuntime
from tenax.wire.agents import ContainerSpec, Mount, TaskFile
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import placement, until_exited
from tests.kits.trial_spec import result_of, trial

#: What a program can know of how it was started; SigQ counts the signals of all processes of this user.
LISTING = """
import json, os, signal, sys
status = open('/proc/self/status').read()
print(json.dumps({
    'argv': sys.argv, 'orig': sys.orig_argv, 'executable': sys.executable, 'path': sys.path, 'prefix': sys.prefix,
    'flags': str(sys.flags), 'env': dict(os.environ), 'cwd': os.getcwd(), 'umask': os.umask(0),
    'open': sorted(os.listdir('/proc/self/fd')), 'session': os.getsid(0) == os.getpid(),
    'signals': [line for line in status.splitlines() if line.startswith('Sig') and line[:4] != 'SigQ'],
    'info': {name: open(os.environ['DET_RUN_DIR'] + '/info/' + name).read()
             for name in sorted(os.listdir(os.environ['DET_RUN_DIR'] + '/info'))},
}))
"""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(tmp_path / "agent")
    yield machine
    await machine.clean()


async def both(bench: ProcessBench, task_spec: ContainerSpec) -> list[tuple[int | None, bytes, bytes]]:
    """Run twice under one name: by the forked process, and by an interpreter."""
    results = []
    for programs in (FIRST_PROGRAMS, ()):
        runtime = ProcessRuntime(bench.directory, Machine(environ=tuple(os.environ.items())))
        runtime._forkserver._programs = programs
        results.append(await result_of(runtime, task_spec))
        await runtime.close()
    return results


async def test_the_script_cannot_tell(bench: ProcessBench) -> None:
    """Arguments, environment, open files, signals, flags and info files are the same either way."""
    forked, started = await both(bench, trial(bench, ["python3", "-c", LISTING]))
    seen, expected = json.loads(forked[1]), json.loads(started[1])
    for line in (seen, expected):
        assert line["env"].pop("TMPDIR")  # a link of its own, where the directory's path is long
        # Beside the first program, of which there is a copy; the same content.
        assert line["env"].pop("PYTHONPATH") == line["path"].pop(1)
    for name in ("env", *seen):
        assert seen[name] == expected[name]
    assert seen["orig"][0] == "python3"
    assert (forked[0], forked[2]) == (started[0], started[2]) == (0, b"")


@pytest.mark.parametrize(
    ("entrypoint", "code"),
    [(["nowhere-to-be-found"], 127), ([os.devnull], 126), (None, 1)],
)
async def test_what_cannot_start_is_told_alike(bench: ProcessBench, entrypoint: object, code: int) -> None:
    """Exit code and message of an entrypoint that cannot be started are the same either way."""
    forked, started = await both(bench, trial(bench, entrypoint))
    assert forked == started
    assert forked[0] == code
    assert forked[2].startswith(b"tenax: ")


async def test_a_startup_hook_runs_in_the_tasks_interpreter(bench: ProcessBench) -> None:
    """A hook is sourced by a shell, and the program that comes back has the task's interpreter and environment."""
    hooked = trial(bench, ["python3", "-c", "import os; print(os.environ['HOOKED'], os.environ['VIRTUAL'])"])
    hook = "export HOOKED=yes VIRTUAL=$(python3 -c 'import sys; print(sys.executable)')\n"
    runtime = ProcessRuntime(bench.directory)
    code, printed, errors = await result_of(runtime, with_file(hooked, "workdir/startup-hook.sh", hook))
    assert (code, errors) == (0, b"")
    assert printed.split()[0] == b"yes"
    await runtime.close()


async def test_storage_that_needs_packages_is_tried_with_them(bench: ProcessBench) -> None:
    """Where more than the standard library is needed, the program goes on in a whole interpreter."""
    forked, started = await both(bench, trial(bench, ["true"], storage="s3"))
    assert forked == started
    assert re.search(rb"checkpoint_storage.*s3", forked[2])


async def test_another_interpreter_runs_its_own_library(bench: ProcessBench) -> None:
    """A task that names an interpreter which has tenax itself is not served with the agent's."""
    other = bench.directory.parent / "other"
    venv.create(other, with_pip=False)
    packages = next(other.glob("lib/python*/site-packages"))
    (packages / "tenax.pth").write_text(str(Path(tenax.__file__).parents[1]))
    task_spec = trial(bench, ["true"], DET_PYTHON_EXECUTABLE=str(other / "bin" / "python"))
    runtime = ProcessRuntime(bench.directory)
    await runtime.start(task_spec, placement())
    plan = (bench.directory / "containers" / task_spec.container_id / "plan").read_bytes()
    assert b"\0loaded=" not in plan
    await until_exited(runtime, task_spec.container_id)
    await runtime.close()


def with_file(task_spec: ContainerSpec, path: str, content: str) -> ContainerSpec:
    return msgspec.structs.replace(task_spec, files=[*task_spec.files, TaskFile(path, content, 0o755)])


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody can reach, with a place for checkpoints that everybody can write."""
    with tempfile.TemporaryDirectory(prefix="tenax-test-") as name:
        directory = Path(name)
        (directory / "agent" / "checkpoints").mkdir(parents=True)
        (directory / "agent" / "checkpoints").chmod(0o777)
        directory.chmod(0o755)
        yield directory


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts tasks as somebody else")
async def test_another_user_has_a_private_view_too(public: Path) -> None:
    """A task that runs as a mapped user moves into its view with that user's rights, and with no more."""
    system = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if system is None:
        pytest.skip("this machine has no Python that everybody can reach")
    listing = "import os; print(os.getuid(), sorted(os.listdir('/run/determined'))[:2])"
    tries = "\ntry: open('/etc/shadow')\nexcept OSError as error: print(error.strerror)"
    bench = ProcessBench(public / "agent")
    task_spec = trial(bench, ["python3", "-c", listing + tries], DET_PRIVATE_VIEW="1", DET_PYTHON_EXECUTABLE=system)
    runtime = ProcessRuntime(bench.directory)
    code, printed, errors = await result_of(runtime, msgspec.structs.replace(task_spec, uid=65534, gid=65534))
    await runtime.close()
    assert (code, errors) == (0, b"")
    assert printed == b"65534 ['info', 'pythonuserbase']\nPermission denied\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts tasks as somebody else")
async def test_a_view_takes_no_interpreter(public: Path) -> None:
    """Somebody else who cannot reach the agent's Python has the bind mounts of a program that needs none."""
    (public / "data").mkdir()
    (public / "data" / "here").touch()
    bench = ProcessBench(public / "agent")
    task_spec = trial(bench, ["/bin/sh", "-c", "ls /mnt/data; touch /mnt/data/new 2>/dev/null || echo guarded"])
    mounts = [Mount(str(public / "data"), "/mnt/data", read_only=True)]
    runtime = ProcessRuntime(bench.directory)
    printed = await result_of(runtime, msgspec.structs.replace(task_spec, uid=65534, gid=65534, mounts=mounts))
    await runtime.close()
    assert printed == (0, b"here\nguarded\n", b"")
