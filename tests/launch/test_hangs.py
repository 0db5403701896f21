"""Two real ranks of gloo that hang, under the first program of a trial; and what is no hang."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tenax.core.hangs.beats import TRAIN
from tenax.core.hangs.verdict import RankState
from tenax.jsonvalue import JsonObject
from tenax.launch.hangs import OtherMachines
from tests.exec.place import Place
from tests.kits import task_master
from tests.kits.hanging import KINDS, TWO_RANKS, line_of, script
from tests.kits.task_master import TaskMaster

#: Of this interpreter, and of what is installed with it.
HOME = str(Path(sys.executable).parent)
HANGS = "WARNING: tenax: this trial hangs: "


@pytest.fixture
def master() -> Iterator[TaskMaster]:
    with task_master.running() as master:
        yield master


class HangingPlace(Place):
    """What is started there ends with the test."""

    def __init__(self, root: Path, master: TaskMaster) -> None:
        super().__init__(root, master)
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, python: str = sys.executable, *, before: Sequence[str] = (), **env: str) -> subprocess.Popen[str]:
        process = super().start(python, before=before, **env)
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
            process.communicate(timeout=240)


@pytest.fixture
def place(tmp_path: Path, master: TaskMaster) -> Iterator[Place]:
    made = HangingPlace(tmp_path, master)
    yield made
    made.end()


def with_py_spy(place: Place) -> None:
    """The tasks of this place have it, as they have it where it is installed for them."""
    assert shutil.which("py-spy", path=HOME)
    place.env["PATH"] = f"{HOME}{os.pathsep}{os.environ['PATH']}"


def without_ptrace(place: Place) -> None:
    """They have it, and the machine lets no process look into another: these are its words then, and its code."""
    refusing = place.work.parent / "bin" / "py-spy"
    refusing.parent.mkdir()
    refusing.write_text(
        "#!/bin/sh\necho 'Permission Denied: Try running again with elevated permissions' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    place.env["PATH"] = f"{refusing.parent}{os.pathsep}{HOME}{os.pathsep}{os.environ['PATH']}"


def launched(place: Place, text: str, *words: str, after: float, policy: str = "warn") -> subprocess.Popen[str]:
    """A trial of two slots, started with these words."""
    (place.work / "train.py").write_text(script(text))
    for kind in KINDS:
        os.mkfifo(place.work / kind)
    place.configure(
        entrypoint=f"python3 -m tenax.launch.torch_distributed python3 train.py {' '.join(words)}",
        hang={"after": after, "policy": policy},
        resources={"slots_per_trial": 2},
    )
    return place.start(DET_SLOT_IDS="[0, 1]", OMP_NUM_THREADS="1")


def one_process(place: Place, text: str, after: float = 1.0, policy: str = "warn") -> subprocess.Popen[str]:
    """A trial of one slot, without a launcher."""
    (place.work / "train.py").write_text(script(text))
    place.configure(entrypoint="python3 train.py", hang={"after": after, "policy": policy})
    return place.start()


def until_it_hangs(process: subprocess.Popen[str]) -> tuple[str, list[str]]:
    """The sentence, and the lines of output before it."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        if HANGS in line:
            return line.strip().partition(HANGS)[2], lines
        lines.append(line)
    raise AssertionError(f"it did not hang: {lines}")


def named(kind: str) -> str:
    """A pattern of what is to be said."""
    at = {name: f"train.py:{line_of(TWO_RANKS, name)}" for name in KINDS}
    ends, step = r"\. No step for \d+ s", r"at step \d+"
    return {
        "loader": (
            rf"rank 1 waits for its data loader \(train.py:\d+\) {step}; rank 0 waits in \w+ \(train.py:\d+\) {step}; "
            rf"rank 1's data loader stands at {at['loader']}, `open\(.loader.\).read\(\).*`{ends}"
        ),
        "checkpoint": (
            rf"rank 0 saves a checkpoint and stands at {at['checkpoint']}, `\(path / .*` {step}; rank 1 waits in "
            rf"all_reduce \({at['collective']}\) {step}{ends}"
        ),
        "lock": (
            rf"rank 1 stands at {at['lock']}, `LOCK.acquire\(\).*` {step}; rank 0 waits in all_reduce "
            rf"\({at['collective']}\) {step}{ends}"
        ),
        "collective": (
            rf"rank 0 waits in all_reduce \({at['collective']}\) {step}; rank 1 waits in should_preempt "
            rf"\(train.py:\d+\) {step}{ends}: all ranks must make the same collective calls, in the same order"
        ),
    }[kind]


def hang_one_after_another(place: Place, process: subprocess.Popen[str], kinds: Sequence[str] = KINDS) -> list[str]:
    """The sentence of each kind; what can be mended is."""
    sentences = []
    for kind in kinds:
        sentence, _ = until_it_hangs(process)
        assert re.fullmatch(named(kind), sentence), (kind, sentence)
        sentences.append(sentence)
        if kind != "collective":
            (place.work / kind).write_text("go on")
    return sentences


