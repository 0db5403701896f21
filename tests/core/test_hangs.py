"""When ranks hang, and in which words: values in, values out; and the files of their beats."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.config.schema.hang import HangConfig, HangPolicy
from tenax.core.hangs import beats
from tenax.core.hangs.beats import EVALUATE, JOIN, LEFT, SAVE, START, TRAIN
from tenax.core.hangs.places import Frame, place_of, worker_place
from tenax.core.hangs.settings import OFF, RESTART, WARN, HangSettings
from tenax.core.hangs.stacks import from_faulthandler, from_py_spy
from tenax.core.hangs.verdict import Hang, RankClock, RankState, judge
from tenax.core.hangs.watcher import HangWatcher
from tests.exec.place import SOURCE
from tests.kits.interpreters import interpreters

DISTRIBUTED = "/env/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
LOADER = "/env/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
WORKER = "/env/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py"


def test_policies_are_those_of_the_configuration() -> None:
    """Tasks know no schema: what they read is the same, defaults too."""
    assert {WARN, RESTART, OFF} == {policy.value for policy in HangPolicy}
    plain, configured = HangSettings.of({}), HangConfig()
    assert (plain.after, plain.policy) == (configured.after, configured.policy.value)


def clock(*steps: float, after: float = 60.0, tick: float = 1.0) -> tuple[RankClock, float]:
    """A rank that trained with these seconds between its beats, and the time by now."""
    made, now, count = RankClock(after, tick), 0.0, 1
    made.observe(now, count, TRAIN)
    for seconds in steps:
        for _ in range(int(seconds / tick)):
            now += tick
            made.observe(now, count, TRAIN)
        count += 1
        now += seconds % tick
        made.observe(now, count, TRAIN)
    return made, now


def test_the_limit_is_after_or_ten_times_the_usual_step() -> None:
    """The usual step is the 99th percentile of the rank's own; of fewer than a hundred, the longest."""
    assert clock(*[0.1] * 50)[0].limit_s == 60
    assert clock(*[0.1] * 50, 20.0)[0].limit_s == pytest.approx(200)
    assert clock(*[0.1] * 98, 20.0, 30.0)[0].limit_s == pytest.approx(200)
    assert clock(*[0.1] * 199, 20.0)[0].limit_s == 60
    assert clock(20.0, *[0.1] * 1100)[0].limit_s == 60


def test_many_beats_between_two_observations() -> None:
    """A pause, and then many steps at once: the pause was one step."""
    made = RankClock(60, 1)
    for now in range(31):
        made.observe(now, 1, TRAIN)
    made.observe(31, 50, TRAIN)
    assert made.limit_s == pytest.approx(310)


def test_silence_counts_from_the_last_beat() -> None:
    """Also of one that is in another phase now."""
    made, now = clock(0.5)
    made.observe(now + 1, 2, TRAIN)
    assert made.silent_s == 1
    made.observe(now + 2, 3, TRAIN)
    assert made.silent_s == 0
    made.observe(now + 3, 4, SAVE)
    assert made.silent_s == 0
    made.observe(now + 4, 4, SAVE)
    assert made.silent_s == 1


def test_a_stopped_rank_and_a_stopped_watcher_make_no_silence() -> None:
    """SIGSTOP, a frozen container, a suspended machine: only what was observed counts."""
    made, now = clock(0.5)
    for second in range(100):
        made.observe(now + second, 2, TRAIN, stopped=True)
    assert made.silent_s == 0
    made.observe(now + 3600, 2, TRAIN)
    assert made.silent_s == 5


@given(st.lists(st.floats(0.01, 59), min_size=1, max_size=60), st.floats(61, 900))
def test_no_rank_is_late_before_its_limit_nor_long_after(steps: list[float], silence: float) -> None:
    """Whatever it did before: while it beats within ``after`` it is never late, and then it is, a tick late at most."""
    made, now = clock(*steps)
    assert made.silent_s < 60 <= made.limit_s <= max(60, 10 * (max(steps) + 1))
    late_at = None
    for second in range(1, int(silence) + 1):
        made.observe(now + second, len(steps) + 1, TRAIN)
        if late_at is None and made.silent_s >= made.limit_s:
            late_at = second
    if late_at is None:
        assert int(silence) < made.limit_s + 1
    else:
        assert -1e-6 < late_at - made.limit_s < 1 + 1e-6


