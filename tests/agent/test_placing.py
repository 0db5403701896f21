"""What the agent adds to a specification."""

from __future__ import annotations

import dataclasses
import socket

from hypothesis import given
from hypothesis import strategies as st

from tenax.agent import placing
from tenax.agent.placing import PORT_BASES, PORT_PLACES, PORT_STEP, Self, choose_ports, environment, ports_of
from tenax.wire.agents import ContainerSpec, SlotInfo
from tests.kits.cases import load


def spec(*, members: int = 1, env: dict[str, str] | None = None, slots: list[int] | None = None) -> ContainerSpec:
    return ContainerSpec("c", "7.x.1", "7.x", 0, members, slots or [], ["true"], env or {})


OWN = Self("box", "cluster", "https://master.lab:8443", "tenax", (SlotInfo(0, "cuda", "H100", "GPU-1"),))


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


def test_ports_begin_where_those_of_the_cases_do() -> None:
    """Each family at its base; what was given back is given again, and nothing twice at once.

    Departure (architecture 7): the agent gives a container one place of all families, so the next one has ports a step
    further and not one further ("port_registry/steps"); what is taken elsewhere is left out ("port_registry/reserved").
    """
    document = load("port_registry")
    bases = document["bases"] if document is not None else {"c10d": 29400}
    assert isinstance(bases, dict)
    assert set(bases.values()) <= set(PORT_BASES.values())
    first = choose_ports(spec(), set())
    second = choose_ports(spec(), set(first.values()))
    assert second == {name: number + PORT_STEP for name, number in first.items()}
    assert choose_ports(spec(), set(second.values())) == first
    reserved = {first["DTRAIN_SSH_PORT"]}
    assert choose_ports(spec(), reserved) == second


def test_members_of_a_gang_name_the_same_ports() -> None:
    """On every machine, whatever is taken there: they follow from the allocation."""
    there = choose_ports(spec(members=2), {29400})
    assert choose_ports(spec(members=2), set()) == there


def test_ports_that_the_specification_sets_stay() -> None:
    """Nothing is chosen for them."""
    assert "C10D_PORT" not in choose_ports(spec(env={"C10D_PORT": "1"}), set())


@given(st.dictionaries(st.sampled_from([*PORT_BASES, "OTHER"]), st.sampled_from(["", "12", "x"])))
def test_ports_are_read_back(placed: dict[str, str]) -> None:
    """Only numbers of known variables."""
    assert ports_of(placed) == ({12} if "12" in [placed.get(name) for name in PORT_BASES] else set())


def test_a_master_with_an_address_of_version_6() -> None:
    """Keeps its brackets where a URL needs them."""
    own = dataclasses.replace(OWN, master_url="http://[fd00::7]:8080")
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


def test_devices_of_slots() -> None:
    """Kind and uuids; a container without slots has the CPU."""
    assert placing.devices(OWN, spec(slots=[0])) == ("cuda", ("GPU-1",))
    assert placing.devices(OWN, spec()) == ("cpu", ())
