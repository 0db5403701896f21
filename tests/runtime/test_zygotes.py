"""Trials that start where their imports are loaded: no script can tell, and what would differ starts by itself."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import venv
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from tenax.runtime.forking import zygotes
from tenax.runtime.process import ProcessRuntime
from tenax.runtime.processes import identity_of, is_running
from tenax.wire.agents import ContainerSpec, TaskFile
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import output, placement, until_exited, until_printed
from tests.kits.trial_spec import Result, result_of, trial

#: All that a script can know of how it was started; SigQ counts the signals of all processes of this user.
LISTING = """
import json, os, signal, sys, tempfile, threading
loaded = 'colorsys' in sys.modules
import colorsys
status = open('/proc/self/status').read().splitlines()
shown = {name: open('/proc/self/' + name).read() for name in ('cmdline', 'comm', 'environ')}
print(json.dumps({
    'argv': sys.argv, 'orig': sys.orig_argv, 'executable': sys.executable, 'path': sys.path, 'prefix': sys.prefix,
    'flags': str(sys.flags), 'env': dict(os.environ), 'cwd': os.getcwd(), 'umask': os.umask(0),
    'session': os.getsid(0) == os.getpid(), 'temporary': tempfile.gettempdir() == os.environ['TMPDIR'],
    'signals': [line for line in status if line.startswith('Sig') and line[:4] != 'SigQ'],
    'handlers': [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    'main': {name: str(value) for name, value in vars(sys.modules['__main__']).items() if name[:2] == '__'},
    'shown': shown['cmdline'].replace(chr(0), ' ').strip(), 'comm': shown['comm'],
    'marked': 'DET_CONTAINER_ID=' + os.environ['DET_CONTAINER_ID'] in shown['environ'].split(chr(0)),
    'threads': [thread.name for thread in threading.enumerate()], 'native': threading.get_native_id() == os.getpid(),
    'limit': sys.getrecursionlimit(), 'encodings': [sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors],
    'ignored': signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN, 'is tty': sys.stdin.isatty(),
}))
print('loaded' if loaded else 'not loaded')
"""
TELLING = "import sys\nprint('loaded' if 'colorsys' in sys.modules else 'not loaded')\nimport colorsys\n"
LOADED, NOT_LOADED = b"loaded\n", b"not loaded\n"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(tmp_path / "agent")
    yield machine
    await machine.clean()


@pytest.fixture
async def runtime(bench: ProcessBench) -> AsyncIterator[ProcessRuntime]:
    opened = ProcessRuntime(bench.directory)
    yield opened
    await opened.close()


class Installed:
    """An environment of its own, with packages that a test installs."""

    def __init__(self, place: Path) -> None:
        venv.create(place, with_pip=False)
        self.python = str(place / "bin" / "python")
        self.packages = next(place.glob("lib/python*/site-packages"))

    def install(self, name: str, content: str) -> None:
        (self.packages / f"{name}.py").write_text(content)


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "environment")


def scripted(bench: ProcessBench, script: str, entrypoint: object = "python3 train.py", **env: str) -> ContainerSpec:
    return with_files(trial(bench, entrypoint, **env), {"train.py": script})


def with_files(task_spec: ContainerSpec, files: dict[str, str]) -> ContainerSpec:
    """With model code, which all tests here take for the same."""
    code = [TaskFile(f"workdir/{name}", content, 0o644) for name, content in files.items()]
    return msgspec.structs.replace(task_spec, files=[*task_spec.files, *code], context_hash="c" * 64)


async def three(runtime: ProcessRuntime, task_spec: ContainerSpec) -> list[Result]:
    """By itself, noting its imports, and where they are loaded: the same container each time."""
    return [await result_of(runtime, task_spec) for _ in range(3)]


@pytest.mark.parametrize(
    "entrypoint",
    [
        "python3 train.py --lr 0.1",
        "python -u ./train.py",
        "python3 -m train --lr 0.1",
        ["python3", "-m", "tenax.launch.with_hparams", "train.py", "--lr", "{lr}"],
    ],
)
async def test_a_script_cannot_tell(bench: ProcessBench, runtime: ProcessRuntime, entrypoint: object) -> None:
    """Arguments, paths, environment, signals, `__main__` and what the system shows are its own process's."""
    results = await three(runtime, scripted(bench, LISTING, entrypoint, DET_HPARAMS='{"lr": 0.5}'))
    assert [result[0] for result in results] == [0, 0, 0]
    assert [result[2] for result in results] == [b"", b"", b""]
    assert [result[1].splitlines(keepends=True)[-1] for result in results] == [NOT_LOADED, NOT_LOADED, LOADED]
    alone, noting, warm = [comparable(result[1]) for result in results]
    for name in alone:
        assert noting[name] == alone[name]
        assert warm[name] == alone[name]


def comparable(printed: bytes) -> dict[str, object]:
    """Without addresses; of tenax there is a copy, with the same content."""
    seen: dict[str, object] = json.loads(re.sub(rb" at 0x[0-9a-f]+", b"", printed.splitlines()[0]))
    env, path = seen["env"], seen["path"]
    assert isinstance(env, dict)
    assert isinstance(path, list)
    assert env.pop("TMPDIR")
    assert env.pop("PYTHONPATH") == path.pop(1)
    return seen


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("def deep(n): return 1 / n\ndeep(0)", 1),
        ("raise SystemExit('enough')", 1),
        ("raise SystemExit(300)", 300 & 0xFF),
        ("import sys; sys.excepthook = lambda *seen: print('seen', seen[0], file=sys.stderr)\nraise KeyError(1)", 1),
        ("try: 1 / 0\nexcept ZeroDivisionError: int('no')", 1),
        ("exec('def broken(:')", 1),
        ("import nowhere_to_be_found", 1),
        (
            "import threading; threading.Thread(target=lambda: [waited.wait(), print('thread')]).start()\nwaited.set()",
            0,
        ),
        ("import atexit; atexit.register(print, 'first'); atexit.register(print, 'then')", 0),
        ("kept = open('kept.txt', 'w'); kept.write('never closed')", 0),
        ("class Late:\n    def __del__(self): print('deleted')\nlate = Late()", 0),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", None),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT); waited.wait()", None),
        ("import pickle\nclass Point: pass\nprint(type(pickle.loads(pickle.dumps(Point()))) is Point)", 0),
        ("import sys; sys.stdout.write('no newline'); sys.stderr.write('\\N{SNOWMAN}')", 0),
    ],
)
async def test_an_end_is_the_same(
    bench: ProcessBench, runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch, ending: str, code: int | None
) -> None:
    """Exit code, traceback, threads, exit functions and files that nobody closed, however a script ends."""
    monkeypatch.setattr(zygotes, "_QUIET_S", 0.0)  # some leave no time to say that nothing more is to come
    script = f"import threading\nwaited = threading.Event()\n{TELLING}import calendar\n{ending}\n"
    kept = []
    results = []
    task_spec = scripted(bench, script)
    for _ in range(3):
        await runtime.start(task_spec, placement())
        status = await until_exited(runtime, task_spec.container_id)
        note = bench.run_directory(task_spec.container_id) / "workdir" / "kept.txt"
        kept.append(note.read_text() if note.exists() else "")
        streams = [await output(runtime, task_spec.container_id, stream) for stream in ("stdout", "stderr")]
        results.append((status.exit, streams[0].partition(b"loaded\n")[2], streams[1]))
        assert (b"\nnot loaded\n" in streams[0]) == (len(results) < 3)
        await runtime.remove(task_spec.container_id)
    assert results[1:] == results[:1] * 2
    assert kept == kept[:1] * 3
    assert results[0][0] is not None
    assert results[0][0].code == code
    assert ("kept" in ending) == bool(kept[0])


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
        {"entrypoint": "python3 -m tenax.launch.torch_distributed python3 train.py"},
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