def rank(number: int, place: str = "", **changes: object) -> RankState:
    """One that stands where it is said; without a place it goes on."""
    made = RankState(number, TRAIN, 41, 7, 61.0 if place else 0.2, 60.0, bool(place), False, place, False, "")
    return replace(made, **changes)  # type: ignore[arg-type]


def waiting(number: int, call: str = "all_reduce", **changes: object) -> RankState:
    return rank(number, f"waits in {call} (train.py:60)", waits=True, **changes)


def said(states: list[RankState], size: int = 0, complete: bool = True) -> str:
    hang = judge(states, size or len(states), complete)
    return hang.sentence if hang is not None else ""


def test_as_a_person_would_say_it() -> None:
    """Who stands where: the rank that holds the others up first."""
    loads = rank(3, "waits for its data loader (train.py:50)", step=4210, worker="stands at data.py:88")
    ranks = [waiting(n, step=4211) for n in range(3)]
    assert said([*ranks, loads]) == (
        "rank 3 waits for its data loader (train.py:50) at step 4,210; ranks 0 to 2 wait in all_reduce (train.py:60) "
        "at step 4,211; rank 3's data loader stands at data.py:88. No step for 61 s"
    )


SENTENCES = [
    ([rank(0, "stands at train.py:5", step=-1)], "the script stands at train.py:5. No step for 61 s"),
    (
        [rank(0, "stands at train.py:5"), rank(1, step=42)],
        "rank 0 stands at train.py:5 at step 41; rank 1 is at step 42. No step for 61 s",
    ),
    (
        [rank(0, "stands at train.py:5", phase=SAVE), waiting(1, step=-1)],
        "rank 0 saves a checkpoint and stands at train.py:5 at step 41; rank 1 waits in all_reduce (train.py:60). No "
        "step for 61 s",
    ),
    (
        [waiting(0), waiting(1, "barrier")],
        "rank 0 waits in all_reduce (train.py:60) at step 41; rank 1 waits in barrier (train.py:60) at step 41. No "
        "step for 61 s: all ranks must make the same collective calls, in the same order",
    ),
    (
        [waiting(0), rank(1, phase=LEFT)],
        "rank 1 has ended at step 41; rank 0 waits in all_reduce (train.py:60) at step 41. No step for 61 s: the "
        "others wait for a rank that is gone. All ranks must do the same number of steps",
    ),
    (
        [rank(0, "x", phase=JOIN, step=-1, beats=0), rank(1, "stands at data.py:7", phase=START, step=-1, beats=0)],
        "rank 1 has not come to the others and stands at data.py:7; rank 0 waits for the others to come. No step for "
        "61 s: look at the output of rank 1 (tenax trial logs ID --rank-id 1). Every rank must come to "
        "core.DistributedContext.from_torch_distributed(); those that come wait for it",
    ),
]


@pytest.mark.parametrize(("states", "sentence"), SENTENCES)
def test_sentences(states: list[RankState], sentence: str) -> None:
    """Each names who stands where, and what to do where the place does not say it."""
    assert said(states) == sentence


def test_a_rank_that_never_comes() -> None:
    """Without a process of its own it is named all the same; where others may be elsewhere, nothing is said."""
    states = [rank(n, "x", phase=JOIN, step=-1, beats=0) for n in (0, 1)]
    assert said(states, 4).startswith("ranks 2 and 3 have not come; ranks 0 and 1 wait for the others to come")
    assert said(states, 4, complete=False) == ""


