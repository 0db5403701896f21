"""What the agent adds to a specification: where the master is, its own name, slots, devices and free ports."""

from __future__ import annotations

import json
import socket
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tenax.wire.agents import ContainerSpec, SlotInfo
from tenax.wire.task_names import MASTERS

#: Ports that launchers use, by variable; a container gets all of them at one multiple of the step above the base.
PORT_BASES = {
    "DTRAIN_SSH_PORT": 12350,
    "INTER_TRAIN_PROCESS_COMM_PORT_1": 12360,
    "INTER_TRAIN_PROCESS_COMM_PORT_2": 12365,
    "C10D_PORT": 29400,
}
#: Keeps the four families apart from one another, and the highest below the system's own range (32768).
PORT_STEP = 16
PORT_PLACES = 200


@dataclass(frozen=True, slots=True)
class Self:
    """What does not change while the agent runs."""

    agent_id: str
    cluster_id: str
    #: Where tasks reach the masters.
    master_urls: tuple[str, ...]
    master_cert_name: str | None
    slots: tuple[SlotInfo, ...]

    @property
    def first_place(self) -> int:
        """Where it begins to look for ports: agents of several clusters on one machine begin elsewhere.

        None of them knows what the others have given away until somebody listens there, which may be seconds later.
        """
        return zlib.crc32(f"{self.cluster_id} {self.agent_id}".encode()) % PORT_PLACES


def environment(own: Self, spec: ContainerSpec, ports: Mapping[str, int], at: int = 0) -> dict[str, str]:
    """The variables that only the agent knows; ``at``: which master it asks itself."""
    first = at % len(own.master_urls)
    urls = [_whole(url) for url in (*own.master_urls[first:], *own.master_urls[:first])]
    master = urlsplit(urls[0])
    host = master.hostname or ""
    values = {
        "DET_CLUSTER_ID": own.cluster_id,
        "DET_MASTER_ID": own.cluster_id,
        "DET_MASTER": urls[0],
        "DET_MASTER_HOST": host,
        "DET_MASTER_ADDR": host,
        "DET_MASTER_PORT": str(master.port),
        "DET_AGENT_ID": own.agent_id,
        "DET_SLOT_IDS": json.dumps(spec.slots),
        "DET_USE_TLS": "true" if master.scheme == "https" else "false",
        **{name: str(number) for name, number in ports.items()},
    }
    if len(urls) > 1:
        values[MASTERS] = ",".join(urls)
    if own.master_cert_name:
        values["DET_MASTER_CERT_NAME"] = own.master_cert_name
    return values


def _whole(url: str) -> str:
    """With its port."""
    master = urlsplit(url)
    host = master.hostname or ""
    port = master.port or (443 if master.scheme == "https" else 80)
    return f"{master.scheme}://{f'[{host}]' if ':' in host else host}:{port}{master.path}"


def devices(own: Self, spec: ContainerSpec) -> tuple[str, tuple[str, ...]]:
    """Kind and uuids of the devices of a specification. Raises ValueError for a slot that is not there."""
    known = {slot.id: slot for slot in own.slots}
    missing = [number for number in spec.slots if number not in known]
    if missing:
        raise ValueError(f"this agent has no slot {missing[0]}")
    given = [known[number] for number in spec.slots]
    kinds = {slot.kind for slot in given}
    return (given[0].kind if len(kinds) == 1 else "cpu"), tuple(slot.uuid for slot in given if slot.uuid)


def choose_ports(spec: ContainerSpec, taken: Collection[int], first: int = 0) -> dict[str, int]:
    """Ports that are free on this machine and not of another container here, from the place ``first`` on; those that
    the specification sets stay.

    All members of a gang must name the same ports, so theirs follow from the allocation's id, free or not: see
    `port_in_use`.
    """
    bases = {name: base for name, base in PORT_BASES.items() if name not in spec.env}
    start = zlib.crc32(spec.allocation_id.encode()) % PORT_PLACES if spec.members > 1 else first
    for step in range(PORT_PLACES):
        place = (start + step) % PORT_PLACES
        ports = {name: base + PORT_STEP * place for name, base in bases.items()}
        if spec.members > 1 or all(number not in taken and is_free(number) for number in ports.values()):
            return ports
    return {name: base + PORT_STEP * start for name, base in bases.items()}


def port_in_use(spec: ContainerSpec, ports: Mapping[str, int], taken: Collection[int]) -> int | None:
    """One of these ports that the first member of a gang could not listen on; None for any other container.

    The others of a gang come to the first. Its next run has another id, and so other ports.
    """
    if spec.members == 1 or spec.rank:
        return None
    return next((number for number in ports.values() if number in taken or not is_free(number)), None)


def ports_of(placed: Mapping[str, str]) -> set[int]:
    """The ports of a container that was placed earlier."""
    return {int(placed[name]) for name in PORT_BASES if placed.get(name, "").isdigit()}


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
