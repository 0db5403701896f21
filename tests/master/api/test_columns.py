"""The columns of experiments: one entry each, from which all that shows and orders them comes."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import cast

import pytest

from tenax.cli.experiment.commands import _ORDERS, _WIRE_ORDERS
from tenax.client.experiments import ORDERS
from tenax.master.store.database.filter_sql import Column, Holds, Order
from tenax.master.store.experiments.columns import EXPERIMENTS
from tests.kits.api import Api
from tests.kits.rows import add_experiment

_NOTES = Column(
    "d.notes",
    Holds.TEXT,
    sort_by="notes",
    order=Order("lower(d.notes)", "join experiment_documents d on d.experiment_id = e.id"),
    label="What people wrote",
)


async def test_a_new_column_is_one_entry(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue has it, searches filter and order by it, and the list is ordered by it."""
    async with api.master.db.transaction() as conn:
        for notes in ("b", "c", "A"):
            number = await add_experiment(conn)
            await conn.execute("update experiment_documents set notes = $2 where experiment_id = $1", number, notes)
    assert (await api.user.get("/api/v1/experiments", sortBy="SORT_BY_NOTES")).status_code == 400
    monkeypatch.setitem(cast("MutableMapping[str, Column]", EXPERIMENTS.columns), "notes", _NOTES)

    columns = (await api.user.get("/api/v1/projects/1/columns")).json()["columns"]
    (entry,) = [column for column in columns if column["column"] == "notes"]
    assert (entry["displayName"], entry["type"]) == ("What people wrote", "COLUMN_TYPE_TEXT")

    condition = {
        "kind": "field",
        "columnName": "notes",
        "operator": "contains",
        "value": "a",
        "location": "LOCATION_TYPE_EXPERIMENT",
        "type": "COLUMN_TYPE_TEXT",
    }
    query = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [condition]}})
    assert await _searched(api, filter=query) == [3]
    assert await _searched(api, sort="notes=desc") == [2, 1, 3]
    listed = await api.user.get("/api/v1/experiments", sortBy="SORT_BY_NOTES")
    assert [experiment["id"] for experiment in listed.json()["experiments"]] == [3, 1, 2]


def test_sdk_and_command_line_know_every_order_of_the_list() -> None:
    """They cannot ask the master's table, and name what it names."""
    assert set(ORDERS) == set(EXPERIMENTS.orders)
    assert {_WIRE_ORDERS.get(name, name) for name in _ORDERS} == set(ORDERS)


async def test_the_interface_names_every_order_of_the_list(api: Api) -> None:
    """Its description, and whoever asks for another one is told them."""
    refused = await api.user.get("/api/v1/experiments", sortBy="SORT_BY_COLOR")
    assert refused.status_code == 400
    document = (await api.nobody.get("/api/v1/openapi.json")).json()
    parameters = document["paths"]["/api/v1/experiments"]["get"]["parameters"]
    (sort_by,) = [parameter for parameter in parameters if parameter["name"] == "sortBy"]
    for name in EXPERIMENTS.orders:
        wire = f"SORT_BY_{name.upper()}"
        assert wire in sort_by["schema"]["enum"]
        assert wire in refused.text
        assert (await api.user.get("/api/v1/experiments", sortBy=wire)).status_code == 200


async def _searched(api: Api, **more: str) -> list[int]:
    reply = await api.user.post("/api/v1/experiments-search", more)
    assert reply.status_code == 200, reply.text
    return [result["experiment"]["id"] for result in reply.json()["experiments"]]