@pytest.mark.parametrize(
    ("prepare", "kinds"),
    [
        (with_py_spy, ("loader", "collective")),
        (without_ptrace, ("lock", "collective")),
        # A save may take its time while it does a little of anything: of that a machine that is very busy sees much.
        *(pytest.param(prepare, KINDS, marks=pytest.mark.long) for prepare in (with_py_spy, without_ptrace)),
    ],
)
def test_a_rank_that_hangs_is_named(
    place: Place, master: TaskMaster, prepare: Callable[[Place], None], kinds: Sequence[str]
) -> None:
    """Which rank stands where, in the log and to the master: in its data loader or a collective by py-spy; in a lock or
    a collective by the ranks' own handlers, where that is refused. The long run has each kind by both, a checkpoint
    too.
    """
    prepare(place)
    process = launched(place, TWO_RANKS, *kinds, after=1.0)
    sentences = hang_one_after_another(place, process, kinds)
    assert process.stdout is not None
    assert process.stdout.readline() == "[rank=0] tenax: the main thread of rank 0, innermost call first:\n"
    assert process.stdout.readline().startswith('[rank=0]   File "')
    # Between two it is said that the trial goes on.
    expected = [word for sentence in sentences for word in (sentence, "")][:-1]
    master.wait_for(lambda: len(master.bodies_of("hang")) == len(expected))
    assert [body["sentence"] for body in master.bodies_of("hang")] == expected


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("run", range(4))
def test_a_rank_that_hangs_is_named_after_a_minute(
    place: Place, record_property: Callable[..., None], run: int
) -> None:
    """At the default, each kind in four runs of four, two by py-spy and two by the ranks' own handlers."""
    (with_py_spy if run % 2 else without_ptrace)(place)
    process = launched(place, TWO_RANKS, *KINDS, after=60.0)
    sentences = hang_one_after_another(place, process)
    seconds = [int(re.findall(r"No step for (\d+) s", sentence)[0]) for sentence in sentences]
    record_property(f"seconds of run {run}", seconds)
    # Later only where a step took more than six seconds, as on a machine that is busy.
    assert all(each >= 60 for each in seconds), seconds


#: Rank 1 does not come; without torch.
ABSENT = """
    import os
    import threading
    from tenax import core
    if os.environ["RANK"] == "1":
        threading.Event().wait()
    core.DistributedContext.from_torch_distributed()
"""
#: Rank 1 takes a lock twice at step 3; without torch.
LOCKS = """
    import threading
    from tenax import core
    with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        lock = threading.Lock()
        for step in range(1, 6):
            context.train.beat(step)
            if step == 3 and context.distributed.rank == 1:
                lock.acquire()
                lock.acquire()
            context.distributed.allgather(step)
"""


def test_a_rank_that_never_arrives(place: Place) -> None:
    """Is named by those who wait for it, with what to do."""
    process = launched(place, ABSENT, after=1.0)
    sentence, _ = until_it_hangs(process)
    assert sentence.startswith("rank 1 has not come to the others")
    assert "; rank 0 waits for the others to come" in sentence
    assert "look at the output of rank 1 (tenax trial logs ID --rank-id 1)" in sentence


def test_restart(place: Place, master: TaskMaster) -> None:
    """The ranks are ended, and the master has the reason before."""
    process = launched(place, LOCKS, after=1.0, policy="restart")
    sentence, _ = until_it_hangs(process)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 128 + signal.SIGKILL, errors
    assert master.bodies_of("hang") == [{"sentence": sentence, "ends": True}]


ALONE = """
    import signal
    import threading
    import time

    from tenax import core

    go_on = threading.Event()
    signal.signal(signal.SIGUSR2, lambda *_: go_on.set())
    with core.init() as context:
        for step in range(1, 4):
            context.train.report_training_metrics(step, {"loss": 1.0})
        print("trained", flush=True)
        go_on.wait()  # here: wait
        context.train.report_training_metrics(4, {"loss": 1.0})
        go_on.clear()
        go_on.wait()
"""


def test_a_script_without_a_launcher(place: Place, master: TaskMaster) -> None:
    """Is watched, too; that it goes on is said, and its end ends whoever watches."""
    process = one_process(place, ALONE)
    sentence, _ = until_it_hangs(process)
    where = f"the script stands at train.py:{line_of(ALONE, 'wait')}, `go_on.wait()  # here: wait` at step 3"
    assert sentence.startswith(f"{where}. No step for ")
    process.send_signal(signal.SIGUSR2)
    assert process.stdout is not None
    assert any("INFO: tenax: this trial goes on, " in line for line in process.stdout)
    master.wait_for(lambda: len(master.bodies_of("hang")) == 2)
    assert [body["sentence"] for body in master.bodies_of("hang")] == [sentence, ""]


