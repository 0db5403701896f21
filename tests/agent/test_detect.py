"""Devices as slots: from NVIDIA's library, from the kernel's AMD driver, or the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tenax.agent import detect as module
from tenax.agent.detect import detect
from tenax.config.agent import AgentSettings
from tenax.errors import UserError
from tenax.runtime.gpus.amd import Amd
from tenax.runtime.gpus.kind import Gpu
from tenax.runtime.gpus.nvidia import Nvidia
from tenax.wire.agents import SlotInfo

GPUS = [Gpu("0", "GPU-aaaa", "H100"), Gpu("1", "GPU-bbbb", "H100"), Gpu("2", "GPU-abcd", "H100")]


@pytest.fixture
def with_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nvidia, "find", lambda self: GPUS)
    monkeypatch.setattr(Amd, "find", lambda self: [])


@pytest.fixture
def without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nvidia, "find", lambda self: [])
    monkeypatch.setattr(Amd, "find", lambda self: [])


def uuids(environ: dict[str, str] | None = None, **settings: object) -> list[str]:
    found = detect(AgentSettings.model_validate({"agent_id": "a", **settings}), environ or {})
    assert [slot.id for slot in found] == list(range(len(found)))
    return [slot.uuid for slot in found]


@pytest.mark.usefixtures("with_gpus")
def test_each_gpu_is_a_slot() -> None:
    """All of them, or those that settings or the vendor's variable let through, in that order."""
    assert uuids() == ["GPU-aaaa", "GPU-bbbb", "GPU-abcd"]
    assert uuids({"CUDA_VISIBLE_DEVICES": "2,0"}) == ["GPU-abcd", "GPU-aaaa"]
    assert uuids(visible_gpus=("GPU-bb", "0")) == ["GPU-bbbb", "GPU-aaaa"]
    assert uuids({"CUDA_VISIBLE_DEVICES": "0"}, visible_gpus=("1",)) == ["GPU-bbbb"]
    assert uuids(slots=2) == ["GPU-aaaa", "GPU-bbbb"]


@pytest.mark.usefixtures("with_gpus")
def test_gpus_can_be_left_out() -> None:
    """A variable that is set to nothing hides them; ``cpu`` and ``none`` do not ask."""
    assert uuids({"CUDA_VISIBLE_DEVICES": ""}) == [""]
    assert uuids(slot_type="cpu", slots=3) == ["", "", ""]
    assert uuids(slot_type="none") == []
    assert uuids(slots=0) == []


@pytest.mark.usefixtures("without_gpus")
def test_the_cpu_is_one_slot_or_as_many_as_asked() -> None:
    """One for all cores, named after the processor."""
    slots = detect(AgentSettings(agent_id="a"), {})
    assert [(slot.id, slot.kind) for slot in slots] == [(0, "cpu")]
    assert slots[0].name
    assert len(uuids(slots=4)) == 4


@pytest.mark.usefixtures("without_gpus")
@pytest.mark.parametrize("kind", ["cuda", "rocm"])
def test_a_kind_that_is_asked_for_must_be_there(kind: str) -> None:
    """Otherwise the message says what to check."""
    with pytest.raises(UserError, match=r"no .* device is visible"):
        uuids(slot_type=kind)


def test_amd_gpus_are_read_from_the_kernel(tmp_path: Path) -> None:
    """Nodes with SIMDs are GPUs, named as the vendor's variable takes them; others are processors."""
    for number, (simds, unique) in enumerate([(0, 0), (440, 0xABC123), (440, 0)]):
        node = tmp_path / str(number)
        node.mkdir()
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count {simds}\nunique_id {unique}\n")
        (node / "name").write_text("gfx90a\n")
        # The processor's memory, which it shares, and its own; of the last one nothing is known.
        for bank, (heap, size) in enumerate([(0, 1 << 40), (1, 1 << 34), (2, 1 << 35)]) if number < 2 else ():
            folder = node / "mem_banks" / str(bank)
            folder.mkdir(parents=True)
            (folder / "properties").write_text(f"heap_type {heap}\nsize_in_bytes {size}\nflags 0\n")
    own = (1 << 34) + (1 << 35)
    assert Amd(tmp_path).find() == [Gpu("0", "GPU-0000000000abc123", "gfx90a", own), Gpu("1", "1", "gfx90a")]
    assert Amd(tmp_path / "absent").find() == []


