"""The devices that an agent offers, while it runs: which number each has, and what is wrong with it.

Rules:

- While containers have devices, these keep their numbers, over restarts of the agent: what a container holds is known
  to the master by number. One that is missing then, or that its operator does not offer any more, is a broken one as
  long as the agent runs; new ones get numbers of their own.
- What is wrong with a device is looked at again and again; a broken one takes no new work, and what runs on it goes on.
- The driver of a broken device may not answer, for ever: one look at a time, in a thread that nobody waits for at the
  end, and while it lasts too long all that it is about counts as broken.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from tenax.agent.detect import detect
from tenax.config.agent import AgentSettings
from tenax.errors import UserError
from tenax.runtime.gpus.registry import GPUS
from tenax.wire.agents import SlotInfo

log = structlog.get_logger("tenax.agent")

LOOK_EVERY_S = 30.0
#: For which the first look is waited for.
FIRST_S = 10.0
ANSWER_WITHIN_S = 60.0
_FILE = "devices.json"
#: Characters that are told of a fault: a master takes no more.
_FAULT_LENGTH = 250
MISSING = "it is not found on its machine any more"
_SILENT = "its driver does not answer"
#: What is wrong with each of these devices, by number; blocks.
Look = Callable[[Sequence[SlotInfo]], Mapping[int, str]]


def offered(settings: AgentSettings, in_use: Collection[int] | None) -> tuple[SlotInfo, ...]:
    """The slots of this machine; ``in_use``: numbers of slots that containers here have, None: it is not known. Blocks.

    Raises UserError if a kind of GPU is asked for and none was ever there.
    """
    kept = _remembered(settings.dir) if in_use is None or in_use else ()
    if in_use is None:
        in_use = {slot.id for slot in kept}
    try:
        detected = detect(settings)
    except UserError:
        if not any(slot.id in in_use for slot in kept):
            raise
        detected = ()
    slots = numbered(detected, kept, in_use)
    _remember(settings.dir, slots)
    return slots


def numbered(detected: Sequence[SlotInfo], kept: Sequence[SlotInfo], in_use: Collection[int]) -> tuple[SlotInfo, ...]:
    """What is found, under the numbers that ``kept`` has for it; what is missing of that and in use is broken."""
    if not any(slot.uuid for slot in kept):
        return tuple(detected)
    here = {slot.uuid: slot for slot in detected if slot.uuid}
    slots = []
    for slot in kept:
        if slot.uuid in here:
            slots.append(msgspec.structs.replace(here.pop(slot.uuid), id=slot.id, fault=""))
        elif slot.uuid and slot.id in in_use:
            slots.append(msgspec.structs.replace(slot, fault=MISSING))
    # Numbers of those that are gone and were not in use are given away again only when nothing is.
    first = max((slot.id for slot in kept), default=-1) + 1
    others = [*here.values(), *(slot for slot in detected if not slot.uuid)]
    slots += [msgspec.structs.replace(slot, id=first + place) for place, slot in enumerate(others)]
    return tuple(sorted(slots, key=lambda slot: slot.id))


def faults_of(slots: Sequence[SlotInfo]) -> dict[int, str]:
    """What their drivers say is wrong with them, by number. Blocks."""
    kinds: defaultdict[str, list[SlotInfo]] = defaultdict(list)
    for slot in slots:
        if slot.uuid and slot.kind in GPUS:
            kinds[slot.kind].append(slot)
    faults: dict[int, str] = {}
    for kind, of_kind in kinds.items():
        answers = GPUS[kind].faults([slot.uuid for slot in of_kind])
        faults |= {slot.id: answers[slot.uuid] for slot in of_kind if slot.uuid in answers}
    return faults


class DeviceWatch:
    """The slots of an agent as they are now; `run` keeps looking."""

    def __init__(
        self,
        slots: Sequence[SlotInfo],
        *,
        look: Look = faults_of,
        every_s: float = LOOK_EVERY_S,
        within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self.slots = tuple(slots)
        self._watched = [slot for slot in self.slots if slot.uuid and slot.kind in GPUS and slot.fault != MISSING]
        self._look = look
        self._every_s, self._within_s, self._first_s = every_s, within_s, min(FIRST_S, within_s)
        #: Of the look that lasts.
        self._answer: asyncio.Future[Mapping[int, str]] | None = None

    async def begin(self) -> None:
        """The first look, before anybody hears of the devices; one that lasts too long goes on in `run`."""
        if not self._watched:
            return
        self._answer = _in_thread(self._look, self._watched)
        try:
            await self._wait(self._first_s, lambda _: None)
        except Exception:
            # A mistake of ours or of a driver's library: whatever it is, the agent has other work.
            log.exception("cannot ask how the devices are")

    async def run(self, changed: Callable[[tuple[SlotInfo, ...]], None]) -> None:
        """For ever; ``changed`` is given the slots when what is wrong with some is not what it was."""
        while self._watched:
            if self._answer is None:
                self._answer = _in_thread(self._look, self._watched)
            if not await self._wait(self._within_s, changed):
                continue
            await asyncio.sleep(self._every_s)
        await asyncio.Event().wait()

    async def _wait(self, seconds: float, changed: Callable[[tuple[SlotInfo, ...]], None]) -> bool:
        """For the answer of the look that lasts; False where there is none yet."""
        assert self._answer is not None
        done, _ = await asyncio.wait({self._answer}, timeout=seconds)
        if not done:
            self._note({slot.id: _SILENT for slot in self._watched}, changed)
            return False
        answer, self._answer = self._answer, None
        self._note(answer.result(), changed)
        return True

    def _note(self, faults: Mapping[int, str], changed: Callable[[tuple[SlotInfo, ...]], None]) -> None:
        watched = {slot.id for slot in self._watched}
        slots = tuple(
            msgspec.structs.replace(slot, fault=faults.get(slot.id, "")[:_FAULT_LENGTH]) if slot.id in watched else slot
            for slot in self.slots
        )
        if slots == self.slots:
            return
        for slot, before in zip(slots, self.slots, strict=True):
            if slot.fault != before.fault:
                say = log.error if slot.fault else log.info
                what = "a device is broken" if slot.fault else "a device is well again"
                say(what, slot=slot.id, device=slot.uuid, reason=slot.fault)
        self.slots = slots
        changed(slots)


def _in_thread(look: Look, slots: Sequence[SlotInfo]) -> asyncio.Future[Mapping[int, str]]:
    """A look in a thread of its own, which ends with the process, wherever it is."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Mapping[int, str]] = loop.create_future()

    def tell(faults: Mapping[int, str] | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        elif faults is not None:
            answer.set_result(faults)

    def work() -> None:
        faults, failure = None, None
        try:
            faults = look(slots)
        except Exception as error:
            failure = error
        # Nobody is there any more where the agent has ended.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, faults, failure)

    threading.Thread(target=work, name="devices", daemon=True).start()
    return answer


def _remembered(directory: Path) -> tuple[SlotInfo, ...]:
    try:
        return msgspec.json.decode((directory / _FILE).read_bytes(), type=tuple[SlotInfo, ...])
    except (OSError, msgspec.MsgspecError):
        return ()


def _remember(directory: Path, slots: Sequence[SlotInfo]) -> None:
    part = directory / f"{_FILE}.new"
    try:
        part.write_bytes(msgspec.json.encode(slots))
        os.replace(part, directory / _FILE)
    except OSError as error:
        # A full disk is no reason to leave: numbers count once the agent is started again while containers are here.
        log.warning("cannot write which number each device has", reason=error.strerror)
