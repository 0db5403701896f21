"""Rented machines over the API: what would be done, and why."""

from __future__ import annotations

from typing import Any

import pytest

from tenax.config.master import MasterSettings, PoolSettings
from tenax.lifecycle.machine import MachineEvent
from tenax.lifecycle.offer_facts import OfferPrice, PriceSource
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import NewMachine
from tests.kits.api import Api
from tests.kits.master.experiments import CONFIG, create
from tests.kits.rented import provider_settings
from tests.kits.rows import add_trial, request_attempt


@pytest.fixture
def master_settings(master_settings: MasterSettings) -> MasterSettings:
    """Machines of two slots for the usual pool, and a pool of one's own."""
    pools = (PoolSettings(name="default", provider=provider_settings()), PoolSettings(name="own"))
    return master_settings.model_copy(update={"pools": pools})


async def test_the_plan_says_what_would_be_rented_and_why(api: Api) -> None:
    """Of a trial that no agent has room for."""
    experiment: Any = (await create(api))["experiment"]
    async with api.master.db.transaction() as conn:
        await request_attempt(conn, await add_trial(conn, experiment["id"]))
    [plan] = (await api.user.get("/api/v1/machines/plan")).json()["plans"]
    assert (plan["resourcePool"], plan["offer"]) == ("default", "m5.large in us-west-2")
    assert (plan["machines"], plan["launch"], plan["maxInstances"]) == (0, 1, 5)
    assert [each["reason"] for each in plan["waiting"]] == [
        "waits for a machine: m5.large in us-west-2, which is being asked for"
    ]


SEARCH = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 2").replace("max_trials: 8", "max_trials: 3")


