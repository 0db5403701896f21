"""Which master is meant, and how its address is written."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

import pytest

from tenax.client.connection import address
from tenax.client.connection.address import (
    FALLBACK,
    MasterTarget,
    Unreachable,
    canonical,
    local_cluster_at,
    remember,
    target,
)
from tenax.client.connection.listener import listening_uid
from tenax.errors import InvalidInput
from tenax.local import state_dir
from tenax.local.state_dir import StateDir, write_json
from tests.kits.ports import free_port


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("host", "http://host:8080"),
        ("host:9000", "http://host:9000"),
        ("http://host", "http://host:80"),
        ("https://host/", "https://host:443"),
        ("https://host:8443/det/", "https://host:8443/det"),
        (" http://Host:1 ", "http://host:1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_canonical(written: str, meant: str) -> None:
    """However an address is written, one master has one name."""
    assert canonical(written) == meant
    assert canonical(meant) == meant


@pytest.mark.parametrize("written", ["", "ftp://host", "http://", "host:port", "http://host:99999"])
def test_no_address(written: str) -> None:
    """What is no address is refused with an example of one."""
    with pytest.raises(InvalidInput, match="http://host:8080"):
        canonical(written)


def up(root: Path, url: str, **about: str) -> StateDir:
    """A cluster of this machine that is up there; its lock is held as long as this process lives."""
    state = StateDir(root)
    state.prepare()
    assert state.take_lock() is not None
    write_json(state.supervisor, {"url": url, **about})
    return state


@pytest.fixture
def elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No TENAX_DIR is set, and the usual directory is this one."""
    monkeypatch.delenv("TENAX_DIR")
    monkeypatch.setattr(state_dir, "ROOTS_DEFAULT", home / ".tenax")
    monkeypatch.setenv("HOME", str(home))
    return home / ".tenax"


def test_order(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named master wins over DET_MASTER, which wins over the cluster of TENAX_DIR, which wins over what was told."""
    state = up(home / "cluster", "http://127.0.0.1:9999")
    other = up(home / "other", "http://127.0.0.1:9997")
    remember("http://127.0.0.1:9997", other.root)
    assert target() == MasterTarget("http://127.0.0.1:9999", local=state)
    assert local_cluster_at("http://127.0.0.1:9999") == state
    assert local_cluster_at("http://127.0.0.1:9997") == other
    assert local_cluster_at("http://127.0.0.1:9998") is None
    monkeypatch.setenv("DET_MASTER", "lab")
    assert target().url == "http://lab:8080"
    assert target("other").url == "http://other:8080"
    assert target("127.0.0.1:9999").local == state


def test_the_cluster_that_was_told_last(elsewhere: Path, home: Path) -> None:
    """Without a word of today it is the one that was started or logged in at last, and that is said."""
    own = up(elsewhere, "http://127.0.0.1:9999")
    assert target() == MasterTarget("http://127.0.0.1:9999", local=own)
    other = up(home / "other", "http://127.0.0.1:9998")
    remember("http://127.0.0.1:9998", other.root)
    assert target().local == other
    assert str(other.root) in target().notice
    assert "TENAX_DIR" in target().notice
    remember("http://lab:8080")
    assert (target().url, target().local) == ("http://lab:8080", None)
    assert "DET_MASTER" in target().notice
    remember("http://127.0.0.1:9999", own.root)
    assert target() == MasterTarget("http://127.0.0.1:9999", local=own)


def test_what_was_told_is_down(elsewhere: Path, home: Path) -> None:
    """A cluster that was started last and is down is named; while the one of the usual place is up, that is meant."""
    down = StateDir(home / "other")
    down.prepare()
    write_json(down.supervisor, {"url": "http://127.0.0.1:9998"})
    remember("http://127.0.0.1:9998", down.root)
    with pytest.raises(Unreachable, match=rf"{down.root} is not up.*tenax up --dir {down.root}"):
        target()
    own = up(elsewhere, "http://127.0.0.1:9999")
    assert target().local == own


def test_nobody_elses(elsewhere: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual address is taken where a program of ours listens, and else it is said whose it is."""
    monkeypatch.setattr(address, "listening_uid", lambda port: os.geteuid())
    assert target().url == FALLBACK
    monkeypatch.setattr(address, "listening_uid", lambda port: None)
    with pytest.raises(Unreachable, match=r"no cluster yet\. Start one with: tenax up"):
        target()
    nobody = pwd.getpwnam("nobody").pw_uid
    monkeypatch.setattr(address, "listening_uid", lambda port: nobody)
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:8080 belongs to user 'nobody', so it was not asked"):
        target()
    up(elsewhere, "http://127.0.0.1:9999")
    with pytest.raises(Unreachable, match=r"9999 belongs to user 'nobody', and is not the cluster in"):
        target()
    assert target("http://127.0.0.1:9999").local is None


def test_not_here(home: Path) -> None:
    """A directory without a cluster, one whose cluster is down, and one of another machine are told apart."""
    with pytest.raises(Unreachable, match=r"No cluster was ever started in .*TENAX_DIR is"):
        target()
    state = StateDir(home / "cluster")
    state.prepare()
    write_json(state.supervisor, {"url": "http://127.0.0.1:9999"})
    with pytest.raises(Unreachable, match=r"is not up\. Start it with: tenax up"):
        target()
    up(state.root, "http://127.0.0.1:9999", machine="node1")
    with pytest.raises(Unreachable, match=r"was started on node1, and this is .*DET_MASTER"):
        target()


def test_the_directory_of_another_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said whose it is, and not that no cluster was ever started there."""
    root = home / "cluster"
    root.mkdir()
    assert StateDir(root).owner_elsewhere() is None
    # Root may look everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != root)
    owner = pwd.getpwuid(os.getuid()).pw_name
    assert StateDir(root).owner_elsewhere() == os.getuid()
    with pytest.raises(
        Unreachable, match=f"cluster is that of user '{owner}'.* TENAX_DIR is .*--master, or DET_MASTER"
    ):
        target()


def test_who_listens() -> None:
    """The kernel says whose program listens on a port; nobody's where none does."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", port := free_port()))
        assert listening_uid(port) is None
        server.listen()
        assert listening_uid(port) == os.geteuid()
    assert listening_uid(port) is None
