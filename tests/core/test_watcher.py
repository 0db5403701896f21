"""What a watcher of ranks takes for work."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tenax.core.hangs import beats, processes
from tenax.core.hangs.places import Frame
from tenax.core.hangs.processes import Activity
from tenax.core.hangs.settings import HangSettings
from tenax.core.hangs.stacks import StackReader
from tenax.core.hangs.verdict import Hang
from tenax.core.hangs.watcher import HangWatcher
from tests.exec.place import SOURCE

SAVES = """
    import sys
    from tenax.core.hangs import beats
    beats.OWN.open(0, 1)
    beats.OWN.at(1)
    with beats.OWN.during(beats.SAVE):
        print("saves", flush=True)
        sys.stdin.readline()
"""


class Heard:
    """What a watcher says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def hangs(self, hang: Hang, stacks: object) -> None:
        self.said.append(hang.sentence)

    def shows(self, stacks: object) -> None:
        raise AssertionError("there is no other machine")

    def goes_on(self, seconds: float) -> None:
        raise AssertionError("nothing goes on")


@pytest.mark.parametrize(("asked", "own", "hangs"), [(1.0, 0.0, True), (0.0, 1.0, False), (1.0, 1.0, False)])
def test_to_say_where_it_stands_is_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: float, own: float, hangs: bool
) -> None:
    """On a busy machine a rank waits long for a core to answer, and one that hung in a save was never named."""
    answers, looks = [0], [0]

    def answer(*_: object) -> tuple[Frame, ...]:
        answers[0] += 1
        return (Frame("train.py", 7, "<module>"),)

    def activity(_: object) -> Activity:
        looks[0] += 1
        # Of two looks of a sample the first has what it did by itself since the last one.
        return Activity(asked * answers[0] + own * ((looks[0] + 1) // 2))

    monkeypatch.setattr(StackReader, "main_thread", answer)
    monkeypatch.setattr(processes, "activity", activity)
    heard = Heard()
    watcher = HangWatcher(str(tmp_path), HangSettings(), heard)
    env = {"PYTHONPATH": SOURCE, beats.DIRECTORY: str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(SAVES)]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "saves\n"
        for second in range(100):
            watcher.step(1000.0 + second)
        process.kill()
    assert bool(heard.said) is hangs
