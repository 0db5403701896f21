"""A list of a hundred thousand experiments: each of its orders and filters, a page at a time."""

from __future__ import annotations

import json

import pytest

from tests.scale.place import TIMES, Large, asked, tell, timed

#: Orders that people look at all day, and what a page may take at the server; the others may take longer.
_OFTEN_MS, _ELSE_MS = 50.0, 300.0
_OFTEN = ("ID", "NAME", "STATE", "START_TIME", "END_TIME", "USER", "SEARCHER_METRIC_VAL")
_ELSE = ("DESCRIPTION", "NUM_TRIALS", "PROGRESS", "FORKED_FROM", "RESOURCE_POOL", "PROJECT_ID", "CHECKPOINT_SIZE",
         "CHECKPOINT_COUNT")  # fmt: skip
_FILTERS = (
    {"name": "amber"},
    {"labels": "paper"},
    {"states": "STATE_COMPLETED"},
    {"archived": "false"},
    {"users": "user003"},
    {"description": "abc"},
    {"experimentIdFilter.gte": "200"},
    {"projectId": "2"},
)


@pytest.mark.timeout(900)
async def test_every_order_of_the_list_of_experiments(large: Large) -> None:
    """A page from either end has its rows in order, and the number of all."""
    async with large.session() as http:
        for name in (*_OFTEN, *_ELSE):
            for direction in ("ORDER_BY_ASC", "ORDER_BY_DESC"):
                query = {"sortBy": f"SORT_BY_{name}", "orderBy": direction, "limit": "50", "archived": "false"}
                page = json.loads(await asked(http, "/api/v1/experiments", **query))
                assert len(page["experiments"]) == 50
                assert page["pagination"]["total"] > 50
                if name == "ID":
                    ids = [one["id"] for one in page["experiments"]]
                    assert ids == sorted(ids, reverse=direction.endswith("DESC"))
                taken = await timed(lambda query=query: asked(http, "/api/v1/experiments", **query), TIMES)
                budget = _OFTEN_MS if name in _OFTEN else _ELSE_MS
                tell(f"experiments by {name} {direction}", taken, budget)


@pytest.mark.timeout(900)
async def test_every_filter_of_the_list_of_experiments(large: Large) -> None:
    """Only what fits is there; the newest first, as lists are looked at."""
    async with large.session() as http:
        for filters in _FILTERS:
            query = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_DESC", "limit": "50", **filters}
            page = json.loads(await asked(http, "/api/v1/experiments", **query))
            assert page["experiments"], filters
            if "name" in filters:
                assert all("amber" in one["name"] for one in page["experiments"])
            if "states" in filters:
                assert {one["state"] for one in page["experiments"]} == {"STATE_COMPLETED"}
            taken = await timed(lambda query=query: asked(http, "/api/v1/experiments", **query), TIMES)
            tell(f"experiments where {filters}", taken, _ELSE_MS)


@pytest.mark.timeout(900)
async def test_a_page_far_into_the_list(large: Large) -> None:
    """The last page is there, and is the end."""
    async with large.session() as http:
        query = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_ASC", "limit": "20", "offset": "-20"}
        page = json.loads(await asked(http, "/api/v1/experiments", **query))
        assert page["pagination"]["endIndex"] == page["pagination"]["total"]
        assert max(one["id"] for one in page["experiments"]) > large.amount.experiments
        taken = await timed(lambda: asked(http, "/api/v1/experiments", **query), TIMES)
        tell("experiments, last page", taken, _OFTEN_MS)
