"""A machine that is given up: its agent reaches no master for too long, and nothing runs there."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from tenax.agent import orphaned
from tenax.agent.orphaned import MachineLease, MasterContact, OrphanLimits, OrphanStep, next_step
from tenax.config.agent import NEVER_RENEWED
from tenax.runtime.port import ContainerStatus, RuntimeAway
from tenax.wire.task_names import LEAVE_FILE
from tests.agent.host import Host, spec
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
    limits = OrphanLimits(5.0, 1e6)
    watching = asyncio.create_task(orphaned.watch(contact, looks, limits, program))  # type: ignore[arg-type]
    await asyncio.to_thread(wait_for, mark.exists, "the program")
    watching.cancel()
    assert looks.count == 5


@pytest.mark.parametrize("unheard_s", [1790.0, 4000.0], ids=["idle", "given up"])
async def test_a_lease_is_renewed_as_soon_as_a_master_is_heard(tmp_path: Path, unheard_s: float) -> None:
    """A machine that is given work then is not to end by a lease that is nearly over."""
    file, now = tmp_path / "lease", [0.0]
    contact = MasterContact(lambda: now[0])
    now[0] = unheard_s
    looks, limits = Looks([]), OrphanLimits(1800.0, 86400.0)
    watching = asyncio.create_task(orphaned.watch(contact, looks, limits, (), MachineLease(file)))  # type: ignore[arg-type]
    await asyncio.to_thread(wait_for, lambda: looks.count, "a look without a master", 5)
    before = file.read_text()
    contact.made()
    await asyncio.to_thread(wait_for, lambda: file.read_text() != before, "the renewal", 5)
    watching.cancel()


async def test_an_agent_that_starts_again_looks_for_a_master_first(tmp_path: Path) -> None:
    """By what another one has noted the time is over long ago; that one may have been down for most of it."""
    lease, mark = tmp_path / "lease", tmp_path / "off"
    contact, looks = MasterContact(lambda: 0.0, -1e6), Looks([])
    program = ("touch", str(mark))
    watching = asyncio.create_task(
        orphaned.watch(contact, looks, OrphanLimits(1800.0, 86400.0), program, MachineLease(lease))  # type: ignore[arg-type]
    )
    await asyncio.to_thread(wait_for, lambda: looks.count, "a look without a master", 5)
    before = lease.read_text()
    contact.made()
    await asyncio.to_thread(wait_for, lambda: lease.read_text() != before, "the renewal", 5)
    watching.cancel()
    assert not mark.exists()


@pytest.mark.parametrize(
    ("unheard_s", "busy", "step"),
    [
        (0.0, False, OrphanStep.RENEW),
        (0.0, True, OrphanStep.RENEW),
        (1.0, False, OrphanStep.LAPSE),
        (1800.0, False, OrphanStep.GIVE_UP),
        (1800.0, True, OrphanStep.RENEW),
        (85799.0, True, OrphanStep.RENEW),
        (85800.0, True, OrphanStep.SAVE),
        (86399.0, True, OrphanStep.SAVE),
        (86400.0, True, OrphanStep.GIVE_UP),
    ],
)
def test_what_is_right_for_a_machine(unheard_s: float, busy: bool, step: OrphanStep) -> None:
    """Its lease goes on with its work, which has its last minutes to save; beyond the busy limit nothing holds it."""
    assert next_step(unheard_s, OrphanLimits(1800.0, 86400.0), busy=busy) is step


def test_one_limit_that_is_longer_than_the_other_holds() -> None:
    """A machine with work is never given up before one without; a short limit leaves time to save, too."""
    assert next_step(50.0, OrphanLimits(100.0, 10.0), busy=True) is OrphanStep.SAVE
    assert next_step(100.0, OrphanLimits(100.0, 10.0), busy=True) is OrphanStep.GIVE_UP
    assert OrphanLimits(1.0, 8.0).save_s == 6.0


def test_a_lease_is_begun_once_and_says_since_when_nobody_is_heard(tmp_path: Path) -> None:
    """Each renewal is another line; a new agent goes on counting, but not over a restart of the machine."""
    file = tmp_path / "lease"
    file.write_text(f"{NEVER_RENEWED}\n")
    lease = MachineLease(file)
    assert lease.lost_at(7.0) == 7.0
    lease.claim(5.0)
    begun = file.read_text()
    assert begun != f"{NEVER_RENEWED}\n"
    lease.claim(6.0)
    assert file.read_text() == begun
    assert MachineLease(file).lost_at(7.0) == 5.0
    lines = {begun}
    for _ in range(2):
        lease.renew(5.0)
        lines.add(file.read_text())
    assert len(lines) == 3
    assert all(line.count("\n") == 1 for line in lines)
    number, _, when = file.read_text().split()
    file.write_text(f"{number} another-boot {when}")
    assert MachineLease(file).lost_at(7.0) == 7.0
    file.unlink()
    lease.renew(5.0)
    assert MachineLease(file).lost_at(7.0) == 5.0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a file system")
def test_a_full_disk_has_room_for_a_renewal(tmp_path: Path) -> None:
    """What it holds already is written over."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(tmp_path)], check=True)
    try:
        lease = MachineLease(tmp_path / "lease")
        lease.renew(1.0)
        with pytest.raises(OSError, match="No space"):
            (tmp_path / "rest").write_bytes(bytes(1 << 20))
        before = (tmp_path / "lease").read_text()
        lease.renew(2.0)
        assert (tmp_path / "lease").read_text() != before
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