async def plan_of(api: Api, config: str, **more: object) -> dict[str, Any]:
    """What would be rented for it."""
    answer = await api.user.post("/api/v1/machines/plan", {"config": config, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_the_plan_of_what_is_not_submitted_is_that_of_what_is(api: Api) -> None:
    """Per trial and machine, with prices; nothing is made, and submitted it comes to the same."""
    use_price = provider_settings(price=1.5, max_instances=2)
    api.master.apply_settings(
        api.master.settings.model_copy(update={"pools": (PoolSettings(name="default", provider=use_price),)})
    )
    planned = await plan_of(api, SEARCH)
    [offer] = planned["offers"]
    assert (offer["launch"], offer["more"], offer["price"], planned["costPerHour"]) == (2, 2, 1.5, 3.0)
    assert [(each["name"], each["offer"], each["starts"]) for each in planned["requests"]] == [
        ("trial 1 of this", "m5.large in us-west-2", False),
        ("trial 2 of this", "m5.large in us-west-2", False),
        ("trial 3 of this", "", False),
    ]
    assert "max_instances is 2" in planned["requests"][2]["reason"]
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from experiments") == 0
        assert await machines.all_of(conn) == []
    # What waits already has the machines, and is not laid to it.
    experiment: Any = (await create(api, SEARCH))["experiment"]
    async with api.master.db.transaction() as conn:
        await request_attempt(conn, await add_trial(conn, experiment["id"]), 2)
    [plan] = (await api.user.get("/api/v1/machines/plan")).json()["plans"]
    assert plan["launch"] == 1
    again = await plan_of(api, SEARCH)
    assert ([each["launch"] for each in again["offers"]], again["offers"][0]["more"]) == ([2], 1)
    assert again["costPerHour"] == 1.5


async def test_the_plan_of_a_command_that_is_not_submitted(api: Api) -> None:
    """All of its slots on one machine; without a price the sum is unknown."""
    planned = await plan_of(api, "entrypoint: [sleep, '1']\nresources: {slots: 2}\n", isCommand=True)
    assert [(each["slots"], each["offer"]) for each in planned["requests"]] == [(2, "m5.large in us-west-2")]
    assert (planned["offers"][0]["more"], planned["costPerHour"]) == (1, None)


async def test_a_plan_of_what_could_not_be_submitted_is_refused_alike(api: Api) -> None:
    """With all that is wrong; and where nothing is rented that is said."""
    for config, words in (
        ("searcher: {name: nope}", "searcher"),
        ("", "no configuration was given"),
        (CONFIG.replace("resources: {", "resources: {resource_pool: own, "), "its settings have no provider"),
    ):
        refused = await api.user.post("/api/v1/machines/plan", {"config": config})
        assert refused.status_code == 400
        assert words in refused.text


async def test_machines_are_listed_and_described(api: Api) -> None:
    """Those that are gone only where they are asked for."""
    async with api.master.db.transaction() as conn:
        for name in ("m-1", "m-2"):
            place = "default", "aws", "us-west-2", "", "m5.large"
            await machines.plan(conn, [NewMachine(name, *place, 2, ("1.a.1",), name.encode() * 8, "rented for 1.a.1")])
        row = await machines.get(conn, "m-1")
        await machines.happen(conn, row, MachineEvent.WITHDRAW, "nobody needs it")
    listed = (await api.user.get("/api/v1/machines")).json()["machines"]
    assert [(each["id"], each["state"], each["wantedBy"]) for each in listed] == [("m-2", "PLANNED", ["1.a.1"])]
    both = (await api.user.get("/api/v1/machines", showEnded=True, resourcePool="default")).json()["machines"]
    assert {each["id"] for each in both} == {"m-1", "m-2"}
    assert (await api.user.get("/api/v1/machines", resourcePool="own")).json()["machines"] == []
    shown = (await api.user.get("/api/v1/machines/m-1")).json()["machine"]
    assert (shown["state"], shown["story"]) == ("FAILED", "nobody needs it")
    assert (await api.user.get("/api/v1/machines/m-3")).status_code == 404
    assert (await api.user.get("/api/v1/machines/plan")).json()["plans"][0]["machines"] == 1


async def test_a_machine_costs_from_when_it_is_there_until_it_has_ended(api: Api) -> None:
    """By its price; before it is there nobody pays for it."""
    place = "default", "aws", "us-west-2", "", "m5.large"
    why = (), b"m-1" * 8, "min_instances asks for it", "m5.large in us-west-2"
    price = OfferPrice(2.0, PriceSource.WRITTEN)
    async with api.master.db.transaction() as conn:
        await machines.plan(conn, [NewMachine("m-1", *place, 2, *why, price)])
        row = await machines.send(conn, await machines.get(conn, "m-1"))
    shown = (await api.user.get("/api/v1/machines/m-1")).json()["machine"]
    assert (shown["price"], shown.get("hours"), shown.get("cost")) == (2.0, None, None)
    async with api.master.db.transaction() as conn:
        await machines.happen(conn, row, MachineEvent.ANSWERED, "", "i-1")
        await conn.execute("update machines set rented_at = now() - interval '90 minutes'")
        row = await machines.get(conn, "m-1")
        await machines.happen(conn, row, MachineEvent.STOPPED, "it was ended")
        await conn.execute("update machines set rented_at = ended_at - interval '90 minutes'")
    shown = (await api.user.get("/api/v1/machines/m-1")).json()["machine"]
    assert (shown["hours"], shown["cost"]) == (1.5, 3.0)


async def test_what_could_be_rented_counts_for_what_could_ever_run(api: Api) -> None:
    """Ten slots on five machines; more can never run, and is refused with the arithmetic."""
    await create(api, CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 10"))
    refused = await api.user.post("/api/v1/experiments", {"config": CONFIG.replace("trial: 1", "trial: 11")})
    assert refused.status_code == 400
    assert "pool default has 10 slots on 5 agents, counting 5 machines that could be rented" in refused.text


async def test_a_pool_without_a_provider_is_named(api: Api) -> None:
    """What is not there is 404, and where nothing is rented that is said."""
    assert (await api.user.get("/api/v1/machines/plan", resourcePool="nowhere")).status_code == 404
    refused = await api.user.get("/api/v1/machines/plan", resourcePool="own")
    assert refused.status_code == 400
    assert "its settings have no provider" in refused.text


async def test_pools_say_what_is_rented_for_them(api: Api) -> None:
    """As Determined's client reads it; a pool of one's own machines says that it is one."""
    pools = {each["name"]: each for each in (await api.user.get("/api/v1/resource-pools")).json()["resourcePools"]}
    rented, own = pools["default"], pools["own"]
    assert (rented["type"], rented["location"], rented["instanceType"]) == (
        "RESOURCE_POOL_TYPE_AWS",
        "us-west-2",
        "m5.large",
    )
    assert (rented["minAgents"], rented["maxAgents"]) == (0, 5)
    assert (own["type"], own["location"], own["maxAgents"]) == ("RESOURCE_POOL_TYPE_STATIC", "on-prem", 0)
