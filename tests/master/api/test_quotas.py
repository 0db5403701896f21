"""Quotas, asked of the real application and of the loop that schedules."""

from __future__ import annotations

import math
from typing import Any

import pytest
from asyncpg import Connection

from tenax.config.master import PoolSettings
from tenax.jsonvalue import JsonObject
from tenax.master.loops.loop import PassContext, Woken
from tenax.master.loops.quota_use import EVERY_S, QuotaUse
from tenax.master.loops.scheduling import Scheduling
from tenax.master.store.database import leases
from tests.kits.api import Api
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.refusals import refusal
from tests.kits.rows import add_agent, add_trial, request_attempt

PATH = "/api/v1/quotas"


async def apply(api: Api, source: str, **more: object) -> JsonObject:
    reply = await api.admin.put(PATH, {"source": source, **more})
    assert reply.status_code == 200, reply.text
    answer: JsonObject = reply.json()
    return answer


async def lines(api: Api) -> dict[str, Any]:
    return {line["name"]: line for line in (await api.user.get(PATH)).json()["lines"]}


async def schedule(api: Api) -> None:
    """One pass, of a loop of its own."""
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "scheduling", "test", 3600.0)
    assert lease is not None
    loop = Scheduling((PoolSettings(name="default"),), b"s" * 32, 60.0)
    await loop.make_pass(PassContext(api.master.db, lease), Woken(frozenset(), full=True))


async def used(conn: Connection, hours_ago: float, hours: float, slots: int = 1, user: int = 2) -> None:
    """Slots that were held for a while, in the first workspace."""
    await conn.execute(
        "insert into usage (container_id, allocation_id, rank, task_id, kind, user_id, username, workspace_id, pool,"
        " agent_id, slots, requested_at, started_at, ended_at)"
        " select gen_random_uuid()::text, 'a', 0, 't', 'TRIAL', $4, 'x', 1, 'default', 'a1', $3, s.at, s.at,"
        " s.at + make_interval(secs => $2::float8 * 3600)"
        " from (select now() - make_interval(secs => $1::float8 * 3600) as at) s",
        hours_ago,
        hours,
        slots,
        user,
    )


async def test_there_are_none_at_first(api: Api) -> None:
    """Said so, and there is nothing to remove."""
    assert (await api.user.get(PATH)).json() == {
        "applied": False, "source": "", "appliedBy": "", "appliedAt": None, "halfLifeHours": None, "notThere": [],
        "lines": [],
    }  # fmt: skip
    assert (await api.admin.delete(PATH)).status_code == 404


async def test_a_file_is_applied_shown_and_removed(api: Api) -> None:
    """As it was written; a dry run says the same and changes nothing."""
    source = "half_life: 2d\nusers: {DETERMINED: {max_slots: 3}}\nworkspaces: {uncategorized: {weight: 2}}\n"
    told = (await apply(api, source, dryRun=True))["changes"]
    assert "determined: at most 3 slots (was: any number of slots)" in told
    assert "the workspace Uncategorized: weight 2 (was: 1)" in told
    assert not (await api.user.get(PATH)).json()["applied"]
    assert (await apply(api, source))["changes"] == told
    shown = (await api.user.get(PATH)).json()
    assert (shown["applied"], shown["source"], shown["appliedBy"], shown["halfLifeHours"]) == (
        True,
        source,
        "admin",
        48,
    )
    assert (await lines(api))["determined"]["maxSlots"] == 3
    assert (await apply(api, source))["changes"] == []
    assert (await api.admin.delete(PATH)).status_code == 200
    assert not (await api.user.get(PATH)).json()["applied"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "users:\n  determind: {}",
            "users.determind (line 2): there is no user 'determind'; did you mean 'determined'",
        ),
        ("groups: {nobody: {}}", "there is no group 'nobody'"),
        ("workspaces: {Uncategorised: {}}", "did you mean 'Uncategorized'?"),
        ("workspaces: {Uncategorized: {users: {zoe: {}}}}", "workspaces.Uncategorized.users.zoe (line 1): there is no"),
        ("users: {determined: {weight: 0}}", "0 is too small"),
        ("users: {", "line 1"),
        ("", "says nothing: to have no quotas, remove them (tenax quota remove)"),
        ('users: {"a\\0b": {}}', "there is no user"),
        (
            "users:\n  determined: {max_slots: 9}\n  DETERMINED: {max_slots: 1}",
            "users.DETERMINED (line 3): 'DETERMINED' is given a second time: upper and lower case are the same user",
        ),
        ("workspaces: {Uncategorized: {users: {determined: {}, Determined: {}}}}", "is given a second time"),
    ],
)
async def test_what_is_wrong_changes_nothing(api: Api, source: str, says: str) -> None:
    """Each with its line and what was probably meant."""
    await apply(api, "users: {determined: {max_slots: 3}}")
    reply = await api.admin.put(PATH, {"source": source})
    assert reply.status_code == 400
    assert says in refusal(reply)
    assert (await lines(api))["determined"]["maxSlots"] == 3