async def test_what_the_script_sets_before_an_import_counts(
    bench: ProcessBench, runtime: ProcessRuntime, installed: Installed
) -> None:
    """``os.environ[...] = ...`` before an import: that module and those that follow are imported by each script."""
    installed.install("before", "")
    installed.install("backend", "import os\nname = os.environ.get('BACKEND')\n")
    script = (
        "import before, os, sys\nos.environ['BACKEND'] = 'torch'\nprint('backend' in sys.modules)\n"
        "import backend\nprint(backend.name)\n" + TELLING
    )
    results = await three(runtime, scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python))
    assert [result[1] for result in results] == [b"False\ntorch\n" + NOT_LOADED] * 3


async def test_what_a_module_sets_is_set(bench: ProcessBench, runtime: ProcessRuntime, installed: Installed) -> None:
    """Variables that a module sets when it is imported are set in each trial, with that trial's own directory."""
    setting = "import os, tempfile\nos.environ['CACHE'] = tempfile.gettempdir() + '/cache'\nimport afterwards\n"
    installed.install("setting", setting)
    installed.install("afterwards", "")
    script = "import os, setting\nprint(os.environ['CACHE'] == os.environ['TMPDIR'] + '/cache')\n" + TELLING
    results = await three(runtime, scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python))
    assert [result[1] for result in results] == [b"True\n" + NOT_LOADED] * 2 + [b"True\n" + LOADED]


