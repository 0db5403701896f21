"""Which devices this machine offers as slots: NVIDIA GPUs and MIG instances, AMD GPUs, or the CPU.

NVIDIA's are asked of its own library (NVML). AMD's are read from the kernel (``/sys/class/kfd``): its Python package
fails in several ways where there is no ROCm. Apple's GPU is shared by the whole system and is not a slot; a Mac offers
its CPU (not tested there).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from tenax.config.agent import AgentSettings, SlotType
from tenax.errors import UserError
from tenax.wire.agents import SlotInfo

log = structlog.get_logger("tenax.agent")

_KFD = Path("/sys/class/kfd/kfd/topology/nodes")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU or MIG instance as its vendor numbers it."""

    index: str
    uuid: str
    name: str


def detect(settings: AgentSettings, environ: Mapping[str, str] = os.environ) -> tuple[SlotInfo, ...]:
    """The slots of this machine. Raises UserError if a kind of GPU is asked for and none is there."""
    slot_type = settings.slot_type
    if slot_type is SlotType.NONE or settings.slots == 0:
        return ()
    if slot_type in (SlotType.AUTO, SlotType.CUDA):
        visible = settings.visible_gpus or _listed(environ.get("CUDA_VISIBLE_DEVICES"))
        gpus = _visible(nvidia_devices(), visible)
        if gpus:
            return _slots("cuda", gpus, settings.slots)
    if slot_type in (SlotType.AUTO, SlotType.ROCM):
        visible = settings.visible_gpus or _listed(environ.get("ROCR_VISIBLE_DEVICES"))
        gpus = _visible(amd_devices(), visible)
        if gpus:
            return _slots("rocm", gpus, settings.slots)
    if slot_type in (SlotType.CUDA, SlotType.ROCM):
        raise UserError(
            f"no {slot_type.value} device is visible on this machine: check the driver and visible_gpus, "
            "or start the agent with --slot-type cpu"
        )
    count = 1 if settings.slots == "auto" else settings.slots
    return tuple(SlotInfo(number, "cpu", cpu_name()) for number in range(count))


def nvidia_devices() -> list[Gpu]:
    """GPUs, or their MIG instances where they are cut into some; empty without a driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        log.debug("no NVIDIA driver", reason=str(error))
        return []
    try:
        devices: list[Gpu] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            devices += _mig_instances(index, handle) or [_nvidia(str(index), handle)]
        return devices
    finally:
        pynvml.nvmlShutdown()


def _nvidia(index: str, handle: object) -> Gpu:
    import pynvml

    return Gpu(index, _text(pynvml.nvmlDeviceGetUUID(handle)), _text(pynvml.nvmlDeviceGetName(handle)))


def _mig_instances(index: int, handle: object) -> list[Gpu]:
    import pynvml

    try:
        if pynvml.nvmlDeviceGetMigMode(handle)[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return []
        count = pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except pynvml.NVMLError:
        return []
    devices = []
    for number in range(count):
        try:
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except pynvml.NVMLError:
            continue
        devices.append(_nvidia(f"{index}:{number}", instance))
    return devices


def amd_devices(nodes: Path = _KFD) -> list[Gpu]:
    """GPUs that the kernel's compute driver knows; empty without it."""
    devices: list[Gpu] = []
    try:
        places = sorted((path for path in nodes.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    except OSError:
        return []
    for place in places:
        try:
            lines = (place / "properties").read_text().splitlines()
            name = (place / "name").read_text().strip()
        except OSError:
            continue
        properties = dict(line.split(None, 1) for line in lines if len(line.split(None, 1)) == 2)
        if int(properties.get("simd_count", "0")) == 0:
            continue
        unique = int(properties.get("unique_id", "0"))
        index = str(len(devices))
        # Cards without a serial number are named by their place, which the vendor's variable takes as well.
        devices.append(Gpu(index, f"GPU-{unique:016x}" if unique else index, name or "AMD GPU"))
    return devices


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
    return tuple(SlotInfo(number, kind, device.name, device.uuid) for number, device in enumerate(offered))


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
