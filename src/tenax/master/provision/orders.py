"""Rows of machines that are going to be asked for, or that were seen and had none."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from tenax.config.master import PoolSettings
from tenax.lifecycle.offer_facts import OfferFacts
from tenax.master.provision.offers import offer_named, price_of, slots_of
from tenax.master.provision.port import ProviderPlace, SeenMachine
from tenax.master.provision.sightings import place_of_pool
from tenax.master.store.machines.rows import NewMachine
from tenax.scheduler.demand import OfferLaunch

#: The hash of the token with which the agent of a machine joins, by the machine's id.
HashedToken = Callable[[str], bytes]
#: As `_new_id` makes them.
_MACHINE_ID = re.compile(r"m-[0-9a-f]{20}")
#: Stories of what carries our mark and had no row.
_STRAY_JOINS = "it carries the mark of this cluster and had no row: its agent is to say what it holds"
_STRAY_ENDS = "it carries the mark of this cluster, and nobody knows of it: it is ended"


def ordered(
    pool: PoolSettings, launch: OfferLaunch, facts: Mapping[str, OfferFacts], why: str, hashed_token: HashedToken
) -> list[NewMachine]:
    """Machines of an offer of a pool, at what it costs now; ``facts``: of the pool; ``why``: for people."""
    offer, place = offer_named(pool, launch.offer), place_of_pool(pool)
    assert offer is not None
    slots, price = slots_of(offer, facts), price_of(offer, facts)
    assert slots is not None, "an offer of which that is not known is not used"
    where = pool.name, place.provider, place.region, place.endpoint, offer.type_name, slots
    names = [_new_id() for _ in range(launch.count)]
    return [NewMachine(name, *where, launch.wanted_by, hashed_token(name), why, launch.offer, price) for name in names]


def adopted(place: ProviderPlace, stray: SeenMachine, hashed_token: HashedToken) -> list[NewMachine]:
    """Of a machine without a row the first row that can be: its agent joins once more; it is ended."""
    ends = ended(place, stray, _STRAY_ENDS)
    if not is_machine_id(stray.machine_id):
        return [ends]
    hashed = hashed_token(stray.machine_id)
    return [replace(ends, machine_id=stray.machine_id, token_hash=hashed, story=_STRAY_JOINS), ends]


def ended(place: ProviderPlace, stray: SeenMachine, why: str) -> NewMachine:
    """The row by which a machine without one is ended."""
    where = stray.pool, place.provider, place.region, place.endpoint, stray.instance_type, 0, ()
    return NewMachine(_new_id(), *where, None, why)


def is_machine_id(text: str) -> bool:
    """Whether a mark is that of a machine of ours."""
    return _MACHINE_ID.fullmatch(text) is not None


def _new_id() -> str:
    return f"m-{uuid.uuid4().hex[:20]}"
