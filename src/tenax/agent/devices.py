"""The devices that an agent offers, while it runs: which number each has, and what is wrong with it.

Rules:

- While containers are here, devices keep their numbers, over restarts of the agent: what a container holds is known to
  the master by number. A device that is missing then is offered as a broken one, and new ones get numbers of their own.
- What is wrong with a device is looked at again and again; a broken one takes no new work, and what runs on it goes on.
- The driver of a broken device may not answer, for ever: one look at a time, and while it lasts too long all that it is
  about counts as broken.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
ANSWER_WITHIN_S = 60.0
_FILE = "devices.json"
#: Characters that are told of a fault: a master takes no more.
_FAULT_LENGTH = 250
_MISSING = "it is not found on its machine any more"
_SILENT = "its driver does not answer"
#: What is wrong with each of these devices, by number; blocks.
Look = Callable[[Sequence[SlotInfo]], Mapping[int, str]]


def offered(settings: AgentSettings, *, holds: bool) -> tuple[SlotInfo, ...]:
    """The slots of this machine; ``holds``: containers are here. Blocks.

    Raises UserError if a kind of GPU is asked for and none was ever there.
    """
    kept = _remembered(settings.dir) if holds else ()
    try:
        found = detect(settings)
    except UserError:
        if not kept:
            raise
        found = ()
    slots = numbered(found, kept)
    _remember(settings.dir, slots)
    return slots


def numbered(found: Sequence[SlotInfo], kept: Sequence[SlotInfo]) -> tuple[SlotInfo, ...]:
    """What is found, under the numbers that ``kept`` has for it; what is missing of that is broken."""
    if not any(slot.uuid for slot in kept):
        return tuple(found)
    here = {slot.uuid: slot for slot in found if slot.uuid}
    slots = [
        msgspec.structs.replace(here.pop(slot.uuid), id=slot.id, fault="")
        if slot.uuid in here
        else msgspec.structs.replace(slot, fault=_MISSING)
        for slot in kept
    ]
    first = max(slot.id for slot in slots) + 1
    slots += [msgspec.structs.replace(slot, id=first + place) for place, slot in enumerate(here.values())]
    return tuple(sorted(slots, key=lambda slot: slot.id))


def faults_of(slots: Sequence[SlotInfo]) -> dict[int, str]:
    """What their drivers say is wrong with them, by number. Blocks."""
    kinds: defaultdict[str, list[SlotInfo]] = defaultdict(list)
    for slot in slots:
        if slot.uuid and slot.kind in GPUS:
            kinds[slot.kind].append(slot)
    faults: dict[int, str] = {}
    for kind, of_kind in kinds.items():
        said = GPUS[kind].faults([slot.uuid for slot in of_kind])
        faults |= {slot.id: said[slot.uuid] for slot in of_kind if slot.uuid in said}
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
        self._look = look
        self._every_s = every_s
        self._within_s = within_s

    async def run(self, changed: Callable[[tuple[SlotInfo, ...]], None]) -> None:
        """For ever; ``changed`` is given the slots when what is wrong with some is not what it was."""
        watched = [slot for slot in self.slots if slot.uuid and slot.kind in GPUS]
        while watched:
            answer = asyncio.ensure_future(asyncio.to_thread(self._look, watched))
            done, _ = await asyncio.wait({answer}, timeout=self._within_s)
            if not done:
                self._note({slot.id: _SILENT for slot in watched}, changed)
            self._note(await answer, changed)
            await asyncio.sleep(self._every_s)
        await asyncio.Event().wait()

    def _note(self, faults: Mapping[int, str], changed: Callable[[tuple[SlotInfo, ...]], None]) -> None:
        slots = tuple(
            msgspec.structs.replace(slot, fault=faults.get(slot.id, "")[:_FAULT_LENGTH]) for slot in self.slots
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
