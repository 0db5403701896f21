"""Launchers of several machines, each a process with a pretended torchrun: who failed first, and who ends how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.exec.place import SOURCE
from tests.kits.ports import free_port

#: A launcher, with a shell script in place of torchrun; waits are short for what never comes, and long for what does.
LAUNCHER = """
import subprocess, sys, os
from tenax.launch import watch
from tenax.launch.failures import LaunchersApart, connect
watch.YIELD_S, watch.NEWS_S = 0.2, float(os.environ.get("NEWS", 120))
watch.CAUSE_S = float(os.environ.get("CAUSE", 120))
member, machines, port = map(int, sys.argv[1:4])
addresses = ["127.0.0.1"] * machines
try:
    launchers = connect(member, addresses, port, float(os.environ.get("MEETING", 120))) if machines > 1 else None
except LaunchersApart as apart:
    print("tenax:", apart, file=sys.stderr)
    sys.exit(1)
with watch.RankWatch(addresses, launchers) as over:
    env = {**os.environ, **over.environment}
    sys.exit(over.over(lambda: subprocess.Popen(["sh", "-c", sys.argv[4]], env=env)))
"""
#: A rank that fails, below the wrapper.
FAILS = f'{sys.executable} -m tenax.launch.wrap_rank {{rank}} sh -c "{{then}}"'


def launch(scripts: Sequence[str], machines: int = 0, **env: str) -> list[subprocess.Popen[str]]:
    port = free_port()
    return [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                textwrap.dedent(LAUNCHER),
                str(member),
                str(machines or len(scripts)),
                str(port),
                script,
            ],
            env={**os.environ, "PYTHONPATH": SOURCE, "DET_SESSION_TOKEN": "secret", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for member, script in enumerate(scripts)
    ]


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Exit codes and errors."""
    errors = [process.communicate(timeout=240)[1] for process in processes]
    return [(process.returncode, error) for process, error in zip(processes, errors, strict=True)]


@pytest.mark.parametrize("culprit", [0, 1])
def test_the_machine_of_the_rank_that_failed_first_is_named_by_all(culprit: int) -> None:
    """Its peers fail because of it, and say whose failure it was; the exit code is that of the first."""
    # The trap first: of a shell that is asked to end before it has one nothing is left, which would hold its output.
    scripts = [f"trap 'kill $!; {FAILS.format(rank=n, then='exit 3')}; exit 1' TERM; sleep 60 & wait" for n in (0, 1)]
    scripts[culprit] = FAILS.format(rank=culprit, then="exit 7")
    outcomes = ended(launch(scripts))
    assert [code for code, _ in outcomes] == [7, 7]
    first = f"tenax: rank {culprit} failed first, with exit code 7"
    assert outcomes[culprit][1].splitlines()[-1] == first
    assert outcomes[1 - culprit][1].splitlines()[-1] == f"{first}, on the machine at 127.0.0.1"


#: What a rank prints that was left alone, and one with a reason of its own.
LEFT = "Traceback (most recent call last):\ntenax.core.collectives.PeerLost: machine 1 is gone"
ALSO_LEFT = (
    "Traceback (most recent call last):\nRuntimeError: [/gloo/transport/tcp/pair.cc:547] Connection closed by peer"
)
LEFT_BY_HOROVOD = (
    "Traceback (most recent call last):\nhorovod.common.exceptions.HorovodInternalError: Horovod has been shut down. "
    "This was caused by an exception on one of the ranks"
)
CAUSE = 'Traceback (most recent call last):\n  File "/code/train.py", line 3\nValueError: bad batch'


@pytest.mark.parametrize("left", [LEFT, ALSO_LEFT, LEFT_BY_HOROVOD])
@pytest.mark.parametrize("machines", [1, 2])
def test_a_rank_that_lost_another_one_is_not_to_blame(tmp_path: Path, machines: int, left: str) -> None:
    """Though its words come first: those of the rank that failed by itself are still under way."""
    (tmp_path / "left").write_text(left)
    (tmp_path / "cause").write_text(CAUSE)
    peer = FAILS.format(rank=0, then=f"cat {tmp_path}/left >&2; touch {tmp_path}/said; exit 1")
    wait = f"while [ ! -e {tmp_path}/said ]; do sleep 0.05; done"
    culprit = FAILS.format(rank=1, then=f"{wait}; sleep 0.3; cat {tmp_path}/cause >&2; exit 1")
    scripts = (
        [f"{peer} & {culprit}; code=$?; wait; exit $code"] if machines == 1 else [f"{peer}; sleep 2; exit 1", culprit]
    )
    for code, error in ended(launch(scripts)):
        assert code == 1
        assert "tenax: rank 1 failed first: ValueError: bad batch (in code/train.py, line 3)" in error.splitlines()[-1]


def test_ranks_that_all_lost_another_one(tmp_path: Path) -> None:
    """Whose machine is gone says nothing: the first that missed it is named, after a while."""
    (tmp_path / "left").write_text(LEFT)
    [(code, error)] = ended(launch([FAILS.format(rank=0, then=f"cat {tmp_path}/left >&2; exit 1")], CAUSE="0.2"))
    assert code == 1
    assert error.splitlines()[-1] == (
        "tenax: a rank ended without a word: it was killed, or its machine is gone "
        "(rank 0: tenax.core.collectives.PeerLost: machine 1 is gone)"
    )


def test_all_end_well() -> None:
    """Nobody waits for anybody."""
    assert ended(launch(["true", "true", "true"])) == [(0, "")] * 3


def test_a_launcher_whose_chief_has_ended() -> None:
    """Its own ranks' failure is then the first that it knows of."""
    first, second = launch(["true", f"read line; {FAILS.format(rank=1, then='exit 9')}"], NEWS="0.5")
    assert first.wait(240) == 0
    _, error = second.communicate("go on\n", timeout=240)
    assert (second.returncode, error.splitlines()[-1]) == (9, "tenax: rank 1 failed first, with exit code 9")


def test_a_signal_is_passed_on() -> None:
    """Whoever asked for the end is not told of a failure."""
    [process] = launch(["trap 'echo asked >&2; exit 1' TERM; echo ready; while :; do sleep 0.05; done"])
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert ended([process]) == [(128 + signal.SIGTERM, "asked\n")]


def test_machines_that_do_not_reach_each_other() -> None:
    """Are told soon which, at which address and port, and what to look at; torch waits for many minutes."""
    [alone] = ended(launch(["true"], machines=2, MEETING="0.2"))
    assert alone[0] == 1
    assert "machine 1 did not join machine 0" in alone[1]
    assert "docs/distributed.md" in alone[1]
