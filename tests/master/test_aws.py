"""Orders of AWS: what is asked for, and what its refusals are."""

from __future__ import annotations

import asyncio
import base64

import pytest

from tenax.lifecycle.offer import RestCause
from tenax.master.provision.aws import Aws, refusal, run_parameters
from tenax.master.provision.port import MachineOrder, ProviderPlace
from tests.kits.rented import ACCOUNT, REGION, moto, provider_settings


def test_a_spot_machine_is_asked_for_at_its_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and ended when it is taken back; moto makes one of it."""
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    settings = provider_settings(spot=True, spot_max_price="2.5", zones=("us-west-2b",))
    order = MachineOrder("m-1", "default", settings, base64.b64encode(b"#!/bin/sh").decode())
    assert run_parameters("cluster", order)["InstanceMarketOptions"] == {
        "MarketType": "spot",
        "SpotOptions": {
            "SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate", "MaxPrice": "2.50000",
        },
    }  # fmt: skip
    with moto() as rented:
        seen = asyncio.run(Aws(ProviderPlace("aws", REGION, rented.url), "cluster").launch(order))
        [machine] = rented.instances()
        assert (seen.zone, machine["InstanceLifecycle"]) == ("us-west-2b", "spot")
        # What powers itself off is not kept, and paid for, as a stopped one.
        rented.lose_power(machine["InstanceId"])
        assert [each["State"]["Name"] for each in rented.instances()] == ["terminated"]
    assert run_parameters("cluster", order)["MetadataOptions"] == {"HttpTokens": "required", "HttpEndpoint": "enabled"}
    hidden = MachineOrder("m-3", "default", provider_settings(tasks_see_metadata=False), "")
    options = run_parameters("cluster", hidden)["MetadataOptions"]
    assert options == {"HttpTokens": "required", "HttpEndpoint": "enabled", "HttpPutResponseHopLimit": 1}
    # What was asked of its price may be an hour old: no more than either limit is offered.
    for limits in ({"max_price": 1.25}, {"max_price": 1.25, "spot_max_price": 2.5}):
        limited = MachineOrder("m-4", "default", provider_settings(spot=True, **limits), "")
        [price] = [run_parameters("cluster", limited)["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"]]  # type: ignore[index]
        assert price == "1.25000"
    on_demand = MachineOrder("m-2", "default", provider_settings(), "")
    assert "InstanceMarketOptions" not in run_parameters("cluster", on_demand)


def test_an_endpoint_is_that_of_machines_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices are not there; on this machine it is a server of all services."""
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    for endpoint, of_prices in (
        ("https://ec2.example.org", "https://api.pricing.us-east-1.amazonaws.com"),
        ("http://127.0.0.1:5", "http://127.0.0.1:5"),
    ):
        aws = Aws(ProviderPlace("aws", REGION, endpoint), "cluster")
        urls = [aws._client(service).meta.endpoint_url for service in ("ec2", "pricing")]  # type: ignore[attr-defined]
        assert urls == [endpoint, of_prices]


@pytest.mark.parametrize(
    ("code", "message", "cause", "words"),
    [
        ("InsufficientInstanceCapacity", "", RestCause.NO_CAPACITY, "has none of that type"),
        ("SpotMaxPriceTooLow", "", RestCause.NO_CAPACITY, "more than spot_max_price"),
        ("VcpuLimitExceeded", "", RestCause.OVER_QUOTA, "Running On-Demand Instances"),
        ("MaxSpotInstanceCountExceeded", "", RestCause.OVER_QUOTA, "All Spot Instance Requests"),
        (
            "UnauthorizedOperation",
            "is not authorized to perform: iam:PassRole on",
            RestCause.NOT_ALLOWED,
            "allow iam:PassRole",
        ),
        (
            "UnauthorizedOperation",
            "Encoded message: x",
            RestCause.NOT_ALLOWED,
            "allow ec2:RunInstances and ec2:CreateTags",
        ),
        ("InvalidAMIID.NotFound", "", RestCause.BAD_ORDER, "image_id is none of that region"),
        ("InvalidParameterValue", "", RestCause.BAD_ORDER, "InvalidParameterValue"),
        ("IdempotentParameterMismatch", "", RestCause.REFUSED, "IdempotentParameterMismatch"),
    ],
)
def test_kinds_of_refusals(code: str, message: str, cause: RestCause, words: str) -> None:
    """By how the code begins: AWS adds to some."""
    found = refusal(code, message)
    assert found.cause is cause
    assert words in found.message
