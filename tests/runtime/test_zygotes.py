"""Interpreters that have loaded what trials import: who starts from one and who by itself, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

import tenax
from tenax.runtime.forking import zygotes
from tenax.runtime.forking.launching import Forkserver
from tenax.runtime.forking.warmth import Setting
from tenax.runtime.process import ProcessRuntime
from tenax.runtime.processes import identity_of, is_running, wait_for_end
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import output, placement, until_exited, until_printed
from tests.kits.trial_spec import Result, result_of
from tests.kits.warm_start import LOADED, NOT_LOADED, TELLING, Installed, scripted, three, with_files


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(tmp_path / "agent")
    yield machine
    await machine.clean()


async def test_what_the_code_has_itself_is_its_own(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """A module of the code that has the name of one which is loaded: the script gets its own."""
    script = TELLING + "print(colorsys.__file__)\n"
    results = await three(runtime, with_files(scripted(bench, script), {"colorsys.py": ""}))
    assert [result[1].splitlines(keepends=True)[0] for result in results] == [NOT_LOADED] * 3
    assert results[2] == results[0]
    assert b"/workdir/colorsys.py" in results[2][1]


async def test_what_was_learned_elsewhere_is_not_loaded_here(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """The code gets a module of a name that is loaded only later: that trial starts by itself."""
    await three(runtime, scripted(bench, TELLING))
    later = with_files(scripted(bench, TELLING), {"colorsys/__init__.py": ""})
    assert (await result_of(runtime, later))[1] == NOT_LOADED
    # A folder of data is no module.
    assert (await result_of(runtime, with_files(scripted(bench, TELLING), {"colorsys/data": ""})))[1] == LOADED


@pytest.mark.parametrize(
    "change",
    [
        {"entrypoint": "python3 -I train.py"},
        {"entrypoint": "python3 train.py && true"},
        {"entrypoint": "python3 -m tenax.launch.processes python3 train.py"},
        {"TENAX_WARM_START": "0"},
        {"PYTHONUSERBASE": "/run/determined/workdir"},
    ],
)
async def test_what_starts_by_itself(bench: ProcessBench, runtime: ProcessRuntime, change: dict[str, str]) -> None:
    """Options of the interpreter, a shell, launchers, who asks for it, and what differs between containers."""
    results = await three(runtime, scripted(bench, TELLING, **change))
    assert [result[0] for result in results] == [0, 0, 0]
    assert all(NOT_LOADED in result[1] for result in results)


async def test_another_environment_starts_by_itself(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """Imports may depend on variables, and code on its version: only the same have one interpreter in common."""
    await three(runtime, scripted(bench, TELLING))
    assert (await result_of(runtime, scripted(bench, TELLING)))[1] == LOADED
    other = scripted(bench, TELLING, OMP_NUM_THREADS="1")
    assert (await result_of(runtime, other))[1] == NOT_LOADED
    newer = msgspec.structs.replace(scripted(bench, TELLING), context_hash="d" * 64)
    assert (await result_of(runtime, newer))[1] == NOT_LOADED
    # What names this trial is no reason.
    assert (await result_of(runtime, scripted(bench, TELLING, DET_TRIAL_ID="2", DET_TRIAL_SEED="9")))[1] == LOADED


#: Seconds that nobody else on this machine sleeps, on which the same test may run beside.
_ASLEEP = 10_000_000 + os.getpid()
#: What a module leaves behind when it is imported, that forks do not have or would have in common.
LEFT_BEHIND = {
    "output": "print('hello from an import')\nsaid = 'twice'\n",
    "a thread": (
        "import threading\nthread = threading.Thread(target=threading.Event().wait, daemon=True)\nthread.start()\n"
        "said = thread.name\n"
    ),
    "an open file": "file = open(__file__)\nsaid = file.read(4)\n",
    "a process": "import subprocess\nchild = subprocess.Popen(['sleep', '600'], stdout=-3)\nsaid = child.poll()\n",
    "a variable": "import os\nos.environ['UMLAUT'] = 'changed'\ndel os.environ['GONE']\nsaid = 'GONE' in os.environ\n",
    "temporary files": (
        "import os, tempfile\nfile, place = tempfile.mkstemp()\nos.close(file)\nsaid = open(place).read()\n"
    ),
    "a temporary folder": (
        "import os, tempfile\nplace = tempfile.TemporaryDirectory()\nsaid = os.listdir(place.name)\n"
    ),
    "a lock": "import multiprocessing\nlock = multiprocessing.Lock()\nsaid = lock.acquire(timeout=0.1)\n",
    "a handler": (
        "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\nsaid = callable(signal.getsignal(10))\n"
    ),
    "a mask": "import os\nsaid = os.umask(0o002) * 0 + os.umask(0o002)\n",
    "a mask of signals": (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "said = len(signal.pthread_sigmask(signal.SIG_BLOCK, ()))\n"
    ),
    "a limit": (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "said = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
    ),
    "a daemon": (
        f"import subprocess\nsubprocess.run(['/bin/sh', '-c', 'setsid sleep {_ASLEEP} &'], stdout=-3, stderr=-3)\n"
        "said = 1\n"
    ),
    "a broken fork": "import os\ndef fork(): raise OSError(12, 'no memory')\nos.fork = fork\nsaid = 'no fork'\n",
    "a hanging fork": (
        "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(600))\nsaid = 'hangs'\n"
    ),
    "a broken library": "import select\ndel select.poll\nsaid = 'no poll'\n",
    "half of an import": (
        "import os\nif 'DET_TRIAL_ID' not in os.environ: raise ImportError('not here')\nsaid = 'whole'\n"
    ),
    "other modules": "import sys\nsys.path.insert(0, sys.prefix + '/own')\nimport vendored\nsaid = vendored.said\n",
}


def running() -> list[bytes]:
    """Command lines of all processes."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes())
    return lines