NO_HANG = {
    "it beats": [rank(0), rank(1)],
    "silent, and not for long": [rank(0, "stands at x.py:1", silent_s=59.0)],
    "silent, and its stack changes": [rank(0, "stands at x.py:1", stands=False)],
    "no step yet": [rank(0, "stands at x.py:1", beats=0)],
    "after the context was closed": [rank(0, "stands at x.py:1", phase=LEFT)],
    "its own usual step is long": [rank(0, "stands at x.py:1", limit_s=400.0)],
    "the others wait for one that evaluates": [rank(0, silent_s=900.0, phase=EVALUATE), waiting(1)],
    "the others wait for one that saves": [rank(0, silent_s=900.0, phase=SAVE), waiting(1)],
    "the others wait for one that compiles": [rank(0, silent_s=900.0), waiting(1), waiting(2)],
    "one has not come yet, and computes": [rank(0, "x", phase=JOIN), rank(1, phase=START, silent_s=900.0)],
    "it has ended": [rank(0, "stands at x.py:1", gone=True)],
}


@pytest.mark.parametrize("states", NO_HANG.values(), ids=NO_HANG)
def test_no_hang(states: list[RankState]) -> None:
    """What may go on does not hang."""
    assert said(states) == ""


def test_some_elsewhere_are_not_known() -> None:
    """Those here may wait for one of them; where one here waits for nobody it hangs all the same."""
    assert said([waiting(0), waiting(1)], 4, complete=False) == ""
    assert said([waiting(0), rank(1, "stands at x.py:1")], 4, complete=False).startswith("rank 1 stands")
    assert said([waiting(n) for n in range(4)], 4).startswith("ranks 0 to 3 wait")


@given(st.permutations([waiting(0), waiting(1), rank(2, "stands at x.py:9"), rank(3)]))
def test_the_order_of_ranks_does_not_matter(states: list[RankState]) -> None:
    """Who hangs is named first."""
    hang = judge(states, 4, True)
    assert isinstance(hang, Hang)
    assert hang.sentence.startswith("rank 2 stands at x.py:9 at step 41; rank")
    assert set(hang.beats) == {0, 1, 2}


def test_to_another_machine_and_back() -> None:
    """A rank's state comes as it went."""
    assert RankState.from_json(waiting(3).to_json()) == waiting(3)


USER = Frame("/home/me/train.py", 60, "train")
SLEEPS = Frame("/usr/lib/python3.12/threading.py", 355, "wait")
STACKS = [
    (
        [Frame(DISTRIBUTED, 2806, "all_reduce"), Frame(DISTRIBUTED, 81, "wrapper"), USER],
        "waits in all_reduce (train.py:60)",
    ),
    (
        [Frame(DISTRIBUTED, 1, "all_gather"), Frame(DISTRIBUTED, 2, "all_gather_object"), USER],
        "waits in all_gather_object (train.py:60)",
    ),
    (
        [
            Frame("/x/tenax/core/collectives.py", 300, "_read_exactly"),
            Frame("/x/tenax/core/collectives.py", 60, "broadcast"),
            Frame("/x/tenax/core/preempt.py", 120, "should_preempt"),
            USER,
        ],
        "waits in should_preempt (train.py:60)",
    ),
    (
        [Frame("/env/lib/python3.12/site-packages/torch/autograd/graph.py", 800, "_engine_run_backward"), USER],
        "waits in backward (train.py:60)",
    ),
    ([SLEEPS, Frame(LOADER, 1, "_try_get_data"), USER], "waits for its data loader (train.py:60)"),
    ([SLEEPS, USER], "stands at train.py:60, `LOCK.acquire()`"),
    ([SLEEPS], "stands at threading.py:355, `LOCK.acquire()`"),
]


@pytest.mark.parametrize(("stack", "words"), STACKS)
def test_places(stack: list[Frame], words: str) -> None:
    """A call of several ranks by its name, else the innermost line of the user's own."""
    place = place_of(stack, True, lambda file, line: "    LOCK.acquire()\n")
    assert place is not None
    assert place.text == words
    assert place.waits == words.startswith(("waits in",))


def test_what_may_take_its_time() -> None:
    """A compiler, the master, and a program that it has started."""
    compiles = place_of([Frame("/e/site-packages/torch/_inductor/codecache.py", 9, "load"), USER], False, lambda *_: "")
    asks = place_of([Frame("/x/tenax/client/task.py", 9, "attempt"), USER], False, lambda *_: "")
    runs = place_of([Frame("/usr/lib/python3.12/subprocess.py", 1200, "wait"), USER], False, lambda *_: "")
    assert compiles is not None
    assert asks is not None
    assert runs is not None
    assert compiles.excused
    assert asks.excused
    assert runs.runs_program


