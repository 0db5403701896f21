"""Figures that tests find, one line of JSON each, printed when all tests have ended.

    def test_something(figures: Figures) -> None:
        figures.tell("seconds until the next decision", fault="...", seconds=1.5)

They are reported and never asserted, because machines differ. They travel with a test's report, so that it does not
matter on which worker it ran.
"""

from __future__ import annotations

import json

import pytest

_NAME = "figure"


class Figures:
    """Of one test."""

    def __init__(self, node: pytest.Item) -> None:
        self._node = node

    def tell(self, what: str, **values: object) -> None:
        """To be printed in the end."""
        self._node.user_properties.append((_NAME, json.dumps({"what": what, **values})))


class Collected:
    """Of a run, where all reports arrive."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._lines += [str(value) for name, value in report.user_properties if name == _NAME]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            terminalreporter.write_sep("=", "figures")
        for line in sorted(self._lines):
            terminalreporter.write_line(line)


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Those of this test."""
    return Figures(request.node)


def pytest_configure(config: pytest.Config) -> None:
    """Where they are printed: in the only process, or in the one that has workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collected(), "tenax-figures")
