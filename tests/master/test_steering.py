"""Administrators steer rented machines, over the API and pass by pass, at each provider."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenax.config.master import PoolSettings
from tenax.master.loops.loop import PassContext
from tenax.master.loops.scaling import ScalingLoop
from tenax.master.store.agents import rows as agents
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import NewMachine
from tests.kits.api import Api
from tests.kits.master.experiments import create
from tests.kits.master.scaling import Place, line, master_settings, place, rented, server, use
from tests.kits.object_server import BROKEN, Between
from tests.kits.rented import provider_settings
from tests.kits.rows import add_trial, end_member, run_attempt

__all__ = ["line", "master_settings", "place", "rented", "server"]

END, LAUNCH = "/api/v1/machines/end", "/api/v1/machines/launch"
AUDIT, END_STRAYS = "/api/v1/machines/audit", "/api/v1/machines/audit/end"


async def at_work(place: Place) -> tuple[str, Any]:
    """A machine that works, and what runs there; its id."""
    name = await place.rented_one()
    await place.join(place.rented.running()[0])
    await place.passes(2)
    async with place.api.master.db.transaction() as conn:
        await conn.execute("update allocations set state = 'TERMINATED', ended_at = now()")
        experiment: Any = (await create(place.api))["experiment"]
        attempt = await run_attempt(conn, await add_trial(conn, experiment["id"], 2), (name,))
        await conn.execute("update allocations set ready_at = now() where allocation_id = $1", attempt.allocation_id)
    return name, attempt


async def end(api: Api, *names: str, now: bool = False) -> Any:
    """As an administrator asks for it; what is answered."""
    reply = await api.admin.post(END, {"machineIds": list(names), "now": now})
    assert reply.status_code == 200, reply.text
    return reply.json()["machines"]


async def refused(api: Api, *names: str, now: bool = False, status: int = 400) -> str:
    """The words of a refusal."""
    reply = await api.admin.post(END, {"machineIds": list(names), "now": now})
    assert reply.status_code == status, reply.text
    return str(reply.json()["error"]["error"])


async def asked_to_leave(place: Place) -> list[tuple[str, float]]:
    """Why attempts were asked to leave, and in how many seconds they are to have left."""
    async with place.api.master.db.connection() as conn:
        rows = await conn.fetch(
            "select preemption_reason, extract(epoch from preemption_deadline - now())::float8 as left_s"
            " from allocations where preemption <> 'NONE' and state <> 'TERMINATED'"
        )
    return [(row["preemption_reason"], row["left_s"]) for row in rows]


async def gone(place: Place) -> dict[str, str]:
    """The states once its agent is away and looks have shown what has ended."""
    await place.execute("update agent_presence set connected = false")
    await place.passes(6)
    return await place.states()


async def work_leaves(place: Place, attempt: str) -> None:
    """It has saved, and its experiment is paused."""
    async with place.api.master.db.transaction() as conn:
        await end_member(conn, attempt, 0, "it saved and left")
        await conn.execute("update containers set gone_at = now()")
        await conn.execute("update allocations set state = 'TERMINATED', ended_at = now()")
        await conn.execute("update experiments set state = 'PAUSED'")


async def test_a_machine_that_is_to_end_lets_its_work_leave_first(place: Place) -> None:
    """It takes nothing new at once; what runs there is asked as at a preemption; the reason says who asked."""
    name, attempt = await at_work(place)
    [shown] = await end(place.api, name)
    assert (shown["id"], shown["story"]) == (name, "ended by admin")
    async with place.api.master.db.connection() as conn:
        assert await conn.fetchval("select state from agents") == "DRAINING"
    await place.passes(2)
    assert (await place.states())[name] == "LEAVING"
    [(why, left_s)] = await asked_to_leave(place)
    assert why == "ended by admin"
    assert 3000 < left_s <= 3600
    assert len(place.rented.running()) == 1
    await work_leaves(place, attempt)
    await place.passes(2)
    assert place.rented.running() == []
    assert await gone(place) == {name: "GONE"}
    assert (await place.api.user.get(f"/api/v1/machines/{name}")).json()["machine"]["story"] == "ended by admin"


async def test_to_end_at_once_its_work_ends_at_once(place: Place) -> None:
    """Also where it was asked to save before; a machine whose agent is away is not waited for."""
    name, _ = await at_work(place)
    await end(place.api, name)
    await place.passes(2)
    await end(place.api, name, now=True)
    [(_, left_s)] = await asked_to_leave(place)
    assert left_s <= 0
    await place.passes(2)
    assert (await place.states())[name] == "LEAVING"
    await place.execute("update agent_presence set connected = false")
    await place.passes(2)
    assert place.rented.running() == []
    shown = (await place.api.user.get(f"/api/v1/machines/{name}")).json()["machine"]
    assert (shown["state"], shown["story"]) == ("ENDING", "ended by admin at once")


async def test_a_machine_is_let_go_before_its_time_is_over(place: Place) -> None:
    """Its work is asked to save ten minutes before, and ends when it is over; who enables its agent changes nothing."""
    name, _ = await at_work(place)
    use(place, max_run=3600.0)
    await place.later(2900)
    await place.passes(3)
    assert (await place.states())[name] == "JOINED"
    await place.later(150)
    await place.passes(3)
    assert (await place.states())[name] == "LEAVING"
    [(why, left_s)] = await asked_to_leave(place)
    assert (why, left_s > 0) == ("its time is nearly over (max_run is 3600 s)", True)
    async with place.api.master.db.transaction() as conn:
        await agents.set_state(conn, name, "ENABLED", "")
    await place.passes(4)
    assert (await place.states())[name] == "LEAVING"
    await place.later(600)
    await place.passes(2)
    [(_, left_s)] = await asked_to_leave(place)
    assert left_s <= 0
    await place.execute("update agent_presence set connected = false")
    await place.passes(2)
    assert place.rented.running() == []
    shown = (await place.api.user.get(f"/api/v1/machines/{name}")).json()["machine"]
    assert (shown["state"], shown["story"]) == ("ENDING", "its time is over (max_run is 3600 s)")


async def test_a_machine_that_starts_ends_before_its_agent_joins(place: Place) -> None:
    """Its offer does not rest for that, so that another one is rented for what waits."""
    name = await place.rented_one()
    await end(place.api, name)
    await place.passes(3)
    states = await place.states()
    assert states.pop(name) in ("ENDING", "GONE")
    assert list(states.values()) == ["STARTING"]
    async with place.api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from offer_rests") == 0


async def test_a_machine_whose_answer_was_lost_ends_once_it_is_seen(place: Place, line: Between) -> None:
    """It was made, and nobody knows what it is called there."""
    await place.waits()
    line.fault = lambda method, path: BROKEN if method == "POST" else None
    await place.passes(1)
    [name] = await place.states()
    await end(place.api, name)
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    line.fault = lambda method, path: None
    await place.passes(6)
    assert place.rented.running() == []
    assert await gone(place) == {name: "GONE"}


async def test_a_machine_that_was_never_made_is_withdrawn(place: Place, line: Between) -> None:
    """It is sent no more, and its story says who asked."""
    await place.waits()
    line.fault = lambda method, path: "gone"
    await place.passes(1)
    [name] = await place.states()
    await end(place.api, name)
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    line.fault = lambda method, path: None
    await place.later(1000)
    await place.passes(4)
    assert await place.states() == {name: "FAILED"}
    assert (await place.api.user.get(f"/api/v1/machines/{name}")).json()["machine"]["story"] == "ended by admin"
    assert place.rented.running() == []


async def test_whoever_enables_its_agent_takes_it_back(place: Place) -> None:
    """It works on, and may be asked to end again."""
    name, _ = await at_work(place)
    await end(place.api, name)
    await place.passes(2)
    assert (await place.api.admin.post(f"/api/v1/agents/{name}/enable")).status_code == 200
    await place.passes(3)
    assert await place.states() == {name: "JOINED"}
    await end(place.api, name)
    await place.passes(2)
    assert await place.states() == {name: "LEAVING"}


@pytest.mark.parametrize("point", range(1, 9))
async def test_killed_at_any_point_its_work_is_asked_and_it_ends(place: Place, point: int) -> None:
    """A new master does the rest."""
    name, attempt = await at_work(place)
    await end(place.api, name)
    place.point.left = point
    await place.passes(4)
    assert [why for why, _ in await asked_to_leave(place)] == ["ended by admin"]
    await work_leaves(place, attempt)
    await place.passes(4)
    await place.later(31)
    assert await gone(place) == {name: "GONE"}
    assert place.point.left <= 0, "it was never there"


async def test_what_cannot_end_is_refused_and_nothing_changes(place: Place) -> None:
    """Of several all, or none."""
    name, attempt = await at_work(place)
    assert "m-nobody" in await refused(place.api, name, "m-nobody", status=404)
    assert (await place.api.user.post(END, {"machineIds": [name]})).status_code == 403
    assert (await place.api.nobody.post(END, {"machineIds": [name]})).status_code == 401
    assert "1 to 100, not 0" in await refused(place.api)
    assert "1 to 100, not 101" in await refused(place.api, *(f"m-{number}" for number in range(101)))
    await place.passes(2)
    assert await place.states() == {name: "JOINED"}
    assert await asked_to_leave(place) == []
    await end(place.api, name, name)
    assert "is asked to end already: ended by admin; to end its work at once" in await refused(place.api, name)
    await end(place.api, name, now=True)
    assert await refused(place.api, name) == f"machine {name} is asked to end already: ended by admin at once"
    await place.execute("update agent_presence set connected = false")
    await place.passes(2)
    assert "is ending already: ended by admin at once" in await refused(place.api, name, now=True)
    async with place.api.master.db.transaction() as conn:
        await end_member(conn, attempt, 0, "it was ended")
    await gone(place)
    assert "has ended (GONE) already" in await refused(place.api, name)


async def test_a_machine_whose_agent_was_removed_can_end(place: Place) -> None:
    """Nobody is left to be asked."""
    name = await place.rented_one()
    await place.join(place.rented.running()[0])
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    await place.execute("update agent_presence set connected = false, last_seen_at = now() - interval '1 hour'")
    async with place.api.master.db.transaction() as conn:
        await agents.remove(conn, name)
    await end(place.api, name, now=True)
    await place.passes(4)
    assert place.rented.running() == []


async def launch(api: Api, **body: object) -> Any:
    """As an administrator asks for it, for the usual pool; what is answered."""
    return await api.admin.post(LAUNCH, {"resourcePool": "default", **body})


async def test_a_machine_that_is_rented_by_hand_lives_as_any_other(place: Place) -> None:
    """It is made, joins, and is ended when it was idle for long enough; why it is there says who asked."""
    reply = await launch(place.api)
    assert reply.status_code == 200, reply.text
    [machine] = reply.json()["machines"]
    assert (machine["state"], machine["story"]) == ("PLANNED", "rented by admin")
    await place.passes(2)
    [instance] = place.rented.running()
    assert await place.join(instance) == machine["id"]
    await place.passes(2)
    assert await place.states() == {machine["id"]: "JOINED"}
    await place.later(59)
    await place.passes(2)
    assert await place.states() == {machine["id"]: "JOINED"}
    await place.later(2)
    await place.passes(2)
    assert place.rented.running() == []
    assert await gone(place) == {machine["id"]: "GONE"}


async def test_by_hand_nothing_is_rented_beyond_the_limits(place: Place) -> None:
    """All or none; what is ending counts; work that waits gets what was rented by hand."""
    reply = await launch(place.api, count=3)
    assert reply.status_code == 400
    assert "with 3 more they would be more than max_instances, which is 2" in reply.text
    assert await place.states() == {}
    assert (await launch(place.api)).status_code == 200
    await place.waits()
    await place.passes(2)
    [name] = await place.states()
    await end(place.api, name)
    await place.passes(1)
    assert (await launch(place.api, count=2)).status_code == 400
    assert (await launch(place.api, resourcePool="nowhere")).status_code == 404
    assert "name the pool" in (await launch(place.api, resourcePool="")).text
    for count in (0, -1, 101, 10**30):
        assert "1 to 100" in (await launch(place.api, count=count)).text
    assert "the offers are " in (await launch(place.api, offer="nothing")).text
    assert (await place.api.user.post(LAUNCH, {"resourcePool": "default"})).status_code == 403
    assert len(await place.states()) <= 2


async def test_rented_by_hand_and_by_the_loop_at_once_they_are_not_more_than_there_may_be(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was rented between the loop's look and its rows makes it decide again."""
    for _ in range(4):
        await place.waits(2)
    load = ScalingLoop._load

    async def overtaken(loop: ScalingLoop, context: PassContext) -> Any:
        loaded = await load(loop, context)
        if not loaded.rows:
            assert (await launch(place.api)).status_code == 200
        return loaded

    monkeypatch.setattr(ScalingLoop, "_load", overtaken)
    await place.passes(1)
    assert len(await place.states()) == 1
    await place.passes(2)
    assert len(await place.states()) == 2
    assert len(place.rented.running()) == 2


