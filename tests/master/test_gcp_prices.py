"""What Google's catalogue of prices says of machines: at the double, with entries as their description has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tenax.config.provider.gcp import GcpSettings
from tenax.master.provision.gcp import Gcp
from tenax.master.provision.port import OfferAnswers, ProviderPlace
from tests.kits.compute_engine import PROJECT, Refused
from tests.kits.rented_gcp import RentedAtGoogle, gcp_settings, google

T4 = {"machine_type": "n1-standard-8", "gpu_type": "nvidia-tesla-t4", "gpu_num": 2}
A100 = {"machine_type": "a2-highgpu-4g", "gpu_num": 4}


@pytest.fixture(scope="module")
def at_google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RentedAtGoogle]:
    """One for the module."""
    with google(tmp_path_factory.mktemp("google")) as made:
        yield made


def entry(description: str, price: float, unit: str = "h", region: str = "us-central1", currency: str = "USD") -> Any:
    """One of the catalogue, of which only what is looked at is here."""
    units = int(price)
    money = {"currencyCode": currency, "units": str(units), "nanos": round((price - units) * 1e9)}
    expression = {"usageUnit": unit, "tieredRates": [{"startUsageAmount": 0, "unitPrice": money}]}
    usage = "Preemptible" if "Spot" in description else "OnDemand"
    return {
        "description": description, "category": {"resourceFamily": "Compute", "usageType": usage},
        "serviceRegions": [region], "pricingInfo": [{"pricingExpression": expression}],
    }  # fmt: skip


#: Eight processors and 32 GiB; a GPU; the same as spot machines; and what is not to be taken for them.
ENTRIES = [
    entry("N1 Predefined Instance Core running in Americas", 0.03),
    entry("N1 Predefined Instance Ram running in Americas", 0.004, "GiBy.h"),
    entry("Nvidia Tesla T4 GPU running in Americas", 0.35),
    entry("Spot Preemptible N1 Predefined Instance Core running in Americas", 0.006),
    entry("Spot Preemptible N1 Predefined Instance Ram running in Americas", 0.001, "GiBy.h"),
    entry("Nvidia Tesla T4 GPU attached to Spot Preemptible VMs running in Americas", 0.1),
    entry("N1 Predefined Instance Core running in Tokyo", 0.9, region="asia-northeast1"),
    entry("Commitment v1: Cpu in Americas for 1 Year", 0.02),
    entry("N1 Predefined Instance Ram running in Americas", 0.5, "GiBy.mo"),
    entry("Nvidia Tesla T4 GPU running in Americas", 0.0),
    entry("A2 Instance Core running in Americas", 0.03),
    entry("A2 Instance Ram running in Americas", 0.004, "GiBy.h"),
    entry("Nvidia Tesla A100 GPU running in Americas", 2.9),
]


def asked(
    at_google: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch, entries: list[Any], *types: dict[str, Any]
) -> OfferAnswers:
    """About offers of these types, whose prices are not written."""
    at_google.engine.reset()
    at_google.engine.catalog, at_google.engine.page_size = entries, 5
    for name, value in at_google.account.items():
        monkeypatch.setenv(name, value)
    offers: list[GcpSettings] = [
        gcp_settings(cpu_slots_allowed=None, cpu_slots=None, instance_type=each, price=None) for each in types
    ]
    place = ProviderPlace("gcp", f"{PROJECT}/us-central1", at_google.url)
    return asyncio.run(Gcp(place, "c").ask(offers))


def test_a_machine_costs_what_its_parts_cost(at_google: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its region, on demand and as a spot machine; the catalogue is gone through once, page by page."""
    spot = {**T4, "preemptible": True}
    answers = asked(at_google, monkeypatch, ENTRIES, T4, spot, A100)
    assert dict(answers.problems) == {}
    assert [each.price for each in answers.news] == pytest.approx(
        [8 * 0.03 + 32 * 0.004 + 2 * 0.35, 8 * 0.006 + 32 * 0.001 + 2 * 0.1, 48 * 0.03 + 192 * 0.004 + 4 * 2.9]
    )
    assert {each.price_source for each in answers.news} == {"the catalogue of Cloud Billing"}
    assert at_google.engine.calls.count("cloudbilling.services.skus.list") == 3


def test_nothing_is_guessed(at_google: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a part has no price, or two, and of what is called nobody knows how."""
    for entries, words in (
        (ENTRIES[1:], "has not one price of N1 Predefined Instance Core there: write price"),
        ([*ENTRIES, entry("Nvidia Tesla T4 GPU running in Iowa", 0.36)], "not one price of Nvidia Tesla T4 GPU there"),
        ([*ENTRIES[1:], entry(ENTRIES[0]["description"], 0.03, currency="EUR")], "Instance Core"),
    ):
        answers = asked(at_google, monkeypatch, entries, T4)
        assert [each.price for each in answers.news] == [None]
        [(reason, offers)] = answers.problems.items()
        assert words in reason
        assert len(offers) == 1
    [reason] = asked(at_google, monkeypatch, ENTRIES, {**T4, "gpu_type": "nvidia-new"}).problems
    assert "has names for nvidia-new that are not known here: write price" in reason
    [reason] = asked(at_google, monkeypatch, ENTRIES, {"machine_type": "e2-small", "gpu_num": 0}).problems
    assert "e2-small has a part of a processor" in reason
    [reason] = asked(at_google, monkeypatch, ENTRIES, {**T4, "machine_type": "n1-standard-7"}).problems
    assert "there are no machines of type n1-standard-7" in reason


def test_what_is_refused_is_said_and_renting_goes_on(
    at_google: RentedAtGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the service is off in the project, or does not answer."""
    at_google.engine.reset()
    refusal = Refused(403, "forbidden", "Cloud Billing API has not been used in project 1 before or it is disabled.")
    monkeypatch.setattr(at_google.engine, "reset", lambda: None)
    for error, words in ((refusal, "it is disabled"), (Refused(503, "backendError", "busy"), "busy")):
        at_google.engine.catalog_refusal = error
        answers = asked(at_google, monkeypatch, ENTRIES, T4, A100)
        assert [each.price for each in answers.news] == [None, None]
        [(reason, offers)] = answers.problems.items()
        assert words in reason
        assert len(offers) == 2


@pytest.mark.parametrize("name", ["n1-custom-4-8192", "n1-ultramem-40", "a3-highgpu-8g", "m1-megamem-96"])
def test_what_is_billed_by_other_names_is_not_asked_for(name: str) -> None:
    """Its family's price would be another."""
    settings = gcp_settings(cpu_slots_allowed=None, cpu_slots=None, instance_type={**T4, "machine_type": name})
    assert not settings.may_be_asked