#: Why an interpreter that loads imports does not load that module.
REFUSED = {
    "output": "special prints when it is imported",
    "a thread": "special begins a thread",
    "an open file": "special keeps something open",
    "a process": "special starts a process",
    "a variable": "special changes a variable of the environment",
    "temporary files": "special makes temporary files",
    "a temporary folder": "special makes a temporary directory",
    "a lock": "special has memory that forks would share",
    "a handler": "special handles signals",
    "a mask": "special changes what a process begins with",
    "a mask of signals": "special changes what a process begins with",
    "a limit": "special changes what a process begins with",
    "a daemon": "special starts a process",
    "a broken fork": "[Errno 12] no memory",
    "a hanging fork": "what is imported keeps it from forking",
    "a broken library": "special cannot be imported here: module 'select' has no attribute 'poll'",
    "half of an import": "special cannot be imported here: not here",
    "other modules": "special imports vendored, which is not installed",
}


async def test_what_scripts_would_share_is_not_loaded(tmp_path: Path, installed: Installed) -> None:
    """Each thing by itself is a reason, which is said."""
    library = Path(tenax.__file__).parents[1]
    setting = Setting(
        "", Path(installed.python), {"PYTHONPATH": str(library), "UMLAUT": "\u00e4", "GONE": "here", "PATH": os.defpath}
    )
    (Path(installed.python).parents[1] / "own").mkdir()
    (Path(installed.python).parents[1] / "own" / "vendored.py").write_text("said = 'own'\n")
    refused = {}
    for number, left in enumerate(LEFT_BEHIND):
        name = f"special{number}"
        installed.install(name, LEFT_BEHIND[left])
        directory = tmp_path / name
        directory.mkdir()
        (directory / "load").write_text(f"{name}\t{installed.packages / name}.py\n")
        zygote = zygotes.Zygote(setting, directory, library / "tenax" / "exec" / "zygote.py", Forkserver(library, ()))
        refused[left] = (await zygote.answer).refused.replace(name, "special")
        zygote.close()
        await asyncio.to_thread(zygote.wait)
    assert refused == REFUSED
    assert b"sleep\0%d\0" % _ASLEEP not in running()


#: What follows is the same for the others, which are met in the long runs.
OFTEN_LEFT = ("a thread", "a variable", "a process", "a broken fork", "half of an import")


