"""Rented machines under an older database, a provider that hangs or hides, and people who meddle."""

from __future__ import annotations

from typing import Any

import pytest

from tenax.config.master import PoolSettings
from tenax.errors import Forbidden, TryAgain
from tenax.master.access.task_tokens import token_hash
from tenax.master.loops import scaling
from tenax.master.store.agents import join_tokens
from tenax.master.store.agents import rows as agents
from tenax.master.store.machines import rows as machines
from tenax.wire.agents import JoinRequest
from tests.kits.api import Api
from tests.kits.master.scaling import Place, line, master_settings, place, rented, server
from tests.kits.object_server import Between
from tests.kits.rented import provider_settings

__all__ = ["line", "master_settings", "place", "rented", "server"]

CONTAINER = "00000000-0000-4000-8000-000000000001"


async def joined(place: Place) -> tuple[str, str]:
    """A machine that has joined: its instance, its id."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    name = await place.join(instance)
    await place.execute("update allocations set state = 'TERMINATED', ended_at = now()")
    return instance, name


async def older_copy(place: Place) -> None:
    """The database is one of before anything was rented."""
    for table in ("agent_slots", "agent_presence", "agents", "machines"):
        await place.execute(f"delete from {table}")
    place.loop = place._begun()


async def seen_missing(place: Place) -> None:
    """More looks than make something missing, however few there usually are."""
    for _ in range(3):
        for sightings in place.loop._sightings.values():
            sightings.at = -1e6
        await place.passes(1)


async def test_a_machine_that_is_newer_than_the_database_is_asked_what_it_holds(place: Place, api: Api) -> None:
    """It joins once more, and stays for as long as something runs there that this database does not know."""
    instance, name = await joined(place)
    await older_copy(place)
    with pytest.raises(TryAgain, match="does not know that machine yet"):
        await place.join(instance)
    await place.passes(3)
    assert await place.states() == {name: "STARTING"}
    assert await place.join(instance, holds=[CONTAINER]) == name
    await place.later(1e5)
    await place.passes(3)
    assert await place.states() == {name: "JOINED"}
    place.loop.use_pools([PoolSettings(name="default")])
    await place.passes(3)
    assert await place.states() == {name: "LEAVING"}
    assert place.rented.running() == [instance]
    async with api.master.db.transaction() as conn:
        await agents.foreign_ended(conn, name, [CONTAINER])
    await place.passes(3)
    assert place.rented.running() == []


async def test_a_newer_machine_that_does_not_answer_is_ended(place: Place) -> None:
    """Once it has had as long as one that starts; whatever its pool is by now."""
    _, name = await joined(place)
    await older_copy(place)
    place.loop.use_pools([PoolSettings(name="default", provider=place.api.master.settings.pools[0].provider)])
    await place.passes(3)
    await place.later(1000)
    await place.passes(2)
    assert await place.states() == {name: "STARTING"}
    await place.later(201)
    await place.passes(2)
    assert place.rented.running() == []


async def test_a_machine_says_what_failed_and_is_ended(place: Place, api: Api) -> None:
    """By its own token alone, and not once that is spent; nothing without end."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    token, name = place.told(instance)

    async def say(*lines: str) -> int:
        return (await api.nobody.ask("POST", "/agents/machine-step", "\n".join(lines).encode())).status_code

    assert await say("wrong", name, "install torch", "begun") == 403
    assert await say(token, "m-2", "install torch", "begun") == 403
    assert await say(token, name, "install torch", "over") == 400
    for _ in range(machines.MAX_STEPS + 5):
        assert await say(token, name, "install torch", "begun") == 204
    assert await say(token, name, "install torch", "failed", f"no room\non / {token}", "x" * 1000) == 204
    assert await say(token, name, "install torch", "begun") == 403
    steps = (await api.user.get(f"/api/v1/machines/{name}/steps")).json()["steps"]
    assert len(steps) == machines.MAX_STEPS
    assert (steps[0]["step"], steps[0]["state"]) == ("install torch", "begun")
    await place.passes(2)
    assert place.rented.running() == []
    async with api.master.db.connection() as conn:
        row = await machines.get(conn, name)
        [rest] = (await machines.of_pools(conn))["default"].rests
    assert row.story.startswith("could not install torch: no room on / ... xxx")
    assert rest.rest.why == row.story


