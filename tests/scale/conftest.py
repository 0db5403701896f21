"""The places that tests of scale share: filling and starting one takes longer than what they show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kits.machine import Machine, machine
from tests.scale.place import SCALE, Large, Watched, large_master

# `tests/master/test_two_masters.py` shows the same but for the time.
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


@pytest.fixture(scope="session")
def cluster() -> Iterator[Machine]:
    """A whole cluster, of two slots."""
    with machine() as up:
        yield up