class Nvml(ModuleType):
    """NVIDIA's library with one whole GPU and one cut in two."""

    NVML_DEVICE_MIG_ENABLE = 1

    class NVMLError(Exception):
        pass

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"gpu{index}"

    def nvmlDeviceGetMigMode(self, handle: str) -> tuple[int, int]:
        if handle == "gpu0":
            raise self.NVMLError
        return 1, 1

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, number: int) -> str:
        if number not in (0, 3):
            raise self.NVMLError
        return f"mig{number}"

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return f"UUID-{handle}"

    def nvmlDeviceGetName(self, handle: str) -> str:
        return f"name of {handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        if handle == "mig3":
            raise self.NVMLError
        return SimpleNamespace(total=1 << 33)


def test_mig_instances_are_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is cut into instances is offered as these; a whole one as itself."""
    monkeypatch.setitem(sys.modules, "pynvml", Nvml("pynvml"))
    assert Nvidia().find() == [
        Gpu("0", "UUID-gpu0", "name of gpu0", 1 << 33),
        Gpu("1:0", "UUID-mig0", "name of mig0", 1 << 33),
        Gpu("1:3", "UUID-mig3", "name of mig3"),
    ]


def test_a_gpu_that_has_died_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver still counts it."""

    class Fallen(Nvml):
        def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
            if index == 1:
                raise self.NVMLError("GPU is lost")
            return f"gpu{index}"

    monkeypatch.setitem(sys.modules, "pynvml", Fallen("pynvml"))
    assert [gpu.uuid for gpu in Nvidia().find()] == ["UUID-gpu0"]


class Ailing(Nvml):
    """One that is well, one that is lost, one with errors, one that waits for a reset, one for the bin, and a part."""

    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid == "GPU-lost":
            raise self.NVMLError("GPU is lost")
        return uuid

    def nvmlDeviceGetTotalEccErrors(self, handle: str, kind: int, counter: int) -> int:
        if handle == "MIG-part":
            raise self.NVMLError("Not Supported")
        return 2 if handle == "GPU-errors" else 0

    def nvmlDeviceGetRemappedRows(self, handle: str) -> tuple[int, int, int, int]:
        if handle == "MIG-part":
            raise self.NVMLError("Not Supported")
        return 0, 1, int(handle == "GPU-waits"), int(handle == "GPU-worn")


def test_what_is_wrong_with_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver has lost, and memory with errors that nothing corrects."""
    monkeypatch.setitem(sys.modules, "pynvml", Ailing("pynvml"))
    well = ["GPU-well", "MIG-part"]
    faults = Nvidia().faults([*well, "GPU-lost", "GPU-errors", "GPU-waits", "GPU-worn"])
    reset = "its memory had errors that were not corrected: reset it (nvidia-smi --gpu-reset)"
    assert faults == {
        "GPU-lost": "its driver has lost it: GPU is lost",
        "GPU-errors": reset,
        "GPU-waits": reset,
        "GPU-worn": "parts of its memory are broken and cannot be replaced: exchange it",
    }


def test_a_driver_that_went_away_takes_all_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Nvml):
        def nvmlInit(self) -> None:
            raise self.NVMLError("Driver Not Loaded")

    monkeypatch.setitem(sys.modules, "pynvml", Gone("pynvml"))
    assert Nvidia().faults(["GPU-a"]) == {"GPU-a": "its driver does not answer: Driver Not Loaded"}


def test_an_amd_gpu_that_is_not_listed_any_more(tmp_path: Path) -> None:
    assert Amd(tmp_path).faults(["GPU-1"]) == {"GPU-1": "its driver does not list it any more"}


def test_a_machine_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """No driver is no GPU, not an error."""

    class Absent(Nvml):
        def nvmlInit(self) -> None:
            raise self.NVMLError("NVML Shared Library Not Found")

    monkeypatch.setitem(sys.modules, "pynvml", Absent("pynvml"))
    assert Nvidia().find() == []


def test_slots_are_wire_values() -> None:
    """Kind, name and uuid as the master stores them."""
    assert module._slots("cuda", GPUS[:1], "auto") == (SlotInfo(0, "cuda", "H100", "GPU-aaaa"),)