def test_a_worker_with_nothing_to_do_is_not_where_it_hangs() -> None:
    """Only one that is in the data set's own code."""
    loop = Frame(WORKER, 250, "_worker_loop")
    data = Frame("/home/me/data.py", 88, "__getitem__")
    idle = (SLEEPS, loop, USER)
    busy = (SLEEPS, data, Frame(WORKER.replace("worker", "fetch"), 50, "fetch"), loop, USER)
    assert worker_place(idle, lambda *_: "") is None
    place = worker_place(busy, lambda *_: "")
    assert place is not None
    assert place.text == "stands at data.py:88"


def test_what_py_spy_and_faulthandler_print() -> None:
    """The main thread's frames, innermost first."""
    threads = [
        {"os_thread_id": 8, "thread_name": "other", "frames": []},
        {"os_thread_id": 7, "frames": [{"filename": "/a.py", "line": 3, "name": "f"}]},
    ]
    assert from_py_spy(threads, 7) == (Frame("/a.py", 3, "f"),)  # type: ignore[arg-type]
    text = (
        'Thread 0x000000000000000a (most recent call first):\n  File "/b.py", line 1 in g\n\n'
        'Current thread 0x000000000000000b (most recent call first):\n  File "/a.py", line 3 in f\n'
    )
    assert from_faulthandler(text, 11) == (Frame("/a.py", 3, "f"),)
    assert from_faulthandler(text, 10) == (Frame("/b.py", 1, "g"),)


BEATING = """
    import os, sys, time
    from tenax.core.hangs import beats
    beats.OWN.open(2, 4)
    beats.OWN.at(17)
    if os.fork() == 0:
        beats.OWN.at(99)
        os._exit(0)
    os.wait()
    with beats.OWN.during(beats.SAVE):
        print("saving", flush=True)
        sys.stdin.readline()
"""


@pytest.mark.parametrize("python", interpreters())
def test_beats_of_a_process(tmp_path: Path, python: str) -> None:
    """Another process reads rank, step and phase while it runs; a child of it beats nowhere; its end is seen."""
    env = {"PYTHONPATH": SOURCE, beats.DIRECTORY: str(tmp_path)}
    command = [python, "-c", textwrap.dedent(BEATING)]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "saving\n"
        (record,) = beats.read_all(str(tmp_path))
        assert (record.rank, record.size, record.step, record.phase) == (2, 4, 17, SAVE)
        assert record.pid == process.pid
        assert beats.start_ticks(record.pid) == record.start
        process.stdin.write("\n")
        process.stdin.close()
        process.wait(240)
    assert beats.start_ticks(record.pid) == 0


def test_who_speaks_for_a_rank(tmp_path: Path) -> None:
    """A rank that was started is there before it says so itself; of two processes, the one that runs."""
    beats.announce(str(tmp_path), 1, 2, os.getpid())
    (record,) = beats.read_all(str(tmp_path))
    assert (record.rank, record.phase, record.pid) == (1, START, os.getpid())
    with subprocess.Popen(["sleep", "60"]) as other:
        beats.announce(str(tmp_path), 1, 2, other.pid)
        other.send_signal(signal.SIGKILL)
    (record,) = beats.read_all(str(tmp_path))
    assert record.pid == os.getpid()


def test_without_a_watcher_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beats are this process's own then."""
    monkeypatch.delenv(beats.DIRECTORY, raising=False)
    own = beats.Beats()
    own.open(0, 1)
    own.at(3)
    own.at("three")  # type: ignore[arg-type]
    assert own.step == 3
    assert own.path == ""


