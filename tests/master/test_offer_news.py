"""What providers say of offers: prices that are kept, and slots that are not written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from structlog.testing import capture_logs

from tenax.config.provider.gcp import AnyProviderSettings
from tenax.lifecycle.offer_facts import ASK_AGAIN_S, AT_LEAST_S, OfferFacts, due_in_s
from tenax.master.loops.loop import PassContext
from tenax.master.loops.offer_news import OfferNews
from tenax.master.provision.aws import Aws
from tenax.master.provision.port import OfferAnswers, Provider, ProviderPlace
from tenax.master.provision.registry import open_provider
from tenax.master.store.database import leases
from tests.kits.master.scaling import EVERYTHING, Place, line, master_settings, place, rented, server, use
from tests.kits.rented import ACCOUNT, REGION, provider_settings
from tests.kits.rented_gcp import gcp_settings

__all__ = ["line", "master_settings", "place", "rented", "server"]

AT_MOTO = pytest.mark.parametrize("server", ["aws"], indirect=True)
G5 = {"instance_type": "g5.12xlarge", "cpu_slots_allowed": False, "instance_slots": -1}


def test_what_was_not_stored_is_asked_again_after_a_while() -> None:
    """Neither at once nor never: an offer of which nothing is kept, and one that was to be asked long ago."""
    late, fresh = OfferFacts(ASK_AGAIN_S + 5), OfferFacts(ASK_AGAIN_S - 200)
    assert due_in_s(["new"], {}) == due_in_s(["late"], {"late": late}) == AT_LEAST_S
    assert due_in_s(["fresh"], {"fresh": fresh, "gone": late}) == 200
    assert due_in_s([], {"gone": late}) is None


class Counted:
    """A provider of which is known how often it was asked, and about what."""

    def __init__(self, provider: Provider, questions: list[list[str]]) -> None:
        self._provider = provider
        self._questions = questions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def ask(self, offers: Sequence[AnyProviderSettings]) -> OfferAnswers:
        self._questions.append([offer.offer_name for offer in offers])
        return await self._provider.ask(offers)


class News:
    """The loop that asks, pass by pass, beside the one that rents."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.questions: list[list[str]] = []
        self.loop = OfferNews([], "", lambda *where: Counted(open_provider(*where), self.questions))

    async def make_pass(self, **changes: Any) -> list[dict[str, Any]]:
        """With these settings of the provider; what it says in the log of what was not answered."""
        use(self.place, **changes)
        [pool] = self.place.loop._pools
        self.place.api.master.apply_settings(self.place.api.master.settings.model_copy(update={"pools": (pool,)}))
        self.loop.use_pools([pool])
        async with self.place.api.master.db.transaction() as conn:
            lease = await leases.acquire(conn, "offer_news", "test", 3600.0)
        assert lease is not None
        with capture_logs() as lines:
            self.due_s = await self.loop.make_pass(PassContext(self.place.api.master.db, lease), EVERYTHING)
        return [dict(each) for each in lines if each["event"].startswith("a provider does not say")]

    async def plan(self) -> dict[str, Any]:
        """What would be done for the pool now."""
        [plan] = (await self.place.api.user.get("/api/v1/machines/plan")).json()["plans"]
        return dict(plan)


@AT_MOTO
async def test_a_price_that_was_asked_is_kept_and_recorded_with_the_machine(place: Place) -> None:
    """With the call and the time; asked again after an hour, and by nobody before."""
    news = News(place)
    assert await news.make_pass(spot=True, max_cost_per_hour=1) == []
    assert await news.make_pass(spot=True, max_cost_per_hour=1) == []
    assert news.questions == [["m5.large (spot) in us-west-2"]]
    assert news.due_s is not None
    assert 3500 < news.due_s <= 3600
    [offer] = (await news.plan())["offers"]
    assert (offer["price"], offer["priceSource"]) == (1e-05, "ASKED")
    assert offer["priceWhere"] == "DescribeSpotPriceHistory"
    await place.waits(2)
    await place.passes(1)
    [machine] = (await place.api.user.get("/api/v1/machines")).json()["machines"]
    assert [machine[name] for name in ("price", "priceSource", "priceWhere")] == [
        offer[name] for name in ("price", "priceSource", "priceWhere")
    ]
    assert machine["pricedAt"] == offer["pricedAt"]
    await place.execute("update offer_facts set asked_at = asked_at - interval '1 hour'")
    await news.make_pass(spot=True, max_cost_per_hour=1)
    assert len(news.questions) == 2
    # Where it is written nobody is asked.
    await news.make_pass(spot=True, price=0.5)
    assert len(news.questions) == 2
    [offer] = (await news.plan())["offers"]
    assert (offer["price"], offer["priceSource"], offer["pricedAt"]) == (0.5, "WRITTEN", None)


