"""The master as a process: started, asked to end, refused."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.master.process import MasterProcess


@pytest.fixture
def processes() -> Iterator[list[MasterProcess]]:
    """Processes that a test started; killed after it if they live."""
    started: list[MasterProcess] = []
    yield started
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.wait()
        process.close()


def ask(port: object, path: str, body: bytes | None = None, **headers: str) -> dict[str, object]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return dict(json.loads(reply.read()))


async def test_a_master_starts_on_an_empty_database_and_ends_when_asked(
    processes: list[MasterProcess], database_url: str, tmp_path: Path
) -> None:
    """It migrates, makes users, answers, and ends with status 0; nothing secret is in its log."""
    process = MasterProcess(tmp_path, database_url, "--port", "0")
    processes.append(process)
    port = process.wait_for("serving")["port"]
    assert ask(port, "/info")["version"] == "0.38.1"
    assert ask(port, "/health")["database"] == "up"
    password = json.loads((tmp_path / "master" / "credentials.json").read_text())["password"]
    body = json.dumps({"username": "admin", "password": password}).encode()
    said = ask(port, "/api/v1/auth/login", body, **{"Content-Type": "application/json"})
    token = str(said["token"])
    assert ask(port, "/api/v1/me", Authorization=f"Bearer {token}")["user"]
    assert process.end() == 0
    said = "".join(process.said)
    for secret in (password, token, database_url):
        assert secret not in said


async def test_a_port_in_use_is_told_at_once(processes: list[MasterProcess], database_url: str, tmp_path: Path) -> None:
    """Status 2, the port in the message, and no database touched."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = MasterProcess(tmp_path, database_url, "--port", str(port))
        processes.append(process)
        assert process.result() == 2
    assert str(port) in process.said[-1]
    assert "--port" in process.said[-1]
    assert not (tmp_path / "master").exists()


async def test_a_database_that_is_away_is_waited_for(processes: list[MasterProcess], tmp_path: Path) -> None:
    """It says so and tries again; asked to end meanwhile it does, with status 0."""
    process = MasterProcess(tmp_path, "postgresql:///none?host=/nowhere/at/all", "--port", "0")
    processes.append(process)
    process.wait_for("the database cannot be reached; trying again")
    assert process.popen.poll() is None
    assert process.end() == 0


@pytest.mark.parametrize(
    ("url", "arguments", "told"),
    [
        (None, (), "tenax up"),
        ("postgresql:///x", ("--port", "70000"), "--port"),
        ("mysql://root:s3cret@h/x", ("--port", "0"), "postgresql://"),
        ("postgresql:///x", ("--config", "/nowhere.yaml"), "/nowhere.yaml"),
        ("postgresql:///x", ("--host", "no.such.host.invalid"), "no.such.host.invalid"),
    ],
)
def test_what_cannot_start_says_why(
    processes: list[MasterProcess], tmp_path: Path, url: str | None, arguments: tuple[str, ...], told: str
) -> None:
    """Status 2 and a message that names what to change."""
    process = MasterProcess(tmp_path, url, *arguments)
    processes.append(process)
    assert process.result() == 2
    assert told in "".join(process.said)
    assert "s3cret" not in "".join(process.said)


async def test_a_wrong_database_password_is_told(
    processes: list[MasterProcess], database_url: str, tmp_path: Path
) -> None:
    """Status 2: waiting would not help; the password is not repeated."""
    process = MasterProcess(tmp_path, database_url.replace("@", "wrong@", 1), "--port", "0")
    processes.append(process)
    assert process.result() == 2
    assert "password" in process.said[-1]
    assert database_url not in "".join(process.said)