async def test_only_administrators_apply_and_remove_them(api: Api) -> None:
    """Everybody sees what everybody may have."""
    assert (await api.user.put(PATH, {"source": ""})).status_code == 403
    assert (await api.user.delete(PATH)).status_code == 403
    assert (await api.user.get(PATH)).status_code == 200


async def test_a_priority_beyond_the_quota_is_refused_everywhere(api: Api) -> None:
    """When a job is made, changed, moved beside another, or made by a command; the usual one is brought down to it."""
    before = (await create(api))["experiment"]["jobId"]  # type: ignore[index]
    await apply(api, "users: {determined: {priority: 60}}\nworkspaces: {Uncategorized: {priority: 50}}")
    says = "priority 10 is more urgent than the quota of determined allows: give 60 to 99"
    urgent = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, priority: 10")
    reply = await api.user.post("/api/v1/experiments", {"config": urgent})
    assert (reply.status_code, says in refusal(reply)) == (400, True)
    command = {"config": {"entrypoint": ["true"], "resources": {"priority": 10}}}
    reply = await api.user.post("/api/v1/commands", command)
    assert (reply.status_code, says in refusal(reply)) == (400, True)
    made = (await create(api))["experiment"]
    assert isinstance(made, dict)
    jobs = {job["jobId"]: job for job in (await api.user.get("/api/v1/job-queues")).json()["jobs"]}
    assert made["jobId"] not in jobs or jobs[made["jobId"]]["priority"] == 60
    number = made["id"]
    reply = await api.user.patch(f"/api/v1/experiments/{number}", {"resources": {"priority": 10}})
    assert (reply.status_code, says in refusal(reply)) == (400, True)
    for update in ({"priority": 10}, {"aheadOf": before}):
        reply = await api.user.post("/api/v1/job-queues", {"updates": [{"jobId": made["jobId"], **update}]})
        assert reply.status_code == 400
        assert "more urgent than the quota of determined allows" in refusal(reply)
    assert (await api.user.patch(f"/api/v1/experiments/{number}", {"resources": {"priority": 70}})).status_code == 200


async def test_what_everyone_else_may_have_is_a_line_of_its_own(api: Api) -> None:
    """Also for those who have not come yet: a dry run says what changes for them."""
    changes = (await apply(api, "everyone: {max_slots: 24, slot_hours: 0.01}", dryRun=True))["changes"]
    assert "everyone else: at most 24 slots (was: any number of slots)" in changes
    assert "everyone else: at most 0.01 slot hours a month (was: any number of slot hours a month)" in changes
    await apply(api, "everyone: {max_slots: 24}")
    line = (await lines(api))["everyone else"]
    assert (line["kind"], line["maxSlots"]) == ("everyone", 24)
    await apply(api, "users: {determined: {}}")
    assert "everyone else" not in await lines(api)


async def test_a_priority_that_was_brought_down_is_told(api: Api) -> None:
    """Of an experiment, of one that goes on, of a command."""
    await apply(api, "users: {determined: {priority: 60}}")
    says = "its priority is 60, not 42: the quota of determined allows no more urgent one"
    assert says in (await api.user.post("/api/v1/experiments", {"config": CONFIG})).json()["notices"]
    reply = await api.user.post("/api/v1/commands", {"config": {"entrypoint": ["true"]}})
    assert says in reply.json()["notices"]


async def test_quotas_of_a_file_that_is_legal_no_more_are_shown(api: Api) -> None:
    """Those of an older version, which took an empty one."""
    await apply(api, "users: {determined: {max_slots: 3}}")
    async with api.master.db.transaction() as conn:
        await conn.execute("update quotas set source = ''")
    assert (await lines(api))["determined"]["maxSlots"] == 3


