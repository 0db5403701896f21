"""Ranks that are plain processes: what each is told, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.errors import InvalidInput
from tenax.launch.processes import spawned
from tenax.launch.ranks import RanksHere
from tests.exec.place import SOURCE
from tests.kits.interpreters import interpreters
from tests.kits.machine import wait_for
from tests.launch.members import PORTS, uneven

LAUNCH = ["-m", "tenax.launch.processes", "--nproc_per_node", "3", "--"]
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR")
TELLS = f"import json, os; print(json.dumps([os.environ[name] for name in {NAMES}]))"


def launched(python: str, *command: str, **variables: str) -> subprocess.Popen[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    return subprocess.Popen(
        [python, "-S", *LAUNCH, *command],
        env={**plain, "PYTHONPATH": SOURCE, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("python", interpreters())
def test_each_knows_its_place(python: str) -> None:
    """Under every Python that is served, without any package; each line has its rank."""
    out, _ = launched(python, python, "-c", TELLS).communicate(timeout=240)
    lines = sorted(line.partition("] ") for line in out.splitlines())
    assert [rank for rank, _, _ in lines] == ["[rank=0", "[rank=1", "[rank=2"]
    told = [json.loads(text) for _, _, text in lines]
    assert told == [[str(rank), "3", str(rank), "3", "0", "1", "127.0.0.1"] for rank in range(3)]


def test_uneven_machines() -> None:
    """Ranks are counted through all machines."""
    words = [spawned(RanksHere.of(uneven(member), PORTS), [], ["x"], 29432) for member in (0, 1)]
    assert [line[3:] for line in words] == [
        ["0", "3", "5", "0", "2", "10.0.0.1:29432", "x"],
        ["3", "2", "5", "1", "2", "10.0.0.1:29432", "x"],
    ]


@pytest.mark.parametrize("options", [["--nnodes", "2"], ["--nproc_per_node"], ["--nproc_per_node", "0"]])
def test_options_that_are_not_understood(options: list[str]) -> None:
    with pytest.raises(InvalidInput, match="is all that stands before"):
        spawned(RanksHere.of(None, {}), options, ["x"], 1)


def test_one_that_fails_ends_the_others(tmp_path: Path) -> None:
    """With its exit code, in words that name it; the others may clear up."""
    program = (
        "import os, signal, sys, time, pathlib\n"
        f"place = pathlib.Path({str(tmp_path)!r})\n"
        "rank = os.environ['RANK']\n"
        "if rank == '1':\n"
        "    while len(list(place.glob('ready-*'))) < 2: time.sleep(0.01)\n"
        "    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, lambda *_: ((place / f'ended-{rank}').touch(), os._exit(0)))\n"
        "(place / f'ready-{rank}').touch()\n"
        "while True: time.sleep(1)\n"
    )
    process = launched(sys.executable, sys.executable, "-c", program)
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 7, out
    assert "rank 1 failed first, with exit code 7" in out
    assert sorted(path.name for path in tmp_path.glob("ended-*")) == ["ended-0", "ended-2"]


def wrappers(place: Path) -> dict[str, int]:
    """The process above each rank, once all ranks run."""
    wait_for(lambda: len(list(place.glob("ready-*"))) == 3 or None, "all ranks")
    above = {}
    for path in place.glob("ready-*"):
        status = Path(f"/proc/{path.read_text()}/stat").read_text()
        above[path.name.partition("-")[2]] = int(status.rpartition(")")[2].split()[1])
    return above


WAITS = (
    "import os, pathlib, time\n"
    "place = pathlib.Path({place!r}) / ('ready-' + os.environ['RANK'])\n"
    "new = place.with_name('new-' + os.environ['RANK'])\n"
    "new.write_text(str(os.getpid()))\n"
    "new.rename(place)\n"
    "while True: time.sleep(1)\n"
)


def test_who_is_killed_with_its_wrapper_is_named(tmp_path: Path) -> None:
    """A wrapper that is killed says nothing of its rank: the others, which are asked to end, are not to blame."""
    process = launched(sys.executable, sys.executable, "-c", WAITS.format(place=str(tmp_path)))
    os.kill(wrappers(tmp_path)["1"], signal.SIGKILL)
    out, _ = process.communicate(timeout=240)
    assert "rank 1 failed first, killed by SIGKILL" in out
    assert process.returncode == 128 + signal.SIGKILL


def test_nothing_is_left_of_a_launcher_that_is_killed(tmp_path: Path) -> None:
    """Ranks hold GPUs: they end with what started them."""
    process = launched(sys.executable, sys.executable, "-c", WAITS.format(place=str(tmp_path)))
    pids = wrappers(tmp_path).values()
    process.kill()
    process.communicate(timeout=240)
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids) or None, "their end")


def test_a_signal_ends_all(tmp_path: Path) -> None:
    """It reaches each of them."""
    program = (
        "import os, pathlib, signal, time\n"
        f"place = pathlib.Path({str(tmp_path)!r})\n"
        "rank = os.environ['RANK']\n"
        "signal.signal(signal.SIGTERM, lambda *_: ((place / f'ended-{rank}').touch(), os._exit(0)))\n"
        "(place / f'ready-{rank}').touch()\n"
        "while True: time.sleep(1)\n"
    )
    process = launched(sys.executable, sys.executable, "-c", program)
    wait_for(lambda: len(list(tmp_path.glob("ready-*"))) == 3 or None, "all ranks")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=240)
    assert process.returncode in (143, -15)
    assert len(list(tmp_path.glob("ended-*"))) == 3