def test_the_reason_of_a_single_process(place: Place, master: TaskMaster) -> None:
    """Under the policy ``restart`` the script is killed, once the master knows why."""
    process = one_process(place, ALONE, policy="restart")
    sentence, _ = until_it_hangs(process)
    process.communicate(timeout=240)
    assert process.returncode == -signal.SIGKILL
    assert master.bodies_of("hang") == [{"sentence": sentence, "ends": True}]


def test_nobody_watches(place: Place) -> None:
    """Under the policy ``off`` there are no beats and no watcher."""
    process = one_process(place, "import os\nprint(sorted(set(os.environ) & {'TENAX_BEATS'}))", policy="off")
    assert process.communicate(timeout=240)[0].endswith("\n[]\n")


#: Each does something for several times as long as a rank may be silent, and then says so.
NO_HANGS = {
    "a step that computes": """
        from tenax import core
        import time
        with core.init() as context:
            context.train.report_training_metrics(1, {"loss": 1.0})
            until = time.process_time() + 3
            while time.process_time() < until:
                sum(range(1000))
    """,
    "a long evaluation that moves": """
        from tenax import core
        import time
        def first(n): time.sleep(0.1)
        def second(n): time.sleep(0.1)
        def third(n): time.sleep(0.1)
        def fourth(n): time.sleep(0.1)
        def fifth(n): time.sleep(0.1)
        def sixth(n): time.sleep(0.1)
        with core.init() as context:
            context.train.report_training_metrics(1, {"loss": 1.0})
            # Of two parts a machine with much to do may see the same one each time it looks.
            for n in range(5):
                for part in (first, second, third, fourth, fifth, sixth):
                    part(n)
    """,
    "a save that writes": """
        from tenax import core
        import time
        with core.init() as context:
            context.train.report_training_metrics(1, {"loss": 1.0})
            with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
                with open(path / "state", "wb", buffering=0) as file:
                    for n in range(150):
                        file.write(bytes(65536))
                        time.sleep(0.02)
    """,
    "a program that works": """
        from tenax import core
        import subprocess, sys
        with core.init() as context:
            context.train.report_training_metrics(1, {"loss": 1.0})
            work = "import time\\nuntil = time.process_time() + 3\\nwhile time.process_time() < until: pass"
            subprocess.run([sys.executable, "-c", work], check=True)
    """,
    "a script that only prints": """
        import time
        for n in range(3):
            print(n, flush=True)
            time.sleep(1)
    """,
    "a script that never reports": """
        from tenax import core
        import threading
        with core.init() as context:
            threading.Event().wait(3)
    """,
    "after its context": """
        from tenax import core
        import threading
        with core.init() as context:
            context.train.report_training_metrics(1, {"loss": 1.0})
        threading.Event().wait(3)
    """,
}


@pytest.mark.parametrize("text", NO_HANGS.values(), ids=NO_HANGS)
def test_no_hang(place: Place, text: str) -> None:
    """What goes on, or was never known to go on, is not said to hang."""
    out, errors = one_process(place, text + "\n        print('done', flush=True)\n").communicate(timeout=240)
    assert "this trial hangs" not in out
    assert out.endswith("done\n"), errors


def state(rank: int) -> RankState:
    return RankState(rank, TRAIN, 1, 1, 61.0, 60.0, True, False, f"stands at x.py:{rank}")


def test_what_launchers_tell_one_another() -> None:
    """Once a rank of any machine is near its limit all tell theirs, and the first machine's launcher knows all."""
    told: list[JsonObject] = []
    first, second, third = (OtherMachines(member, 3, 60.0, told.append) for member in range(3))
    assert [machine.decides for machine in (first, second, third)] == [True, False, False]
    assert first.exchange([state(0)], near=False) == ([state(0)], False)
    assert not told
    second.exchange([state(1)], near=True)
    first.hear(told.pop())
    assert first.needs_states
    assert first.exchange([state(0)], near=False) == ([state(0), state(1)], False)
    assert not third.needs_states
    third.hear(told.pop())
    assert third.needs_states
    third.exchange([state(2)], near=False)
    first.hear(told.pop())
    states, complete = first.exchange([state(0)], near=False)
    assert complete
    assert [each.rank for each in states] == [0, 1, 2]
    first.announce()
    second.hear(told.pop())
    assert [second.pop_verdict(), second.pop_verdict(), third.pop_verdict()] == [True, False, False]


def test_news_that_are_old_or_not_understood_say_nothing() -> None:
    """A machine of which nothing is heard may go on."""
    told: list[JsonObject] = []
    first, second = OtherMachines(0, 2, 0.0, told.append), OtherMachines(1, 2, 0.0, told.append)
    second.exchange([state(1)], near=True)
    first.hear(told.pop())
    assert first.exchange([state(0)], near=False) == ([state(0)], False)
    patient = OtherMachines(0, 2, 60.0, told.append)
    patient.hear({"member": 1, "near": True, "ranks": [{"rank": 1}]})
    patient.hear({"member": "x"})
    assert patient.exchange([state(0)], near=False) == ([state(0)], False)