async def test_use_of_long_ago_is_added_up(api: Api) -> None:
    """It counts nothing any more; to PostgreSQL an exp of that is an error."""
    async with api.master.db.transaction() as conn:
        await used(conn, 24 * 400, 24 * 400 - 1, slots=2)
    await apply(api, "half_life: 1h")
    line = (await lines(api))["determined in all other workspaces"]
    assert line["recentSlotHours"] == pytest.approx(2 * math.exp(-math.log(2)) / math.log(2), rel=0.01)


async def test_a_workspace_made_for_it_gains_nothing(api: Api) -> None:
    """Those that no quota names are one, in which counts what a person used in all; who waits has a line, too."""
    async with api.master.db.transaction() as conn:
        await used(conn, 1, 1, slots=4)
    made = (await create(api))["experiment"]
    assert isinstance(made, dict)
    await api.admin.post("/api/v1/experiments", {"config": CONFIG})
    await apply(api, "half_life: 7d")
    shown = {name: line for name, line in (await lines(api)).items() if line["kind"] == "association"}
    assert {name: line["turn"] for name, line in shown.items()} == {
        "admin in all other workspaces": 1, "determined in all other workspaces": 2,
    }  # fmt: skip
    assert (await lines(api))["all other workspaces"]["share"] == 1.0
    assert shown["determined in all other workspaces"]["workspaceId"] == 0


async def test_what_is_filed_elsewhere_keeps_to_the_quotas_there(api: Api) -> None:
    """An experiment, a project with all that is in it: not if they are more urgent than is allowed there."""
    target = (await api.admin.post("/api/v1/workspaces", {"name": "calm"})).json()["workspace"]["id"]
    inside = (await api.admin.post(f"/api/v1/workspaces/{target}/projects", {"name": "in"})).json()["project"]["id"]
    source = (await api.admin.post("/api/v1/workspaces", {"name": "out"})).json()["workspace"]["id"]
    outside = (await api.admin.post(f"/api/v1/workspaces/{source}/projects", {"name": "out"})).json()["project"]["id"]
    urgent = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, priority: 10")
    made = (await api.admin.post("/api/v1/experiments", {"config": urgent, "projectId": outside})).json()["experiment"]
    await apply(api, "workspaces: {calm: {priority: 50}}")
    says = f"experiment {made['id']} has priority 10, and there the quota of the workspace calm allows none more urgent"
    reply = await api.admin.post(f"/api/v1/experiments/{made['id']}/move", {"destinationProjectId": inside})
    assert (reply.status_code, says in refusal(reply)) == (400, True)
    reply = await api.admin.post(f"/api/v1/projects/{outside}/move", {"destinationWorkspaceId": target})
    assert (reply.status_code, says in refusal(reply)) == (400, True)
    assert (await api.admin.patch(f"/api/v1/experiments/{made['id']}", {"resources": {"priority": 50}})).is_success
    reply = await api.admin.post(f"/api/v1/projects/{outside}/move", {"destinationWorkspaceId": target})
    assert reply.status_code == 200, reply.text
    # Jobs that are there keep their priority, wherever they are filed in the workspace.
    await apply(api, "workspaces: {calm: {priority: 60}}")
    reply = await api.admin.post(f"/api/v1/experiments/{made['id']}/move", {"destinationProjectId": inside})
    assert reply.status_code == 200, reply.text


async def test_what_runs_counts_where_it_started(api: Api) -> None:
    """For the limits as for what is shown."""
    target = (await api.admin.post("/api/v1/workspaces", {"name": "calm"})).json()["workspace"]["id"]
    inside = (await api.admin.post(f"/api/v1/workspaces/{target}/projects", {"name": "in"})).json()["project"]["id"]
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", slots=4)
    numbers = []
    for _ in range(2):
        reply = await api.admin.post("/api/v1/experiments", {"config": CONFIG})
        numbers.append(reply.json()["experiment"]["id"])
        async with api.master.db.transaction() as conn:
            await request_attempt(conn, await add_trial(conn, numbers[-1]))
    await apply(api, "workspaces: {Uncategorized: {max_slots: 1}, calm: {max_slots: 1}}")
    await schedule(api)
    async with api.master.db.connection() as conn:
        running = await conn.fetchval("select experiment_id from usage where ended_at is null")
    reply = await api.admin.post(f"/api/v1/experiments/{running}/move", {"destinationProjectId": inside})
    assert reply.status_code == 200, reply.text
    await schedule(api)
    async with api.master.db.connection() as conn:
        [row] = await conn.fetch("select reason from allocation_waits")
    assert row["reason"].startswith("waits for the quota of the workspace Uncategorized: 1 slot, of which 1 in use")
    shown = await lines(api)
    assert (shown["the workspace Uncategorized"]["heldSlots"], shown["the workspace calm"]["heldSlots"]) == (1, 0)


