"""Fixtures that every folder may use."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# An assertion of a kit says as much as one of a test.
pytest.register_assert_rewrite("tests.kits")

from tests.kits.temporary import keep_in_memory  # noqa: E402

pytest_plugins = [
    "tests.kits.watchdog",
    "tests.kits.workers",
    "tests.kits.database",
    "tests.kits.prepared",
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

# The same examples in every run, however busy the machine is: a run says what a change did. Others are tried by
# `--hypothesis-profile explore`.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("same", settings.get_profile("explore"), derandomize=True)
settings.load_profile("same")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is loaded and collected stays to the end: the garbage collector does not look through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
