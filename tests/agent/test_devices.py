"""The devices of an agent while it runs: they keep their numbers, and broken ones take no new work."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tenax.agent import app, devices
from tenax.agent.devices import MISSING, DeviceWatch, numbered, offered
from tenax.errors import UserError
from tenax.wire.agents import SlotInfo
from tests.agent.host import WAIT, Host, spec
from tests.agent.master_double import MasterDouble


def gpu(number: int, uuid: str, fault: str = "") -> SlotInfo:
    return SlotInfo(number, "cuda", "H100", f"GPU-{uuid}", 80 << 30, fault)


def test_devices_keep_their_numbers() -> None:
    """One that is missing and in use is broken, one that is new gets a number of its own, one that is back is well."""
    kept = (gpu(0, "a"), gpu(1, "b"), gpu(2, "c", "its driver has lost it"), gpu(3, "d"))
    found = (gpu(0, "b"), gpu(1, "c"), gpu(2, "new"))
    assert numbered(found, kept, {0, 1}) == (gpu(0, "a", MISSING), gpu(1, "b"), gpu(2, "c"), gpu(4, "new"))


def test_what_has_no_identity_is_numbered_as_it_is_found() -> None:
    cores = (SlotInfo(0, "cpu", "core"), SlotInfo(1, "cpu", "core"))
    assert numbered(cores[:1], cores, {1}) == cores[:1]
    assert numbered((gpu(0, "a"),), (), {0}) == (gpu(0, "a"),)


def test_an_operator_takes_the_gpus_out() -> None:
    """One that a task has is offered to nobody; slots of another kind come beside it."""
    core = SlotInfo(0, "cpu", "core")
    kept = (gpu(0, "a"), gpu(1, "b"))
    assert numbered((core,), kept, {1}) == (gpu(1, "b", MISSING), SlotInfo(2, "cpu", "core"))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[SlotInfo]:
    """What is found on this machine."""
    found = [gpu(0, "a"), gpu(1, "b")]

    def detect(_: object) -> tuple[SlotInfo, ...]:
        if not found:
            raise UserError("no cuda device is visible on this machine")
        return tuple(found)

    monkeypatch.setattr(devices, "detect", detect)
    return found


def test_numbers_hold_as_long_as_a_container_has_one(machine: list[SlotInfo], host: Host) -> None:
    """A machine whose first GPU has died, under an agent that is started again while its second is in use: the second
    had the number of the first, and was given away twice."""
    host.directory.mkdir()
    settings = host.settings()
    assert offered(settings, ()) == (gpu(0, "a"), gpu(1, "b"))
    machine[:] = [gpu(0, "b")]
    assert offered(settings, {1}) == (gpu(1, "b"),)
    machine.clear()
    assert offered(settings, {1}) == (gpu(1, "b", MISSING),)
    assert offered(settings, None) == (gpu(1, "b", MISSING),)
    # Nobody refers to a number any more.
    with pytest.raises(UserError):
        offered(settings, ())
    machine[:] = [gpu(0, "b")]
    assert offered(settings, ()) == (gpu(0, "b"),)


@pytest.mark.parametrize("text", [b"", b"{}", b"[1", b'[{"id": "x"}]'])
def test_numbers_that_cannot_be_read_are_made_anew(machine: list[SlotInfo], host: Host, text: bytes) -> None:
    host.directory.mkdir()
    (host.directory / "devices.json").write_bytes(text)
    assert offered(host.settings(), {1}) == tuple(machine)


class Driver:
    """What a driver says, look by look; it hangs at None until it is let go."""

    def __init__(self, *answers: Mapping[int, str] | None) -> None:
        self._answers = iter(answers)
        self.go_on = threading.Event()

    def __call__(self, _: Sequence[SlotInfo]) -> Mapping[int, str]:
        answer = next(self._answers, {})
        if answer is None:
            self.go_on.wait(240)
            return {}
        return answer


async def watched(watch: DeviceWatch, looks: int, at_first: Callable[[], None] = lambda: None) -> list[list[str]]:
    """The faults that were told, until so many were; ``at_first``: what is done at the first."""
    told: list[list[str]] = []
    enough = asyncio.Event()

    def changed(slots: tuple[SlotInfo, ...]) -> None:
        told.append([slot.fault for slot in slots])
        if len(told) == 1:
            at_first()
        if len(told) == looks:
            enough.set()

    running = asyncio.create_task(watch.run(changed))
    await asyncio.wait_for(enough.wait(), 240)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return told


async def test_only_what_changes_is_told() -> None:
    driver = Driver({}, {1: "lost"}, {1: "lost"}, {}, {0: "x" * 1000})
    watch = DeviceWatch([gpu(0, "a"), gpu(1, "b")], look=driver, every_s=0)
    assert await watched(watch, 3) == [["", "lost"], ["", ""], ["x" * 250, ""]]


async def test_a_driver_that_hangs_is_asked_once() -> None:
    """All that it is about is broken meanwhile, and well when it answers."""
    driver = Driver(None)
    watch = DeviceWatch([gpu(0, "a"), gpu(1, "b")], look=driver, every_s=0, within_s=0.05)
    assert await watched(watch, 2, driver.go_on.set) == [["its driver does not answer"] * 2, ["", ""]]


async def test_the_first_look_comes_before_anybody_hears_of_the_devices() -> None:
    """What is broken from the beginning is never offered; what is missing stays so, whatever a driver says."""
    watch = DeviceWatch([gpu(0, "a"), gpu(1, "b"), gpu(2, "c", MISSING)], look=Driver({1: "lost"}), every_s=0)
    await watch.begin()
    assert [slot.fault for slot in watch.slots] == ["", "lost", MISSING]
    assert await watched(watch, 1) == [["", "", MISSING]]


async def test_a_look_that_breaks_keeps_no_agent_from_starting() -> None:
    def breaks(_: Sequence[SlotInfo]) -> Mapping[int, str]:
        raise ZeroDivisionError

    watch = DeviceWatch([gpu(0, "a")], look=breaks)
    await watch.begin()
    assert watch.slots == (gpu(0, "a"),)


def test_an_agent_ends_while_its_driver_hangs() -> None:
    """Nobody waits for the thread that does."""
    script = """