async def test_a_fork_takes_over_no_more_than_is_allowed(api: Api) -> None:
    """What it had from its parent, and what goes on, is brought down as what is usual is; a wish of its own is not."""
    urgent = CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 1, priority: 10")
    reply = await api.user.post("/api/v1/experiments", {"config": urgent})
    parent = reply.json()["experiment"]["id"]
    await api.user.post(f"/api/v1/experiments/{parent}/kill")
    await apply(api, "users: {determined: {priority: 60}}")
    says = "its priority is 60, not 10: the quota of determined allows no more urgent one"
    fork = {"config": urgent, "parentId": parent}
    reply = await api.user.post("/api/v1/experiments", fork)
    assert (reply.status_code, says in reply.json().get("notices", [])) == (200, True), reply.text
    reply = await api.user.post("/api/v1/experiments", {**fork, "config": urgent.replace("10", "11")})
    assert (reply.status_code, "priority 11 is more urgent" in refusal(reply)) == (400, True)


async def test_a_job_that_no_quota_lets_start_is_told_so(api: Api) -> None:
    """When it is made, as of a pool that is too small."""
    await apply(api, "users: {determined: {max_slots: 1}}")
    reply = await api.user.post("/api/v1/commands", {"config": {"entrypoint": ["true"], "resources": {"slots": 2}}})
    says = "it can never start as it is: the quota of determined is 1 slot, and this needs 2"
    assert says in reply.json()["notices"], reply.text


async def test_what_was_deleted_since_then_is_named(api: Api) -> None:
    """A group that was made again under its name has no quota, and neither has what has another name by now."""
    made = (await api.admin.post("/api/v1/groups", {"name": "pupils"})).json()["group"]["groupId"]
    await apply(api, "groups: {pupils: {priority: 50}}\nworkspaces: {Uncategorized: {}}")
    assert (await api.user.get(PATH)).json()["notThere"] == []
    assert (await api.admin.delete(f"/api/v1/groups/{made}")).status_code == 200
    await api.admin.post("/api/v1/groups", {"name": "pupils"})
    assert (await api.user.get(PATH)).json()["notThere"] == ["group pupils"]


async def test_use_is_added_up_while_nothing_waits(api: Api) -> None:
    """By a loop of its own, which has what waits looked at again; without quotas it does nothing."""
    loop = QuotaUse()
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, loop.name, "test", 3600.0)
    assert lease is not None
    context, woken = PassContext(api.master.db, lease), Woken(frozenset(), full=True)
    assert await loop.make_pass(context, woken) is None
    await apply(api, "half_life: 7d")
    assert "determined" not in await lines(api)
    async with api.master.db.transaction() as conn:
        await used(conn, 0.001, 0.001, slots=1000)
    pause_s = await loop.make_pass(context, woken)
    assert pause_s is not None
    assert pause_s >= EVERY_S
    assert (await lines(api))["determined"]["usedSlotHours"] == pytest.approx(1.0, rel=0.01)
    async with api.master.db.transaction() as conn:
        await used(conn, 0.001, 0.001, slots=1000)
    pause_s = await loop.make_pass(context, woken)
    assert pause_s is not None
    assert (await lines(api))["determined"]["usedSlotHours"] == pytest.approx(1.0, rel=0.01)


