"""Which devices this machine offers as slots: its GPUs, or the CPU.

Each kind of GPU knows how it is found (`tenax.runtime.gpus`). Apple's GPU is shared by the whole system and is not a
slot; a Mac offers its CPU (not tested there).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from tenax.config.agent import NO_SLOTS, AgentSettings
from tenax.errors import UserError
from tenax.host.runtimes import AUTO
from tenax.runtime.gpus.kind import Gpu
from tenax.runtime.gpus.registry import GPUS
from tenax.scheduler.devices import DeviceKind
from tenax.wire.agents import SlotInfo


def detect(settings: AgentSettings, environ: Mapping[str, str] = os.environ) -> tuple[SlotInfo, ...]:
    """The slots of this machine. Raises UserError if a kind of GPU is asked for and none is there."""
    slot_type = settings.slot_type
    if slot_type == NO_SLOTS or settings.slots == 0:
        return ()
    for name, kind in GPUS.items():
        if slot_type in (AUTO, name):
            visible = settings.visible_gpus or _listed(environ.get(kind.variable))
            gpus = _visible(kind.find(), visible)
            if gpus:
                return _slots(name, gpus, settings.slots)
    if slot_type in GPUS:
        raise UserError(
            f"no {slot_type} device is visible on this machine: check the driver and visible_gpus, "
            "or start the agent with --slot-type cpu"
        )
    count = 1 if settings.slots == "auto" else settings.slots
    return tuple(SlotInfo(number, DeviceKind.CPU.value, cpu_name()) for number in range(count))


def cpu_name() -> str:
    """For people: model and number of cores."""
    cores = os.cpu_count() or 1
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{model or platform.processor() or platform.machine()} x {cores}"


def _listed(text: str | None) -> tuple[str, ...]:
    """A vendor's variable as a list; one that is set to nothing shows nothing."""
    if text is None:
        return ()
    return tuple(part.strip() for part in text.split(",") if part.strip()) or ("none",)


def _visible(devices: list[Gpu], visible: Iterable[str]) -> list[Gpu]:
    """Those that ``visible`` names by index or by (the beginning of) a uuid, in its order; all where it is empty."""
    names = list(visible)
    if not names:
        return devices
    chosen: list[Gpu] = []
    for name in names:
        matching = [d for d in devices if d.index == name or (not name.isdigit() and d.uuid.startswith(name))]
        matching = matching or [d for d in devices if d.index.split(":")[0] == name]
        chosen += [device for device in matching if device not in chosen]
    return chosen


def _slots(kind: str, devices: list[Gpu], most: str | int) -> tuple[SlotInfo, ...]:
    offered = devices if isinstance(most, str) else devices[:most]
    return tuple(
        SlotInfo(number, kind, device.name, device.uuid, device.memory) for number, device in enumerate(offered)
    )
