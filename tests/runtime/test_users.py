"""Whom a task runs as."""

from __future__ import annotations

import os

import pytest

from tenax.runtime.port import StartFailed
from tenax.runtime.processes import LINUX
from tenax.runtime.users import TaskUser, user_of
from tests.agent.host import spec

pytestmark = pytest.mark.skipif(not LINUX, reason="elsewhere an agent refuses tasks of other users")


def as_uid(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: number)
    monkeypatch.setattr(os, "getegid", lambda: number)


@pytest.mark.parametrize(
    ("uid", "gid", "who"),
    [
        (None, None, None),
        (0, 0, None),
        (0, None, None),
        # A workspace's group alone, and a link to root with another group.
        (None, 41_236, TaskUser(0, 41_236, (41_236,))),
        (0, 41_236, TaskUser(0, 41_236, (41_236,))),
        (None, 0, None),
        (41_234, 41_236, TaskUser(41_234, 41_236, (41_236,))),
    ],
)
def test_of_an_agent_that_is_root(
    monkeypatch: pytest.MonkeyPatch, uid: int | None, gid: int | None, who: TaskUser | None
) -> None:
    as_uid(monkeypatch, 0)
    assert user_of(spec("pass", uid=uid, gid=gid)) == who


@pytest.mark.parametrize(("uid", "gid"), [(None, None), (0, 0), (0, 41_236), (1000, 41_236), (None, 1000)])
def test_of_another_agent(monkeypatch: pytest.MonkeyPatch, uid: int | None, gid: int | None) -> None:
    """Its own user, and root, which means the same: their groups are its own."""
    as_uid(monkeypatch, 1000)
    assert user_of(spec("pass", uid=uid, gid=gid)) is None


@pytest.mark.parametrize(("uid", "gid", "says"), [(None, 41_236, "group 41236"), (41_234, None, "uid 41234")])
def test_another_agent_says_what_it_cannot(
    monkeypatch: pytest.MonkeyPatch, uid: int | None, gid: int | None, says: str
) -> None:
    as_uid(monkeypatch, 1000)
    with pytest.raises(StartFailed, match=f"{says}, and the agent is not root"):
        user_of(spec("pass", uid=uid, gid=gid))
