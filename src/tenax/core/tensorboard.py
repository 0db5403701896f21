"""TensorBoard files of a trial: scalars of what it reports, and what the script writes itself. Python 3.9, no packages.

They are written into a directory of this task and copied beside the checkpoints, to
``<cluster>/tensorboard/experiment/<experiment>/trial/<trial>/``, which is where Determined puts them.

Rules it keeps:

- A report costs the training loop one append. Writing and copying are a thread's, every few seconds, and the end's; a
  trial that ends before that starts no thread.
- Of more than `MAX_REPORTS` reports between two looks some are left out here, never the last: the master has all.
- Whatever goes wrong here is said once and stops no training.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque

from tenax.client.connection import fast_json
from tenax.core.spool import say
from tenax.core.values import text_of
from tenax.storage.files import walk_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Optional, Union

    from tenax.core.info import ClusterInfo
    from tenax.jsonvalue import Json
    from tenax.storage.port import Storage

    #: JSON, or what becomes it (`tenax.core.values`).
    Body = Union[str, bytes]

#: Seconds between two looks, at first and at the longest: the file that is copied each time grows.
INTERVAL_S, MAX_INTERVAL_S = 5.0, 60.0
MAX_REPORTS = 500
#: Bytes of a metric's name that are kept.
_MAX_TAG = 500


class Tensorboard:
    """The files of one trial. ``storage``: made when something is there to copy; ``writes``: reports become scalars."""

    def __init__(
        self, directory: str, place: str, storage: Callable[[], Storage], *, writes: bool, first_step: int
    ) -> None:
        #: Where files of this process lie before they are copied.
        self.directory = directory
        self._place = place
        self._make_storage = storage
        self._storage: Optional[Storage] = None
        self._writes = writes
        self._first_step = first_step
        #: Appended to by the training loop, taken from by looks.
        self._waiting: deque[tuple[float, Body]] = deque()
        self._skipped: Optional[tuple[float, Body]] = None
        self._file = ""
        #: Size and time of modification of what was copied, by path.
        self._copied: dict[str, tuple[int, int]] = {}
        self._begun = 0.0
        self._thread: Optional[threading.Thread] = None
        self._ended = threading.Event()
        #: Looks are made by the thread, and by the end.
        self._lock = threading.Lock()
        self._failed = False

    def report(self, body: Body) -> None:
        """A report, as it goes to the master."""
        now = time.time()
        if len(self._waiting) < 2 * MAX_REPORTS:
            self._waiting.append((now, body))
        else:
            self._skipped = now, body
        if not self._begun:
            self._begun = now
        elif self._thread is None and now - self._begun > INTERVAL_S:
            self._start()

    def path(self) -> Path:
        """The directory, for files of the script's own."""
        os.makedirs(self.directory, exist_ok=True)
        if self._writes and self._thread is None:
            self._start()
        return _path(self.directory)

    def upload(
        self,
        selector: Optional[Callable[[Path], bool]] = None,
        mangler: Optional[Callable[[Path, int], Path]] = None,
        rank: int = 0,
    ) -> None:
        """Copy what was written since the last time; ``mangler`` makes the name of a copy. Raises StorageFailed."""
        with self._lock:
            self._copy(selector, mangler, rank)

    def close(self) -> None:
        """Write and copy what is left."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._writes and (self._begun or self._thread is not None):
            self._write_new()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tenax-tensorboard", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        begun = time.monotonic()
        pause = INTERVAL_S
        while not self._ended.wait(pause):
            self._write_new()
            pause = min(MAX_INTERVAL_S, max(INTERVAL_S, (time.monotonic() - begun) / 20))

    def _write_new(self) -> None:
        try:
            with self._lock:
                self._write()
                self._copy(None, None, 0)
        except Exception as error:
            if not self._failed:
                self._failed = True
                say(f"TensorBoard files are not kept: {error}")

    def _write(self) -> None:
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if self._skipped is not None:
            waiting.append(self._skipped)
            self._skipped = None
        if not waiting:
            return
        from tenax.core import tfevents

        text = b""
        if not self._file:
            os.makedirs(self.directory, exist_ok=True)
            host = os.uname().nodename
            self._file = os.path.join(
                self.directory, f"events.out.tfevents.{int(waiting[0][0])}.{host}.{os.getpid()}.tenax"
            )
            text = tfevents.header(waiting[0][0])
            if self._first_step:
                text += tfevents.restart(waiting[0][0], self._first_step + 1)
        for at, body in thinned(waiting):
            step, values = scalars_of(fast_json.loads(text_of(body)))
            if values:
                text += tfevents.scalars(at, step, values)
        with open(self._file, "ab") as file:
            file.write(text)

    def _copy(
        self,
        selector: Optional[Callable[[Path], bool]],
        mangler: Optional[Callable[[Path, int], Path]],
        rank: int,
    ) -> None:
        for inside, size in walk_files(self.directory).items() if os.path.isdir(self.directory) else ():
            path = os.path.join(self.directory, inside)
            if inside.endswith("/") or (selector is not None and not selector(_path(path))):
                continue
            mark = size, os.stat(path).st_mtime_ns
            if self._copied.get(inside) == mark:
                continue
            if self._storage is None:
                self._storage = self._make_storage()
            named = inside if mangler is None else str(mangler(_path(inside), rank))
            self._storage.put(f"{self._place}/{named}", path)
            self._copied[inside] = mark


def _path(text: str) -> Path:
    """Its import takes 10 ms, which a trial that writes no files of its own does not pay."""
    from pathlib import Path

    return Path(text)


def of_trial(info: ClusterInfo, run_dir: str, storage: Callable[[], Storage], *, writes: bool) -> Tensorboard:
    """The files of the trial that this task trains."""
    trial = info.trial
    place = f"{info.cluster_id}/tensorboard/experiment/{trial.experiment_id}/trial/{trial.trial_id}"
    directory = os.path.join(run_dir, "tensorboard", str(os.environ.get("RANK", "0")))
    return Tensorboard(directory, place, storage, writes=writes, first_step=trial._steps_completed)


def thinned(waiting: list[tuple[float, Body]]) -> list[tuple[float, Body]]:
    """At most `MAX_REPORTS` of them, evenly; the last is kept."""
    stride = -(-len(waiting) // MAX_REPORTS)
    return waiting[(len(waiting) - 1) % stride :: stride] if stride > 1 else waiting


def scalars_of(body: Json) -> tuple[int, dict[str, float]]:
    """Step, and name and value of each number in a report, under the names that Determined gives them."""
    if not isinstance(body, dict):
        return 0, {}
    group, step, metrics = body.get("group"), body.get("stepsCompleted"), body.get("metrics")
    scalars: dict[str, float] = {}
    prefix = {"training": "Determined/", "validation": "Determined/val_"}.get(str(group), f"Determined/{group}_")
    if isinstance(metrics, dict):
        _gather(prefix, metrics, scalars)
    return step if isinstance(step, int) else 0, scalars


def _gather(prefix: str, metrics: dict[str, Json], scalars: dict[str, float]) -> None:
    for name, value in metrics.items():
        # A validation's metrics bear that in their names, once.
        tag = f"{prefix[:-4] if prefix.endswith('/val_') and name.startswith('val') else prefix}{name}"
        if isinstance(value, dict):
            _gather(f"{tag}/", value, scalars)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            scalars[tag[:_MAX_TAG]] = value
        elif value in ("NaN", "Infinity", "-Infinity"):
            scalars[tag[:_MAX_TAG]] = float(str(value))
