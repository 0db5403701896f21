"""Which master is meant, and how its address is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.client.connection.address import FALLBACK, canonical, local_cluster_at, master_url
from tenax.errors import InvalidInput
from tenax.local.state_dir import StateDir, write_json


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


def test_order(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named master wins over DET_MASTER, which wins over this machine's cluster."""
    assert master_url() == FALLBACK
    state = StateDir(home / "cluster")
    state.root.mkdir()
    write_json(state.supervisor, {"url": "http://127.0.0.1:9999"})
    assert master_url() == "http://127.0.0.1:9999"
    assert local_cluster_at("http://127.0.0.1:9999") == state
    assert local_cluster_at("http://127.0.0.1:9998") is None
    monkeypatch.setenv("DET_MASTER", "lab")
    assert master_url() == "http://lab:8080"
    assert master_url("other") == "http://other:8080"
