"""What slots were used for: exact sums over any periods, whatever was deleted since."""

from __future__ import annotations

import csv
import io
import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

import httpx2
import pytest
from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.master.api.queue import usage as periods
from tenax.master.store.allocations import containers
from tenax.master.store.queue import usage
from tenax.master.store.queue.usage import Period
from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.rows import add_agent, add_experiment, add_trial, end_member, run_attempt

START = datetime(2026, 2, 26, tzinfo=timezone.utc)


def at(days: float) -> datetime:
    return START + timedelta(days=days)


async def used(conn: Connection, number: int, begins: datetime, ends: datetime | None, **more: object) -> None:
    """A row of the accounts."""
    row = {
        "username": "ada",
        "pool": "default",
        "agent_id": "a1",
        "slots": 1,
        "experiment_id": 7,
        "labels": ["x"],
        **more,
    }
    await conn.execute(
        "insert into usage (container_id, allocation_id, rank, task_id, kind, experiment_id, user_id, username, "
        "labels, pool, agent_id, slots, requested_at, started_at, ended_at) "
        "values ($1, $2, 0, 't', 'TRIAL', $3, 1, $4, $5, $6, $7, $8, $9, $9, $10)",
        f"c{number}",
        f"t.{number}",
        row["experiment_id"],
        row["username"],
        row["labels"],
        row["pool"],
        row["agent_id"],
        row["slots"],
        begins,
        ends,
    )


