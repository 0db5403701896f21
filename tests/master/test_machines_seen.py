"""What people see of rented machines without looking for them, pass by pass of the loop that rents."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from tenax.config.master import PoolSettings
from tenax.master.observability import counters
from tests.kits.master.scaling import NO_CAPACITY, Place, line, master_settings, place, refusing, rented, server, use
from tests.kits.object_server import BROKEN, Between

__all__ = ["line", "master_settings", "place", "rented", "server"]

pytestmark = pytest.mark.parametrize("server", ["aws"], indirect=True)


def use_everywhere(place: Place, **changes: Any) -> None:
    """Other settings of the provider, for the loop and for requests."""
    use(place, **changes)
    master = place.api.master
    master.settings = master.settings.model_copy(update={"pools": place.loop._pools})


async def reason_of(place: Place) -> str:
    """Of what waits, as the plan has it."""
    [plan] = (await place.api.user.get("/api/v1/machines/plan")).json()["plans"]
    [waiting] = plan["waiting"]
    assert plan["advises"] is True
    assert plan["launch"] == 1
    return str(waiting["reason"])


async def test_where_it_is_only_said_nothing_is_rented_or_ended_but_by_hand(place: Place) -> None:
    """Neither for what waits, nor of what is idle, above a budget, or has no row; people rent and end as anywhere."""
    use_everywhere(place, scaling="advise", max_idle_agent_period=60.0, price=1.0)
    stray = place.rented.launch({"tenax-cluster": str(place.api.master.cluster.cluster_id), "tenax-pool": "default"})
    await place.waits()
    with capture_logs() as lines:
        await place.passes(4)
    assert place.rented.running() == [stray]
    assert await place.states() == {}
    logged = [each for each in lines if each["log_level"] in ("info", "error")]
    assert [each["event"].split(",")[0] for each in logged] == [
        "a machine has no row",
        "machines would be rented or ended",
    ]
    assert logged[1]["advice"].startswith("rent 1 of m5.large in us-west-2 for ")
    assert "one of m5.large in us-west-2 would be, and with scaling: advise people rent them" in await reason_of(place)
    place.rented.terminate(stray)
    # By hand.
    reply = await place.api.admin.post("/api/v1/machines/launch", {"resourcePool": "default"})
    assert reply.status_code == 200, reply.text
    await place.passes(2)
    [instance] = place.rented.running()
    name = await place.join(instance)
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    await place.later(120)
    with capture_logs() as lines:
        await place.passes(2)
    assert [each["advice"] for each in lines if "advice" in each] == [
        f"end {name}: idle for 60 s (max_idle_agent_period)"
    ]
    # What it holds of the budget stops nothing, nor do other settings of the place.
    await place.execute("update machines set rented_at = now() - interval '1 hour', price = 100")
    use_everywhere(place, scaling="advise", price=1.0, budget_per_month=1.0, budget_stops=True, region="us-east-1")
    await place.passes(2)
    assert await place.states() == {name: "JOINED"}
    reply = await place.api.admin.post("/api/v1/machines/end", {"machineIds": [name]})
    assert reply.status_code == 200, reply.text
    await place.execute("update agent_presence set connected = false")
    await place.passes(6)
    assert await place.states() == {name: "GONE"}
    assert place.rented.running() == []


async def test_what_is_rented_again_goes_on_from_what_was_said(place: Place) -> None:
    """Once the setting is gone, what waits has its machine."""
    use(place, scaling="advise", min_instances=1)
    await place.passes(2)
    assert place.rented.running() == []
    use(place, min_instances=1)
    await place.passes(2)
    assert len(place.rented.running()) == 1


async def silent_of(place: Place) -> list[Any]:
    """What anybody is told of providers, by a master that is well."""
    reply = await place.api.nobody.get("/health")
    assert (reply.status_code, reply.json()["status"]) == (200, "up")
    silent: list[Any] = reply.json()["silent_providers"]
    return silent


async def test_a_provider_that_answers_no_more_is_named_until_it_does(place: Place, line: Between) -> None:
    """Since when it was, whichever master looks; nor is one that is not asked any more."""
    use(place, min_instances=1)
    await place.passes(1)
    assert await silent_of(place) == []
    line.fault = lambda method, path: "gone"
    await place.passes(1)
    [silent] = await silent_of(place)
    assert (silent["provider"], silent["region"]) == ("aws", "us-west-2")
    # Another master knows since when, and looks soon again.
    place.loop = place._begun()
    use(place, min_instances=1)
    await place.passes(2)
    assert await silent_of(place) == [silent]
    line.fault = lambda method, path: None
    await place.passes(1)
    assert await silent_of(place) == []
    line.fault = lambda method, path: "gone"
    await place.passes(1)
    assert len(await silent_of(place)) == 1
    await place.execute("update machines set state = 'GONE', ended_at = now()")
    place.loop.use_pools([PoolSettings(name="default")])
    await place.passes(1)
    assert await silent_of(place) == []
    # Whoever has no login learns of no project.
    await place.execute("insert into silent_providers values ('gcp', 'of-somebody/us-central1', '', now(), 'gone')")
    assert [(each["provider"], each["region"]) for each in await silent_of(place)] == [("gcp", "us-central1")]


async def sample(place: Place, name: str, **labels: str) -> float:
    """What Prometheus is told by whoever has a login, of the pool of the test."""
    text = (await place.api.user.get("/prom/det-state-metrics")).text
    [number] = [
        each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if each.name == name and labels.items() <= each.labels.items()
    ]
    return number


async def test_prometheus_knows_what_is_rented_and_what_it_costs(place: Place, line: Between) -> None:
    """By pool, state and provider; how orders went, how long a machine took, and what is left of the budget."""
    use_everywhere(place, price=2.0, budget_per_month=100.0, zones=("us-west-2a", "us-west-2b"))
    # As a master that begins.
    counters.begin_loops(("scaling",), ("default",))
    orders = partial(sample, place, "tenax_machine_orders_total", pool="default")
    begun = [await orders(outcome=each) for each in ("answered", "no_capacity", "unsure", "never_joined")]
    joined = await sample(place, "tenax_machine_join_seconds_count", pool="default")
    seconds = await sample(place, "tenax_machine_join_seconds_sum", pool="default")
    state = partial(sample, place, "tenax_machines", pool="default", provider="aws")
    assert [await state(state=each) for each in ("planned", "starting", "joined")] == [0, 0, 0]
    await place.waits()
    refusing(line, *NO_CAPACITY)
    await place.passes(1)
    line.fault = lambda method, path: BROKEN if method == "POST" else None
    await place.passes(1)
    line.fault = lambda method, path: None
    await place.passes(2)
    offers = partial(sample, place, "tenax_machine_offers", pool="default")
    assert [await offers(state=each) for each in ("usable", "resting", "off")] == [1, 1, 0]
    assert (await state(state="starting"), await state(state="joined")) == (1, 0)
    await place.later(90)
    await place.join(place.rented.running()[0])
    assert (await state(state="starting"), await state(state="joined")) == (0, 1)
    assert await sample(place, "tenax_machine_join_seconds_count", pool="default") == joined + 1
    assert await sample(place, "tenax_machine_join_seconds_sum", pool="default") >= seconds + 90
    begun_at = "date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'"
    await place.execute(
        f"update machines set rented_at = greatest(now() - interval '1 hour', {begun_at}) where ended_at is null"
    )
    money = [f"tenax_machine{each}" for each in ("_price_per_hour", "s_without_price", "_budget")]
    assert [await sample(place, name, pool="default") for name in money] == [2.0, 0.0, 100.0]
    assert 0 < await sample(place, "tenax_machine_spent", pool="default") <= 2.1
    assert await sample(place, "tenax_machine_budget_of_all_pools") == math.inf
    # One that says that its start failed is counted by the master that it says so to; one that had no row is no order.
    await place.execute("update allocations set slots = 2")
    await place.waits()
    await place.passes(2)
    [starting] = [name for name, its in (await place.states()).items() if its == "STARTING"]
    [instance] = [each for each in place.rented.running() if starting in place.rented.user_data(each)]
    body = "\n".join((place.told(instance)[0], starting, "install torch", "failed", "no room")).encode()
    assert (await place.api.nobody.ask("POST", "/agents/machine-step", body)).status_code == 204
    ended = [await orders(outcome=each) for each in ("answered", "no_capacity", "unsure", "never_joined")]
    assert [after - before for before, after in zip(begun, ended, strict=True)] == [2, 1, 1, 1]