@AT_MOTO
async def test_without_an_answer_the_list_holds_and_one_line_says_so(place: Place) -> None:
    """moto has no price list: nothing is made up, and it is not asked again at once."""
    news = News(place)
    several = {**G5, "offers": ({}, {"instance_type": "m5.large", "instance_slots": 2}), "max_cost_per_hour": 50}
    [line] = await news.make_pass(**several)
    assert line["log_level"] == "warning"
    assert line["offers"] == "g5.12xlarge in us-west-2, m5.large in us-west-2"
    assert line["reason"].startswith("GetProducts of the price list: ")
    assert await news.make_pass(**several) == []
    listed, unknown = (await news.plan())["offers"]
    assert (listed["price"], listed["priceSource"], listed["pricedAt"][:10]) == (5.672, "LISTED", "2025-06-05")
    assert listed["priceWhere"].startswith("https://aws.amazon.com/")
    # Default deny: what nobody knows is not rented where a limit counts it.
    assert unknown["price"] is None
    assert unknown["reason"] == "offer m5.large in us-west-2 has no price, which max_cost_per_hour needs"


@AT_MOTO
async def test_a_price_that_is_a_day_old_is_none_any_more(place: Place) -> None:
    """Of a provider that has not said one since; a list's holds then, or none."""
    news = News(place)
    await news.make_pass(spot=True)
    await place.execute("update offer_facts set priced_at = priced_at - interval '23 hours'")
    assert (await news.plan())["offers"][0]["price"] == 1e-05
    await place.execute("update offer_facts set priced_at = priced_at - interval '2 hours'")
    assert (await news.plan())["offers"][0].get("price") is None


@AT_MOTO
async def test_slots_that_are_not_written_are_those_that_the_provider_says(place: Place) -> None:
    """Before it has, nothing of the offer is rented, and the plan says why; its machines have them in their rows."""
    news = News(place)
    use(place, **G5)
    await place.waits(4)
    await place.passes(1)
    assert await place.states() == {}
    await news.make_pass(**G5, price=6.0)
    assert (await news.plan())["slotsPerMachine"] == 4
    await place.passes(2)
    [machine] = (await place.api.user.get("/api/v1/machines")).json()["machines"]
    assert (machine["slots"], machine["price"]) == (4, 6.0)
    assert "--slots 4" in place.rented.user_data(place.rented.running()[0])
    # One without GPUs is none that could be used.
    [line] = await news.make_pass(**{**G5, "instance_type": "m5.large"}, price=6.0)
    assert line["reason"] == "m5.large has no GPU: write another instance_type, or cpu_slots_allowed"
    [offer] = (await news.plan())["offers"]
    assert offer["reason"].startswith("nobody knows how many GPUs a machine of offer m5.large in us-west-2 has")


PRODUCT = {
    "terms": {
        "OnDemand": {
            "X": {
                "priceDimensions": {
                    "Y": {"unit": "Quantity", "pricePerUnit": {"USD": "9"}},
                    "Z": {"unit": "Hrs", "pricePerUnit": {"USD": "5.6720000000"}},
                }
            }
        }
    }
}


def of_price_list(monkeypatch: pytest.MonkeyPatch, answers: Sequence[object], *names: str) -> OfferAnswers:
    """What becomes of answers of the price list, which moto lacks: botocore holds both sides to the service's model."""
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    aws = Aws(ProviderPlace("aws", REGION), "c")
    client = boto3.client("pricing", region_name="us-east-1")
    aws._clients["pricing"] = client
    with Stubber(client) as stubber:
        for answer in answers:
            if isinstance(answer, str):
                stubber.add_client_error("get_products", answer, "no", 400)
            else:
                stubber.add_response("get_products", {"PriceList": answer})
        offers = [provider_settings(instance_type=name) for name in names]
        answers = asyncio.run(aws.ask(offers))
        stubber.assert_no_pending_responses()
    return answers


def test_the_price_list_is_read_by_the_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """The amount of one hour; an empty list is no price."""
    answers = of_price_list(monkeypatch, [[json.dumps(PRODUCT)], []], "g5.12xlarge", "x9.large")
    assert [each.price for each in answers.news] == [5.672, None]
    assert list(answers.problems.values()) == [("x9.large in us-west-2",)]


def test_a_refused_price_list_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lacks the right lacks it for all types."""
    answers = of_price_list(monkeypatch, ["AccessDeniedException"], "g5.12xlarge", "g5.xlarge")
    assert [each.price for each in answers.news] == [None, None]
    [(reason, offers)] = answers.problems.items()
    assert "AccessDeniedException" in reason
    assert offers == ("g5.12xlarge in us-west-2", "g5.xlarge in us-west-2")


def test_googles_list_has_a_day() -> None:
    """Where the catalogue does not say it."""
    t4 = {"machine_type": "n1-standard-32", "gpu_type": "nvidia-tesla-t4", "gpu_num": 4}
    settings = gcp_settings(cpu_slots_allowed=None, cpu_slots=None, instance_type=t4)
    assert settings.list_price is not None
    assert (settings.list_price.amount, str(settings.list_price.day)) == (2.919992, "2025-06-05")
