"""The real shipper and the real intake: whatever goes wrong between them, each byte is stored once or counted once."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from tenax.agent import link as links
from tenax.agent import output
from tenax.agent.link import Link
from tenax.agent.output import OutputShipper
from tenax.backoff import Backoff
from tenax.config.agent import AgentSettings
from tenax.config.master import MasterSettings
from tenax.local.postgres import EmbeddedPostgres
from tenax.runtime import segments
from tenax.runtime.port import OutputStream, Runtime
from tenax.runtime.supervisor import Segments
from tests.kits.master.served import CREDENTIAL, ServedMaster

_LOSS = re.compile(r"\[(\d+) bytes of output are missing here: they were dropped\]")
_PLENTY = 2**40


class Tape:
    """What a supervisor keeps of one stream, as the runtime gives it out; ``raw`` is all that was ever written."""

    def __init__(self, segment_bytes: int = 2000, cap: int = 2**30) -> None:
        Path("out").mkdir()
        self._segments = Segments("stdout", cap)
        self._segments.segment_bytes = segment_bytes
        self.raw = b""

    def write(self, data: bytes) -> None:
        self._segments.write(data)
        self.raw += data

    def drop(self, rng: random.Random) -> None:
        """Some of the oldest segments, never the newest."""
        names = sorted(Path("out").glob("stdout-*"))
        for path in names[: rng.randint(0, len(names) - 1)]:
            path.unlink()

    async def read_output(self, container_id: str, stream: OutputStream, offset: int, limit: int) -> tuple[int, bytes]:
        return segments.read(Path("out"), stream, offset, limit)

    async def output_time(self, container_id: str, stream: OutputStream, offset: int) -> tuple[float, int | None]:
        at, later = segments.written(Path("out"), stream, offset)
        return max(0.0, time.monotonic() - at), later

    async def trim_output(self, container_id: str, stream: OutputStream, offset: int) -> None:
        segments.trim(Path("out"), stream, offset)


class Lab:
    """One container whose output is shipped; `check` says whether all of it is there, or counted."""

    def __init__(self, master: ServedMaster, link: Link, trial: int, container_id: str) -> None:
        self.master, self.link, self.trial, self.container_id = master, link, trial, container_id
        self.tape = Tape()
        runtime = cast(Runtime, self.tape)
        self.shipper = OutputShipper(link, runtime, container_id, asyncio.Semaphore(2), fresh=True)
        self.shipping = asyncio.create_task(self.shipper.run())

    def say(self, text: str) -> None:
        self.tape.write(text.encode())
        self.shipper.poke()

    async def shipped(self) -> None:
        """Until the master has what was written so far."""

        async def has_all() -> bool:
            offsets = await self.master.api.master.intake.logs.offsets("a1", self.container_id)
            return offsets["stdout"] == len(self.tape.raw)

        async with asyncio.timeout(240):
            while not await has_all():  # noqa: ASYNC110 - the database is asked, it has no event for this
                await asyncio.sleep(0.01)

    async def restore(self) -> None:
        """Put the copy in the database's place; the agent's session connects anew."""
        await self.master.restore()
        self.shipper.ask_again()

    async def end(self) -> None:
        self.shipper.end()
        async with asyncio.timeout(240):
            await self.shipping

    async def texts(self) -> list[str]:
        lines = await self.master.book.output(self.trial)
        return [line.line.text for line in lines if line.origin.source == "task"]

    async def check(self) -> int:
        """Bytes that are counted as missing; all others are stored once and in order."""
        raw, at, missing = self.tape.raw, 0, 0
        for text in await self.texts():
            if (loss := _LOSS.fullmatch(text)) is not None:
                missing += int(loss[1])
                at += int(loss[1])
                continue
            assert raw[at : at + len(text)] == text.encode(), f"at byte {at}"
            at += len(text)
            at += raw[at : at + 1] == b"\n"
        assert at == len(raw)
        return missing


@pytest.fixture
async def lab(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    postgres: EmbeddedPostgres,
    database_url: str,
    master_settings: MasterSettings,
) -> AsyncIterator[Lab]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(links, "BACKOFF", Backoff(first=0.01, ceiling=0.05))
    async with ServedMaster(postgres.dsn, database_url, master_settings) as master, _link(master.url) as link:
        trial, task = await master.running_trial()
        lab = Lab(master, link, trial, task.allocation_id)
        try:
            yield lab
        finally:
            lab.shipping.cancel()
            await asyncio.gather(lab.shipping, return_exceptions=True)


@asynccontextmanager
async def _link(url: str) -> AsyncIterator[Link]:
    link = Link(AgentSettings(agent_id="a1", master_url=url))
    link.credential = CREDENTIAL
    await link.open()
    try:
        yield link
    finally:
        await link.close()


async def test_output_goes_on_once_there_is_room_again(lab: Lab) -> None:
    """Nothing is lost of what was said meanwhile, as long as the machine kept it."""
    lab.say("before\n")
    await lab.shipped()
    lab.master.allow_logs(0)
    lab.say("meanwhile\n")
    await _noticed(lab, "output waits where it was made")
    lab.master.allow_logs(_PLENTY)
    lab.say("after\n")
    await lab.shipped()
    await lab.end()
    assert await lab.texts() == ["before", "meanwhile", "after"]


@pytest.mark.parametrize("call", ["read_output", "trim_output", "output_time"])
async def test_output_goes_on_after_an_error_that_nobody_expects(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """No free descriptor, a disk that fails: it is tried again, and nothing is lost."""
    lab.say("before\n")
    await lab.shipped()
    work, left = getattr(lab.tape, call), [2]

    async def failing(*arguments: object) -> object:
        if left[0]:
            left[0] -= 1
            raise OSError(24, "Too many open files")
        return await work(*arguments)

    monkeypatch.setattr(lab.tape, call, failing)
    for number in range(4):
        lab.say(f"{number}" * 1500 + "\n")
    await lab.shipped()
    lab.say("after\n")
    await lab.end()
    assert (await lab.texts())[-1] == "after"
    assert await lab.check() == 0
    assert lab.shipper.lost == ""


async def test_a_container_that_ends_without_room_says_what_is_gone(lab: Lab) -> None:
    """Its end waits for nothing: one line counts what was not taken."""
    lab.say("before\n")
    await lab.shipped()
    lab.master.allow_logs(0)
    lab.say("x" * 5000 + "\nthe end")
    await lab.end()
    assert await lab.texts() == ["before", "[5008 bytes of output are missing here: they were dropped]"]
    assert lab.shipper.lost == ""


async def test_dropped_segments_are_one_line(lab: Lab) -> None:
    """What the machine did not keep while the master was away is counted once, and what comes after it is stored."""
    lab.say("before\n")
    await lab.shipped()
    await lab.master.away()
    for number in range(100):
        lab.say(f"line {number} {'x' * 100}\n")
    lab.tape.drop(random.Random(1))
    await lab.master.back()
    await lab.shipped()
    lab.say("after\n")
    await lab.end()
    assert await lab.check() > 0
    assert sum(1 for text in await lab.texts() if _LOSS.fullmatch(text)) == 1


async def test_a_restored_database_gets_again_what_it_lacks(lab: Lab) -> None:
    """Also of a container that says nothing more."""
    lab.say("first\n")
    await lab.shipped()
    await lab.master.copy()
    lab.say("second\nthi")
    await lab.shipped()
    await lab.restore()
    await lab.shipped()
    assert await lab.texts() == ["first", "second"]
    await lab.end()
    assert await lab.texts() == ["first", "second", "thi"]


async def test_what_a_master_refuses_to_the_end_is_said_by_the_exit(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not even a line can be written, the sentence for the exit's reason counts the bytes."""
    lab.say("before\n")
    await lab.shipped()
    monkeypatch.setattr(output, "_REFUSED_S", 0.1)
    lab.link.credential = "tnxg_another"
    lab.say("x" * 5000)
    await lab.end()
    assert lab.shipper.lost.startswith("5000 bytes of output were not stored: the master answered 401")


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 20))])
async def test_after_random_faults_each_byte_is_stored_once_or_counted(lab: Lab, seed: int) -> None:
    """A budget that is full and free again, segments that are dropped, a master that is away, its database restored."""
    rng = random.Random(seed)
    number = 0
    await lab.master.copy()
    for _ in range(40):
        fault = rng.choices(
            ["say", "full", "free", "drop", "away", "copy", "restore", "reconnect", "shipped"],
            [10, 2, 2, 1, 1, 0.5, 0.7, 1, 2],
        )[0]
        if fault == "say":
            for _ in range(rng.randint(1, 30)):
                lab.say(f"{number} {'.' * rng.randint(0, 200)}" + rng.choice(["\n", "\n", ""]))
                number += 1
        elif fault == "drop" and lab.tape.raw:
            lab.tape.drop(rng)
        elif fault == "full":
            lab.master.allow_logs(0)
        elif fault in ("free", "shipped"):
            lab.master.allow_logs(_PLENTY)
            if fault == "shipped":
                await lab.shipped()
        elif fault == "away":
            await lab.master.away()
            lab.say(f"{number} while away\n")
            await lab.master.back()
        elif fault == "copy":
            await lab.master.copy()
        elif fault == "restore":
            await lab.restore()
        elif fault == "reconnect":
            lab.shipper.ask_again()
    lab.master.allow_logs(_PLENTY)
    lab.say("end of it")
    await lab.end()
    await lab.check()


