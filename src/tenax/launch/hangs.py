"""A launcher that watches its ranks for hangs. Standard library only, Python 3.9.

Each machine's launcher sees its own ranks (`tenax.core.hangs.watcher`). Of several machines each says, once a rank of
any is near its limit, where its ranks stand; the first machine's launcher knows all of them then, and speaks for all.
A machine that is silent is one whose ranks may go on.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time

from tenax.core.collectives import private_directory
from tenax.core.hangs.beats import DIRECTORY
from tenax.core.info import get_cluster_info, run_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenax.core.hangs.settings import HangSettings
    from tenax.core.hangs.verdict import RankState
    from tenax.jsonvalue import JsonObject

#: News of another machine that are older than so many observations say nothing.
_FRESH = 5


class HangWatch:
    """In a thread, from `start` to `close`. ``hear`` what other launchers `tell`."""

    def __init__(self, settings: HangSettings, member: int, members: int) -> None:
        self._settings = settings
        # A killed launcher leaves it behind: on a cluster it goes with the container.
        parent = run_dir() if get_cluster_info() is not None else private_directory()
        self._directory = os.path.join(parent, f"beats-{os.urandom(8).hex()}")
        self._others = OtherMachines(member, members, _FRESH * settings.tick, lambda news: self.tell(news))
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="tenax-hangs", daemon=True)
        #: For the ranks.
        self.environment = {DIRECTORY: self._directory}
        #: What is called with news for the other launchers.
        self.tell: Callable[[JsonObject], None] = lambda _: None

    def start(self) -> None:
        self._thread.start()

    def hear(self, news: JsonObject) -> None:
        """What another launcher tells."""
        self._others.hear(news)

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _work(self) -> None:
        # Not before the ranks are on their way.
        if self._closing.wait(self._settings.tick):
            return
        try:
            self._watch()
        except Exception as error:
            # Not on standard error, whose last line is taken for the reason of a failure.
            sys.stdout.write(f"WARNING: tenax: nobody watches for hangs any more: {type(error).__name__}: {error}\n")
            sys.stdout.flush()

    def _watch(self) -> None:
        from tenax.core.hangs.speaking import HangReporter
        from tenax.core.hangs.watcher import HangWatcher

        reporter = HangReporter(self._directory, self._settings)
        watcher = HangWatcher(self._directory, self._settings, reporter, self._others)
        while not self._closing.wait(self._settings.tick):
            watcher.step()


class OtherMachines:
    """What the launchers of a job tell one another, as ``member`` of ``members`` hears it. Thread-safe."""

    def __init__(self, member: int, members: int, fresh_s: float, tell: Callable[[JsonObject], None]) -> None:
        self._member = member
        self._members = members
        self._fresh_s = fresh_s
        self._tell = tell
        #: By member: when it was heard of, whether a rank of it is near its limit, and its ranks.
        self._news: dict[int, tuple[float, bool, list[RankState]]] = {}
        self._verdict = threading.Event()

    def announce(self) -> None:
        """All others hear of it."""
        self._tell({"hangs": True})

    def pop_verdict(self) -> bool:
        """Whether the first machine's launcher has said that ranks hang, since this was asked last."""
        came = self._verdict.is_set()
        self._verdict.clear()
        return came

    def hear(self, news: JsonObject) -> None:
        """Anything; what is not understood says nothing."""
        from tenax.core.hangs.verdict import RankState

        if news.get("hangs") is True:
            self._verdict.set()
        member, near, ranks = news.get("member"), news.get("near"), news.get("ranks")
        if isinstance(member, int) and isinstance(ranks, list):
            try:
                states = [RankState.from_json(fields) for fields in ranks if isinstance(fields, dict)]
            except (TypeError, KeyError):
                return
            self._news[member] = time.monotonic(), near is True, states

    @property
    def decides(self) -> bool:
        """The first machine's launcher does."""
        return self._member == 0

    @property
    def needs_states(self) -> bool:
        """Whether a rank elsewhere is near its limit."""
        return any(near for _, near, _ in self._fresh().values())

    def exchange(self, states: Sequence[RankState], near: bool) -> tuple[Sequence[RankState], bool]:
        """All ranks that are heard of, and whether these are all."""
        fresh = self._fresh()
        near = near or (self.decides and self.needs_states)
        if self._members > 1 and (near or fresh):
            ranks = [state.to_json() for state in states]
            self._tell({"member": self._member, "near": near, "ranks": list(ranks)})
        elsewhere = [state for member, (_, _, ranks) in fresh.items() if member != self._member for state in ranks]
        return [*states, *elsewhere], len(fresh) == self._members - 1

    def _fresh(self) -> dict[int, tuple[float, bool, list[RankState]]]:
        now = time.monotonic()
        return {member: news for member, news in list(self._news.items()) if now - news[0] < self._fresh_s}