async def test_a_copy_of_a_machine_is_ended(place: Place) -> None:
    """Somebody launched more like this one, tags and all: the machine itself stays."""
    instance, name = await joined(place)
    cluster = str(place.api.master.cluster.cluster_id)
    place.rented.launch({"tenax-cluster": cluster, "tenax-machine": name, "tenax-pool": "default"})
    place.loop = place._begun()
    await place.passes(5)
    assert place.rented.running() == [instance]
    assert (await place.states())[name] == "JOINED"


async def test_a_machine_whose_mark_was_taken_away_works_on(place: Place) -> None:
    """No look shows it any more, and its agent is connected: it is ended when it is idle, by its provider's name."""
    instance, name = await joined(place)
    place.rented.untag(instance)
    await seen_missing(place)
    assert await place.states() == {name: "JOINED"}
    await place.later(60)
    await place.passes(2)
    assert place.rented.running() == []
    await place.execute("update agent_presence set connected = false")
    await place.passes(3)
    assert await place.states() == {name: "GONE"}


async def test_nobody_else_takes_the_id_of_a_machine(place: Place, api: Api) -> None:
    """Ids are shown to all: with a token for any agent the machine itself would be kept out."""
    await place.waits()
    await place.passes(2)
    [instance] = place.rented.running()
    _, name = place.told(instance)
    async with api.master.db.transaction() as conn:
        user = await conn.fetchval("select min(id) from users")
        for token, agent in (("any", None), ("its own", name)):
            await join_tokens.create(
                conn, token_hash(token), user, description="", agent_id=agent, uses=None, seconds=60
            )
    for token, file_token in (("any", None), ("of the file", "of the file")):
        with pytest.raises(Forbidden, match=f"{name} is a rented machine"):
            await api.master.hub.join(JoinRequest(name, token, "default", None), file_token)
    assert await place.join(instance) == name
    # An administrator made that one for the machine that was set up anew.
    await place.execute("update agent_presence set connected = false")
    await api.master.hub.join(JoinRequest(name, "its own", "default", None), None)


async def test_a_provider_that_does_not_answer_costs_a_pass_one_call(place: Place, line: Between) -> None:
    """Of each kind: with a hundred machines the others would wait for hours. What is wrong stands at the machine."""
    await place.waits(2)
    await place.waits(2)
    line.fault = lambda method, path: "gone"
    await place.passes(1)
    assert sorted((await place.states()).values()) == ["ASKED", "PLANNED"]
    assert len(line.requests) == 2
    async with place.api.master.db.connection() as conn:
        stories = [row.story for row in await machines.all_of(conn)]
    assert any("; the provider did not answer the request for it: " in story for story in stories)
    line.fault = lambda method, path: None
    for _ in range(4):
        await place.passes(1)
        await place.later(20)
    assert sorted((await place.states()).values()) == ["STARTING", "STARTING"]
    assert len(place.rented.running()) == 2
    async with place.api.master.db.connection() as conn:
        assert not any("did not answer" in row.story for row in await machines.all_of(conn))


async def test_a_pool_that_cannot_be_decided_for_costs_itself(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one's machines are rented all the same."""
    decide = scaling.decided

    def failing(pool: PoolSettings, *arguments: Any) -> Any:
        if pool.name == "broken":
            raise RuntimeError
        return decide(pool, *arguments)

    monkeypatch.setattr(scaling, "decided", failing)
    provider = place.api.master.settings.pools[0].provider
    place.loop.use_pools(
        [PoolSettings(name="broken", provider=provider), PoolSettings(name="default", provider=provider)]
    )
    await place.waits()
    await place.passes(2)
    assert len(place.rented.running()) == 1


async def test_a_place_that_cannot_be_asked_at_all_costs_itself(place: Place) -> None:
    """An address of which nothing can be made."""
    provider = place.api.master.settings.pools[0].provider
    wrong = provider_settings(endpoint_url="http://no..place", master_url="http://master.example.org")
    place.loop.use_pools([PoolSettings(name="wrong", provider=wrong), PoolSettings(name="default", provider=provider)])
    await place.waits()
    await place.passes(2)
    assert len(place.rented.running()) == 1
