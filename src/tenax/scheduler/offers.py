"""What may be rented for a pool, as values: offers in their order, limits, and why an offer is not used.

Rules:
- One offer is one type of machine in one place; zones of one type are offers one after the other.
- What rests, is off, or costs more than may be paid is not used, and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone

from tenax.ids import AgentId, SlotId
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.snapshot import PoolAgent


@dataclass(frozen=True, slots=True)
class MachineOffer:
    """What may be rented."""

    #: For people, and different from those of the pool's other offers: ``g5.12xlarge in us-west-2``.
    name: str
    slots: int
    kind: DeviceKind = DeviceKind.CUDA
    #: Places for requests of zero slots.
    aux_places: int = 100
    #: Of one machine per hour; None: nobody knows.
    price: float | None = None
    #: More than that is not paid.
    max_price: float | None = None

    def agents(self, count: int, begin: int = 0) -> tuple[PoolAgent, ...]:
        """The agents of so many machines, with nothing on them; ``begin``: the number of the first."""
        slots = tuple(SlotId(number) for number in range(self.slots))
        return tuple(
            PoolAgent(AgentId(f"a machine ({number})"), slots, aux_places=self.aux_places, kind=self.kind, rented=True)
            for number in range(begin, begin + count)
        )


@dataclass(frozen=True, slots=True)
class OfferRest:
    """Nothing of an offer is rented for a while."""

    #: In seconds since 1970; infinite: until its settings change.
    until: float
    why: str

    def words(self, name: str) -> str:
        """For people."""
        if math.isinf(self.until):
            return f"offer {name} is off until the settings of its pool's provider change, because: {self.why}"
        return f"offer {name} rests until {clock(self.until)} because: {self.why}"


@dataclass(frozen=True, slots=True)
class ScalingLimits:
    """How many machines there may be, and by which rule."""

    min_instances: int = 0
    max_instances: int = 5
    max_idle_s: float = 1200.0
    #: Determined's rule instead of the planner.
    by_slots: bool = False
    #: The set of machines that costs least, instead of the first offer that serves.
    cheapest: bool = False
    #: Of all machines together, per hour.
    max_cost: float | None = None
    #: Why nothing more may be rented, since the money is spent; empty: it is not.
    spent: str = ""
    #: With that, what is there is let go, too.
    stops: bool = False


def too_dear(offer: MachineOffer) -> str:
    """Why its price keeps an offer from being used; empty: it does not."""
    if offer.max_price is None or (offer.price is not None and offer.price <= offer.max_price):
        return ""
    costs = "has no price" if offer.price is None else f"costs {offer.price:g} per hour"
    return f"offer {offer.name} {costs}, and its max_price is {offer.max_price:g}"


def most_machines(offer: MachineOffer, room: int, money: float | None) -> int:
    """How many of an offer there is room and money per hour for; without a price there is no money for it."""
    if money is None:
        return max(0, room)
    if offer.price is None:
        return 0
    # A limit that is a multiple of the price holds as many, whatever a sum of fractions makes of it.
    return max(0, room if offer.price == 0 else min(room, math.floor(money / offer.price + 1e-9)))


def clock(at: float) -> str:
    """To the same state belong the same words: an instant, and not how long ago it was."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%H:%M:%S UTC")