async def test_a_machine_without_a_master_asks_its_work_to_save(master: MasterDouble, host: Host) -> None:
    """The lease is renewed while it runs, and no more once it had its time; then the machine ends, whatever runs."""
    place = host.directory.parent
    mark, lease = place / "off", place / "lease"
    lease.write_text(f"{NEVER_RENEWED}\n")
    waits = "import os, time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"
    its = spec(waits)
    asked = host.directory / "containers" / its.container_id / "run" / LEAVE_FILE
    host.start(
        orphan_after_s=0.2,
        orphan_busy_after_s=1.2,
        lease_file=lease,
        hooks={"on_orphaned": ("sh", "-c", f"test -e {asked} && cat {lease} >> {mark}")},
    )
    await master.run(its)
    await master.until(lambda: master.text(its.container_id) == "ready\n")
    await master.away()
    away = lease.read_text()
    await asyncio.to_thread(wait_for, lambda: mark.exists() and mark.read_text(), "the end of the machine")
    assert lease.read_text() != away
    assert mark.read_text().splitlines()[0] == lease.read_text().strip()


async def test_a_task_that_cannot_be_asked_to_save_keeps_no_other_from_it(tmp_path: Path) -> None:
    """A pipe, or anything else of that name, lies in a directory that is the task's."""
    for name in ("pipe", "folder", "link", "good"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / LEAVE_FILE)
    (tmp_path / "folder" / LEAVE_FILE).mkdir()
    (tmp_path / "link" / LEAVE_FILE).symlink_to(tmp_path / "elsewhere")
    running = [
        ContainerStatus(name, "c", 1, "running", None, None, spec(""), str(tmp_path / name / "spool"))
        for name in ("pipe", "folder", "link", "good")
    ]
    asking = asyncio.create_task(orphaned._ask_to_leave(running, set(), 1.0))
    _, waits = await asyncio.wait([asking], timeout=10)
    if waits:
        # So that the thread ends.
        await asyncio.to_thread((tmp_path / "pipe" / LEAVE_FILE).read_bytes)
    assert not waits, "it waits for whoever reads the pipe"
    assert (tmp_path / "good" / LEAVE_FILE).exists()
    assert not (tmp_path / "elsewhere").exists()


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
