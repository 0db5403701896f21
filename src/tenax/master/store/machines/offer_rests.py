"""Rows of offers of which nothing is rented for a while: two masters, and one that was started again, agree on them.

Rules: a rest is of an offer with the settings that it went wrong with; it is written in the transaction in which the
machine fails, and taken away in that in which one does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Connection

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.machine import MachineNews
from tenax.lifecycle.offer import NEVER, RestCause, rest_s
from tenax.master.store.database.queries import load
from tenax.master.store.webhooks import events as webhook_events
from tenax.scheduler.offers import OfferRest

Q = load("machines")


@dataclass(frozen=True, slots=True)
class StoredRest:
    """It may be over."""

    offer: str
    settings: bytes
    rest: OfferRest


@dataclass(frozen=True, slots=True)
class OfferOrder:
    """What a machine was ordered by."""

    pool: str
    #: With its zone, or without.
    offer: str
    settings: bytes


async def all_of(conn: Connection) -> dict[str, list[StoredRest]]:
    """By pool; they may be over."""
    by_pool: dict[str, list[StoredRest]] = defaultdict(list)
    for row in await conn.fetch(Q.rests):
        until = float("inf") if row["until"] is None else row["until"]
        count, story = row["failures"], row["story"]
        why = story if count == 1 else f"{count} in a row failed, the last: {story}"
        by_pool[row["pool"]].append(StoredRest(row["offer"], row["settings"], OfferRest(until, why)))
    return by_pool


async def begin(conn: Connection, order: OfferOrder, cause: RestCause, story: str, planned_at: datetime) -> None:
    """Something went wrong with a machine that was planned then."""
    known = await conn.fetchrow(Q.rest_of, order.pool, order.offer, order.settings)
    failures = known["failures"] if known is not None and known["cause"] == cause.value else 0
    if failures and cause not in NEVER and planned_at < known["since"]:
        return
    seconds = rest_s(cause, failures + 1)
    await conn.execute(Q.rest, order.pool, order.offer, order.settings, cause.value, failures + 1, story, seconds)
    if seconds is None and (known is None or known["until"] is not None):
        offer: JsonObject = {"name": order.offer, "resource_pool": order.pool, "cause": cause.value, "why": story}
        await webhook_events.machines_changed(conn, MachineNews.OFFER_OFF, {"offer": offer})


async def end(conn: Connection, pool: str, offers: Sequence[str], causes: Collection[RestCause]) -> None:
    """Something went well: what was counted before it is forgotten; ``offers``: its name with its zone, and without."""
    await conn.execute(Q.rested, pool, list(offers), [cause.value for cause in causes])
