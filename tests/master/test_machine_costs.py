"""What rented machines cost, by whose they were: over rows of machines and of what ran there."""

from __future__ import annotations

from typing import Any

import pytest

from tenax.master.store.machines import costs as machine_costs
from tests.kits.api import Api
from tests.kits.master.experiments import create

#: A day that is over.
_DAY = "2026-01-10"


async def rented(
    api: Api, number: int, begins: str, ends: str | None, slots: int = 4, price: float | None = 2.0, pool: str = "p"
) -> str:
    """A machine that was paid for between two times of that day, or still is; its id."""
    name = f"m-{number}"
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into machines (machine_id, pool, provider, region, instance_type, slots, state, provider_id, price,"
            " rented_at, ended_at) values ($1, $2, 'aws', 'r', 't', $3, $4, $1, $5, $6::text::timestamptz,"
            " $7::text::timestamptz)",
            name, pool, slots, "GONE" if ends else "JOINED", price, f"{_DAY}T{begins}Z", ends and f"{_DAY}T{ends}Z",
        )  # fmt: skip
    return name


async def ran(
    api: Api, machine: str, name: str, begins: str, ends: str, slots: int = 2, experiment: int | None = None
) -> None:
    """Something of a user ran there."""
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into usage (container_id, allocation_id, rank, task_id, kind, experiment_id, user_id, username,"
            " workspace_name, pool, agent_id, slots, requested_at, started_at, ended_at) values"
            " ($1, $1, 0, 't', 'TRIAL', $2, 1, $3, 'w of ' || $3, 'p', $4, $5, $6::text::timestamptz,"
            " $6::text::timestamptz, $7::text::timestamptz)",
            f"{machine}.{name}.{begins}", experiment, name, machine, slots, f"{_DAY}T{begins}Z", f"{_DAY}T{ends}Z",
        )  # fmt: skip


async def costs(api: Api, by: str, since: str = _DAY, until: str = _DAY, **query: str) -> dict[str, Any]:
    """By name, ``idle`` and ``total`` among them."""
    answer = (await api.user.get("/api/v1/machines/cost", by=by, since=since, until=until, **query)).json()
    rows = {"idle" if each["idle"] else each["name"]: each.get("cost") for each in answer["costs"]}
    return {**rows, "total": answer["total"].get("cost")}


async def test_the_cost_of_machines_is_divided_among_what_ran_there(api: Api) -> None:
    """By whoever it is asked for; the sum is always that of the machines."""
    experiment: Any = (await create(api))["experiment"]
    first = await rented(api, 1, "01:00:00", "05:00:00")
    second = await rented(api, 2, "02:00:00", "03:00:00", slots=1, price=0.333, pool="q")
    await ran(api, first, "ada", "02:00:00", "04:00:00", experiment=experiment["id"])
    await ran(api, first, "bob", "03:00:00", "04:00:00")
    await ran(api, second, "ada", "02:00:00", "02:30:00", slots=1)
    # Before the machine was there, and on another agent: nobody's.
    await ran(api, first, "eve", "00:00:00", "00:59:00")
    await ran(api, "a1", "eve", "02:00:00", "03:00:00")
    assert await costs(api, "user") == {"ada": 2.17, "bob": 1.0, "idle": 5.16, "total": 8.33}
    assert await costs(api, "workspace") == {"w of ada": 2.17, "w of bob": 1.0, "idle": 5.16, "total": 8.33}
    number = str(experiment["id"])
    assert await costs(api, "experiment") == {number: 2.0, "": 1.17, "idle": 5.16, "total": 8.33}
    assert await costs(api, "project") == {"Uncategorized/Uncategorized": 2.0, "": 1.17, "idle": 5.16, "total": 8.33}
    assert await costs(api, "pool") == {"p": 8.0, "q": 0.33, "total": 8.33}
    assert await costs(api, "pool", resource_pool="q") == {"q": 0.33, "total": 0.33}
    assert await costs(api, "day") == {_DAY: 8.33, "total": 8.33}
    # A part of the day.
    assert await costs(api, "user", f"{_DAY}T03:30:00Z", f"{_DAY}T04:30:00Z") == {
        "ada": 0.5, "bob": 0.5, "idle": 1.0, "total": 2.0,
    }  # fmt: skip
    assert await costs(api, "user", "2026-01-11", "2026-01-12") == {"total": 0.0}


async def test_what_has_no_price_is_unknown_and_not_nought(api: Api) -> None:
    """Its hours are told."""
    machine = await rented(api, 1, "01:00:00", "02:00:00", price=None)
    await ran(api, machine, "ada", "01:00:00", "02:00:00")
    assert await costs(api, "user") == {"ada": None, "idle": None, "total": None}
    await rented(api, 2, "01:00:00", "02:00:00", slots=1, price=0.0)
    assert await costs(api, "user") == {"ada": None, "idle": 0.0, "total": 0.0}
    total = (await api.user.get("/api/v1/machines/cost", since=_DAY, until=_DAY)).json()["total"]
    assert (total["hours"], total["unpricedHours"]) == (2.0, 1.0)


