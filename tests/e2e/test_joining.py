"""Another master joins a cluster from one file, and is a master of it like the first."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenax.client.cluster import MasterInfo, masters
from tenax.client.connect import Client
from tests.kits.machine import TENAX, Machine, wait_for
from tests.kits.ports import free_port

PASSWORD = "Long-enough-1"


@contextmanager
def running(home: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """``tenax master ...`` with nothing of ours in its environment; ended in the end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
    environment["HOME"] = str(home)
    with (home / "master.log").open("ab") as log:
        process = subprocess.Popen([str(TENAX), "master", *arguments], env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            # It is a master of a cluster that other tests have, too.
            process.kill()
            process.wait()
            raise


def healthy(url: str) -> bool:
    """Whether a master is well there, whatever its certificate."""
    try:
        with urllib.request.urlopen(f"{url}/health", context=ssl._create_unverified_context(), timeout=5) as answer:
            return bool(json.load(answer))
    except OSError:
        return False


def cluster_of(url: str, certificate: Path | None = None) -> tuple[str, list[str]]:
    """The cluster's id, and its pools, as an administrator of the first master sees them."""
    with Client(url, user="admin", password=PASSWORD, certificate=str(certificate or "")) as client:
        about = client.session.get("/api/v1/master")
        pools = client.session.get("/api/v1/resource-pools")
        return about["clusterId"], sorted(pool["name"] for pool in pools["resourcePools"])


def both_seen_from(url: str, certificate: Path) -> list[MasterInfo]:
    """The masters of the cluster, as the one at ``url`` tells of them."""
    with Client(url, user="admin", password=PASSWORD, certificate=str(certificate)) as client:
        return masters(client.session)


def test_another_master_joins_from_one_file(database_url: str, tmp_path: Path) -> None:
    """Under the first's certificate, with its pools, users and join token; it is started again from its directory."""
    first, second = tmp_path / "first", tmp_path / "second"
    for home in (first, second):
        home.mkdir()
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(first / "key.pem"), "-out", str(first / "crt.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    (first / "password").write_text(PASSWORD)
    ports = free_port(), free_port()
    (first / "master.yaml").write_text(
        f"db: {{url: '{database_url}'}}\ndir: {first / 'state'}\nport: {ports[0]}\n"
        f"tls: {{cert: {first / 'crt.pem'}, key: {first / 'key.pem'}}}\n"
        f"security: {{initial_password_file: {first / 'password'}}}\n"
        "pools: [{name: default}, {name: second}]\n"
    )
    urls = [f"https://127.0.0.1:{port}" for port in ports]
    config = str(first / "master.yaml")
    with running(first, "--config", config):
        wait_for(lambda: healthy(urls[0]), "the first master")
        # A clean environment is what a test has, too.
        done = subprocess.run(
            [str(TENAX), "master", "invite", str(tmp_path / "invitation"), "--config", config],
            capture_output=True,
            text=True,
            check=True,
        )
        # That database is reached by a socket.
        assert f"tenax master join {tmp_path / 'invitation'} --port 0" in done.stderr
        arguments = ("join", str(tmp_path / "invitation"), "--port", str(ports[1]), "--dir", str(second / "state"))
        with running(second, *arguments):
            wait_for(lambda: healthy(urls[1]), "the second master")
            found = [cluster_of(url, first / "crt.pem") for url in urls]
            assert found[0] == found[1]
            assert found[1][1] == ["default", "second"]
            seen = both_seen_from(urls[1], first / "crt.pem")
            assert [each.address for each in seen] == urls
            assert [(each.answers, each.other_settings) for each in seen] == [(False, []), (True, [])]
            assert seen[0].loops
            assert seen[1].loops == []
            token = (second / "state" / "join-token").read_text()
            assert token == (first / "state" / "join-token").read_text()
            assert not (second / "state" / "credentials.json").exists()
        (tmp_path / "invitation").unlink()
        with running(second, "--config", str(second / "state" / "master.yaml")):
            wait_for(lambda: healthy(urls[1]), "the second master again")


def test_on_the_machine_of_tenax_up_another_master_joins_its_database(place: Machine, tmp_path: Path) -> None:
    """Which serves that machine, and no other; both have the storage that `tenax up` chose."""
    invitation = tmp_path / "invitation"
    place.tenax("master", "invite", str(invitation))
    settings = json.loads(invitation.read_text())["settings"]
    assert settings["checkpoint_storage"]["host_path"] == str(place.directory / "checkpoints")
    assert settings["db"]["backup_command"][-1] == str(place.directory)
    port = free_port()
    with running(tmp_path, "join", str(invitation), "--port", str(port), "--dir", str(tmp_path / "state")):
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: healthy(url), "the second master")
        with Client(url, token=place.token()) as client:
            assert client.whoami().username == "admin"
