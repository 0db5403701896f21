"""The places that tests of scale share: filling and starting one takes longer than what they show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from tests.kits.machine import Machine, machine
from tests.scale.place import SCALE, Empty, Large, Watched, empty_master, large_master

# `tests/master/test_two_masters.py` shows the same but for the time: of a master that is killed in each run, of one
# that is stopped or cut off in the long run.
collect_ignore = [] if SCALE >= 1 else ["test_takeover.py"]


@pytest.fixture(scope="session")
def large() -> Iterator[Large]:
    """A master on a large database; it has no agents that answer."""
    with large_master() as place:
        yield place


@pytest.fixture
def watched(large: Large) -> Iterator[Watched]:
    """Another master on that database, which tells how long its event loop was held."""
    with large.watched() as master:
        yield master


def _each(fixture_name: str, config: pytest.Config) -> Literal["function", "session"]:
    """Each test's own where memory is measured."""
    return "function" if SCALE >= 1 else "session"


@pytest.fixture(scope=_each)
def empty() -> Iterator[Empty]:
    """A master that knows of nothing yet but what tests before have brought."""
    with empty_master() as master:
        yield master


@pytest.fixture(scope="session")
def cluster() -> Iterator[Machine]:
    """A whole cluster, of two slots."""
    with machine() as up:
        yield up
