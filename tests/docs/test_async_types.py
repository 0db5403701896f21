"""The types of the asynchronous SDK are current, and hold whoever uses it to awaiting what is to be awaited."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.async_types import STUB, stub

ROOT = Path(__file__).resolve().parents[2]
#: Every kind of call.
GOOD = """
import asyncio
from typing import List, Optional

from tenax.client import AsyncCheckpoint, AsyncClient, AsyncCommand, AsyncExperiment, AsyncStream, AsyncTrial
from tenax.client import LogFilter, LogLine


def shown(now: AsyncExperiment) -> None:
    print(now.state, now.progress)


def enough(now: AsyncCommand) -> bool:
    return now.state == "RUNNING"


async def lines_of(trial: AsyncTrial) -> List[str]:
    stream: AsyncStream[LogLine] = trial.logs(follow=True, where=LogFilter(level="error"))
    lines = [line.message async for line in stream]
    await stream.aclose()
    return lines


async def main() -> None:
    async with AsyncClient("http://127.0.0.1:8080", token="t") as client:
        experiment = await client.create_experiment("config.yaml", "code")
        experiment = await experiment.wait(interval=2.0, seen=shown)
        ended: bool = experiment.has_ended
        left: Optional[float] = experiment.left_s
        trials = await experiment.trials()
        reloaded: List[AsyncTrial] = list(await asyncio.gather(*(trial.reload() for trial in trials)))
        frame = trials.to_pandas()
        best: AsyncCheckpoint = await experiment.best_checkpoint()
        version = await (await client.create_model("m")).register_version(best)
        again: AsyncCheckpoint = version.checkpoint
        values = [report.metrics async for report in reloaded[0].iter_metrics("training")]
        rows = (await reloaded[0].metrics("validation")).columns()
        more, remarks = await experiment.continued()
        command = await (await client.run_command(["true"])).wait(seen=enough)
        print(ended, left, frame, again, values, rows, more.id, remarks, command.exit_code, await lines_of(trials[0]))
    await client.close()


asyncio.run(main())
"""
#: Mistakes, each in a line of its own.
BAD = """
from tenax.client import AsyncClient, AsyncExperiment


async def main(client: AsyncClient, experiment: AsyncExperiment) -> None:
    experiment.pause()
    client.experiment(7).state
    for trial in experiment.trials():
        print(trial)
    for line in experiment.logs():
        print(line)
    await experiment.has_ended
    experiment.name = "other"
    experiment.session.get("/")
    await experiment.edit(nme="other")
    await client.experiment("7")
"""

#: What the sources of the SDK use is not read, where no type of it is one of the SDK's: torch alone is half of all.
#: Mistakes in those sources are found by `make check`.
SETTINGS = """
[mypy]
strict = True
[mypy-tenax.*]
follow_imports = silent
[mypy-torch.*,numpy.*,azure.*,cryptography.*,rich.*,filelock.*]
follow_imports = skip
"""


def test_the_types_are_current() -> None:
    """They were made of the synchronous SDK as it is now: make docs."""
    assert STUB.read_text() == stub()


def test_types_are_those_of_the_calls(tmp_path: Path) -> None:
    """mypy --strict passes what uses every kind of call, and refuses each mistake, a forgotten await among them."""
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--cache-dir=/dev/null", "good.py", "bad.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    errors = re.findall(r"^(.+?):(\d+): error: ", done.stdout, re.MULTILINE)
    lines = BAD.splitlines()
    first = lines.index("    experiment.pause()") + 1
    expected = {number for number in range(first, len(lines) + 1) if "print(" not in lines[number - 1]}
    assert {name for name, _ in errors} == {"bad.py"}, done.stdout + done.stderr
    assert {int(number) for _, number in errors} == expected, done.stdout


def test_whoever_installs_the_package_has_its_types() -> None:
    """Type checkers read types of a package that is installed only where it says that it has some."""
    assert (STUB.parents[2] / "py.typed").exists()