import asyncio, time
from tenax.agent.devices import DeviceWatch
from tenax.wire.agents import SlotInfo
async def main():
    watch = DeviceWatch([SlotInfo(0, "cuda", "", "GPU-a")], look=lambda _: time.sleep(600), within_s=0.01)
    await watch.begin()
    print(watch.slots[0].fault)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.splitlines()[-1] == "its driver does not answer"


@pytest.fixture
def ailing(monkeypatch: pytest.MonkeyPatch, machine: list[SlotInfo]) -> Callable[[Mapping[int, str]], None]:
    """An agent's machine with two GPUs, whose driver says what it is set to."""
    now: dict[int, str] = {}
    monkeypatch.setattr(
        app, "DeviceWatch", lambda slots: DeviceWatch(slots, look=lambda _: dict(now), every_s=0.01, within_s=240)
    )

    def say(faults: Mapping[int, str]) -> None:
        now.clear()
        now.update(faults)

    return say


async def test_the_master_hears_of_it(
    master: MasterDouble, host: Host, ailing: Callable[[Mapping[int, str]], None], tmp_path: Path
) -> None:
    """By a new hello; what runs goes on, and the program for lost connections is not run."""
    lost = tmp_path / "lost"
    host.start(hooks={"on_connection_lost": ("touch", str(lost))})
    await master.until(lambda: master.hellos)
    task_spec = spec(WAIT)
    await master.run(task_spec)
    await master.until(lambda: master.text(task_spec.container_id) == "ready\n")
    ailing({1: "its driver has lost it"})
    await master.until(lambda: len(master.hellos) == 2)
    assert [slot.fault for slot in master.hellos[-1].slots] == ["", "its driver has lost it"]
    assert [(each.container_id, each.state) for each in master.hellos[-1].containers] == [
        (task_spec.container_id, "running")
    ]
    ailing({})
    await master.until(lambda: len(master.hellos) == 3)
    assert [slot.fault for slot in master.hellos[-1].slots] == ["", ""]
    await master.stop(task_spec.container_id, 60)
    await master.until(lambda: master.exited(task_spec.container_id))
    assert not lost.exists()