async def _noticed(lab: Lab, text: str) -> None:
    """Until the platform has said so in the task's log."""
    async with asyncio.timeout(240):
        while not any(text in line.line.text for line in await lab.master.book.output(lab.trial)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_what_waited_in_an_agent_keeps_its_time(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that stood still for two minutes ships lines of then, of a minute later, and of now."""
    monkeypatch.setattr("tenax.runtime.supervisor.MARK_EVERY_S", 0.0)
    lab.shipping.cancel()
    ages = (120, 60, 0)
    for age in ages:
        lab.tape.write(f"{age} seconds ago\n".encode())
    _make_older(Path("times-stdout"), ages)
    lab.shipper = OutputShipper(lab.link, cast(Runtime, lab.tape), lab.container_id, asyncio.Semaphore(2))
    lab.shipping = asyncio.create_task(lab.shipper.run())
    await lab.shipped()
    await lab.end()
    lines = [line.line for line in await lab.master.book.output(lab.trial) if line.origin.source == "task"]
    assert [line.text for line in lines] == [f"{age} seconds ago" for age in ages]
    newest = lines[-1].at_us
    assert [round((newest - line.at_us) / 60e6) for line in lines] == [2, 1, 0]


def _make_older(marks: Path, ages: Sequence[int]) -> None:
    """As if each mark had been made so many seconds before."""
    data = marks.read_bytes()
    changed = b""
    for number, age in enumerate(ages):
        offset, at = data[16 * number :][:8], int.from_bytes(data[16 * number + 8 :][:8], "little")
        changed += offset + (at - age * 1_000_000).to_bytes(8, "little")
    marks.write_bytes(changed)
