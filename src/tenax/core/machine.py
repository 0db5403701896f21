"""What this machine is doing, from ``/proc`` and the NVIDIA library: samples for the profiler.

Names and units are Determined's: utilisation in percent, memory in bytes, disk and network in bytes (or operations)
per second. What a machine does not have is left out; off Linux there is nothing but GPUs. Standard library only, Python
3.9.
"""

from __future__ import annotations

import os
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Optional, Tuple

    #: name -> value, for one thing that is measured.
    Values = Dict[str, float]

_SECTOR = 512


class Counters:
    """Counters since the boot, at one moment."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self.at = monotonic()
        self.cpu = _cpu(read("/proc/stat"))
        self.disk = _disks(read("/proc/diskstats"), read)
        self.network = _network(read("/proc/net/dev"))
        self.memory_free = _memory_free(read("/proc/meminfo"))


def between(earlier: Counters, later: Counters) -> dict[str, Values]:
    """Group (cpu, memory, disk, network) -> its values over the time between two moments."""
    seconds = max(later.at - earlier.at, 1e-6)
    groups: dict[str, Values] = {}
    if later.cpu is not None and earlier.cpu is not None:
        busy, total = (now - before for now, before in zip(later.cpu, earlier.cpu))
        groups["cpu"] = {"cpu_util_simple": 100.0 * busy / total if total > 0 else 0.0}
    if later.memory_free is not None:
        groups["memory"] = {"memory_free": later.memory_free}
    if later.disk is not None and earlier.disk is not None:
        operations, read, written = ((now - before) / seconds for now, before in zip(later.disk, earlier.disk))
        groups["disk"] = {"disk_iops": operations, "disk_throughput_read": read, "disk_throughput_write": written}
    if later.network is not None and earlier.network is not None:
        received, sent = ((now - before) / seconds for now, before in zip(later.network, earlier.network))
        groups["network"] = {"net_throughput_recv": received, "net_throughput_sent": sent}
    return groups


def disk_use(path: str) -> float:
    """How full the file system of ``path`` is, in percent."""
    status = os.statvfs(path)
    return 100.0 * (1.0 - status.f_bavail / status.f_blocks) if status.f_blocks else 0.0


def memory_left(read: Optional[Callable[[str], str]] = None) -> Optional[float]:
    """Bytes that this process may still take, of the machine and within its control groups; None: not known."""
    read = read or read_file
    left = [_memory_free(read("/proc/meminfo"))]
    for line in read("/proc/self/cgroup").splitlines():
        number, _, path = line.partition("::")
        if number != "0":
            continue
        # Within a container the group itself is often all that is seen, as the root.
        for group in (*_groups_above(path), "/"):
            place = "/sys/fs/cgroup" + group.rstrip("/")
            limit, used = read(f"{place}/memory.max").strip(), read(f"{place}/memory.current").strip()
            if limit.isdigit() and used.isdigit():
                left.append(float(limit) - float(used) + _reclaimable(read(f"{place}/memory.stat")))
    return min((each for each in left if each is not None), default=None)


def _groups_above(path: str) -> list[str]:
    """``/a/b`` -> ``/a/b``, ``/a``."""
    parts = [part for part in path.split("/") if part and part != ".."]
    return ["/" + "/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _reclaimable(text: str) -> float:
    """Bytes of files that the kernel gives up when memory is needed."""
    names = ("inactive_file ", "active_file ")
    return sum(float(line.split()[1]) for line in text.splitlines() if line.startswith(names))


def read_file(path: str) -> str:
    """The content, or nothing where there is no such file."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


class Gpus:
    """The GPUs of this container, through ``nvidia-ml-py`` where that is installed; else none."""

    def __init__(self, uuids: list[str]) -> None:
        self._handles: dict[str, object] = {}
        self._library: Optional[object] = None
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception:  # no library, no driver, no permission: there is nothing to measure
            return
        self._library = pynvml
        for uuid in uuids:
            try:
                self._handles[uuid] = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            except pynvml.NVMLError:
                continue

    def sample(self) -> dict[str, Values]:
        """UUID -> values now."""
        import pynvml

        by_gpu: dict[str, Values] = {}
        for uuid, handle in self._handles.items():
            try:
                free = float(pynvml.nvmlDeviceGetMemoryInfo(handle).free)
                by_gpu[uuid] = {"gpu_free_memory": free}
                by_gpu[uuid]["gpu_util"] = float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
            except pynvml.NVMLError:  # a MIG instance has no rate of its own
                continue
        return by_gpu

    def __bool__(self) -> bool:
        return bool(self._handles)


def _cpu(text: str) -> Optional[Tuple[float, float]]:
    """(busy, all) ticks."""
    for line in text.splitlines():
        if line.startswith("cpu "):
            ticks = [float(word) for word in line.split()[1:9]]  # guest time is in user time already
            idle = ticks[3] + ticks[4]
            return sum(ticks) - idle, sum(ticks)
    return None


def _disks(text: str, read: Callable[[str], str]) -> Optional[Tuple[float, float, float]]:
    """(operations, bytes read, bytes written) of whole disks: partitions would count twice."""
    totals = [0.0, 0.0, 0.0]
    seen = False
    for line in text.splitlines():
        columns = line.split()
        if len(columns) < 10 or columns[2].startswith(("loop", "ram", "dm-", "md", "zram")):
            continue
        if not read(f"/sys/block/{columns[2]}/size"):
            continue
        seen = True
        totals[0] += float(columns[3]) + float(columns[7])
        totals[1] += float(columns[5]) * _SECTOR
        totals[2] += float(columns[9]) * _SECTOR
    return (totals[0], totals[1], totals[2]) if seen else None


def _network(text: str) -> Optional[Tuple[float, float]]:
    """(bytes received, bytes sent) over all interfaces but the loopback."""
    received = sent = 0.0
    seen = False
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        columns = rest.split()
        if not colon or name.strip() == "lo" or len(columns) < 9:
            continue
        seen = True
        received += float(columns[0])
        sent += float(columns[8])
    return (received, sent) if seen else None


def _memory_free(text: str) -> Optional[float]:
    """Bytes that could be had without swapping."""
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return None
