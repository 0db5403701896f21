"""NVIDIA's GPUs and MIG instances, as its own library (NVML) has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import structlog

from tenax.jsonvalue import Json
from tenax.runtime.gpus.kind import EngineRequest, Gpu
from tenax.scheduler.devices import DeviceKind

log = structlog.get_logger("tenax.agent")


class Nvidia:
    """See `tenax.runtime.gpus.kind.GpuKind`."""

    kind: ClassVar[DeviceKind] = DeviceKind.CUDA
    variable: ClassVar[str] = "CUDA_VISIBLE_DEVICES"
    #: CUDA images ask for all GPUs, which an engine with NVIDIA's runtime as its default would give.
    withheld: ClassVar[Mapping[str, str]] = {"NVIDIA_VISIBLE_DEVICES": "void"}

    def find(self) -> list[Gpu]:
        """GPUs, or their MIG instances where they are cut into some."""
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            log.debug("no NVIDIA driver", reason=str(error))
            return []
        try:
            gpus: list[Gpu] = []
            for index in range(pynvml.nvmlDeviceGetCount()):
                try:
                    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                    gpus += _mig_instances(index, handle) or [_gpu(str(index), handle)]
                except pynvml.NVMLError as error:
                    # It has died: the others have not.
                    log.error("a GPU is left out", index=index, reason=str(error))
            return gpus
        finally:
            pynvml.nvmlShutdown()

    def faults(self, uuids: Sequence[str]) -> Mapping[str, str]:
        """Whom the driver has lost, and whose memory has had errors that nothing corrects, as its monitors judge."""
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return dict.fromkeys(uuids, f"its driver does not answer: {error}")
        try:
            faults = {uuid: _fault(uuid) for uuid in uuids}
            return {uuid: fault for uuid, fault in faults.items() if fault}
        finally:
            pynvml.nvmlShutdown()

    def engine_request(self, uuids: Sequence[str]) -> EngineRequest:
        """NVIDIA's runtime of the engine is asked by identity."""
        request: Json = {"Driver": "nvidia", "DeviceIDs": list(uuids), "Capabilities": [["gpu", "compute", "utility"]]}
        return EngineRequest(host_config={"DeviceRequests": [request]})


def _gpu(index: str, handle: object) -> Gpu:
    import pynvml

    try:
        memory = int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    except pynvml.NVMLError:
        # A GPU that shares the machine's memory has none of its own.
        memory = None
    return Gpu(index, _text(pynvml.nvmlDeviceGetUUID(handle)), _text(pynvml.nvmlDeviceGetName(handle)), memory)


def _fault(uuid: str) -> str:
    import pynvml

    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        pynvml.nvmlDeviceGetName(handle)
    except pynvml.NVMLError as error:
        return f"its driver has lost it: {error}"
    # Both are of the time since it was reset; of parts of a GPU, and of others without such memory, nothing is known.
    try:
        uncorrected = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        errors = pynvml.nvmlDeviceGetTotalEccErrors(handle, uncorrected, pynvml.NVML_VOLATILE_ECC)
    except pynvml.NVMLError:
        errors = 0
    try:
        waits, failed = pynvml.nvmlDeviceGetRemappedRows(handle)[2:]
    except pynvml.NVMLError:
        waits = failed = 0
    if failed:
        return "parts of its memory are broken and cannot be replaced: exchange it"
    if errors or waits:
        return "its memory had errors that were not corrected: reset it (nvidia-smi --gpu-reset)"
    return ""


def _mig_instances(index: int, handle: object) -> list[Gpu]:
    import pynvml

    try:
        if pynvml.nvmlDeviceGetMigMode(handle)[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return []
        count = pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    except pynvml.NVMLError:
        return []
    instances = []
    for number in range(count):
        try:
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except pynvml.NVMLError:
            continue
        instances.append(_gpu(f"{index}:{number}", instance))
    return instances


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
