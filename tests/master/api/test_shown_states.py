"""The state that experiments and trials are shown in: one rule, whoever asks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from asyncpg import Connection

from tenax.master.store.database.filter_sql import STATES
from tests.kits.api import Api
from tests.kits.rows import add_experiment, add_trial, request_attempt

_ATTEMPTS: tuple[tuple[str | None, ...], ...] = (
    (), (None,), ("PENDING",), ("PULLING",), ("ASSIGNED",), ("STARTING",), ("RUNNING",), ("TERMINATING",),
    ("TERMINATED",), ("PENDING", "PULLING"), ("STARTING", None, "PENDING"), ("TERMINATED", "PENDING"),
)  # fmt: skip
#: Of every other state of an experiment.
_FEW = ((), (None,), ("RUNNING", "PENDING"))
_ENDED = ("CANCELED", "COMPLETED", "ERROR", "DELETE_FAILED")
_WISHES = ("RUN", "STOP", "CANCEL", "KILL")
_OWN = tuple(state for state in STATES if state not in ("QUEUED", "PULLING", "STARTING", "RUNNING", "DELETING"))
_ALL = {"limit": -1}


async def _fill(conn: Connection) -> None:
    """Experiments in all states, whose trials do all that trials do."""
    for state in _OWN:
        for unmanaged in (False, True):
            for attempts in _ATTEMPTS if state == "ACTIVE" else _FEW:
                await _experiment(conn, state, unmanaged, attempts)


async def _experiment(conn: Connection, state: str, unmanaged: bool, attempts: tuple[str | None, ...]) -> None:
    experiment = await add_experiment(conn)
    await conn.execute(
        "update experiments set unmanaged = $2, state = $3, ended_at = case when $4 then now() end where id = $1",
        experiment,
        unmanaged,
        state,
        state in _ENDED,
    )
    wishes = _WISHES if state in ("ACTIVE", "PAUSED") else _WISHES[:1]
    for number, (wish, attempt) in enumerate([(w, a) for a in attempts for w in wishes]):
        trial = await add_trial(conn, experiment, number)
        await conn.execute("update trials set wish = $2 where id = $1", trial, wish)
        if attempt is not None:
            allocation = await request_attempt(conn, trial)
            await conn.execute(
                "update allocations set state = $2, ended_at = case when $2 = 'TERMINATED' then now() end"
                " where allocation_id = $1",
                allocation,
                attempt,
            )
    ended = await add_trial(conn, experiment, 1000)
    await conn.execute("update trials set state = 'ERROR', ended_at = now() where id = $1", ended)


def _of_state(state: str, operator: str, location: str) -> str:
    condition = {
        "kind": "field",
        "columnName": "state",
        "operator": operator,
        "value": state,
        "location": f"LOCATION_TYPE_{location}",
        "type": "COLUMN_TYPE_TEXT",
    }
    return json.dumps(
        {"filterGroup": {"kind": "group", "conjunction": "and", "children": [condition]}, "showArchived": True}
    )


def _states(shown: list[Mapping[str, object]]) -> dict[object, object]:
    return {row["id"]: str(row["state"]).removeprefix("STATE_") for row in shown}


async def test_list_search_and_detail_show_an_experiment_in_one_state(api: Api) -> None:
    """And whoever asks for that state, in a list or in a search, finds it, and nothing else."""
    async with api.master.db.transaction() as conn:
        await _fill(conn)
    listed = (await api.admin.get("/api/v1/experiments", **_ALL)).json()["experiments"]
    shown = _states(listed)
    assert len(shown) > 60
    assert set(shown.values()) == set(STATES) - {"ACTIVE", "DELETING"}
    results = (await api.admin.post("/api/v1/experiments-search", _ALL)).json()["experiments"]
    assert _states([result["experiment"] for result in results]) == shown
    for number, state in shown.items():
        detail = (await api.admin.get(f"/api/v1/experiments/{number}")).json()["experiment"]
        assert detail["state"] == f"STATE_{state}"
    for state in set(shown.values()):
        these = {number for number, label in shown.items() if label == state}
        listed = (await api.admin.get("/api/v1/experiments", **_ALL, states=[f"STATE_{state}"])).json()
        assert set(_states(listed["experiments"])) == these, state
        assert listed["pagination"]["total"] == len(these)
        for operator, numbers in (("=", these), ("!=", set(shown) - these)):
            query = {**_ALL, "filter": _of_state(str(state), operator, "EXPERIMENT")}
            document = (await api.admin.post("/api/v1/experiments-search", query)).json()
            assert {result["experiment"]["id"] for result in document["experiments"]} == numbers, (operator, state)
            assert document["pagination"]["total"] == len(numbers)


async def test_list_search_and_detail_show_a_trial_in_one_state(api: Api) -> None:
    """As with experiments: listed with its experiment, as a run among runs, or alone."""
    async with api.master.db.transaction() as conn:
        await _fill(conn)
        experiments = [row["id"] for row in await conn.fetch("select id from experiments")]
    runs = (await api.admin.post("/api/v1/runs", _ALL)).json()["runs"]
    shown = _states(runs)
    assert set(shown.values()) == set(STATES) - {"ACTIVE", "DELETING", "COMPLETED", "CANCELED", "DELETE_FAILED"} - {
        "STOPPING_ERROR"
    }
    listed: dict[object, object] = {}
    for experiment in experiments:
        trials = await api.admin.get(f"/api/v1/experiments/{experiment}/trials", limit=1000)
        listed |= _states(trials.json()["trials"])
    assert listed == shown
    samples = {state: number for number, state in shown.items()}
    for state, number in samples.items():
        alone = (await api.admin.get(f"/api/v1/trials/{number}")).json()["trial"]
        assert alone["state"] == f"STATE_{state}"
        query = {**_ALL, "filter": _of_state(str(state), "=", "RUN")}
        matching = (await api.admin.post("/api/v1/runs", query)).json()["runs"]
        assert set(_states(matching)) == {number for number, label in shown.items() if label == state}, state
