"""``tenax up``, ``status`` and ``down`` with the real servers."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tenax.cli.console import exits
from tests.kits.ports import free_port

TENAX = str(Path(sys.executable).with_name("tenax"))


class Place:
    """A directory for a cluster, and the command line that means it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))},
            "TENAX_DIR": str(root / "cluster"),
            "XDG_CONFIG_HOME": str(root / "config"),
        }

    def tenax(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [TENAX, *arguments], env=self.environment, cwd=self.root, capture_output=True, text=True, timeout=120
        )

    def status(self) -> dict[str, object]:
        document = json.loads(self.tenax("status", "--json").stdout)
        assert isinstance(document, dict)
        return document

    def pids(self) -> list[int]:
        """Of the supervisor and its servers."""
        document = self.status()
        services = document["services"]
        assert isinstance(services, dict)
        pids = [document["pid"], *(service["pid"] for service in services.values())]
        return [pid for pid in pids if isinstance(pid, int)]


@contextlib.contextmanager
def place() -> Iterator[Place]:
    # Not below pytest's directory: as root the database runs as another account, which may not enter there.
    root = Path(tempfile.mkdtemp(prefix="tenax-test-"))
    root.chmod(0o755)
    made = Place(root)
    try:
        yield made
    finally:
        made.tenax("down", "--kill-tasks")
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def up() -> Iterator[Place]:
    """A cluster that is up, without an agent."""
    with place() as made:
        # It comes up at the same port again and again, which nobody else is given meanwhile.
        done = made.tenax("up", "--port", str(free_port()), "--no-agent")
        assert done.returncode == exits.OK, done.stderr
        yield made


def are_gone(pids: list[int], seconds: float = 120.0) -> bool:
    """Whether all of them end, or are zombies that nobody collects."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(is_alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_status(up: Place) -> None:
    """Status shows the address and every server with its log."""
    done = up.tenax("status")
    assert done.returncode == exits.OK
    assert str(up.status()["url"]) in done.stdout
    for server in ("postgres", "master"):
        assert server in done.stdout
    assert "master.log" in done.stdout


def test_commands_find_it(up: Place) -> None:
    """Commands on this machine find the cluster and log in by themselves."""
    done = up.tenax("user", "whoami")
    how = f"the automatic login of the cluster in {up.root / 'cluster'}"
    assert done.stdout == f"admin (admin) at {up.status()['url']}, by {how}\n"


def test_commands_of_another_shell_find_it(up: Place) -> None:
    """Without TENAX_DIR it is the cluster that was started last, and that is said."""
    del up.environment["TENAX_DIR"]
    up.environment["HOME"] = str(up.root)
    try:
        done = up.tenax("user", "whoami")
        assert done.returncode == exits.OK, done.stderr
        assert f"With the cluster in {up.root / 'cluster'}, which you started last" in done.stderr
    finally:
        up.environment["TENAX_DIR"] = str(up.root / "cluster")


def test_secrets_are_private(up: Place) -> None:
    """Every file that could hold a secret is for its owner alone, and no server's arguments hold one."""
    cluster = up.root / "cluster"
    for path in cluster.iterdir():
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path
    secrets = [json.loads((cluster / "credentials.json").read_text())["password"]]
    secrets += [(cluster / "join-token").read_text().strip(), (cluster / "postgres" / "password").read_text().strip()]
    command_lines = [" ".join(psutil.Process(pid).cmdline()) for pid in up.pids()]
    command_lines += [path.read_text(errors="replace") for path in cluster.glob("*.log")]
    for secret in secrets:
        assert len(secret) > 10
        assert not any(secret in text for text in command_lines)


def test_second_up(up: Place) -> None:
    """A second `tenax up` on the same directory says where the first one is, and changes nothing."""
    before = up.pids()
    done = up.tenax("up")
    assert done.returncode == exits.EXISTS
    assert str(up.status()["url"]) in done.stderr
    assert up.pids() == before


def test_taken_port(up: Place) -> None:
    """A port that is taken is named with the option to change it, and nothing is left running."""
    with place() as other, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = other.tenax("up", "--port", str(port))
        assert done.returncode == exits.FAILED
        assert f"port {port}" in done.stderr
        assert "--port" in done.stderr
        new = other.root / "new"
        assert other.tenax("up", "--dir", str(new), "--port", str(port)).returncode == exits.FAILED
        assert not new.exists()
        assert other.tenax("status").returncode == exits.UNREACHABLE


def test_kill_everything(up: Place) -> None:
    """After kill -9 of all processes at once `tenax up` comes back at the same address with the same users."""
    before = up.status()
    pids = up.pids()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert are_gone(pids)
    assert up.tenax("status").returncode == exits.UNREACHABLE
    done = up.tenax("up")
    assert done.returncode == exits.OK, done.stderr
    assert up.status()["url"] == before["url"]
    assert up.tenax("user", "whoami").returncode == exits.OK


def test_kill_the_supervisor(up: Place) -> None:
    """After kill -9 of the supervisor alone its servers end with it, and `tenax up` continues."""
    pids = up.pids()
    os.kill(pids[0], signal.SIGKILL)
    done = up.tenax("up")
    assert done.returncode == exits.OK, done.stderr
    assert are_gone(pids)
    assert up.tenax("user", "whoami").returncode == exits.OK


@pytest.mark.parametrize("instant", [0.0, *(pytest.param(later, marks=pytest.mark.long) for later in (0.05, 0.15))])
def test_down_while_up_is_loading(instant: float) -> None:
    """From its first moment on, when nothing of the directory is there yet, `tenax up` is waited for, and ended."""
    with place() as made:
        starting = subprocess.Popen(
            [TENAX, "up", "--port", "0", "--no-agent"],
            env=made.environment,
            cwd=made.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            starting.wait(instant)
        done = made.tenax("down")
        said, _ = starting.communicate(timeout=120)
        assert done.returncode == exits.OK, done.stderr
        assert "is stopped" in done.stderr, (done.stderr, said)
        assert made.status()["state"] in ("down", "failed"), said


def test_down(up: Place) -> None:
    """`tenax down` ends every process, says so, and is a success also when there is nothing to end."""
    pids = up.pids()
    done = up.tenax("down")
    assert done.returncode == exits.OK
    assert "is stopped" in done.stderr
    assert are_gone(pids)
    again = up.tenax("down")
    assert again.returncode == exits.OK
    assert "No cluster is up" in again.stderr
    assert up.tenax("user", "whoami").returncode == exits.UNREACHABLE


def test_wrong_setting() -> None:
    """A setting that the master refuses is told with its line by `tenax up`, before anything is started."""
    with place() as made:
        (made.root / "master.yaml").write_text("host: 127.0.0.1\ncluster_nam: lab\n")
        done = made.tenax("up", "--config", "master.yaml")
        assert done.returncode == exits.FAILED
        assert "line 2" in done.stderr
        assert "cluster_name" in done.stderr
        assert made.tenax("status").returncode == exits.UNREACHABLE


def test_foreground() -> None:
    """In the foreground the cluster ends with Ctrl-C, and exit code 0."""
    with place() as made:
        process = subprocess.Popen(
            [TENAX, "up", "--foreground", "--no-agent", "--port", "0"],
            env=made.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.strip().endswith("up"):
                break
        pids = made.pids()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == exits.OK
        assert are_gone(pids)
