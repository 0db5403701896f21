"""What the agent reports of its containers: the newest report of each, and which changed since the last frame.

One event loop. A report stands until the container is gone; a new connection sends them all again. A state that is
only passed through waits a moment for what follows it: most containers are past it by then, and the master is spared a
transaction for each.
"""

from __future__ import annotations

import asyncio

import msgspec

from tenax.wire.agents import AgentReport, ContainerReport

#: Seconds that a state on the way to another may wait for company: a start on a machine with much to do takes so long.
PASSING_S = 0.2


class ContainerReports:
    """Filled by keepers, read by the session."""

    def __init__(self) -> None:
        self._reports: dict[str, ContainerReport] = {}
        self._changed: set[str] = set()
        self._gone: set[str] = set()
        #: Set while there is something to report.
        self.news = asyncio.Event()

    def put(self, report: ContainerReport, *, passing: bool = False) -> None:
        """The newest about a container; ``passing``: another is expected to follow at once.

        That its process has ended says its exit: a pid alone is no news, and goes out with the next full state.
        """
        known = self._reports.get(report.container_id)
        self._reports[report.container_id] = report
        if known is not None and msgspec.structs.replace(known, pid=report.pid) == report:
            return
        self._changed.add(report.container_id)
        if passing:
            asyncio.get_running_loop().call_later(PASSING_S, self._waited)
        else:
            self.news.set()

    def withdraw_exit(self, container_id: str) -> None:
        """Its end is not to be reported yet, or again."""
        known = self._reports.get(container_id)
        if known is not None and known.state == "exited":
            self.put(msgspec.structs.replace(known, state="running", exit=None))

    def _waited(self) -> None:
        if self._changed:
            self.news.set()

    def gone(self, container_id: str) -> None:
        self._reports.pop(container_id, None)
        self._changed.discard(container_id)
        self._gone.add(container_id)
        self.news.set()

    def all(self) -> list[ContainerReport]:
        """The full state, with all that was still to report; what is gone is reported again when it is asked for."""
        self._changed.clear()
        self._gone.clear()
        self.news.clear()
        return list(self._reports.values())

    def take(self) -> AgentReport:
        """What changed since the last call."""
        report = AgentReport([self._reports[name] for name in sorted(self._changed)], sorted(self._gone))
        self._changed.clear()
        self._gone.clear()
        self.news.clear()
        return report