@pytest.mark.parametrize(
    "left", [pytest.param(left, marks=() if left in OFTEN_LEFT else pytest.mark.long) for left in LEFT_BEHIND]
)
async def test_what_scripts_would_share_each_imports(
    bench: ProcessBench,
    runtime: ProcessRuntime,
    installed: Installed,
    monkeypatch: pytest.MonkeyPatch,
    left: str,
) -> None:
    """What a module does besides when it is imported it does in each trial; what came before it is loaded."""
    monkeypatch.setattr(zygotes, "_QUIET_S", 0.0)  # those that cannot fork leave no time to say that no more is to come
    installed.install("special", LEFT_BEHIND[left])
    (Path(installed.python).parents[1] / "own").mkdir()
    (Path(installed.python).parents[1] / "own" / "vendored.py").write_text("said = 'own'\n")
    installed.install("vendored", "said = 'installed'\n")
    # The one after it has it noted.
    script = TELLING + "import special, wave, os\n"
    script += "print(special.said, len(os.listdir('/proc/self/task')), os.environ['UMLAUT'], flush=True)\n"
    script += "os._exit(0) if special.said in ('no fork', 'hangs') else None\n"
    task_spec = scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python, GONE="here", DET_LOG_WAIT_TIME="0")
    results = await three(runtime, task_spec)
    results.append(await result_of(runtime, task_spec))
    assert [result[0] for result in results] == [0] * 4
    said = [result[1].partition(b"loaded\n")[2] for result in results]
    assert said == said[:1] * 4
    assert [result[2] for result in results] == [results[0][2]] * 4
    assert b"sleep\0%d\0" % _ASLEEP not in running()
    if "fork" not in left and left != "a broken library":
        assert results[2][1].startswith(LOADED)


@pytest.mark.parametrize("name", ["signal", "types", "struct", "json"])
async def test_a_module_with_a_name_of_pythons_own_is_the_scripts(
    bench: ProcessBench, runtime: ProcessRuntime, name: str
) -> None:
    """Also where a first program, or one that notes imports, has loaded Python's before the script begins."""
    script = f"import {name}\nprint('{name}', getattr({name}, 'OWN', 'standard'))\nkept = open('kept.txt', 'w')\n"
    results = await three(runtime, with_files(scripted(bench, script), {f"{name}.py": "OWN = 'own'\n"}))
    assert results == results[:1] * 3


