"""How a run of the tests is divided among workers (``pytest -n 2``), and the table of where its time went.

A worker is given whole units, in the order of the files: a file, whose tests may share what it sets up, or a folder of
`TOGETHER`. Units that take long are given out first, so that no worker is left with one when the others have ended;
how long each takes is remembered from the last run of everything, and guessed by its folder on a fresh clone. A worker
makes what a whole folder shares (`tests/web`: a master that serves the page) at its first file of it, and keeps it:
so the files of a folder of `BY_TURNS` come first, one after the other, and others join in when nothing else is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler.protocol import Scheduling
    from xdist.workermanage import WorkerController

#: Folders that stay on one worker. Of `compat` the last test asks what all of them have used; what `scale` sets up
#: takes longer than its tests, of which nothing is measured but in `make scale`; frameworks take seconds to import what
#: they share.
TOGETHER = ("tests/compat", "tests/scale", "tests/integrations")
#: Files of those folders that are one more unit, by the beginning of their paths: a folder that takes long is two. Here
#: those that run Determined's library in tasks, and use nothing of its client that the last test of `compat` asks for.
APART = ("tests/compat/test_harness_",)
#: Folders whose files one worker after another takes: they share a set-up, and a browser is busy for two.
BY_TURNS = ("tests/web",)
_REMEMBERED = "tenax/seconds"
#: What `make test` runs.
_ALL = "not long and not gpu"
#: Seconds that a unit is expected to take before it was seen, by the beginning of its name; the first that fits.
_GUESSES = {
    "tests/web/test_every_route.py": 150.0,
    # Few tests that are long, which would be the last to begin.
    "tests/master/test_random_verbs.py": 15.0,
    "tests/master/api/test_authorization.py": 20.0,
    "tests/master/api/test_secrets.py": 20.0,
    "tests/compat/test_harness_": 120.0,
    "tests/compat": 300.0,
    "tests/docs/test_typed": 80.0,
    "tests/scale": 50.0,
    "tests/test_checks.py": 60.0,
    "tests/e2e": 40.0,
    "tests/web": 30.0,
    "tests/local": 20.0,
    "tests/cli/test_cluster.py": 20.0,
    "tests/cli/test_demo.py": 20.0,
    "tests/runtime": 15.0,
    "tests/agent": 10.0,
    "tests/attack": 10.0,
    "tests/core": 10.0,
    "tests/exec": 10.0,
    "tests/integrations": 20.0,
    "tests/master": 5.0,
    "tests/cli": 5.0,
}


def unit_of(nodeid: str) -> str:
    """What must be on one worker together with this test."""
    path = nodeid.partition("::")[0]
    together = (*APART, *(f"{folder}/" for folder in TOGETHER))
    return next((beginning.rstrip("/") for beginning in together if path.startswith(beginning)), path)


def folder_of(nodeid: str) -> str:
    """``tests/master`` for whatever is below it; ``tests`` for what lies in no folder."""
    return "/".join(nodeid.partition("::")[0].split("/")[:-1][:2])


def guess(unit: str) -> float:
    """Seconds, for a unit that was never seen to run."""
    return next((seconds for name, seconds in _GUESSES.items() if unit.startswith(name)), 1.0)


def turn_of(unit: str) -> str:
    """The folder whose files are taken by turns that this one is of; "" for none."""
    return next((folder for folder in BY_TURNS if unit.startswith(f"{folder}/")), "")


def next_unit(waiting: Iterable[str], elsewhere: Collection[str], seconds: Callable[[str], float]) -> str:
    """What a worker does next: ``waiting`` is not given out yet, ``elsewhere`` other workers are at it.

    Of what may be begun the longest; a folder that is taken by turns counts as all of it that is left.
    """
    units = list(waiting)
    busy = {turn_of(unit) for unit in elsewhere} - {""}
    left: defaultdict[str, float] = defaultdict(float)
    for unit in units:
        left[turn_of(unit)] += seconds(unit)
    free = [unit for unit in units if turn_of(unit) not in busy] or units
    return max(free, key=lambda unit: (left[turn_of(unit)] if turn_of(unit) else seconds(unit), seconds(unit)))


def cache_of(config: pytest.Config) -> pytest.Cache | None:
    """What is kept from run to run; None where that plug-in is turned off."""
    return getattr(config, "cache", None)


class Times:
    """Seconds of work by test: set-up, call and tear-down, whichever worker did it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Remember how long each unit takes, where all of them ran to their ends."""
        cache, option = cache_of(self._config), self._config.option
        everything = self._config.args_source is pytest.Config.ArgsSource.TESTPATHS and not option.keyword
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not option.maxfail
        if cache is not None and everything and ended and not option.collectonly and option.markexpr == _ALL:
            cache.set(_REMEMBERED, {unit: round(spent, 2) for unit, (_, spent) in self._by(unit_of).items()})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table, where tests of more than one folder ran."""
        folders = self._by(folder_of)
        whole = sum(spent for _, spent in folders.values())
        if len(folders) < 2 or not whole:
            return
        terminalreporter.write_sep("=", "time by folder")
        terminalreporter.write_line(f"{'folder':<20}{'tests':>8}{'seconds':>10}{'share':>8}")
        for folder, (tests, spent) in sorted(folders.items(), key=lambda item: -item[1][1]):
            terminalreporter.write_line(f"{folder:<20}{tests:>8}{spent:>10.1f}{spent / whole:>8.1%}")
        tests = sum(count for count, _ in folders.values())
        terminalreporter.write_line(f"{'all':<20}{tests:>8}{whole:>10.1f}{1:>8.1%}")

    def _by(self, key: Callable[[str], str]) -> dict[str, tuple[int, float]]:
        """Tests and seconds by what ``key`` makes of a test's name."""
        found: dict[str, tuple[int, float]] = {}
        for nodeid, spent in self._seconds.items():
            tests, seconds = found.get(key(nodeid), (0, 0.0))
            found[key(nodeid)] = (tests + 1, seconds + spent)
        return found


def pytest_configure(config: pytest.Config) -> None:
    """Time is added up where all reports arrive: in the only process, or in the one that has workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(config), "tenax-times")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Ours, whatever ``--dist`` says: a test on a worker of its own would not find what its folder shares."""
    return scheduling(config, log)


def scheduling(config: pytest.Config, log: Producer) -> Scheduling:
    """The order and the division that this module describes."""
    # Only where there are workers: the tests run without that plug-in, too.
    from xdist.scheduler import LoadScopeScheduling

    cache = cache_of(config)
    remembered: dict[str, float] = cache.get(_REMEMBERED, {}) if cache is not None else {}

    class ByUnit(LoadScopeScheduling):
        """The base keeps the books; here is only what a unit is and which comes next."""

        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            at_work = [
                unit
                for other, units in self.assigned_work.items()
                if other != node
                for unit, tests in units.items()
                if not all(tests.values())
            ]
            chosen = next_unit(self.workqueue, at_work, lambda unit: remembered.get(unit, guess(unit)))
            self.workqueue.move_to_end(chosen, last=False)
            super()._assign_work_unit(node)

    return ByUnit(config, log)
