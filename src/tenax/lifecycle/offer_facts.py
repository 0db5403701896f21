"""What is known of an offer, and from where: what a machine costs per hour, and how many slots it has.

Rules of prices, in this order:
- What the operator has written holds.
- What the provider has said holds while it is not older than a day; it is asked again after an hour.
- A list of the provider's public prices, as it was on its day.
- Otherwise nobody knows, and where a limit needs a price nothing is rented.
Slots that are not written are those that the provider has said last: a type of machines does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

#: Seconds after which a provider is asked again, be it that it has not answered.
ASK_AGAIN_S = 3600.0
#: Between two rounds of questions, whatever became of the first.
AT_LEAST_S = 60.0
#: After which a price that it has said is none any more.
KEPT_S = 86400.0


class PriceSource(str, Enum):
    """From where a price is known; as stored."""

    WRITTEN = "WRITTEN"
    ASKED = "ASKED"
    LISTED = "LISTED"


@dataclass(frozen=True, slots=True)
class OfferPrice:
    """Of one machine per hour. Written ones are in whatever currency their operator counts, others in US dollars."""

    amount: float
    source: PriceSource
    #: When it was asked, or of which day the list is; None: it is written.
    at: datetime | None = None
    #: The call that was asked, or the page of the list.
    where: str = ""


@dataclass(frozen=True, slots=True)
class OfferFacts:
    """What a provider has said of an offer, or not."""

    #: Seconds since it was asked last.
    age_s: float
    #: The last price that it has said; None: none yet.
    price: OfferPrice | None = None
    #: Seconds since then.
    price_age_s: float = 0.0
    slots: int | None = None


def current_price(written: float | None, facts: OfferFacts | None, listed: OfferPrice | None) -> OfferPrice | None:
    """The one that holds now; None: nobody knows."""
    if written is not None:
        return OfferPrice(written, PriceSource.WRITTEN)
    if facts is not None and facts.price is not None and facts.price_age_s <= KEPT_S:
        return facts.price
    return listed


def due(offers: Iterable[str], facts: Mapping[str, OfferFacts]) -> list[str]:
    """Of which of these offers the provider is to be asked now."""
    return [name for name in offers if name not in facts or facts[name].age_s >= ASK_AGAIN_S]


def due_in_s(offers: Iterable[str], facts: Mapping[str, OfferFacts]) -> float | None:
    """Seconds until the provider is to be asked of the first of these offers again; None: there is none.

    Some time in any case: what has just been asked about and is not known had something in its way.
    """
    ages = (facts[name].age_s if name in facts else ASK_AGAIN_S for name in offers)
    return min((max(AT_LEAST_S, ASK_AGAIN_S - age_s) for age_s in ages), default=None)
