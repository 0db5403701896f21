"""The cluster that whole-cluster tests share: starting one takes longer than most of what they show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kits.docker_engine import docker_host, docker_image
from tests.kits.machine import Machine, machine

__all__ = ["docker_host", "docker_image"]


@pytest.fixture(scope="session")
def shared() -> Iterator[Machine]:
    """Two slots, plain processes, every setting as it comes. A test leaves its slots free."""
    with machine() as up:
        yield up


@pytest.fixture
def place(shared: Machine) -> Machine:
    """The shared cluster; a module that needs one of its own makes it under the same name."""
    if not shared.answers():
        # A test that broke something and failed before it had mended it is the only one to fail.
        shared.down()
        shared.up()
    return shared
