"""``context.profiler``: metrics of the machine beside those of the training. Standard library only, Python 3.9.

One rank of each machine (its local chief) samples in a thread, averages a number of samples and reports them by the
spool, in the groups cpu, memory, disk, network and gpu, which have times instead of steps. On other ranks, and off a
cluster, ``on`` and ``off`` do nothing.
"""

from __future__ import annotations

import os
import threading
from time import gmtime, strftime, time

from tenax.client.connection import fast_json
from tenax.core.machine import Counters, Gpus, between, disk_use, read_file
from tenax.core.spool import say
from tenax.errors import InvalidInput, NotNow, TenaxError
from tenax.storage.port import SHARED_FS_MOUNT
from tenax.wire.spool_names import METRICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from tenax.core.machine import Values
    from tenax.core.spool import Spool

#: Shortest time between two samples, in seconds.
SHORTEST_INTERVAL = 0.1


class ProfilerContext:
    """``agent_id`` None: this process does not sample."""

    def __init__(self, spool: Spool, agent_id: Optional[str], gpu_uuids: list[str]) -> None:
        self._spool = spool
        self._agent_id = agent_id
        self._gpu_uuids = gpu_uuids
        self._directories = [path for path in ("/", SHARED_FS_MOUNT) if os.path.isdir(path)]
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def on(self, sampling_interval: float = 1, samples_per_report: int = 10) -> None:
        """Sample every ``sampling_interval`` seconds (0.1 or more); report the mean of ``samples_per_report`` samples.

        Raises InvalidInput for other numbers, NotNow when it is on already.
        """
        if sampling_interval < SHORTEST_INTERVAL or samples_per_report < 1:
            raise InvalidInput(
                f"sampling_interval must be at least {SHORTEST_INTERVAL} s and samples_per_report at least 1, "
                f"not {sampling_interval!r} and {samples_per_report!r}"
            )
        if self._agent_id is None:
            return
        if self._thread is not None:
            raise NotNow("the profiler is on already: call off() first")
        self._stop.clear()
        self._thread = threading.Thread(
            target=self._run, args=(float(sampling_interval), samples_per_report), name="tenax-profiler", daemon=True
        )
        self._thread.start()

    def off(self) -> None:
        """Stop sampling; what was sampled since the last report is reported."""
        thread = self._thread
        if thread is not None:
            self._stop.set()
            thread.join()
            self._thread = None

    def _run(self, interval: float, samples_per_report: int) -> None:
        try:
            gpus = Gpus(self._gpu_uuids)
            samples: list[dict[str, dict[str, Values]]] = []
            before = Counters(read_file)
            while not self._stop.wait(interval):
                now = Counters(read_file)
                samples.append(self._sample(before, now, gpus))
                before = now
                if len(samples) >= samples_per_report:
                    self._report(samples)
                    samples = []
            if samples:
                self._report(samples)
        except TenaxError as error:
            say(f"the profiler is off: {error}")

    def _sample(self, before: Counters, now: Counters, gpus: Gpus) -> dict[str, dict[str, Values]]:
        """Group -> thing (the machine, a path, a GPU) -> values."""
        groups = {name: {"": values} for name, values in between(before, now).items()}
        for path in self._directories:
            groups.setdefault("disk", {})[path] = {"disk_util": disk_use(path)}
        if gpus:
            groups["gpu"] = gpus.sample()
        return groups

    def _report(self, samples: list[dict[str, dict[str, Values]]]) -> None:
        now = time()
        at = strftime("%Y-%m-%dT%H:%M:%S", gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
        for group, devices in mean(samples).items():
            values: dict[str, object] = {}
            for device, measured in devices.items():
                values.update(measured if not device else {device: measured})
            body = {
                "group": group,
                "stepsCompleted": None,
                "metrics": {str(self._agent_id): values},
                "batchMetrics": None,
                "reportTime": at,
            }
            self._spool.report(METRICS, fast_json.dumps(body))


def mean(samples: list[dict[str, dict[str, Values]]]) -> dict[str, dict[str, Values]]:
    """The mean of each value over the samples that have it."""
    sums: dict[tuple[str, str, str], tuple[float, int]] = {}
    for sample in samples:
        for group, devices in sample.items():
            for device, values in devices.items():
                for name, value in values.items():
                    total, count = sums.get((group, device, name), (0.0, 0))
                    sums[group, device, name] = (total + value, count + 1)
    result: dict[str, dict[str, Values]] = {}
    for (group, device, name), (total, count) in sums.items():
        result.setdefault(group, {}).setdefault(device, {})[name] = total / count
    return result
