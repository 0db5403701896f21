"""What machines cost at Google: the public catalogue of Cloud Billing, with entries of processors, memory and GPUs.

Rules: a machine costs what its parts cost, each by the one entry for its region that is called as Google calls it;
where there is none, or there are two of different prices, nobody knows, and that is said. In US dollars, without disks,
addresses and discounts. The catalogue is long: it is gone through once for all offers that are asked about.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tenax.config.provider.gcp import GcpSettings
from tenax.config.provider.list_prices import GCP_FAMILIES, GCP_GPUS
from tenax.errors import TenaxError
from tenax.jsonvalue import JsonObject, as_list, as_object
from tenax.master.provision.port import OfferAnswers, shown
from tenax.master.store.machines.offer_facts import NewFacts

CATALOG = "the catalogue of Cloud Billing"
#: Of Compute Engine's entries, below the API's version.
CATALOG_PATH = "/services/6F81-5844-456A/skus"
#: All of an entry that is looked at: of a long list the rest need not be sent.
CATALOG_FIELDS = "skus(description,category/usageType,serviceRegions,pricingInfo/pricingExpression),nextPageToken"
_ON_DEMAND, _SPOT = "OnDemand", "Preemptible"
_HOUR, _GIB_HOUR = "h", "GiBy.h"


@dataclass(frozen=True, slots=True)
class _Entry:
    """What an entry of the catalogue has to be."""

    region: str
    #: How its description begins; behind that stands where.
    called: str
    usage: str
    unit: str


def answers_of(
    offers: Sequence[GcpSettings],
    described: Callable[[GcpSettings], JsonObject],
    pages: Callable[[], Iterable[JsonObject]],
) -> OfferAnswers:
    """What machines of these cost. ``described``: the machine type of one; ``pages``: those of the catalogue.

    What either raises (TenaxError) is the reason of those whom it concerns.
    """
    problems: dict[str, str] = {}
    parts: dict[str, list[tuple[_Entry, float]]] = {}
    for offer in offers:
        try:
            parts[offer.offer_name] = _parts(offer, described(offer))
        except (TenaxError, ValueError) as error:
            problems[offer.offer_name] = shown(str(error))
    amounts: Mapping[_Entry, set[float]] = {}
    if parts:
        try:
            amounts = _amounts({entry for each in parts.values() for entry, _ in each}, pages())
        except TenaxError as error:
            problems |= dict.fromkeys(parts, f"{CATALOG}: {shown(error.message)}")
            parts = {}
    prices: dict[str, float] = {}
    for name, its in parts.items():
        unclear = [entry.called for entry, _ in its if len(amounts.get(entry, ())) != 1]
        if unclear:
            problems[name] = f"{CATALOG} has not one price of {' and '.join(unclear)} there: write price"
        else:
            prices[name] = round(sum(next(iter(amounts[entry])) * count for entry, count in its), 6)
    by_reason: dict[str, tuple[str, ...]] = {}
    for name, why in problems.items():
        by_reason[why] = (*by_reason.get(why, ()), name)
    priced = [(each.offer_name, prices.get(each.offer_name)) for each in offers]
    news = [NewFacts(name, price, "" if price is None else CATALOG) for name, price in priced]
    return OfferAnswers(tuple(news), by_reason)


def _parts(offer: GcpSettings, machine_type: JsonObject) -> list[tuple[_Entry, float]]:
    """Of which entries one machine takes how much. Raises ValueError: nobody knows what they are called."""
    its, region = offer.instance_type, offer.region.rpartition("/")[2]
    usage = _SPOT if its.preemptible else _ON_DEMAND
    family, cpus, memory = (
        its.machine_type.partition("-")[0],
        machine_type.get("guestCpus"),
        machine_type.get("memoryMb"),
    )
    if machine_type.get("isSharedCpu"):
        raise ValueError(f"{its.machine_type} has a part of a processor, whose price is not looked up: write price")
    comes = [as_object(each) for each in as_list(machine_type.get("accelerators"))]
    gpus = [(str(each.get("guestAcceleratorType")), each.get("guestAcceleratorCount")) for each in comes]
    if its.gpu_num and not gpus:
        gpus = [(its.gpu_type, its.gpu_num)]
    unknown = [name for name, _ in gpus if name not in GCP_GPUS] or [family] * (family not in GCP_FAMILIES)
    if unknown or not isinstance(cpus, int) or not isinstance(memory, int):
        raise ValueError(
            f"{CATALOG} has names for {', '.join(unknown) or its.machine_type} that are not known here: write price"
        )
    begin = "Spot Preemptible " if its.preemptible else ""
    attached = " attached to Spot Preemptible VMs" if its.preemptible else ""
    return [
        (_Entry(region, f"{begin}{GCP_FAMILIES[family]} Core", usage, _HOUR), float(cpus)),
        (_Entry(region, f"{begin}{GCP_FAMILIES[family]} Ram", usage, _GIB_HOUR), memory / 1024),
        *(
            (_Entry(region, f"{GCP_GPUS[name]}{attached}", usage, _HOUR), float(count))
            for name, count in gpus
            if isinstance(count, int)
        ),
    ]


def _amounts(entries: set[_Entry], pages: Iterable[JsonObject]) -> Mapping[_Entry, set[float]]:
    """The prices that the catalogue has of these."""
    by_name: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
    for entry in entries:
        by_name[entry.called, entry.usage].append(entry)
    amounts: dict[_Entry, set[float]] = defaultdict(set)
    for page in pages:
        for sku in map(as_object, as_list(page.get("skus"))):
            called = str(sku.get("description", "")).partition(" running in ")[0]
            for entry in by_name.get((called, str(as_object(sku.get("category")).get("usageType"))), ()):
                amount = _amount(sku, entry.unit) if entry.region in as_list(sku.get("serviceRegions")) else None
                if amount is not None:
                    amounts[entry].add(amount)
    return amounts


def _amount(sku: JsonObject, unit: str) -> float | None:
    """Of one unit, of the newest price and its last tier; None: it is of another unit, or currency, or free."""
    pricings = as_list(sku.get("pricingInfo"))
    expression = as_object(as_object(pricings[-1]).get("pricingExpression")) if pricings else {}
    tiers = as_list(expression.get("tieredRates"))
    price = as_object(as_object(tiers[-1]).get("unitPrice")) if tiers else {}
    units, nanos = str(price.get("units") or "0"), price.get("nanos") or 0
    if expression.get("usageUnit") != unit or price.get("currencyCode") != "USD" or not re.fullmatch(r"\d+", units):
        return None
    amount = int(units) + (nanos if isinstance(nanos, int) else 0) / 1e9
    return amount if amount > 0 else None