_WAITS = """select exists (select 1 from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database()))"""


async def test_of_two_who_rent_at_once_the_second_counts_what_the_first_has_rented(place: Place) -> None:
    """It waits for the first one's rows."""
    where = "default", "aws", "us-west-2", "", "m5.large", 2, ()
    async with place.api.master.db.transaction() as conn:
        await machines.hold_pool(conn, "default")
        second = asyncio.create_task(launch(place.api))
        while not second.done() and not await conn.fetchval(_WAITS):
            await asyncio.wait({second}, timeout=0.01)
        await machines.plan(conn, [NewMachine(f"m-{it}", *where, str(it).encode() * 32, "") for it in range(2)])
    assert "there are 2" in (await second).text


async def test_by_hand_nothing_is_rented_once_a_budget_is_used_up(place: Place) -> None:
    """It names the budget."""
    [pool] = place.api.master.settings.pools
    assert pool.provider is not None
    provider = place.rented.settings(endpoint_url=pool.provider.endpoint_url, price=2.0, budget_per_month=10.0)
    pools = (PoolSettings(name="default", provider=provider),)
    place.api.master.settings = place.api.master.settings.model_copy(update={"pools": pools})
    assert (await launch(place.api)).status_code == 200
    await place.execute(
        "update machines set price = 1e9, rented_at = date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'"
    )
    reply = await launch(place.api)
    assert reply.status_code == 400
    assert "no machine is rented: the budget of pool default of 10 for " in reply.text


