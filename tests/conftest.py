"""Fixtures that every folder may use."""

from __future__ import annotations

import signal

import pytest

# An assertion of a kit says as much as one of a test.
pytest.register_assert_rewrite("tests.kits")

from tests.kits.temporary import keep_in_memory  # noqa: E402

pytest_plugins = [
    "tests.kits.watchdog",
    "tests.kits.workers",
    "tests.kits.database",
    "tests.kits.figures",
    "tests.kits.docker_engine",
    "tests.kits.api",
    "tests.kits.telemetry",
]

# Before anything asks where temporary files are.
keep_in_memory()

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