def test_the_stack_of_a_process_by_its_own_handler(tmp_path: Path) -> None:
    """Where there is no py-spy, and for what it forks; a process without a handler gets no signal."""
    reader = """
        import sys
        from tenax.core.hangs import beats, stacks
        (record,) = beats.read_all(sys.argv[1])
        reader = stacks.StackReader()
        reader._py_spy = ""
        for pid in map(int, sys.argv[2:]):
            print([frame.function for frame in reader.main_thread(record, pid, beats.start_ticks(pid))])
    """
    hangs = """
        import os, time
        from tenax.core.hangs import beats
        def child(): os.write(1, b"%d\\n" % os.getpid()); time.sleep(60)
        def parent(): time.sleep(60)
        beats.OWN.open(0, 1)
        child() if os.fork() == 0 else parent()
    """
    env = {"PYTHONPATH": SOURCE, beats.DIRECTORY: str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(hangs)]
    with (
        subprocess.Popen(["sleep", "60"]) as stranger,
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            words = [sys.executable, "-c", textwrap.dedent(reader), str(tmp_path)]
            words += [str(process.pid), str(child), str(stranger.pid)]
            done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
        finally:
            os.kill(child, signal.SIGKILL)
            process.kill()
        assert stranger.poll() is None
        stranger.kill()
    assert done.stdout.splitlines() == ["['parent', '<module>']", "['child', '<module>']", "[]"]


class Heard:
    """What a watcher says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def hangs(self, hang: Hang, stacks: object) -> None:
        self.said.append(hang.sentence)

    def shows(self, stacks: object) -> None:
        raise AssertionError("there is no other machine")

    def goes_on(self, seconds: float) -> None:
        self.said.append(f"goes on after {seconds:.0f} s")


WAITS = """
    import sys
    from tenax.core.hangs import beats
    beats.OWN.open(0, 1)
    for line in sys.stdin:
        beats.OWN.at(int(line))
        print(line, end="", flush=True)
"""


@pytest.fixture
def waits(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A rank that completes a step for each number that it reads."""
    env = {"PYTHONPATH": SOURCE, beats.DIRECTORY: str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(WAITS)]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def completes(process: subprocess.Popen[str], step: int) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{step}\n")
    process.stdin.flush()
    assert process.stdout.readline() == f"{step}\n"


def test_at_the_stated_threshold(tmp_path: Path, waits: subprocess.Popen[str]) -> None:
    """By a clock of its own: after a minute it is said, and once; that it goes on, too; and a minute later again."""
    heard = Heard()
    watcher = HangWatcher(str(tmp_path), HangSettings(), heard)
    completes(waits, 1)
    for second in range(60):
        watcher.step(1000.0 + second)
    assert heard.said == []
    for second in range(60, 100):
        watcher.step(1000.0 + second)
    (sentence,) = heard.said
    assert sentence.startswith("the script stands at <string>:5 at step 1. No step for 60 s")
    completes(waits, 2)
    watcher.step(1100.0)
    assert heard.said[1:] == ["goes on after 40 s"]
    for second in range(101, 161):
        watcher.step(1000.0 + second)
    assert len(heard.said) == 3


def test_a_stopped_process_does_not_hang(tmp_path: Path, waits: subprocess.Popen[str]) -> None:
    """SIGSTOP stops its clock, for as long as it may be; it is watched again once it goes on."""
    heard = Heard()
    watcher = HangWatcher(str(tmp_path), HangSettings(), heard)
    completes(waits, 1)
    watcher.step(0.0)
    waits.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, waits.pid, os.WSTOPPED | os.WNOWAIT)
    for second in range(1, 500):
        watcher.step(float(second))
    assert heard.said == []
    waits.send_signal(signal.SIGCONT)
    os.waitid(os.P_PID, waits.pid, os.WCONTINUED | os.WNOWAIT)
    for second in range(500, 562):
        watcher.step(float(second))
    assert len(heard.said) == 1


def test_a_watcher_that_was_stopped_itself(tmp_path: Path, waits: subprocess.Popen[str]) -> None:
    """With all of its container, or machine: the time in which it saw nothing is no silence."""
    heard = Heard()
    watcher = HangWatcher(str(tmp_path), HangSettings(), heard)
    completes(waits, 1)
    for hour in range(10):
        watcher.step(3600.0 * hour)
    assert heard.said == []
