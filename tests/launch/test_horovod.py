"""Ranks of Horovod: its options, what each rank is told, and how they end. With a package that stands in for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.launch.horovod import horovod, horovod_if_several
from tenax.launch.ranks import RanksHere
from tests.exec.place import SOURCE
from tests.kits.horovod_stand_in import write_horovod
from tests.kits.interpreters import interpreters
from tests.kits.ports import free_port
from tests.launch.members import PORTS, uneven

TOGETHER = """
import os
import sys

import horovod.torch as hvd

hvd.init()
print("sum", hvd.allreduce(hvd.rank() + 1), "of", hvd.size(), os.environ.get("HOROVOD_FUSION_THRESHOLD"), flush=True)
if sys.argv[1:] == ["fail"] and hvd.rank() == 1:
    raise ValueError("bad batch")
hvd.allreduce(0)
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Where a script lies that Horovod's ranks run."""
    write_horovod(tmp_path)
    (tmp_path / "train.py").write_text(TOGETHER)
    return tmp_path


def launched(code: Path, line: str, python: str = sys.executable) -> tuple[int, str]:
    """Exit code and output of the launcher with these words."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    done = subprocess.run(
        [python, "-S", "-m", "tenax.launch.horovod", *line.split()],
        cwd=code,
        env={**plain, "PYTHONPATH": f"{SOURCE}{os.pathsep}{code}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("python", interpreters())
def test_ranks_meet(code: Path, python: str) -> None:
    """Under every Python that is served; each line has its rank, and options of Horovod's reach it."""
    status, out = launched(code, f"-np 3 --fusion-threshold-mb 2 -- {python} train.py", python)
    assert status == 0, out
    assert sorted(out.splitlines()) == [f"[rank={rank}] sum 6.0 of 3 2097152" for rank in range(3)]


def test_the_first_failure_is_the_reason(code: Path) -> None:
    """Not what its peers say once they have lost it."""
    status, out = launched(code, "-np 3 -- train.py fail")
    assert status == 1
    assert re.search(r"tenax: rank 1 failed first: ValueError: bad batch \(in .*train\.py, line 10\)$", out.rstrip())


def test_one_slot_needs_no_horovod(tmp_path: Path) -> None:
    """With --autohorovod; without it, who lacks the package is told what to do, in the last line."""
    (tmp_path / "train.py").write_text("import os; print('alone', 'HOROVOD_RANK' in os.environ)")
    assert launched(tmp_path, "--autohorovod train.py") == (0, "[rank=0] alone False\n")
    status, out = launched(tmp_path, "train.py")
    assert status == 1
    assert re.search(r"tenax: horovod cannot be imported by .*pip install horovod.*torch_distributed$", out.rstrip())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--fusion-treshold 3", "Horovod does not take --fusion-treshold 3: what it says stands above"),
        ("-np 2 -H one:1,two:1", "-H of horovodrun is not taken: which ranks there are"),
        ("--hostfile hosts", "--hostfile of horovodrun is not taken"),
        ("--min-np 1", "--min-np of horovodrun is not taken: which ranks there are"),
        ("--mpi", "--mpi of horovodrun is not taken: ranks meet by Gloo here; MPI would start them over ssh"),
        ("-p 22", "-p of horovodrun is not taken: ranks on other machines are started without ssh"),
        ("--output-filename logs", "--output-filename of horovodrun is not taken: the trial's log"),
        ("--timeline-filename", "--timeline-filename is not what horovodrun takes"),
        ("--verbose words", "--verbose words is not what horovodrun takes"),
    ],
)
def test_options_that_cannot_be_had(code: Path, options: str, says: str) -> None:
    """Are refused, with the reason; so is what Horovod does not know."""
    status, out = launched(code, f"{options} -- train.py")
    assert status == 1
    assert out.splitlines()[-1].startswith(f"tenax: {says}")
    assert "Traceback" not in out


def test_its_version(code: Path) -> None:
    """Is Horovod's affair."""
    assert launched(code, "--version -- train.py") == (0, "0.28.1\n")


def test_words() -> None:
    """Of each machine, with the slots of all; a class is trained by torch.distributed."""
    words = [horovod(RanksHere.of(uneven(member), PORTS), ["--verbose"], ["x"], 29432) for member in (0, 1)]
    assert [line[3:] for line in words] == [
        ["0", "3,2", "10.0.0.1:29432", "--verbose", "--", "x"],
        ["1", "3,2", "10.0.0.1:29432", "--verbose", "--", "x"],
    ]
    of_class = horovod(RanksHere.of(uneven(0), PORTS), [], ["python3", "-m", "tenax.pytorch.of_class", "m:T"], 29432)
    assert "tenax.launch.torchrun" in of_class
    assert of_class[-2:] == ["tenax.pytorch.of_class", "m:T"]
    several = horovod_if_several(RanksHere.of(uneven(0), PORTS), [], ["x"], 29432)
    assert "tenax.launch.horovod_ranks" in several


def members(code: Path, port: int, *slots: int) -> list[subprocess.Popen[str]]:
    """The ranks of each machine of a job, the last machine's first: its ranks wait for the server of the first."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "HOROVOD_"))}
    place = [",".join(map(str, slots)), f"localhost:{port}", "--", sys.executable, "train.py"]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tenax.launch.horovod_ranks", str(member), *place],
            cwd=code,
            env={**plain, "PYTHONPATH": f"{SOURCE}{os.pathsep}{code}", "GLOO_SOCKET_IFNAME": "lo"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for member in reversed(range(len(slots)))
    ]


#: What a rank knows, and that ranks of machines of different sizes find one another by it.
PLACES = """
import horovod.torch as hvd

from tenax.core import DistributedContext

hvd.init()
context = DistributedContext.from_horovod(hvd, "127.0.0.1")
place = (hvd.rank(), hvd.local_rank(), hvd.cross_rank(), context.cross_rank, context.cross_size)
print(sorted(context.allgather(place)), context.allgather_local(hvd.rank()), flush=True)
"""


def test_machines_of_different_sizes(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Horovod counts, for a local rank, the machines that have one; `from_horovod` says which machine it is."""
    (code / "train.py").write_text(PLACES)
    monkeypatch.setenv("INTER_TRAIN_PROCESS_COMM_PORT_1", str(free_port()))
    jobs = members(code, free_port(), 1, 3)
    outputs = [job.communicate(timeout=240)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], outputs
    places = [(0, 0, 0, 0, 2), (1, 0, 1, 1, 2), (2, 1, 0, 1, 2), (3, 2, 0, 1, 2)]
    lines = [f"[rank=0] {places} [0]", *(f"[rank={rank}] {places} [1, 2, 3]" for rank in (1, 2, 3))]
    assert sorted(line for output in outputs for line in output.splitlines()) == lines
