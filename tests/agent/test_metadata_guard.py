"""Tasks that are kept from the machine's metadata service, while its agent is not."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.config.agent import AllowedSettings
from tenax.errors import UserError
from tenax.runtime import metadata_guard
from tenax.runtime.metadata_guard import refusal
from tenax.runtime.port import StartFailed
from tenax.wire.agents import Mount
from tests.agent.host import Host, spec

needs_iptables = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip", "iptables"))),
    reason="needs root, and iproute2 and iptables: apt-get install iproute2 iptables",
)


def reached(how: str) -> dict[str, str]:
    """Who reaches the service, on a machine with a network of its own."""
    command = ["unshare", "-n", sys.executable, "-m", "tests.agent.guarded", how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    seen: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return seen


@needs_iptables
def test_tasks_see_the_service_unless_they_are_kept_from_it() -> None:
    """All that runs there does, and may gain rights."""
    seen = reached("see")
    assert [seen[who] for who in ("agent", "task", "task of root", "container")] == [
        "hears of 0 notices",
        *(3 * ["token-1"]),
    ]
    assert "NoNewPrivs:\t0" in seen["privileges"]


@needs_iptables
def test_what_is_kept_from_the_service_does_not_reach_it_and_the_agent_does() -> None:
    """Also once somebody has changed the rules; what nothing would keep from it does not start, and says why."""
    seen = reached("hide")
    assert seen["agent"] == "hears of 0 notices"
    tasks = ("task", "container", "task after a change", "container after a change")
    assert [seen[who] for who in tasks] == 4 * ["none"]
    assert "it would run as root, which sees it: an administrator gives its owner a uid" in seen["task of root"]
    assert "NoNewPrivs:\t1" in seen["privileges"]


@pytest.mark.parametrize(
    ("changes", "network", "groups", "reason"),
    [
        ({"uid": 1000}, "", ["users"], ""),
        ({"uid": 1000, "add_capabilities": ["NET_ADMIN"]}, "", [], ""),
        ({"uid": 1000}, "host", [], ""),
        ({"uid": 1000, "add_capabilities": ["CAP_IPC_LOCK"]}, "host", [], ""),
        ({}, "bridge", [], ""),
        ({"uid": 0}, "none", [], ""),
        ({}, "", [], "it would run as root, which sees it: an administrator gives its owner a uid"),
        ({"uid": 0}, "", [], "it would run as root"),
        ({}, "host", [], "it would be root on the machine's own network"),
        ({"uid": 1000}, "", ["users", "docker"], "uid 1000 is in the group docker, and could become root"),
        (
            {"uid": 1000},
            "",
            ["google-sudoers", "users"],
            "uid 1000 is in the group google-sudoers, and could become root",
        ),
        ({"uid": 1000}, "", ["adm", "sudo"], "uid 1000 is in the group sudo"),
        ({"uid": 1000}, "", ["wheel"], "uid 1000 is in the group wheel"),
        ({"uid": 1000}, "macvlan0", [], "its network macvlan0 may go round that"),
        ({"uid": 1000, "add_capabilities": ["net_admin"]}, "host", [], "the capability net_admin may go round that"),
        ({"add_capabilities": ["ALL"]}, "bridge", [], "the capability ALL may go round that"),
        ({"mounts": [Mount("/", "/host")]}, "bridge", [], "with the bind mount / for reading and writing"),
        ({"devices": ["/dev/sda"]}, "bridge", [], "with the device /dev/sda (allowed.devices)"),
    ],
)
def test_what_nothing_would_keep_from_the_service(
    changes: dict[str, object], network: str, groups: list[str], reason: str
) -> None:
    """Is refused with what to do; the rest starts. A network of ``""`` is that of a plain process."""
    told = refusal(spec("", **changes), AllowedSettings(), network, groups)
    assert (reason in told) if reason else not told


@pytest.mark.parametrize(
    ("entry", "path", "reason"),
    [
        ("data:ro", "data/link", "data/link is a link"),
        ("data", "data/link", r"data/link could be led elsewhere by a container .*: mount .*/data itself"),
        ("data", "data/fixed", "data/fixed could be led elsewhere"),
        ("data", "data", ""),
        ("data:ro", "data/fixed", ""),
    ],
)
async def test_a_container_of_root_follows_no_link_that_another_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, path: str, reason: str
) -> None:
    """Below what some may write to, as root in their containers, any path may be a link by the time it is mounted."""
    monkeypatch.setattr(metadata_guard.MetadataGuard, "hold", lambda _: None)
    (tmp_path / "data/fixed").mkdir(parents=True)
    (tmp_path / "data/link").symlink_to("/var/run")
    allowed = AllowedSettings(bind_mounts=(str(tmp_path / entry),))
    for uid in (None, 0):
        its = spec("", uid=uid, mounts=[Mount(str(tmp_path / path), "/x", entry.endswith(":ro"))])
        start = metadata_guard.check_start(metadata_guard.MetadataGuard(), its, allowed, "bridge", None)
        with pytest.raises(StartFailed, match=reason) if reason else contextlib.nullcontext():
            await start


async def test_a_machine_that_cannot_keep_tasks_from_it_is_no_agent(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is missing, at its start; and where it is gone later no task starts."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"tasks are kept from .* \(tasks_see_metadata: true in the provider"):
        await host.start(tasks_see_metadata=False)
    guard = metadata_guard.MetadataGuard()
    with pytest.raises(
        StartFailed, match="iptables is not installed: install iptables in the machine's image"
    ) as failed:
        await metadata_guard.check_start(guard, spec("", uid=1000), AllowedSettings(), "", None)
    assert failed.value.platform


@pytest.mark.skipif(os.geteuid() != 0, reason="any other agent is refused before it tries")
@pytest.mark.parametrize("program", ["#!/bin/sh\necho 'the xtables lock is held' >&2; exit 4\n", "not a program\n"])
async def test_an_agent_that_cannot_make_the_rules_now_may_try_again(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """It breaks, as by any fault that may pass: settings that can never work would end its machine."""
    (tmp_path / "iptables").write_text(program)
    (tmp_path / "iptables").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(metadata_guard.GuardFailed, match=r"tasks are kept from .* cannot be done now: iptables: "):
        await host.start(tasks_see_metadata=False)
