"""A machine that is given up: its agent reaches no master for too long, and nothing runs there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from tenax.agent import orphaned
from tenax.agent.orphaned import MasterContact
from tenax.runtime.port import ContainerStatus, RuntimeAway
from tests.agent.host import Host
from tests.agent.master_double import MasterDouble
from tests.kits.machine import wait_for

State = Literal["starting", "running", "exited"]


class Looks:
    """What a runtime shows at each look; the last again and again."""

    def __init__(self, *looks: Sequence[State] | Exception) -> None:
        self.looks = list(looks)
        self.count = 0

    async def find(self) -> list[ContainerStatus]:
        self.count += 1
        seen = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(seen, Exception):
            raise seen
        return [ContainerStatus(str(number), "c", 1, state, None, None, None, "") for number, state in enumerate(seen)]


def test_only_what_was_lost_counts() -> None:
    """From when this agent began until it met a master, and from each loss on: and once."""
    now = [0.0]
    contact = MasterContact(lambda: now[0])
    now[0] = 5.0
    assert contact.unheard_s() == 5.0
    contact.made()
    assert contact.unheard_s() == 0.0
    contact.lost()
    now[0] = 7.0
    contact.lost()
    assert contact.unheard_s() == 2.0


async def test_it_ends_when_its_work_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs is left to its end, and what cannot be seen is taken for something that runs."""
    monkeypatch.setattr(orphaned, "_LOOK_S", 0.001)
    mark = tmp_path / "off"
    looks = Looks(["running", "exited"], OSError(5, "of the disk"), RuntimeAway("no engine"), ["starting"], ["exited"])
    clock = iter([0.0])
    contact = MasterContact(lambda: next(clock, 10.0))
    program = ("sh", "-c", f"echo off >> {mark}")
    watching = asyncio.create_task(orphaned.watch(contact, looks, 5.0, program))  # type: ignore[arg-type]
    await asyncio.to_thread(wait_for, mark.exists, "the program")
    watching.cancel()
    assert looks.count == 5


async def test_a_machine_without_a_master_runs_the_program_for_it(master: MasterDouble, host: Host) -> None:
    """By the whole agent: also one that was never let in, as its token is of no use before a master answers."""
    mark = host.directory.parent / "off"
    orphan = {"orphan_after_s": 0.2, "hooks": {"on_orphaned": ("touch", str(mark))}}
    await master.away()
    host.start(**orphan)
    await asyncio.to_thread(wait_for, mark.exists, "the program")
    await host.stop()
    mark.unlink()
    await master.back()
    host.start(orphan_after_s=1e6, hooks=orphan["hooks"])
    await master.until(lambda: master.hellos)
    await master.cut()
    await master.until(lambda: len(master.hellos) > 1)
    assert not mark.exists()


async def test_a_connection_that_stands_is_a_master_that_is_heard(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its welcome to its loss."""
    seen: list[MasterContact] = []

    async def watch(contact: MasterContact, *_: object) -> None:
        seen.append(contact)
        await asyncio.Event().wait()

    monkeypatch.setattr(orphaned, "watch", watch)
    host.start(orphan_after_s=3600)
    await asyncio.to_thread(wait_for, lambda: seen and seen[0].unheard_s() == 0.0, "a master that is heard")
    await master.away()
    await asyncio.to_thread(wait_for, lambda: seen[0].unheard_s() > 0.0, "that it is not heard any more")