async def audit(api: Api) -> dict[str, Any]:
    """What an administrator is shown, by the provider's name for it."""
    reply = await api.admin.get(AUDIT)
    assert reply.status_code == 200, reply.text
    assert reply.json()["unanswered"] == []
    return {each["providerId"]: each for each in reply.json()["machines"]}


def stray_of(shown: Any) -> dict[str, Any]:
    """As it is named where it is to end."""
    return {name: shown[name] for name in ("provider", "region", "providerId")}


async def test_an_audit_shows_what_has_a_row_and_what_has_none(place: Place) -> None:
    """Beside each other, with why; what is another cluster's is not shown, and nothing is changed."""
    name = await place.rented_one()
    [instance] = place.rented.running()
    marks = {"tenax-cluster": str(place.api.master.cluster.cluster_id), "tenax-pool": "default"}
    marked = place.rented.launch({**marks, "tenax-machine": "m-" + "0" * 20})
    unmarked = place.rented.launch(marks)
    place.rented.launch({"tenax-cluster": "another"})
    shown = await audit(place.api)
    assert set(shown) == {instance, marked, unmarked}
    assert (shown[instance]["machineId"], shown[instance]["state"], shown[instance]["stray"]) == (
        name,
        "STARTING",
        False,
    )
    assert shown[instance]["why"].startswith("rented for ")
    assert shown[marked]["stray"]
    assert "no row of m-00000000000000000000" in shown[marked]["why"]
    assert "no mark of the machine" in shown[unmarked]["why"]
    assert [each["stray"] for each in (await place.api.admin.get(AUDIT)).json()["machines"]] == [True, True, False]
    assert await place.states() == {name: "STARTING"}
    place.rented.terminate(instance)
    after = (await audit(place.api)).get(instance, {})
    assert after.get("sighting") in ("ENDED", "MISSING")


