"""The command line of the launcher: what it makes of its words and of what the cluster says."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import pytest

from tenax.errors import InvalidInput
from tenax.launch import ranks
from tenax.launch.ranks import RanksHere, parse
from tenax.launch.torch_distributed import torchrun
from tests.exec.place import SOURCE
from tests.kits.interpreters import interpreters
from tests.launch.members import PORTS, uneven


@pytest.mark.parametrize(
    ("words", "options", "command"),
    [
        ("python3 train.py --lr 0.1", "", "python3 train.py --lr 0.1"),
        ("train.py --lr 0.1", "", f"{sys.executable} train.py --lr 0.1"),
        ("-m pkg.train -- x", "", f"{sys.executable} -m pkg.train -- x"),
        ("-- python3 train.py", "", "python3 train.py"),
        ("--nproc_per_node 2 -- train.py -- x", "--nproc_per_node 2", f"{sys.executable} train.py -- x"),
        ("bash run.sh -- x", "", "bash run.sh -- x"),
    ],
)
def test_words(words: str, options: str, command: str) -> None:
    """As Determined's: options of torchrun before a lone ``--``, then the command; a Python file needs no python3."""
    assert parse(words.split()) == (options.split(), command.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "name it behind the launcher"),
        ("--", "name it behind the launcher"),
        ("--nproc_per_node 2 --", "name it behind the launcher"),
        ("--nproc_per_node 2", "put -- between --nproc_per_node"),
        ("--nproc_per_node 2 train.py", "put -- between --nproc_per_node"),
    ],
)
def test_no_command(words: str, says: str) -> None:
    """What to write instead."""
    with pytest.raises(InvalidInput, match=f"no command to start: {says}"):
        parse(words.split())


def test_the_reason_is_its_last_line() -> None:
    """Below the usage: the last line is what a trial is said to have failed with."""
    words = [sys.executable, "-m", "tenax.launch.torch_distributed", "--nproc_per_node", "2", "train.py"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    ended = subprocess.run(words, capture_output=True, text=True, check=False, env=plain)
    assert ended.returncode == 1
    assert ended.stderr.startswith("usage: python3 -m tenax.launch.torch_distributed ")
    assert ended.stderr.splitlines()[-1].startswith("tenax: there is no command to start: put -- between")


def test_uneven_machines() -> None:
    """Every machine starts as many ranks as it has slots, and knows how many machines there are."""
    first, second = (torchrun(RanksHere.of(uneven(member), PORTS), [], ["python3", "x"], 29432) for member in (0, 1))
    for words, rank, slots in ((first, "0", "3"), (second, "1", "2")):
        told = dict(pairwise(words))
        assert (told["--nnodes"], told["--node_rank"], told["--nproc_per_node"]) == ("2", rank, slots)
        assert (told["--master_addr"], told["--master_port"], told["--max_restarts"]) == ("10.0.0.1", "29432", "0")


def test_options_win() -> None:
    """What a user tells torchrun stands after what we do."""
    words = torchrun(RanksHere.of(uneven(0), PORTS), ["--nproc_per_node", "1"], ["x"], 29432)
    assert words[words.index("--no_python") - 2 : words.index("--no_python")] == ["--nproc_per_node", "1"]


def test_interfaces_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's counts for gloo and NCCL, else the one that leads to the others for gloo; the user's above all."""
    asked = []
    monkeypatch.setattr(ranks, "interface_towards", lambda address: asked.append(address) or "eth7")
    jobs = [RanksHere.of(uneven(member), PORTS) for member in (0, 1)]
    assert [job.environment({}).get("GLOO_SOCKET_IFNAME") for job in jobs] == ["eth7", "eth7"]
    assert asked == ["10.0.0.2", "10.0.0.1"]
    assert "NCCL_SOCKET_IFNAME" not in jobs[0].environment({})
    chosen = jobs[0].environment({"DET_INTER_NODE_NETWORK_INTERFACE": "ib0", "NCCL_SOCKET_IFNAME": "mine"})
    assert (chosen["GLOO_SOCKET_IFNAME"], chosen["NCCL_SOCKET_IFNAME"]) == ("ib0", "mine")
    alone = RanksHere.of(None, {}).environment({})
    assert not {name for name in alone if "IFNAME" in name}


@pytest.mark.parametrize("python", interpreters())
def test_a_python_without_torch(python: str) -> None:
    """Says so, with its own path, under every Python that is served."""
    done = subprocess.run(
        [python, "-S", "-m", "tenax.launch.torchrun"], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "torch cannot be imported by" in done.stderr
    assert "Traceback" not in done.stderr
    helped = subprocess.run(
        [python, "-m", "tenax.launch.torch_distributed", "-h"], env={"PYTHONPATH": SOURCE}, capture_output=True
    )
    assert helped.stdout.startswith(b"usage: python3 -m tenax.launch.torch_distributed")
