"""What is done about a hang: the log says it, the master learns it, and under the policy ``restart`` the ranks end.

The lines go to standard output: of the other stream the last line is taken for the reason of a failure. Under
``restart`` the record of the spool is on the disk before the first rank is killed, so that the trial's reason is the
hang, and not the signal. Standard library only, Python 3.9.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from tenax.client.connection import fast_json
from tenax.core.hangs import processes
from tenax.core.hangs.beats import read_all
from tenax.core.hangs.settings import RESTART
from tenax.core.info import get_cluster_info
from tenax.core.spool import Spool, spool_of
from tenax.errors import TenaxError
from tenax.wire.spool_names import HANG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional

    from tenax.core.hangs.settings import HangSettings
    from tenax.core.hangs.stacks import Stack
    from tenax.core.hangs.verdict import Hang

#: Frames of a stack that are shown, from the innermost.
_MAX_FRAMES = 40
#: Seconds that ranks live on until the master has the reason; the agent sends it otherwise.
_SEND_S = 5.0


class HangReporter:
    """Of the ranks whose beats are in ``directory``."""

    def __init__(self, directory: str, settings: HangSettings) -> None:
        self._directory = directory
        self._settings = settings
        self._spool: Optional[Spool] = None

    def hangs(self, hang: Hang, stacks: Mapping[int, Stack]) -> None:
        ends = self._settings.policy == RESTART
        lines = [f"WARNING: tenax: this trial hangs: {hang.sentence}", *_lines(stacks)]
        if ends:
            lines.append("WARNING: tenax: its ranks are ended, and begin again from the latest checkpoint")
        _write(lines)
        self._report(hang.sentence, ends)
        if ends:
            self._end_ranks()

    def shows(self, stacks: Mapping[int, Stack]) -> None:
        _write(_lines(stacks))

    def goes_on(self, seconds: float) -> None:
        _write([f"INFO: tenax: this trial goes on, {seconds:.0f} s after it was said to hang"])
        self._report("", False)

    def _report(self, sentence: str, ends: bool) -> None:
        info = get_cluster_info()
        if info is None or not info.is_trial:
            return
        if self._spool is None:
            self._spool = spool_of(info)
        with suppress(TenaxError):
            body = fast_json.dumps({"sentence": sentence, "ends": ends})
            n = self._spool.report(HANG, body, urgent=True, durable=ends)
            if ends:
                self._spool.wait(n, _SEND_S)

    def _end_ranks(self) -> None:
        for record in read_all(self._directory):
            below = processes.below(record.pid)
            if processes.send(record.pid, record.start, signal.SIGKILL):
                for each in below.items():
                    processes.send(*each, signal.SIGKILL)


def _lines(stacks: Mapping[int, Stack]) -> list[str]:
    lines = []
    for rank, stack in sorted(stacks.items()):
        if stack:
            lines.append(f"[rank={rank}] tenax: the main thread of rank {rank}, innermost call first:")
        frames = stack[:_MAX_FRAMES]
        lines += [f'[rank={rank}]   File "{frame.file}", line {frame.line}, in {frame.function}' for frame in frames]
    return lines


def _write(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    with suppress(OSError):
        while data:
            data = data[os.write(1, data) :]