async def test_what_has_no_row_is_ended_by_a_row_that_says_who_asked(place: Place) -> None:
    """At once, and without being asked what it holds; the rest is what the loop does with any that ends."""
    marks = {"tenax-cluster": str(place.api.master.cluster.cluster_id), "tenax-pool": "default"}
    instance = place.rented.launch({**marks, "tenax-machine": "m-" + "0" * 20})
    other = place.rented.launch(marks)
    named = stray_of((await audit(place.api))[instance])
    reply = await place.api.admin.post(END_STRAYS, {"machines": [named, named]})
    assert reply.status_code == 200, reply.text
    [row] = reply.json()["machines"]
    assert (row["state"], row["providerId"]) == ("ENDING", instance)
    assert row["story"] == "it carries the mark of this cluster and had no row: ended by admin"
    shown = await audit(place.api)
    assert (shown[instance]["stray"], shown[instance]["state"]) == (False, "ENDING")
    assert shown[other]["stray"]
    await place.passes(1)
    assert place.rented.running() == [other]


async def test_what_is_none_without_a_row_is_not_ended_by_an_audit(place: Place) -> None:
    """Of several all, or none."""
    name = await place.rented_one()
    [instance] = place.rented.running()
    marks = {"tenax-cluster": str(place.api.master.cluster.cluster_id)}
    stray = place.rented.launch(marks)
    foreign = place.rented.launch({"tenax-cluster": "another"})
    shown = await audit(place.api)
    mine, theirs = stray_of(shown[stray]), {**stray_of(shown[stray]), "providerId": foreign}
    known = stray_of(shown[instance])
    for named, status, text in (
        ([], 400, "1 to 100, not 0"),
        ([mine, known], 400, f"tenax machine end {name}"),
        ([mine, theirs], 404, "with the mark of this cluster not found"),
        ([mine, {**mine, "region": "nowhere"}], 404, "not found at"),
    ):
        reply = await place.api.admin.post(END_STRAYS, {"machines": named})
        assert (reply.status_code, text in reply.text) == (status, True), reply.text
    assert (await audit(place.api))[stray]["stray"]
    assert (await place.api.admin.post(END_STRAYS, {"machines": [mine] * 101})).status_code == 200
    assert "tenax machine end m-" in (await place.api.admin.post(END_STRAYS, {"machines": [mine]})).text
    for method, path in (("GET", AUDIT), ("POST", END_STRAYS)):
        body = {"machines": [mine]} if method == "POST" else None
        assert (await place.api.user.ask(method, path, body)).status_code == 403
    assert set(place.rented.running()) == {instance, stray, foreign}


