"""A machine on which nothing starts any more: it does not swallow the queue, and takes work again once it is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.machine import Machine, machine, wait_for
from tests.kits.second_machine import SecondMachine, second_machine

SECOND = "second"


@pytest.fixture
def place() -> Iterator[Machine]:
    with machine(slots=1) as up:
        yield up


@pytest.fixture
def second(place: Machine) -> Iterator[SecondMachine]:
    with second_machine(place, slots=1) as made:
        yield made


def run(place: Machine) -> tuple[int, str]:
    """A command, to its end."""
    done = place.tenax("command", "run", "--config", "resources.slots=1", "--", "true", check=False)
    return done.returncode, done.stdout + done.stderr


def broken(place: Machine) -> Path:
    """Where the agent keeps what it starts is no directory any more; where that is now."""
    directory = place.directory / "agent" / "containers"
    aside = directory.with_name("aside")
    directory.rename(aside)
    directory.write_text("")
    return aside


def states(place: Machine) -> dict[str, bool]:
    return {agent["id"]: agent["enabled"] for agent in place.json("agent", "list")}


@pytest.mark.timeout(240)
def test_three_starts_that_fail(place: Machine, second: SecondMachine) -> None:
    """On the first machine, while the second is busy with what began meanwhile; what comes later waits for the second,
    and runs there."""
    assert run(place)[0] == 0
    (first,) = states(place).keys() - {SECOND}
    place.tenax("agent", "disable", SECOND)
    aside = broken(place)
    fails(place)
    place.tenax("agent", "enable", SECOND)
    busy = place.tenax(
        "command", "run", "-d", "--config", "resources.constraints.labels.side=second",
        "--config", "resources.slots=1", "--", "sleep", "300",
    ).stdout.split()[-1]  # fmt: skip
    wait_for(lambda: "RUNNING" in place.tenax("command", "describe", busy).stdout or None, "the second to be busy")
    fails(place)
    fails(place)
    wait_for(lambda: not states(place)[first] or None, "the agent to be taken out")
    place.tenax("command", "kill", busy)
    assert run(place)[0] == 0

    listed = place.tenax("agent", "list")
    assert f"{first} was taken out: 3 starts in a row failed here" in listed.stderr
    assert f"tenax agent enable {first}" in listed.stderr
    assert "agent taken out" in (place.directory / "master.log").read_text()

    place.tenax("agent", "disable", SECOND)
    (place.directory / "agent" / "containers").unlink()
    aside.rename(aside.with_name("containers"))
    place.tenax("agent", "enable", first)
    assert run(place)[0] == 0
    assert "was taken out" not in place.tenax("agent", "list").stderr


def fails(place: Machine) -> None:
    code, said = run(place)
    assert code != 0
    assert "could not prepare its directory" in said
