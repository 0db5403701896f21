"""What may be rented for a pool, as values: offers in their order, limits, and why an offer is not used.

Rules:
- One offer is one type of machine in one place; zones of one type are offers one after the other.
- What rests, is off, or costs more than may be paid is not used, and says so.
- What a person rents is within the same limits, all of it or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from tenax.errors import NotFound, NotNow
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
    #: The setting that means nothing without a price; empty: there is none.
    needs_price: str = ""
    #: Whether it is known how many slots a machine has; where not, ``slots`` mean nothing.
    is_known: bool = True

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
    #: It is only said what would be done: people rent and end machines.
    advises: bool = False


def unfit(offer: MachineOffer) -> str:
    """Why its price, or what nobody knows of it, keeps an offer from being used; empty: nothing does."""
    if not offer.is_known:
        return (
            f"nobody knows how many GPUs a machine of offer {offer.name} has: its provider is being asked, or write "
            "instance_slots"
        )
    if offer.price is None:
        return f"offer {offer.name} has no price, which {offer.needs_price} needs" if offer.needs_price else ""
    if offer.max_price is None or offer.price <= offer.max_price:
        return ""
    return f"offer {offer.name} costs {offer.price:g} per hour, and its max_price is {offer.max_price:g}"


def most_machines(offer: MachineOffer, room: int, money: float | None) -> int:
    """How many of an offer there is room and money per hour for; without a price there is no money for it."""
    if money is None:
        return max(0, room)
    if offer.price is None:
        return 0
    # A limit that is a multiple of the price holds as many, whatever a sum of fractions makes of it.
    return max(0, room if offer.price == 0 else min(room, math.floor(money / offer.price + 1e-9)))


def not_used(offers: Sequence[MachineOffer], rests: Mapping[str, OfferRest], at: float) -> dict[str, str]:
    """Why offers are not used at a moment (seconds since 1970), by name; of rests some may be over."""
    reasons = {offer.name: unfit(offer) for offer in offers}
    reasons |= {name: rest.words(name) for name, rest in rests.items() if name in reasons and rest.until > at}
    return {name: why for name, why in reasons.items() if why}


def by_hand(
    offers: Sequence[MachineOffer],
    limits: ScalingLimits,
    unusable: Mapping[str, str],
    present: Sequence[float | None],
    count: int,
    name: str = "",
) -> MachineOffer:
    """The offer of which a person may rent so many machines now; ``name``: this one, else the first that may be used.

    ``unusable``: why offers are not used; ``present``: what each machine costs per hour that is not gone. Raises
    NotFound (no such offer), NotNow with the limit.
    """
    if limits.spent:
        raise NotNow(f"no machine is rented: {limits.spent}")
    candidates = [offer for offer in offers if name in ("", offer.name)]
    if not candidates:
        raise NotFound(f"offer {name!r} not found; the offers are {', '.join(offer.name for offer in offers)}")
    if len(present) + count > limits.max_instances:
        raise NotNow(
            f"no machine is rented: there are {len(present)}, those that end counted, and with {count} more they would "
            f"be more than max_instances, which is {limits.max_instances}"
        )
    if limits.cheapest:
        candidates.sort(key=lambda offer: math.inf if offer.price is None else offer.price)
    reasons = []
    for offer in candidates:
        why = unusable.get(offer.name) or _beyond_cost(offer, limits, present, count)
        if not why:
            return offer
        reasons.append(why)
    raise NotNow(f"no machine is rented: {'; '.join(reasons)}")


def _beyond_cost(offer: MachineOffer, limits: ScalingLimits, present: Sequence[float | None], count: int) -> str:
    """Why there is no money per hour for so many; empty: there is."""
    cost = sum(price or 0.0 for price in present)
    if limits.max_cost is None or most_machines(offer, count, max(0.0, limits.max_cost - cost)) >= count:
        return ""
    if offer.price is None:
        return f"offer {offer.name} has no price, and max_cost_per_hour is {limits.max_cost:g}"
    sums = f"there are some for {cost:g} per hour, with {count} of {offer.name} it would be"
    return f"{sums} {cost + count * offer.price:g}, and max_cost_per_hour is {limits.max_cost:g}"


def clock(at: float) -> str:
    """To the same state belong the same words: an instant, and not how long ago it was."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%H:%M:%S UTC")