async def test_a_place_that_does_not_answer_is_named(place: Place, line: Between) -> None:
    """Nothing is known to have no row there, and nothing is ended."""
    line.fault = lambda method, path: "gone"
    reply = await place.api.admin.get(AUDIT)
    assert reply.status_code == 200
    assert reply.json()["machines"] == []
    [away] = reply.json()["unanswered"]
    assert away["reason"]
    named = {"provider": away["provider"], "region": away["region"], "providerId": "i-1"}
    assert (await place.api.admin.post(END_STRAYS, {"machines": [named]})).status_code == 503


async def test_a_place_that_cannot_be_asked_at_all_keeps_no_other_from_being_shown(place: Place) -> None:
    """An address of which nothing can be made, and a region that is none."""
    [pool] = place.api.master.settings.pools
    wrong = provider_settings(endpoint_url="http://no..place", master_url="http://master.example.org")
    there = PoolSettings(name="wrong", provider=wrong)
    place.api.master.settings = place.api.master.settings.model_copy(update={"pools": (pool, there)})
    stray = place.rented.launch({"tenax-cluster": str(place.api.master.cluster.cluster_id)})
    shown = (await place.api.admin.get(AUDIT)).json()
    assert [each["providerId"] for each in shown["machines"]] == [stray]
    [away] = shown["unanswered"]
    assert away["reason"]
