"""A script that starts where its imports are loaded already cannot tell: the same goes in and comes out."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.core.hangs.stacks import StackReader, of_script
from tenax.runtime.forking import zygotes
from tenax.runtime.process import ProcessRuntime
from tests.kits.interpreters import interpreters
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import output, placement, until_exited, until_printed
from tests.kits.trial_spec import result_of
from tests.kits.warm_start import LOADED, NOT_LOADED, TELLING, Installed, scripted, three, with_files


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[ProcessBench]:
    machine = ProcessBench(tmp_path / "agent")
    yield machine
    await machine.clean()


#: All that a script can know of how it was started; SigQ counts the signals of all processes of this user.
LISTING = """
import json, os, signal, sys, tempfile, threading
loaded = 'colorsys' in sys.modules
import colorsys
status = open('/proc/self/status').read().splitlines()
shown = {name: open('/proc/self/' + name).read() for name in ('cmdline', 'comm', 'environ')}
print(json.dumps({
    'argv': sys.argv, 'orig': getattr(sys, 'orig_argv', []),
    'executable': sys.executable, 'path': sys.path, 'prefix': sys.prefix,
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


@pytest.mark.parametrize("python", interpreters())
async def test_on_every_python(bench: ProcessBench, runtime: ProcessRuntime, python: str) -> None:
    """The same under each Python that tasks may have, with its library on PYTHONPATH."""
    script = f"{LISTING}import pickle, warnings\nclass Point: pass\nkept = open('kept.txt', 'w')\nkept.write('x')\n"
    script += "assert type(pickle.loads(pickle.dumps(Point()))) is Point\ndef fails(): raise KeyError('no')\nfails()\n"
    results = await three(runtime, scripted(bench, script, DET_PYTHON_EXECUTABLE=python))
    assert [result[0] for result in results] == [1, 1, 1]
    assert results[1][2] == results[0][2]
    assert results[2][2] == results[0][2]
    assert [result[1].splitlines(keepends=True)[-1] for result in results] == [NOT_LOADED, NOT_LOADED, LOADED]
    alone, noting, warm = [comparable(result[1]) for result in results]
    assert noting == alone
    assert warm == alone


def comparable(printed: bytes) -> dict[str, object]:
    """Without addresses; of tenax there is a copy, with the same content."""
    seen: dict[str, object] = json.loads(re.sub(rb" at 0x[0-9a-f]+", b"", printed.splitlines()[0]))
    env, path = seen["env"], seen["path"]
    assert isinstance(env, dict)
    assert isinstance(path, list)
    assert env.pop("TMPDIR")
    assert env.pop("PYTHONPATH").split(":")[0] == path.pop(1)
    return seen


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("def deep(n): return 1 / n\ndeep(0)", 1),
        (
            "import atexit, pickle, sys\nclass Point: pass\nprint(type(pickle.loads(pickle.dumps(Point()))) is Point)\n"
            "atexit.register(sys.stdout.write, 'no newline'); atexit.register(print, 'first')\n"
            "raise SystemExit('enough')",
            1,
        ),
        pytest.param("raise SystemExit('enough')", 1, marks=pytest.mark.long),
        pytest.param("raise SystemExit(300)", 300 & 0xFF, marks=pytest.mark.long),
        pytest.param(
            "import sys; sys.excepthook = lambda *seen: print('seen', seen[0], file=sys.stderr)\nraise KeyError(1)",
            1,
            marks=pytest.mark.long,
        ),
        pytest.param("try: 1 / 0\nexcept ZeroDivisionError: int('no')", 1, marks=pytest.mark.long),
        ("exec('def broken(:')", 1),
        pytest.param("import nowhere_to_be_found", 1, marks=pytest.mark.long),
        (
            "import threading; threading.Thread(target=lambda: [waited.wait(), print('thread')]).start()\nwaited.set()",
            0,
        ),
        pytest.param(
            "import atexit; atexit.register(print, 'first'); atexit.register(print, 'then')", 0, marks=pytest.mark.long
        ),
        ("kept = open('kept.txt', 'w'); kept.write('never closed')", 0),
        pytest.param("class Late:\n    def __del__(self): print('deleted')\nlate = Late()", 0, marks=pytest.mark.long),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", None),
        pytest.param(
            "import os, signal; os.kill(os.getpid(), signal.SIGINT); waited.wait()", None, marks=pytest.mark.long
        ),
        pytest.param(
            "import pickle\nclass Point: pass\nprint(type(pickle.loads(pickle.dumps(Point()))) is Point)",
            0,
            marks=pytest.mark.long,
        ),
        pytest.param(
            "import sys; sys.stdout.write('no newline'); sys.stderr.write('\\N{SNOWMAN}')", 0, marks=pytest.mark.long
        ),
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
    installed.install("afterwards", "import tempfile\nPLACE = tempfile.gettempdir() + '/downloads'\n")
    script = (
        "import os, setting\nprint(os.environ['CACHE'] == os.environ['TMPDIR'] + '/cache'"
        " and setting.afterwards.PLACE == os.environ['TMPDIR'] + '/downloads')\n"
    ) + TELLING
    results = await three(runtime, scripted(bench, script, DET_PYTHON_EXECUTABLE=installed.python))
    assert [result[1] for result in results] == [b"True\n" + NOT_LOADED] * 2 + [b"True\n" + LOADED]


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


async def test_a_stack_begins_with_the_script(bench: ProcessBench, runtime: ProcessRuntime) -> None:
    """Who asks where a script stands is told its own lines alone, as of one in an interpreter of its own."""
    await three(runtime, scripted(bench, TELLING))
    task_spec = scripted(
        bench, TELLING + "import os, time\ndef waits():\n    os.write(1, b'waiting')\n    time.sleep(600)\nwaits()\n"
    )
    await runtime.start(task_spec, placement())
    await until_printed(runtime, task_spec.container_id, b"waiting")
    status = await runtime.inspect(task_spec.container_id)
    assert status is not None
    assert status.pid is not None
    stack = StackReader()._by_py_spy(status.pid)
    await runtime.remove(task_spec.container_id)
    assert stack is not None
    assert len(stack) > 2
    assert [(Path(frame.file).name, frame.function) for frame in of_script(stack)] == [
        ("train.py", "waits"),
        ("train.py", "<module>"),
    ]


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
