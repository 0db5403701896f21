"""A cluster that cannot be, a login that is none, an agent that nobody knows, a disk that is full."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from tests.e2e.trials import config, output, ran, script
from tests.kits.machine import Machine, home, machine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A cluster whose disk counts as full for logs: more is to stay free than is free, but less than twice of it."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    settings = tmp_path_factory.mktemp("settings") / "master.yaml"
    settings.write_text(yaml.safe_dump({"budgets": {"min_free_bytes": free + free // 2}}))
    with machine(options=("--config", str(settings))) as up:
        yield up


def below(directory: Path) -> list[str]:
    """Command lines of processes that have to do with this directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(directory) in line or str(directory) in (process.info["cwd"] or ""):
            found.append(line)
    return found


def test_a_second_cluster_in_one_directory_is_refused(place: Machine) -> None:
    """It says where the first is and what to do, and leaves it alone."""
    before = {name: place.pid(name) for name in ("supervisor", "postgres", "master", "agent")}
    done = place.tenax("up", "--dir", str(place.directory), "--port", "0", check=False)
    assert done.returncode == 7
    for word in ("already up", str(place.directory), str(place.port), "tenax status", "tenax down"):
        assert word in done.stderr
    assert {name: place.pid(name) for name in before} == before
    assert place.tenax("status").returncode == 0


def test_a_port_in_use_leaves_nothing_running() -> None:
    """The port and the way out are named; no server of the refused cluster is left, and another port serves it."""
    with socket.socket() as taken, home() as directory:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        one = Machine(directory / "cluster")
        one.port = taken.getsockname()[1]
        done = one.tenax("up", "--dir", str(one.directory), "--port", str(one.port), check=False)
        assert done.returncode == 1
        for word in (str(one.port), "in use", "--port"):
            assert word in done.stderr
        assert not below(one.directory)
        assert one.tenax("status", check=False).returncode == 3


def test_a_wrong_password_is_refused(place: Machine) -> None:
    """By name and address, without the password; whoever was logged in stays so."""
    who = place.json("user", "whoami")
    done = subprocess.run(
        [*place.command, "user", "login", "admin", "--password-stdin"],
        env=place.environment,
        input="swordfish\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 4
    for word in ("Wrong name or password", "'admin'", str(place.port)):
        assert word in done.stderr
    assert "swordfish" not in done.stdout + done.stderr
    assert place.json("user", "whoami") == who


def test_an_agent_with_a_wrong_token_stays_outside(place: Machine, tmp_path: Path) -> None:
    """It ends, says which token it needs, and the cluster does not know it."""
    token = tmp_path / "join-token"
    token.write_text("not-the-token-of-this-cluster\n")
    token.chmod(0o600)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tenax.agent", "--master-url", f"http://127.0.0.1:{place.port}"),
            *("--agent-id", "stranger", "--dir", str(tmp_path / "agent"), "--join-token-file", str(token)),
        ],
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "join token" in done.stderr
    assert "not-the-token" not in done.stdout + done.stderr
    agents = place.json("agent", "list")
    assert isinstance(agents, list)
    assert "stranger" not in str(agents)


def test_a_full_disk_costs_logs_and_nothing_else(place: Machine, tmp_path: Path) -> None:
    """Training goes on, metrics and state are written; what was refused, why and what to do is said."""
    code = script(
        tmp_path,
        """
        from tenax import core
        with core.init() as context:
            for step in range(1, 4):
                print("a line that finds no room")
                context.train.report_validation_metrics(step, {"loss": 1.0 / step})
        """,
    )
    experiment, (trial,) = ran(place, config(), code)
    assert experiment.state == "COMPLETED"
    assert trial.state == "COMPLETED"
    assert trial.latest_validation is not None
    assert trial.latest_validation.steps == 3
    log = output(place, trial)
    assert "a line that finds no room" not in log
    assert log.count("output waits where it was made") == 1
    for told in (log, (place.directory / "agent.log").read_text()):
        for word in ("the disk of the database has", "logs are refused below", "make room"):
            assert word in told
    told = place.tenax("status").stderr
    for word in (str(place.directory), "GiB left", "logs are refused", "Make room"):
        assert word in told