#: What a module leaves behind when it is imported, that forks do not have or would have in common.
LEFT_BEHIND = {
    "output": "print('hello from an import')\nsaid = 'twice'\n",
    "a thread": (
        "import threading\nthread = threading.Thread(target=threading.Event().wait, daemon=True)\nthread.start()\n"
        "said = thread.name\n"
    ),
    "an open file": "file = open(__file__)\nsaid = file.read(4)\n",
    "a process": "import subprocess\nchild = subprocess.Popen(['sleep', '600'], stdout=-3, stderr=-3)\nsaid = child.poll()\n",
    "a variable": "import os\nos.environ['UMLAUT'] = 'changed'\ndel os.environ['GONE']\nsaid = 'GONE' in os.environ\n",
    "temporary files": "import tempfile\nplace = tempfile.mkstemp()[1]\nsaid = open(place).read()\n",
    "a temporary folder": (
        "import tempfile\nplace = tempfile.TemporaryDirectory()\nsaid = open(place.name + '/a', 'w').name[:4]\n"
    ),
    "where temporary files are": (
        "import os, tempfile\nplace = tempfile.gettempdir()\nsaid = place == os.environ['TMPDIR']\n"
    ),
    "a lock": "import multiprocessing\nlock = multiprocessing.Lock()\nsaid = lock.acquire(timeout=0.1)\n",
    "a handler": (
        "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\nsaid = callable(signal.getsignal(10))\n"
    ),
    "a mask": "import os\nsaid = os.umask(0o002) * 0 + os.umask(0o002)\n",
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


@pytest.mark.parametrize("left", LEFT_BEHIND)
async def test_what_scripts_would_share_each_imports(
    bench: ProcessBench, runtime: ProcessRuntime, installed: Installed, left: str
) -> None:
    """What a module does besides when it is imported it does in each trial; what came before it is loaded."""
    installed.install("special", LEFT_BEHIND[left])
    (Path(installed.python).parents[1] / "own").mkdir()
    (Path(installed.python).parents[1] / "own" / "vendored.py").write_text("said = 'own'\n")
    installed.install("vendored", "said = 'installed'\n")
    script = (
        TELLING + "import special, os\nprint(special.said, len(os.listdir('/proc/self/task')), os.environ['UMLAUT'])\n"
    )
    script += "os._exit(0) if special.said in ('no fork', 'hangs') else None\n"
    task_spec = scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python, GONE="here")
    results = await three(runtime, task_spec)
    results.append(await result_of(runtime, task_spec))
    assert [result[0] for result in results] == [0] * 4
    said = [result[1].partition(b"loaded\n")[2] for result in results]
    assert said == said[:1] * 4
    assert [result[2] for result in results] == [results[0][2]] * 4
    if "fork" not in left and left != "a broken library":
        assert results[2][1].startswith(LOADED)


#: What a script does before it imports what depends on that, or looks at.
SETTINGS = {
    "a variable": (
        "import before, os, importlib\nos.environ['BACKEND'] = 'torch'\n"
        "print(importlib.import_module('backend').name)\n"
    ),
    "a path": "import before, sys\nsys.path.insert(0, sys.prefix + '/own')\nimport backend\nprint(backend.name)\n",
    "a log": (
        "import before, logging\nlogging.basicConfig(level='INFO', format='%(message)s')\n"
        "import logs\nlogging.info('mine')\n"
    ),
    "a directory": "import before, os\nos.chdir('/proc')\nimport places\nprint(places.here)\n",
    "processors": (
        "import before, os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import places\nprint(places.processors)\n"
    ),
    "a seed": "import before, chance\nassert chance.seeded.random() == 0.13436424411240122\n",
    "where it began": (
        "import before, places, multiprocessing\nprint(multiprocessing.process.ORIGINAL_DIR == places.os.getcwd())\n"
    ),
    "a file of settings": "import before, places\nprint(places.settings)\n",
    "a crash": "import faulthandler, os\nprint(faulthandler.is_enabled())\nos.kill(os.getpid(), 11)\n",
}