async def test_a_limit_holds_what_would_start(api: Api) -> None:
    """Over two experiments of a person; the reason says whose quota it is; without quotas all starts."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", slots=4)
    names = []
    for _ in range(2):
        made = (await create(api))["experiment"]
        assert isinstance(made, dict)
        async with api.master.db.transaction() as conn:
            names.append(await request_attempt(conn, await add_trial(conn, made["id"])))
    await apply(api, "users: {determined: {max_slots: 1}}")
    await schedule(api)
    async with api.master.db.connection() as conn:
        states = dict(
            await conn.fetch("select allocation_id, state from allocations where allocation_id = any($1)", names)
        )
        reasons = [row["reason"] for row in await conn.fetch("select reason from allocation_waits")]
    assert sorted(states.values()) == ["ASSIGNED", "PENDING"]
    assert reasons == ["waits for the quota of determined: 1 slot, of which 1 in use or promised, and this needs 1"]
    assert (await lines(api))["determined"]["heldSlots"] == 1
    assert (await api.admin.delete(PATH)).status_code == 200
    await schedule(api)
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from allocations where state = 'ASSIGNED'") == 2


async def test_a_month_that_is_used_up_holds_what_would_start(api: Api) -> None:
    """Use is added up from what was held; what lies before this month counts for the turn alone."""
    async with api.master.db.transaction() as conn:
        await used(conn, 24 * 70, 5)
        await used(conn, 0.001, 0.001, slots=1000)
        await add_agent(conn, "a1", slots=4)
    made = (await create(api))["experiment"]
    assert isinstance(made, dict)
    async with api.master.db.transaction() as conn:
        await request_attempt(conn, await add_trial(conn, made["id"]))
    await apply(api, "users: {determined: {slot_hours: 1}}")
    await schedule(api)
    async with api.master.db.connection() as conn:
        [row] = await conn.fetch("select reason from allocation_waits")
    assert row["reason"] == (
        "waits for the next month: by the quota of determined, 1 of 1 slot hours of this month are used"
    )
    line = (await lines(api))["determined"]
    assert line["usedSlotHours"] == pytest.approx(1.0, rel=0.01)


async def test_use_counts_half_after_a_half_life(api: Api) -> None:
    """And decides whose turn it is; a share is beside what was used of it."""
    async with api.master.db.transaction() as conn:
        await used(conn, 48.001, 0.001, slots=4000)
        await used(conn, 0.001, 0.001, slots=3000, user=1)
    await apply(api, "half_life: 2d")
    shown = await lines(api)
    members = {name.partition(" in ")[0]: line for name, line in shown.items() if line["kind"] == "association"}
    assert members["determined"]["recentSlotHours"] == pytest.approx(2.0, rel=0.01)
    assert members["admin"]["recentSlotHours"] == pytest.approx(3.0, rel=0.01)
    assert (members["determined"]["turn"], members["admin"]["turn"]) == (1, 2)
    assert members["admin"]["share"] == 0.5
    assert members["admin"]["usedShare"] == pytest.approx(0.6, rel=0.01)


async def test_a_place_beside_a_job_of_another_turn_means_nothing(api: Api) -> None:
    """It is refused with what to do; among those of one turn it is granted."""
    mine = (await create(api))["experiment"]
    also_mine = (await create(api))["experiment"]
    theirs = (await api.admin.post("/api/v1/experiments", {"config": CONFIG})).json()["experiment"]
    assert isinstance(mine, dict)
    assert isinstance(also_mine, dict)
    async with api.master.db.transaction() as conn:
        await used(conn, 0.001, 0.001, slots=1000)
    await apply(api, "half_life: 7d")
    update = {"jobId": mine["jobId"], "aheadOf": theirs["jobId"]}
    reply = await api.admin.post("/api/v1/job-queues", {"updates": [update]})
    assert reply.status_code == 400
    assert "have not used alike: give a priority instead" in refusal(reply)
    update = {"jobId": also_mine["jobId"], "aheadOf": mine["jobId"]}
    reply = await api.user.post("/api/v1/job-queues", {"updates": [update]})
    assert reply.status_code == 200, reply.text


async def test_what_is_only_looked_at_knows_the_quota(api: Api) -> None:
    """A dry run of an experiment says that it would wait for it, before it is submitted."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", slots=4)
    await apply(api, "everyone: {max_slots: 2}")
    reply = await api.user.post("/api/v1/experiments", {"config": CONFIG, "validateOnly": True})
    assert reply.status_code == 200, reply.text
    forecast = reply.json()["forecast"]
    assert forecast["starting"] == 2
    assert forecast["reason"].startswith("waits for the quota of determined: 2 slots, of which 2 in use or promised")
