"""What people see of rented machines without looking for them, pass by pass of the loop that rents."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from tenax.config.master import PoolSettings
from tests.kits.master.scaling import Place, line, master_settings, place, rented, server, use
from tests.kits.object_server import Between

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