@pytest.mark.parametrize("setting", SETTINGS)
async def test_what_a_script_sets_for_its_imports_counts(
    bench: ProcessBench, runtime: ProcessRuntime, installed: Installed, setting: str
) -> None:
    """Variables, paths, log handlers, directory, processors: what is imported after them is imported by each script."""
    installed.install("before", "")
    installed.install("backend", "import os\nname = os.environ.get('BACKEND')\n")
    installed.install("logs", "import logging\nlogging.basicConfig(level='ERROR')\n")
    installed.install("chance", "import random\nseeded = random.Random(1)\n")
    installed.install(
        "places",
        "import os\nhere = os.getcwd()\nprocessors = len(os.sched_getaffinity(0))\n"
        "settings = os.path.exists('matplotlibrc')\n",
    )
    (Path(installed.python).parents[1] / "own").mkdir()
    (Path(installed.python).parents[1] / "own" / "backend.py").write_text("name = 'own'\n")
    task_spec = scripted(bench, SETTINGS[setting], DET_PYTHON_EXECUTABLE=installed.python, PYTHONFAULTHANDLER="1")
    if setting == "a file of settings":
        task_spec = with_files(task_spec, {"matplotlibrc": ""})
    results = await three(runtime, task_spec)
    results.append(await result_of(runtime, task_spec))
    if setting == "a crash":
        results = [(code, printed, errors.partition(b"\n")[0]) for code, printed, errors in results]
        assert b"Segmentation fault" in results[0][2]
    assert results[1:] == results[:1] * 3


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
    async with asyncio.timeout(30):
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
    await three(runtime, scripted(bench, TELLING))
    (lesson,) = runtime._zygotes._lessons.values()
    assert lesson.zygote is not None
    process = lesson.zygote._process
    process.send_signal(signal.SIGSTOP)
    start = asyncio.create_task(result_of(runtime, scripted(bench, TELLING)))
    async with asyncio.timeout(30):
        while not list(bench.directory.glob("containers/*/supervisor.log")):  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
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


async def test_random_numbers_differ(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """Generators that nobody seeded are not the same in each trial."""
    pytest.importorskip("sympy")
    script = TELLING + "import random, numpy\nfrom sympy.core.random import rng\n"
    script += "print(random.random(), numpy.random.rand(), rng.random())\n"
    task_spec = scripted(bench, script)
    results = await three(runtime, task_spec)
    results.append(await result_of(runtime, task_spec))
    assert [result[1].startswith(LOADED) for result in results] == [False, False, True, True]
    numbers = [number for result in results for number in result[1].split()[-3:]]
    assert len(set(numbers)) == len(numbers)


async def test_processes_of_a_script(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """Workers by fork and by spawn, of functions of the script."""
    script = (
        TELLING + "import multiprocessing\ndef square(n): return n * n\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn'):\n"
        "        with multiprocessing.get_context(method).Pool(2) as pool: print(pool.map(square, range(3)))\n"
    )
    results = await three(runtime, scripted(bench, script))
    assert [result[0] for result in results] == [0, 0, 0]
    assert [result[1].count(b"[0, 1, 4]") for result in results] == [2, 2, 2]
    assert results[2][1].startswith(LOADED)


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
    async with asyncio.timeout(30):
        while lesson.zygote is not None:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts tasks as somebody else")
async def test_somebody_elses_trials_start_by_themselves(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """The agent's own user loads nothing for a mapped user."""
    mapped = msgspec.structs.replace(scripted(bench, TELLING), uid=65534, gid=65534)
    for _ in range(3):
        with pytest.raises(Exception, match="65534"):
            await runtime.start(mapped, placement())
    assert runtime._zygotes._lessons == {}
