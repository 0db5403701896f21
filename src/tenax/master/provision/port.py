"""What a provider is: it rents out machines, tells which there are, and ends them.

Rules:
- A machine carries the marks of its cluster, pool and row; by the first a look finds all that are ours.
- An order is sent with its row's id as the provider's key, so that the provider makes it once where it can.
- A refusal is final for that order, and nothing was made; of any other error nobody knows what was done.
- Nothing waits for a machine to be up. Calls take seconds, and hold up only who made them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tenax.config.provider import CLUSTER_MARK, MARKS
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.errors import TenaxError
from tenax.lifecycle.offer import RestCause
from tenax.master.store.machines.offer_facts import NewFacts

#: Marks on what is ours.
CLUSTER, POOL, MACHINE = CLUSTER_MARK, f"{MARKS}pool", f"{MARKS}machine"


class OrderRefused(TenaxError):
    """The provider refused, and made nothing."""

    #: What kind of refusal it is.
    cause: RestCause = RestCause.REFUSED
    #: As the provider calls it; empty: it has no name for it.
    code: str = ""


def refused(cause: RestCause, message: str, code: str = "") -> OrderRefused:
    """A refusal of a kind."""
    error = OrderRefused(message)
    error.cause, error.code = cause, code
    return error


class ProviderAway(TenaxError):
    """Nobody knows what the provider has done."""


@dataclass(frozen=True, slots=True)
class ProviderPlace:
    """Where a provider is asked; settings of a pool, or a row, name it."""

    provider: str
    region: str
    #: Empty: the usual one.
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class MachineOrder:
    """One machine to be made."""

    #: The provider's key, and the mark.
    machine_id: str
    pool: str
    settings: AnyProviderSettings
    #: What the machine runs when it is up.
    user_data: str


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """One machine, as its provider shows it."""

    provider_id: str
    #: Its marks; empty where somebody took them away.
    machine_id: str = ""
    pool: str = ""
    zone: str = ""
    instance_type: str = ""
    #: It has ended, or is ending and cannot be kept from it.
    ended: bool = False
    #: Why, where the provider says it.
    story: str = ""
    #: Of what kind that is, where the provider took the order and did not carry it out.
    cause: RestCause | None = None
    #: False: its order was taken, and may fail yet.
    made: bool = True


class PartKind(str, Enum):
    """What a provider makes beside a machine, and may be left of it; as in answers."""

    DISK = "DISK"
    ADDRESS = "ADDRESS"
    SPOT_REQUEST = "SPOT_REQUEST"
    #: Something that the provider is doing to a machine; it ends by itself.
    OPERATION = "OPERATION"


@dataclass(frozen=True, slots=True)
class MachinePart:
    """A part of a machine, as its provider shows it."""

    kind: PartKind
    provider_id: str
    #: As it is marked; empty where somebody took the mark away.
    machine_id: str = ""
    zone: str = ""
    #: What the provider calls the machine that has it; empty: none has.
    holder: str = ""
    #: For people: its size, its address, or what is done.
    detail: str = ""
    #: The provider would let it be deleted without anybody's noticing.
    idle: bool = False


@dataclass(frozen=True, slots=True)
class PartsAnswer:
    """All parts that carry the cluster's mark, and of which kinds nobody knows."""

    parts: tuple[MachinePart, ...] = ()
    #: Why a kind was not listed, a line each, for people.
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferAnswers:
    """What a provider says of offers where it is not written, and why it does not say more."""

    news: tuple[NewFacts, ...] = ()
    #: Why it does not, with the offers of which.
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderFinding:
    """What is not at the provider as the settings of a pool have it: nothing could be rented, or not as is meant."""

    #: Where it is written, below ``provider``: ``offers[1].instance_type``; empty: of all of it.
    path: str
    problem: str
    #: What to write, or to do, instead.
    instead: str


class Provider(Protocol):
    """One place of a provider. Safe for any number of calls at a time."""

    async def launch(self, order: MachineOrder) -> SeenMachine:
        """Raises OrderRefused, ProviderAway."""

    async def look(self) -> Sequence[SeenMachine]:
        """All that carries the cluster's mark, in every state that is still told. Raises ProviderAway."""

    async def end(self, provider_ids: Sequence[str]) -> None:
        """End them for good; nothing for what has ended, or is not there. Raises ProviderAway."""

    async def ask(self, offers: Sequence[AnyProviderSettings]) -> OfferAnswers:
        """What machines of these cost, and how many slots they have, where neither is written."""

    async def check(self, settings: AnyProviderSettings) -> Sequence[ProviderFinding]:
        """All that is not there as settings of a pool have it; nothing is made. What cannot be looked at is one, too.

        Raises ProviderAway.
        """

    async def parts(self) -> PartsAnswer:
        """What is there beside machines and carries the cluster's mark; what cannot be listed is named."""

    async def remove(self, part: MachinePart) -> None:
        """Delete what is idle, for good; nothing where it is not there. Raises OrderRefused, ProviderAway."""


#: Characters of what a provider says that are shown.
_SHOWN = 400


def shown(text: str, hidden: Sequence[str] = ()) -> str:
    """What a provider says, for everyone: in one line, not without end, and without what was sent in confidence."""
    for secret in hidden:
        text = text.replace(secret, "...")
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def marks(cluster_id: str, order: MachineOrder) -> Mapping[str, str]:
    """What a machine and its parts carry, beside what people want there."""
    return {CLUSTER: cluster_id, POOL: order.pool, MACHINE: order.machine_id}