async def test_a_machine_that_is_there_costs_until_now(api: Api) -> None:
    """Whatever end is asked for; a use that goes on goes on."""
    machine = await rented(api, 1, "01:00:00", None, slots=1, price=0.2)
    await ran(api, machine, "ada", "01:00:00", "02:00:00", slots=1)
    async with api.master.db.transaction() as conn:
        await conn.execute("update machines set rented_at = now() - interval '100 hours'")
        await conn.execute("update usage set started_at = now() - interval '50 hours', ended_at = null")
    assert await costs(api, "user", "2026-01-01", "2099-01-01") == {"ada": 10.0, "idle": 10.0, "total": 20.0}


async def test_a_month_counts_its_own_hours_alone(api: Api) -> None:
    """Of what was rented before it began, those since; of what ended before, none."""
    begins = "date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'"
    spans = (("- interval '3 days'", "null"), ("- interval '3 days'", f"{begins} + (now() - {begins}) / 2"),
             ("- interval '3 days'", begins), ("- interval '3 days'", f"{begins} - interval '1 second'"),
             (f"+ (now() - {begins}) / 2", "null"))  # fmt: skip
    for number, (since, until) in enumerate(spans):
        name = await rented(api, number, "01:00:00", None if until == "null" else "02:00:00", price=float(number))
        async with api.master.db.transaction() as conn:
            await conn.execute(
                f"update machines set rented_at = {begins} {since}, ended_at = {until} where machine_id = $1", name
            )
    async with api.master.db.transaction() as conn:
        month = await machine_costs.this_month(conn)
        passed_s: float = await conn.fetchval(f"select extract(epoch from now() - {begins})::float8")
    assert month.begins.day == month.ends.day == 1
    assert {each.price: each.hours * 3600 for each in month.hours} == {
        0.0: pytest.approx(passed_s, abs=60), 1.0: pytest.approx(passed_s / 2, abs=60),
        4.0: pytest.approx(passed_s / 2, abs=60),
    }  # fmt: skip
    async with api.master.db.transaction() as conn:
        await conn.execute("delete from machines")
    async with api.master.db.connection() as conn:
        assert (await machine_costs.this_month(conn)).hours == []


async def test_what_was_never_made_costs_nothing(api: Api) -> None:
    """Refused, or still asked for: nothing was paid, however long ago one looks from."""
    for number, state in enumerate(("PLANNED", "ASKED", "FAILED"), 1):
        name = await rented(api, number, "01:00:00", "02:00:00" if state == "FAILED" else None)
        async with api.master.db.transaction() as conn:
            await conn.execute(
                "update machines set state = $2, rented_at = null, joined_at = null where machine_id = $1", name, state
            )
    for by in ("user", "pool", "day"):
        assert await costs(api, by, "2020-01-01", "2099-01-01") == {"total": 0.0}


@pytest.mark.parametrize("until", ["20260110", "2026-W02-6"])
async def test_a_day_that_is_written_otherwise_is_a_day(api: Api, until: str) -> None:
    """It belongs to the time as a whole."""
    await rented(api, 1, "01:00:00", "02:00:00")
    assert await costs(api, "pool", _DAY, until) == {"p": 2.0, "total": 2.0}


async def test_more_uses_than_a_page_has_are_all_counted(api: Api) -> None:
    """Of one machine, and of many behind one another."""
    for number in range(3):
        machine = await rented(api, number, "00:00:00", "20:00:00", slots=1, price=1.0)
        async with api.master.db.transaction() as conn:
            await conn.execute(
                "insert into usage (container_id, allocation_id, rank, task_id, kind, user_id, username,"
                " workspace_name, pool, agent_id, slots, requested_at, started_at, ended_at)"
                " select $1 || n, $1 || n, 0, 't', 'TRIAL', 1, 'u' || n % 2, 'w', 'p', $1, 1, s, s, s + interval '60 s'"
                " from (select n, ($2 || ' 00:00Z')::timestamptz + n * interval '60 s' as s"
                " from generate_series(0, 799) n)",
                machine, _DAY,
            )  # fmt: skip
    assert await costs(api, "user") == {"u0": 20.0, "u1": 20.0, "idle": 20.0, "total": 60.0}


@pytest.mark.parametrize(
    "query", [{"since": "yesterday"}, {"since": "2026-01-10", "until": "2026-01-09"}, {"by": "hat"}]
)
async def test_what_is_no_time_is_refused(api: Api, query: dict[str, str]) -> None:
    """With what to write."""
    assert (await api.user.get("/api/v1/machines/cost", **query)).status_code == 400
