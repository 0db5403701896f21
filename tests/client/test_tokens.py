"""Logins that are remembered."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tenax.client.connection.saved_logins import TokenStore
from tenax.errors import InvalidInput


def test_last_login_is_used(tmp_path: Path) -> None:
    """Of several users the last who logged in is used, others when they are named, each master apart."""
    store = TokenStore(tmp_path / "auth.json")
    store.put("http://a:1", "ann", "t1")
    store.put("http://a:1", "bob", "t2")
    store.put("http://b:1", "ann", "t3")
    assert store.get("http://a:1") == ("bob", "t2")
    assert store.get("http://a:1", "ann") == ("ann", "t1")
    assert store.get("http://b:1") == ("ann", "t3")
    assert store.get("http://c:1") is None


def test_drop(tmp_path: Path) -> None:
    """A dropped login is gone, another of the same master takes its place, and the last takes the master with it."""
    store = TokenStore(tmp_path / "auth.json")
    store.put("http://a:1", "ann", "t1")
    store.put("http://a:1", "bob", "t2")
    store.drop("http://a:1", "bob")
    assert store.get("http://a:1") == ("ann", "t1")
    store.drop("http://a:1", "ann")
    assert json.loads((tmp_path / "auth.json").read_text())["masters"] == {}


def test_private(tmp_path: Path) -> None:
    """File and directory are for their owner alone."""
    path = tmp_path / "config" / "auth.json"
    TokenStore(path).put("http://a:1", "ann", "t1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_broken_file(tmp_path: Path) -> None:
    """A file that is no JSON is no word that nobody logged in; the next login writes it anew."""
    path = tmp_path / "auth.json"
    path.write_text("{")
    store = TokenStore(path)
    with pytest.raises(InvalidInput, match="where logins are remembered, cannot be read"):
        store.get("http://a:1")
    store.put("http://a:1", "ann", "t1")
    assert store.get("http://a:1") == ("ann", "t1")
