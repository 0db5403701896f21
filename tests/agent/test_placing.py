"""What the agent adds to a specification."""

from __future__ import annotations

import dataclasses
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.agent import placing
from tenax.agent.placing import (
    PORT_BASES,
    PORT_PLACES,
    PORT_STEP,
    Self,
    choose_ports,
    environment,
    port_in_use,
    ports_of,
)
from tenax.wire.agents import ContainerSpec, SlotInfo
from tenax.wire.task_names import masters_of
from tests.kits.cases import load


def spec(*, members: int = 1, env: dict[str, str] | None = None, slots: list[int] | None = None) -> ContainerSpec:
    return ContainerSpec("c", "7.x.1", "7.x", 0, members, slots or [], ["true"], env or {})


OWN = Self("box", "cluster", ("https://master.lab:8443",), "tenax", (SlotInfo(0, "cuda", "H100", "GPU-1"),))


def test_families_of_ports_never_meet() -> None:
    """No two variables of any two containers can be given one number, and none lies in the system's own range."""
    numbers = [base + PORT_STEP * place for base in PORT_BASES.values() for place in range(PORT_PLACES)]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < 32768


def test_containers_on_one_machine_have_ports_of_their_own() -> None:
    """What another container has, or what somebody listens on, is not given."""
    first = choose_ports(spec(), set())
    second = choose_ports(spec(), set(first.values()))
    assert not set(first.values()) & set(second.values())
    with socket.socket() as other:
        other.bind(("0.0.0.0", second["C10D_PORT"]))
        assert second["C10D_PORT"] not in choose_ports(spec(), set(first.values())).values()


def test_two_agents_on_one_machine_give_no_port_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another cluster, or of the same one: what one of them gave away is free until somebody listens there."""
    monkeypatch.setattr(placing, "is_free", lambda _: True)
    agents = [OWN, dataclasses.replace(OWN, cluster_id="another"), dataclasses.replace(OWN, agent_id="second")]
    given = [number for own in agents for number in choose_ports(spec(), set(), own.first_place).values()]
    assert len(set(given)) == len(given) == 3 * len(PORT_BASES)


def test_ports_go_on_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever an agent begins, all places are its to give away."""
    monkeypatch.setattr(placing, "is_free", lambda _: True)
    taken: set[int] = set()
    for _ in range(PORT_PLACES):
        ports = set(choose_ports(spec(), taken, first=150).values())
        assert not ports & taken
        taken |= ports


def port(base: int, taken: set[int]) -> int:
    """One port of the family that begins there; the other families are set by the specification."""
    (name,) = [family for family, begins in PORT_BASES.items() if begins == base]
    others = dict.fromkeys(PORT_BASES.keys() - {name}, "1")
    return choose_ports(spec(env=others), taken)[name]


def test_ports_are_given_as_in_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lowest that is free, from each family's base on; what was given back is given again, nothing twice at once.

    Departure (architecture 7): a container gets one place of all families, so that a family goes on `PORT_STEP` further
    and not one further, and never into another family.
    """
    monkeypatch.setattr(placing, "is_free", lambda _: True)
    document: dict[str, Any] = load("port_registry") or {"steps": [], "reserved": [], "bases": {}}
    assert set(document["bases"].values()) <= set(PORT_BASES.values())
    ours: dict[int, int] = {}
    taken: set[int] = set()
    for step in document["steps"]:
        theirs = step["port"]
        if step["op"] == "release":
            taken.remove(ours[theirs])
        elif step["op"] == "restore":
            taken.add(ours[theirs])
        else:
            lowest = port(step["base"], taken)
            assert lowest not in taken
            assert ours.setdefault(theirs, lowest) == lowest, step
            assert (lowest - step["base"]) % PORT_STEP == 0
            taken.add(lowest)
    for case in document["reserved"]:
        further = PORT_STEP * (case["port"] - case["base"])
        assert port(case["base"], set(case["reserved_ports"])) == case["base"] + further


def test_members_of_a_gang_name_the_same_ports() -> None:
    """On every machine, whatever is taken there: they follow from the allocation."""
    there = choose_ports(spec(members=2), {29400})
    assert choose_ports(spec(members=2), set()) == there


def test_what_another_container_has_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it listens there yet or not; nobody looks for one that is alone."""
    monkeypatch.setattr(placing, "is_free", lambda _: True)
    gang = spec(members=2)
    ports = choose_ports(gang, set())
    assert port_in_use(gang, ports, set()) is None
    assert port_in_use(gang, ports, {ports["DTRAIN_SSH_PORT"]}) == ports["DTRAIN_SSH_PORT"]
    assert port_in_use(spec(), ports, set(ports.values())) is None


def test_ports_that_the_specification_sets_stay() -> None:
    """Nothing is chosen for them."""
    assert "C10D_PORT" not in choose_ports(spec(env={"C10D_PORT": "1"}), set())


@given(st.dictionaries(st.sampled_from([*PORT_BASES, "OTHER"]), st.sampled_from(["", "12", "x"])))
def test_ports_are_read_back(placed: dict[str, str]) -> None:
    """Only numbers of known variables."""
    assert ports_of(placed) == ({12} if "12" in [placed.get(name) for name in PORT_BASES] else set())


def test_a_master_with_an_address_of_version_6() -> None:
    """Keeps its brackets where a URL needs them."""
    own = dataclasses.replace(OWN, master_urls=("http://[fd00::7]:8080",))
    env = environment(own, spec(), {})
    assert (env["DET_MASTER"], env["DET_MASTER_HOST"], env["DET_MASTER_PORT"]) == (
        "http://[fd00::7]:8080",
        "fd00::7",
        "8080",
    )


def test_the_environment() -> None:
    """Names of Determined, values of this agent."""
    env = environment(OWN, spec(slots=[0]), {"C10D_PORT": 29400})
    assert env == {
        "DET_CLUSTER_ID": "cluster",
        "DET_MASTER_ID": "cluster",
        "DET_MASTER": "https://master.lab:8443",
        "DET_MASTER_HOST": "master.lab",
        "DET_MASTER_ADDR": "master.lab",
        "DET_MASTER_PORT": "8443",
        "DET_MASTER_CERT_NAME": "tenax",
        "DET_AGENT_ID": "box",
        "DET_SLOT_IDS": "[0]",
        "DET_USE_TLS": "true",
        "C10D_PORT": "29400",
    }


def test_several_masters() -> None:
    """Tasks get all of them; first, and alone for those who know one, that which the agent asks itself."""
    own = dataclasses.replace(OWN, master_urls=("http://one", "http://two:8080", "https://three"))
    env = environment(own, spec(), {}, at=1)
    assert env["DET_MASTER"] == "http://two:8080"
    assert (env["DET_MASTER_HOST"], env["DET_MASTER_PORT"]) == ("two", "8080")
    assert env["TENAX_MASTERS"] == "http://two:8080,https://three:443,http://one:80"
    assert masters_of(env) == env["TENAX_MASTERS"]
    # A script that means another cluster.
    assert masters_of({**env, "DET_MASTER": "http://elsewhere:8080"}) == "http://elsewhere:8080"
    assert masters_of({}) == ""


def test_devices_of_slots() -> None:
    """Kind and uuids; a container without slots has the CPU."""
    assert placing.devices(OWN, spec(slots=[0])) == ("cuda", ("GPU-1",))
    assert placing.devices(OWN, spec()) == ("cpu", ())
