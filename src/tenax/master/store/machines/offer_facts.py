"""Rows of what providers have said of offers: all masters, and one that was started again, plan with the same.

Rules: an answer without a price leaves the last one, with its day; whatever is other than before wakes who plans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asyncpg import Connection, Record

from tenax.lifecycle.offer_facts import OfferFacts, OfferPrice, PriceSource
from tenax.master.store.database.queries import load
from tenax.master.store.database.wakeups import notify

Q = load("machines")

#: By pool and offer.
FactsOfPools = Mapping[str, Mapping[str, OfferFacts]]


@dataclass(frozen=True, slots=True)
class NewFacts:
    """What a provider has said of an offer just now; None: it has not."""

    offer: str
    #: In US dollars.
    price: float | None = None
    #: The call that was asked.
    price_source: str = ""
    slots: int | None = None


async def all_of(conn: Connection) -> FactsOfPools:
    """All that is kept."""
    by_pool: dict[str, dict[str, OfferFacts]] = defaultdict(dict)
    for row in await conn.fetch(Q.offer_facts):
        by_pool[row["pool"]][row["offer"]] = _facts(row)
    return dict(by_pool)


async def store(conn: Connection, pool: str, news: Sequence[NewFacts]) -> None:
    """What was said of offers of a pool; also that nothing was."""
    changed = False
    for each in news:
        what = each.price, each.price_source, each.slots
        changed = bool(await conn.fetchval(Q.note_facts, pool, each.offer, *what)) or changed
    if changed:
        await notify(conn, "scheduling", "")
        await notify(conn, "queue", "")


def _facts(row: Record) -> OfferFacts:
    price = None
    if row["price"] is not None:
        price = OfferPrice(row["price"], PriceSource.ASKED, row["priced_at"], row["price_source"])
    return OfferFacts(row["age_s"], price, row["price_age_s"] or 0.0, row["slots"])
