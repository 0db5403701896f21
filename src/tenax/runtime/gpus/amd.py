"""AMD's GPUs, read from the kernel (``/sys/class/kfd``): its Python package fails in several ways without ROCm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tenax.runtime.gpus.kind import EngineRequest, Gpu
from tenax.scheduler.devices import DeviceKind

_KFD = Path("/sys/class/kfd/kfd/topology/nodes")


class Amd:
    """See `tenax.runtime.gpus.kind.GpuKind`. ``nodes``: where the kernel's compute driver lists what it knows."""

    kind: ClassVar[DeviceKind] = DeviceKind.ROCM
    variable: ClassVar[str] = "ROCR_VISIBLE_DEVICES"
    withheld: ClassVar[Mapping[str, str]] = {}

    def __init__(self, nodes: Path = _KFD) -> None:
        self._nodes = nodes

    def find(self) -> list[Gpu]:
        """GPUs that the kernel's compute driver knows; processors are nodes, too, and have no SIMDs."""
        gpus: list[Gpu] = []
        for node in self._in_order():
            try:
                lines = (node / "properties").read_text().splitlines()
                name = (node / "name").read_text().strip()
            except OSError:
                continue
            properties = dict(line.split(None, 1) for line in lines if len(line.split(None, 1)) == 2)
            if int(properties.get("simd_count", "0")) == 0:
                continue
            unique = int(properties.get("unique_id", "0"))
            index = str(len(gpus))
            # Cards without a serial number are named by their place, which the vendor's variable takes as well.
            identity = f"GPU-{unique:016x}" if unique else index
            gpus.append(Gpu(index, identity, name or "AMD GPU", _memory_of(node)))
        return gpus

    def faults(self, uuids: Sequence[str]) -> Mapping[str, str]:
        """Whom the kernel's compute driver does not list any more. Counters of memory errors are not read."""
        here = {gpu.uuid for gpu in self.find()}
        return {uuid: "its driver does not list it any more" for uuid in uuids if uuid not in here}

    def engine_request(self, uuids: Sequence[str]) -> EngineRequest:
        """The container sees the driver's files; the variable says which devices are its own."""
        return EngineRequest(
            devices=("/dev/kfd:/dev/kfd:mrw", "/dev/dri:/dev/dri:mrw"),
            host_config={"GroupAdd": ["video", "render"], "SecurityOpt": ["seccomp=unconfined"]},
            environment={self.variable: ",".join(uuids)},
        )

    def _in_order(self) -> list[Path]:
        try:
            nodes = [path for path in self._nodes.iterdir() if path.name.isdigit()]
        except OSError:
            return []
        return sorted(nodes, key=lambda path: int(path.name))


def _memory_of(node: Path) -> int | None:
    """Bytes of the heaps of a device's own memory, of which one may be in the sight of the processor and one not."""
    size = 0
    for properties in node.glob("mem_banks/*/properties"):
        try:
            bank = dict(line.split(None, 1) for line in properties.read_text().splitlines() if " " in line)
        except OSError:
            return None
        if bank.get("heap_type", "").strip() in ("1", "2"):
            size += int(bank.get("size_in_bytes", "0"))
    return size or None
