"""What AWS says of offers: how many GPUs a type has, what a spot machine costs now, what one on demand does.

Rules: one call for all types where there is one; what is refused, or not answered, costs what it is about, and a word
for people. A machine without a zone may come to any: the dearest one counts. Prices are those of Linux, in US dollars.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, cast

from tenax.config.provider import ProviderSettings
from tenax.errors import TenaxError
from tenax.jsonvalue import JsonObject, as_object
from tenax.master.provision.port import OfferAnswers, OrderRefused, ProviderAway, shown
from tenax.master.store.machines.offer_facts import NewFacts

SPOT, LISTED = "DescribeSpotPriceHistory", "GetProducts of the price list"
#: Where the price list is asked; it is of all regions.
_PRICING_REGION, _PRICING_REGION_OF_CHINA = "us-east-1", "cn-northwest-1"
_LINUX = "Linux/UNIX"
_PAGES = 200
_NO_ANSWER = "the answer has no price of it in US dollars"


class Call(Protocol):
    """One call: service, operation, parameters. Raises OrderRefused, ProviderAway."""

    def __call__(self, service: str, name: str, parameters: Mapping[str, object]) -> Mapping[str, object]: ...


def region_of(service: str, region: str) -> str:
    """Where a service is asked about a region."""
    if service != "pricing":
        return region
    return _PRICING_REGION_OF_CHINA if region.startswith("cn-") else _PRICING_REGION


def answers_of(offers: Sequence[ProviderSettings], call: Call, now: datetime) -> OfferAnswers:
    """What is not written of these offers, which are of one region."""
    slots, wrong = _slots([offer for offer in offers if offer.instance_slots < 0], call)
    problems = list(wrong.items())
    unpriced = [offer for offer in offers if offer.price is None]
    prices: dict[str, tuple[float, str]] = {}
    for ask, of_these in (
        (_spot_prices, [offer for offer in unpriced if offer.spot]),
        (_list_prices, [offer for offer in unpriced if not offer.spot]),
    ):
        if of_these:
            answered, wrong = ask(of_these, call, now)
            prices |= answered
            problems += wrong.items()
    by_reason: dict[str, tuple[str, ...]] = {}
    for name, why in problems:
        by_reason[why] = (*by_reason.get(why, ()), name)
    names = [offer.offer_name for offer in offers]
    nothing: tuple[float | None, str] = None, ""
    priced = [(name, *prices.get(name, nothing)) for name in names]
    news = tuple(NewFacts(name, price, source, slots.get(name)) for name, price, source in priced)
    return OfferAnswers(news, by_reason)


def gpus_of(described: Mapping[str, object]) -> int:
    """How many GPUs a type has, as DescribeInstanceTypes has it."""
    info = cast("Mapping[str, Sequence[Mapping[str, int]]]", described.get("GpuInfo") or {})
    return sum(each.get("Count", 0) for each in info.get("Gpus", ()))


def described_types(names: Sequence[str], call: Call) -> dict[str, Mapping[str, object]]:
    """What types of that region are like, by name; one that is not there is none. Raises OrderRefused, ProviderAway."""
    # By a filter: of names in the request one that is wrong would have all refused.
    filters = [{"Name": "instance-type", "Values": sorted(set(names))}]
    pages = paged(call, "describe_instance_types", "InstanceTypes", {"Filters": filters})
    return {str(each["InstanceType"]): each for each in pages}


def paged(call: Call, name: str, key: str, parameters: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """What is listed by a call of EC2, page by page. Raises OrderRefused, ProviderAway."""
    token = ""
    for _ in range(_PAGES):
        answer = call("ec2", name, {**parameters, "NextToken": token} if token else parameters)
        yield from cast("Sequence[Mapping[str, object]]", answer.get(key) or ())
        token = str(answer.get("NextToken") or "")
        if not token:
            return
    raise ProviderAway(f"{name}: there are more than {_PAGES} pages")


def _slots(offers: Sequence[ProviderSettings], call: Call) -> tuple[dict[str, int], dict[str, str]]:
    if not offers:
        return {}, {}
    try:
        types = described_types([offer.instance_type for offer in offers], call)
    except (OrderRefused, ProviderAway) as error:
        why = f"its GPUs are not known ({shown(str(error))}): write instance_slots, or allow ec2:DescribeInstanceTypes"
        return {}, {offer.offer_name: why for offer in offers}
    slots, problems = {}, {}
    for offer in offers:
        name = offer.instance_type
        if name not in types:
            problems[offer.offer_name] = f"there is no type {name} in {offer.region}: write another instance_type"
        elif not (count := gpus_of(types[name])):
            problems[offer.offer_name] = f"{name} has no GPU: write another instance_type, or cpu_slots_allowed"
        else:
            slots[offer.offer_name] = count
    return slots, problems


_Answered = tuple[dict[str, tuple[float, str]], dict[str, str]]


def _spot_prices(offers: Sequence[ProviderSettings], call: Call, now: datetime) -> _Answered:
    parameters = {
        "InstanceTypes": sorted({offer.instance_type for offer in offers}),
        "ProductDescriptions": [_LINUX],
        "StartTime": now,
        "EndTime": now,
    }
    prices: dict[tuple[str, str], float] = {}
    since: dict[tuple[str, str], object] = {}
    try:
        for each in paged(call, "describe_spot_price_history", "SpotPriceHistory", parameters):
            key, at = (str(each.get("InstanceType")), str(each.get("AvailabilityZone"))), each.get("Timestamp")
            if key not in since or cast("datetime", at) > cast("datetime", since[key]):
                prices[key], since[key] = float(str(each["SpotPrice"])), at
    except (TenaxError, KeyError, ValueError, TypeError) as error:
        return {}, {offer.offer_name: f"{SPOT}: {shown(str(error))}" for offer in offers}
    answered = {}
    for offer in offers:
        zones = {zone: price for (name, zone), price in prices.items() if name == offer.instance_type}
        its = [zones[zone] for zone in offer.zones if zone in zones] if offer.zones else list(zones.values())
        if its:
            answered[offer.offer_name] = max(its), SPOT
    return answered, _without(offers, answered, SPOT)


def _list_prices(offers: Sequence[ProviderSettings], call: Call, now: datetime) -> _Answered:
    by_type: dict[str, list[str]] = defaultdict(list)
    for offer in offers:
        by_type[offer.instance_type].append(offer.offer_name)
    answered: dict[str, tuple[float, str]] = {}
    for instance_type, names in by_type.items():
        try:
            products = call("pricing", "get_products", _products(instance_type, offers[0].region))
            price = _list_price(cast("Sequence[str]", products.get("PriceList") or ()))
        except (TenaxError, ValueError, TypeError) as error:
            # Whoever is refused one is refused all.
            left = [name for each in by_type.values() for name in each if name not in answered]
            return answered, {name: f"{LISTED}: {shown(str(error))}" for name in left}
        if price is not None:
            answered |= dict.fromkeys(names, (price, LISTED))
    return answered, _without(offers, answered, LISTED)


def _without(offers: Sequence[ProviderSettings], answered: Mapping[str, object], source: str) -> dict[str, str]:
    return {offer.offer_name: f"{source}: {_NO_ANSWER}" for offer in offers if offer.offer_name not in answered}


def _products(instance_type: str, region: str) -> dict[str, object]:
    its = {
        "instanceType": instance_type, "regionCode": region, "operatingSystem": "Linux", "tenancy": "Shared",
        "preInstalledSw": "NA", "capacitystatus": "Used",
    }  # fmt: skip
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in its.items()]
    return {"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": filters}


def _list_price(products: Sequence[str]) -> float | None:
    """Of the first dimension that is paid by the hour in US dollars. Raises ValueError."""
    for text in products:
        product: JsonObject = as_object(json.loads(text))
        for offered in as_object(as_object(product.get("terms")).get("OnDemand")).values():
            for dimension in as_object(as_object(offered).get("priceDimensions")).values():
                its = as_object(dimension)
                amount = as_object(its.get("pricePerUnit")).get("USD")
                if its.get("unit") == "Hrs" and isinstance(amount, str) and float(amount) > 0:
                    return float(amount)
    return None