async def test_a_script_that_closes_all_files_keeps_its_own(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """Descriptors of what notes its imports may be closed, and given to other files, which nobody else writes to."""
    script = (
        "import os\nos.closerange(3, 64)\nimport calendar\nown = [open(f'own{n}', 'w') for n in range(8)]\n"
        "import colorsys, wave, http.client\nprint([os.fstat(file.fileno()).st_size for file in own])\n"
    )
    results = await three(runtime, scripted(bench, script))
    assert results == results[:1] * 3
    assert results[0][:2] == (0, b"[0, 0, 0, 0, 0, 0, 0, 0]\n")


async def requested_of_a_stopped(
    bench: ProcessBench, runtime: ProcessRuntime
) -> tuple[subprocess.Popen[bytes], asyncio.Task[Result]]:
    """An interpreter that is stopped, and the trial that waits to be forked from it."""
    await three(runtime, scripted(bench, TELLING))
    (lesson,) = runtime._zygotes._lessons.values()
    assert lesson.zygote is not None
    process = lesson.zygote._process
    process.send_signal(signal.SIGSTOP)
    start = asyncio.create_task(result_of(runtime, scripted(bench, TELLING)))
    async with asyncio.timeout(240):
        while not list(bench.directory.glob("containers/*/supervisor.log")):  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
    return process, start


async def test_one_that_is_lost_with_a_request_costs_a_moment(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """Killed after it was to fork, and before it did: the forkserver does, then and from then on."""
    process, start = await requested_of_a_stopped(bench, runtime)
    process.send_signal(signal.SIGKILL)
    assert (await start)[:2] == (0, NOT_LOADED)
    assert (await result_of(runtime, scripted(bench, TELLING)))[1] == NOT_LOADED


async def test_one_that_never_ends_loading_gives_up_its_place(
    bench: ProcessBench, runtime: ProcessRuntime, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever keeps it from saying so: trials of that code start by themselves from then on, and it is gone."""
    monkeypatch.setattr(zygotes, "_LOADED_WITHIN_S", 0.2)
    monkeypatch.setattr(zygotes, "_LOADING_S", 0.3)
    installed.install(
        "endless", "import os, signal\nif 'DET_TRIAL_ID' not in os.environ: os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    task_spec = scripted(bench, TELLING + "import endless\n", DET_PYTHON_EXECUTABLE=installed.python)
    results = await three(runtime, task_spec) + [await result_of(runtime, task_spec) for _ in range(2)]
    assert results == results[:1] * 5
    (lesson,) = runtime._zygotes._lessons.values()
    assert lesson.zygote is None
    for zygote in runtime._zygotes._ended:
        await asyncio.to_thread(zygote.wait)


async def test_an_archive_in_front_is_looked_into(bench: ProcessBench, runtime: ProcessRuntime, tmp_path: Path) -> None:
    """What PYTHONPATH has that is no folder may hold anything: the script starts by itself."""
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("colorsys.py", "")
    results = await three(runtime, scripted(bench, TELLING + "print(colorsys.__file__)\n", PYTHONPATH=str(archive)))
    assert results == results[:1] * 3
    assert b"modules.zip" in results[2][1]


async def test_an_edit_is_noticed(bench: ProcessBench, runtime: ProcessRuntime, installed: Installed) -> None:
    """A package is changed in its place: the next trial has the change."""
    (installed.packages / "library").mkdir()
    (installed.packages / "library" / "__init__.py").write_text("")
    part = installed.packages / "library" / "loss.py"
    part.write_text("number = 1\n")
    task_spec = scripted(bench, f"{TELLING}from library import loss\nprint(loss.number)\n")
    task_spec.env["DET_PYTHON_EXECUTABLE"] = installed.python
    assert (await three(runtime, task_spec))[2][1] == LOADED + b"1\n"
    part.write_text("number = 20\n")
    assert (await result_of(runtime, task_spec))[1] == NOT_LOADED + b"20\n"


async def test_many_that_load_at_once_hold_up_nobody(
    bench: ProcessBench, runtime: ProcessRuntime, installed: Installed
) -> None:
    """More settings than there are places: the others start by themselves, and nobody's loading is broken off."""
    installed.install("slow", "import os, time\nif 'DET_TRIAL_ID' not in os.environ: time.sleep(1)\n")
    script = TELLING + "import slow\n"
    specs = [scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python, NUMBER=str(n)) for n in range(4)]
    for task_spec in [*specs, *specs]:
        await result_of(runtime, task_spec)
    async with asyncio.timeout(240):
        results = await asyncio.gather(*(result_of(runtime, task_spec) for task_spec in specs))
    assert sorted(result[1] for result in results) == [LOADED] * 2 + [NOT_LOADED] * 2


async def test_notes_that_cannot_be_written_are_missed_by_nobody(bench: ProcessBench) -> None:
    """The agent starts again, and forgets what it had begun to learn, before the script that notes it begins."""
    runtime = ProcessRuntime(bench.directory)
    task_spec = scripted(bench, TELLING)
    await result_of(runtime, task_spec)
    await runtime._prepare(task_spec, placement())
    await runtime.close()
    runtime = ProcessRuntime(bench.directory)
    assert await result_of(runtime, task_spec) == (0, NOT_LOADED, b"")
    await runtime.close()


async def test_what_was_requested_of_one_that_ends_starts(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """Another one takes its place, or what is installed has changed, between a request and the fork."""
    process, start = await requested_of_a_stopped(bench, runtime)
    (lesson,) = runtime._zygotes._lessons.values()
    runtime._zygotes._end(lesson)
    process.send_signal(signal.SIGCONT)
    assert (await start)[:2] == (0, LOADED)


async def test_an_installation_is_noticed(bench: ProcessBench, runtime: ProcessRuntime, installed: Installed) -> None:
    """What is installed later counts for the next trial, which starts by itself; then it is learned anew."""
    installed.install("versioned", "number = 1\n")
    script = "import versioned\nprint(versioned.number)\n" + TELLING
    task_spec = scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python)
    assert (await three(runtime, task_spec))[2][1] == b"1\n" + LOADED
    (installed.packages / "versioned.py").unlink()
    installed.install("versioned", "number = 2  # another\n")
    results = await three(runtime, task_spec)
    assert [result[1].splitlines()[0] for result in results] == [b"2", b"2", b"2"]
    assert results[0][1].endswith(NOT_LOADED)
    assert (await result_of(runtime, task_spec))[1] == b"2\n" + LOADED


async def test_a_killed_interpreter_is_missed_by_nobody(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """What it has forked runs on, and the next trial starts all the same; nothing starts twice."""
    await three(runtime, scripted(bench, TELLING))
    waiting = scripted(bench, TELLING + "import time\nwhile True: time.sleep(0.01)\n")
    waiting = msgspec.structs.replace(waiting, container_id="w" + waiting.container_id[1:])
    await runtime.start(waiting, placement())
    await until_printed(runtime, waiting.container_id, LOADED)
    for lesson in runtime._zygotes._lessons.values():
        assert lesson.zygote is not None
        lesson.zygote._process.send_signal(signal.SIGKILL)
        lesson.zygote._process.wait()
    assert (await result_of(runtime, scripted(bench, TELLING)))[1] == LOADED
    status = await runtime.inspect(waiting.container_id)
    assert status is not None
    assert status.state == "running"
    await runtime.remove(waiting.container_id)


async def test_one_that_hangs_while_it_loads_is_not_waited_for(
    bench: ProcessBench, runtime: ProcessRuntime, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that never ends there holds up nobody for longer than a moment."""
    monkeypatch.setattr(zygotes, "_LOADED_WITHIN_S", 0.2)
    installed.install("hanging", "import os, time\nwhile 'DET_TRIAL_ID' not in os.environ: time.sleep(0.01)\n")
    script = TELLING + "import hanging\n"
    results = await three(runtime, scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python))
    assert [(result[0], result[1]) for result in results] == [(0, NOT_LOADED)] * 3


async def test_a_killed_supervisor_takes_all_of_it_along(
    bench: ProcessBench, runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a script has started is found by its environment, though none of it was ever executed as a program."""
    monkeypatch.setattr("tenax.runtime.process.cgroup_parent", lambda: None)
    await three(runtime, scripted(bench, TELLING))
    script = "import os, time\nos.write(1, f'child {os.fork()}\\n'.encode())\nwhile True: time.sleep(0.01)\n"
    task_spec = scripted(bench, TELLING + script)
    await runtime.start(task_spec, placement())
    await until_printed(runtime, task_spec.container_id, b"child 0\n")
    printed = await output(runtime, task_spec.container_id)
    assert LOADED in printed
    child = max(int(number) for number in re.findall(rb"child (\d+)", printed))
    identity = identity_of(child)
    assert identity is not None
    os.kill(bench.supervisor(task_spec.container_id), signal.SIGKILL)
    status = await until_exited(runtime, task_spec.container_id)
    assert status.exit is not None
    assert "its supervisor was killed" in status.exit.reason
    assert not is_running(identity)


async def test_they_end_when_nobody_uses_them(
    bench: ProcessBench, runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next trial loads another one."""
    monkeypatch.setattr(zygotes, "IDLE_S", 0.1)
    await three(runtime, scripted(bench, TELLING))
    (lesson,) = runtime._zygotes._lessons.values()
    async with asyncio.timeout(240):
        while lesson.zygote is not None:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
    monkeypatch.setattr(zygotes, "IDLE_S", 300.0)
    assert (await result_of(runtime, scripted(bench, TELLING)))[1] == LOADED


async def test_they_end_with_their_agent(bench: ProcessBench) -> None:
    """No interpreter is left when the agent closes, and none when it is killed: its socket ends."""
    runtime = ProcessRuntime(bench.directory)
    await three(runtime, scripted(bench, TELLING))
    (lesson,) = runtime._zygotes._lessons.values()
    assert lesson.zygote is not None
    process = lesson.zygote._process
    lesson.zygote._door.close()
    assert await asyncio.to_thread(process.wait, 30) == 0
    await runtime.close()
    assert not (bench.directory / "zygotes").exists()


#: An agent, as far as it is one here, that tells of a stopped interpreter and waits to be killed.
AGENT = """
import asyncio, signal, sys
from pathlib import Path
from tenax.runtime.process import ProcessRuntime
from tests.kits.process_bench import ProcessBench
from tests.kits.warm_start import TELLING, scripted, three

async def main():
    bench = ProcessBench(Path(sys.argv[1]))
    runtime = ProcessRuntime(bench.directory)
    await three(runtime, scripted(bench, TELLING))
    (lesson,) = runtime._zygotes._lessons.values()
    lesson.zygote._process.send_signal(signal.SIGSTOP)
    print(lesson.zygote._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_stopped_one_ends_with_a_killed_agent(tmp_path: Path) -> None:
    """Nobody would ever let it go on."""
    root = Path(__file__).parents[2]
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path / "agent")], cwd=root, stdout=subprocess.PIPE, text=True
    )
    with agent:
        assert agent.stdout is not None
        identity = identity_of(int(agent.stdout.readline()))
        assert identity is not None
        agent.kill()
    assert wait_for_end([identity], 240) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts tasks as somebody else")
async def test_somebody_elses_trials_start_by_themselves(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """The agent's own user loads nothing for a mapped user."""
    mapped = msgspec.structs.replace(scripted(bench, TELLING), uid=65534, gid=65534)
    for _ in range(3):
        with pytest.raises(Exception, match="65534"):
            await runtime.start(mapped, placement())
    assert runtime._zygotes._lessons == {}