@pytest.mark.parametrize("seed", range(4))
async def test_sums_are_exact_over_the_borders_of_periods(api: Api, seed: int) -> None:
    """To the microsecond: of all periods together, of each of them, and by user, pool, agent and experiment."""
    rng = random.Random(seed)
    uses = []
    async with api.master.db.transaction() as conn:
        for number in range(40):
            begins = START + timedelta(microseconds=rng.randrange(0, 60 * 86_400_000_000))
            ends = begins + timedelta(microseconds=rng.choice([0, 1, 5_000_000, rng.randrange(20 * 86_400_000_000)]))
            slots, user = rng.randrange(0, 9), rng.choice(["ada", "bob"])
            uses.append((begins, ends, slots, user))
            pool = rng.choice(["p", "q"])
            await used(conn, number, begins, ends, slots=slots, username=user, pool=pool, experiment_id=number % 3)
        sums = []
        for monthly in (False, True) * 4:
            first, last = sorted(rng.sample(range(80), 2))
            whole = Period(at(first), at(last))
            parts = periods.split(whole, monthly=monthly)
            sums.append((whole, parts, await usage.aggregated(conn, whole, parts)))

    def expected(period: Period, user: str | None = None) -> Decimal:
        total = timedelta()
        for begins, ends, slots, owner in uses:
            if user in (None, owner):
                total += slots * max(timedelta(), min(ends, period.ends) - max(begins, period.begins))
        return Decimal(total // timedelta(microseconds=1)) / 1_000_000

    for whole, parts, shares in sums:
        assert parts[0].begins == whole.begins
        assert parts[-1].ends == whole.ends
        assert all(earlier.ends == following.begins for earlier, following in pairwise(parts))
        for part in parts:
            mine = [share for share in shares if share.begins == part.begins]
            assert sum(share.seconds for share in mine if share.by == "total") == expected(part)
            for by in ("username", "resource_pool", "agent", "experiment"):
                assert sum(share.seconds for share in mine if share.by == by) == expected(part), by
            assert sum(share.seconds for share in mine if share.key == "bob") == expected(part, "bob")
        assert sum(share.seconds for share in shares if share.by == "total") == expected(whole)


async def test_what_goes_on_counts_until_now(api: Api) -> None:
    """And nothing is counted that has not been yet."""
    async with api.master.db.transaction() as conn:
        now = await conn.fetchval("select now()")
        await used(conn, 1, now - timedelta(hours=2), None, slots=3)
        whole = Period(now - timedelta(days=1), now + timedelta(days=30))
        (total,) = [share for share in await usage.aggregated(conn, whole, [whole]) if share.by == "total"]
        assert total.seconds == 3 * 7200
    (page,) = [part async for part in usage.raw(api.master.db, whole)]
    assert (page[0].ended_at, page[0].slots) == (None, 3)
    assert 7200 <= page[0].seconds < 7300


async def test_accounts_outlive_what_was_deleted(api: Api) -> None:
    """An attempt of two members: begun when they are placed, ended when each has ended, there when all else is gone."""
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1")
        await add_agent(conn, "a2")
        experiment = await add_experiment(conn)
        await conn.execute("update experiment_documents set labels = '{night}'")
        attempt = await run_attempt(conn, await add_trial(conn, experiment), ("a1", "a2"))
    window = Period(datetime.now(timezone.utc) - timedelta(hours=1), datetime.now(timezone.utc) + timedelta(hours=1))
    (running_now,) = [attempt for page in [part async for part in usage.raw(api.master.db, window)] for attempt in page]
    assert (running_now.slots, running_now.agents, running_now.ended_at) == (2, "a1 a2", None)
    async with api.master.db.transaction() as conn:
        for rank in (0, 1):
            await end_member(conn, attempt, rank)
        members = (await containers.lock_members(conn, [attempt.allocation_id]))[attempt.allocation_id]
        for member in members:
            await containers.gone(conn, [member.container.container_id], member.agent_id)
        await conn.execute("delete from experiments")
        await conn.execute("delete from jobs")
        await conn.execute("delete from agents")
    (page,) = [part async for part in usage.raw(api.master.db, window)]
    assert [(attempt.allocation_id, attempt.labels, attempt.experiment_id) for attempt in page] == [
        (attempt.allocation_id, ["night"], experiment)
    ]
    assert page[0].ended_at is not None


async def test_the_same_numbers_as_json_and_as_csv(api: Api) -> None:
    """For a client that parses, and for a spreadsheet; empty days are there in the one, and not in the other."""
    async with api.master.db.transaction() as conn:
        await used(conn, 1, at(0.5), at(2.25), slots=2, labels=["x", 'say "hi", twice'])
    dates = {"startDate": "2026-02-26", "endDate": "2026-03-01"}
    entries = (await api.user.get("/api/v1/resources/allocation/aggregated", **dates)).json()["resourceEntries"]
    assert [(entry["periodStart"], entry["seconds"]) for entry in entries] == [
        ("2026-02-26", 86400.0),
        ("2026-02-27", 172800.0),
        ("2026-02-28", 43200.0),
        ("2026-03-01", 0.0),
    ]
    assert entries[0]["period"] == "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"
    assert entries[0]["byUsername"] == {"ada": 86400.0}
    assert entries[0]["byExperimentLabel"] == {"x": 86400.0, 'say "hi", twice': 86400.0}
    assert (entries[0]["byAgent"], entries[0]["byExperiment"]) == ({"a1": 86400.0}, {"7": 86400.0})
    months = {
        "start_date": "2026-02",
        "end_date": "2026-03",
        "period": "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY",
    }
    reply = await api.user.get("/resources/allocation/aggregated", **months)
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert reply.headers["content-type"].startswith("text/csv")
    assert {
        "aggregation_type": "total",
        "aggregation_key": "total",
        "date": "2026-02",
        "seconds": "302400.000000",
    } in rows
    assert {row["date"] for row in rows} == {"2026-02"}
    times = {"timestamp_after": "2026-02-27T00:00:00Z", "timestamp_before": "2026-02-28"}
    (entry,) = (await api.user.get("/api/v1/resources/allocation/raw", **times)).json()["resourceEntries"]
    assert (entry["kind"], entry["seconds"], entry["slots"], entry["experimentId"]) == ("experiment", 86400.0, 2, 7)
    assert (entry["startTime"], entry["endTime"]) == ("2026-02-26T12:00:00Z", "2026-02-28T06:00:00Z")
    for path in ("raw", "allocations-csv"):
        (row,) = csv.DictReader(io.StringIO((await api.user.get(f"/resources/allocation/{path}", **times)).text))
        assert (row["username"], row["seconds"], row["allocation_id"]) == ("ada", "86400.0", "t.1")


def _by(reply: httpx2.Response, field: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    assert reply.status_code == 200, reply.text
    return [(entry[field], entry["waited"]) for entry in reply.json()["resourceEntries"]]


async def test_one_sum_is_asked_for_alone_and_with_what_was_waited(api: Api) -> None:
    """The same seconds as all sums in one; beside them from the request until the placement, each day its share.

    What two labels or groups have counts for both; what is in no project or group is there, without a name.
    """
    async with api.master.db.transaction() as conn:
        experiment = await add_experiment(conn)
        await used(conn, 1, at(0.5), at(2.25), slots=2, labels=["x", "y"], experiment_id=experiment)
        await used(conn, 2, at(1), at(1.5), username="bob", pool="spare", agent_id="a2", experiment_id=None, labels=[])
        await conn.execute("update experiment_documents set labels = '{x,y}'")
        await conn.execute(
            "update usage set kind = 'COMMAND', user_id = 2, workspace_name = 'lab' where username = 'bob'"
        )
        await conn.execute("update usage set requested_at = started_at - interval '18 hours' where username = 'ada'")
        for group in ("vision", "night"):
            await conn.execute(
                "with g as (insert into user_groups (name) values ($1) returning id)"
                " insert into user_group_members (group_id, user_id) select id, 1 from g",
                group,
            )
        project = await conn.fetchval("select project_id from experiments")
    dates = {"startDate": "2026-02-26", "endDate": "2026-02-28"}
    path = "/api/v1/resources/allocation/aggregated"
    whole = (await api.user.get(path, **dates)).json()["resourceEntries"]
    fields = ("byUsername", "byResourcePool", "byAgent", "byExperiment", "byExperimentLabel")
    for by, field in zip(("user", "pool", "agent", "experiment", "label"), fields, strict=True):
        reply = await api.user.get(path, **dates, by=by)
        assert [used for used, _ in _by(reply, field)] == [entry[field] for entry in whole], by
        assert [entry["seconds"] for entry in reply.json()["resourceEntries"]] == [entry["seconds"] for entry in whole]
        assert all(
            entry[other] == {} for entry in reply.json()["resourceEntries"] for other in fields if other != field
        )
    # It asked at six in the evening of the day before: that day is not asked for.
    assert [waited for _, waited in _by(await api.user.get(path, **dates, by="user"), "byUsername")] == [
        {"ada": 2 * 43200.0},
        {},
        {},
    ]
    days = [(86400.0, 0), (172800.0, 43200.0), (43200.0, 0)]
    for by, field, first, second in (
        ("type", "byType", "experiment", "command"),
        ("workspace", "byWorkspace", "", "lab"),
        ("size", "bySize", "2", "1"),
        ("project", "byProject", str(project), ""),
    ):
        reply = await api.user.get(path, **dates, by=by)
        expected = [{first: one} | ({second: other} if other else {}) for one, other in days]
        assert [used for used, _ in _by(reply, field)] == expected, by
    groups = _by(await api.user.get(path, **dates, by="group"), "byGroup")
    assert groups[1] == ({"vision": 172800.0, "night": 172800.0, "": 43200.0}, {})
    months = {"period": "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY", "startDate": "2026-02", "endDate": "2026-03"}
    (february, march) = (await api.user.get(path, **months, by="pool")).json()["resourceEntries"]
    assert (february["byResourcePool"], february["waitedSeconds"]) == (
        {"default": 302400.0, "spare": 43200.0},
        2 * 18 * 3600.0,
    )
    assert (march["seconds"], march["waited"]) == (0.0, {})


async def test_a_trace_is_what_has_ended_with_what_it_asked_for(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of a gang are one attempt; what runs is left out; of deleted work what the accounts kept. Rules, machines
    and groups are those of now."""
    monkeypatch.setattr(usage, "_PAGE", 2)
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", 4)
        for number, agent_id in enumerate(("a1", "a2")):
            await used(conn, number, at(1), at(2), agent_id=agent_id, slots=2)
        await conn.execute("update usage set allocation_id = 't.0', rank = 1 where container_id = 'c1'")
        await used(conn, 2, at(1), None, username="bob")
        await used(conn, 3, at(3), at(4), pool="spare", username="bob", experiment_id=None)
        await conn.execute("update usage set task_id = 'gone' where experiment_id is null")
        live = await run_attempt(conn, await add_trial(conn, await add_experiment(conn)))
        await end_member(conn, live, 0)
        await conn.execute("update jobs set priority = 7, max_slots = 3")
        await conn.execute("update agent_presence set labels = '{\"zone\": \"a\"}' where agent_id = 'a1'")
        await conn.execute('update allocations set constraints = \'{"same": ["zone"]}\'')
        await conn.execute("with g as (insert into user_groups (name) values ('ml') returning id)"
                           " insert into user_group_members (group_id, user_id) select g.id, u.id from g, users u"
                           " where u.username = 'admin'")  # fmt: skip
    window = {"timestampAfter": at(0).isoformat(), "timestampBefore": at(9).isoformat()}
    trace = (await api.user.get("/api/v1/job-queues/trace", **window)).json()
    gang, other = trace["attempts"]
    assert (gang["job"], gang["slots"], gang["username"], gang["startedAt"], gang["endedAt"]) == (
        "experiment 7", 4, "ada", "2026-02-27T00:00:00Z", "2026-02-28T00:00:00Z",
    )  # fmt: skip
    assert (other["job"], other["resourcePool"], other["priority"]) == ("gone", "spare", None)
    assert trace["pools"][0] == {
        "name": "default", "policy": "priority", "preemption": False, "fitting": "best", "reservation": False,
        "unevenGangs": True,
    }  # fmt: skip
    machine = {"id": "a1", "resourcePool": "default", "slots": 4, "kind": "cpu", "labels": {"zone": "a"}}
    cores = [{"name": f"core {number}", "memory": None, "slots": 1} for number in range(4)]
    assert {**machine, "devices": cores} in trace["agents"]
    assert trace["groups"] == [{"name": "ml", "usernames": ["admin"]}]
    only = (await api.user.get("/api/v1/job-queues/trace", **window, resourcePool="default")).json()
    assert [each["job"] for each in only["attempts"]] == ["experiment 7"]
    now = {"timestampAfter": "2026-11-01", "timestampBefore": "2100-01-01"}
    (recent,) = (await api.user.get("/api/v1/job-queues/trace", **now)).json()["attempts"]
    assert (recent["constraints"], gang["constraints"]) == ({"same": ["zone"]}, None)
    assert (recent["priority"], recent["maxSlots"], recent["weight"], recent["slots"]) == (7, 3, 1.0, 1)
    reply = await api.user.get("/api/v1/job-queues/trace", **window, resourcePool="gone")
    assert (reply.status_code, "'gone' not found" in reply.text) == (404, True)


async def test_many_attempts_come_in_pages(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, in the order of their start, also those of one moment."""
    monkeypatch.setattr(usage, "_PAGE", 3)
    async with api.master.db.transaction() as conn:
        for number in range(10):
            await used(conn, number, at(number // 4), at(9))
    ids = [attempt.allocation_id async for page in usage.raw(api.master.db, Period(at(0), at(1))) for attempt in page]
    assert ids == [f"t.{number}" for number in range(4)]
    ids = [attempt.allocation_id async for page in usage.raw(api.master.db, Period(at(0), at(9))) for attempt in page]
    assert ids == [f"t.{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("raw", {"timestampAfter": "yesterday", "timestampBefore": "2026-01-01"}, "timestamp_after"),
        ("raw", {"timestampAfter": "2026-01-01", "timestampBefore": "2026-01-01T00:00:00Z"}, "timestamp_before"),
        ("raw", {"timestampAfter": "2026-01-01"}, "timestamp_before"),
        ("raw", {"timestampAfter": "0001-01-01T00:00:00+14:00", "timestampBefore": "2026-01-01"}, "timestamp_after"),
        ("aggregated", {"startDate": "2026-13-01", "endDate": "2026-01-01"}, "start_date"),
        ("aggregated", {"startDate": "2026-02-01", "endDate": "2026-01-01"}, "end_date"),
        ("aggregated", {"startDate": "1970-01-01", "endDate": "8999-12-31"}, "start_date"),
        ("aggregated", {"startDate": "2026-01-01", "endDate": "2026-01-01", "period": "HOURLY"}, "period"),
        ("aggregated", {"startDate": "2026-01-01", "endDate": "2026-01-01", "by": "shoe size"}, "by"),
    ],
)
async def test_times_that_mean_nothing_are_refused(api: Api, path: str, query: dict[str, str], field: str) -> None:
    """With the field named."""
    reply = await api.user.get(f"/api/v1/resources/allocation/{path}", **query)
    assert reply.status_code == 400
    assert field in reply.text.replace("timestampBefore", "timestamp_before")


def test_months_and_days_are_what_the_calendar_says() -> None:
    """Whole months where a month is written; the first and the last may be parts."""
    leap = periods.split(periods.days("2028-02", "2028-02"), monthly=False)
    assert len(leap) == 29
    parts = periods.split(periods.days("2026-11-21", "2027-01"), monthly=True)
    assert [periods.name_of(part, monthly=True) for part in parts] == ["2026-11", "2026-12", "2027-01"]
    assert (parts[0].begins.day, parts[-1].ends) == (21, datetime(2027, 2, 1, tzinfo=timezone.utc))
    with pytest.raises(InvalidInput, match="periods apart"):
        periods.split(periods.days("2000-01-01", "2020-01-01"), monthly=False)


async def test_waiting_is_told_by_pool_and_day(api: Api) -> None:
    """Of the first member of each attempt, for the queue's statistics."""
    await running(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update usage set requested_at = started_at - interval '90 seconds'")
    (pool,) = (await api.user.get("/api/v1/job-queues/stats")).json()["results"]
    assert [aggregate["seconds"] for aggregate in pool["aggregates"]] == [90.0]
