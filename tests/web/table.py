"""What tests of tables of the page ask of them, and of the API itself."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import cast

from playwright.sync_api import Locator, Page, expect

from tests.kits.machine import wait_for
from tests.web.site import TIMEOUT_MS, Site


def search(site: Site, query: str, sort: str = "id=desc", **more: object) -> dict[str, object]:
    """What the API itself finds."""
    body = {"query": query, "sort": sort, "filter": json.dumps({"showArchived": False}), **more}
    return site.api("POST", "/api/v1/experiments-search", body)


def numbers(reply: dict[str, object]) -> list[int]:
    rows = cast("list[dict[str, dict[str, int]]]", reply["experiments"])
    return [row["experiment"]["id"] for row in rows]


def filter_of(page: Page) -> Locator:
    return page.get_by_label("Filter", exact=True)


#: Of each row its place and the number in it, all of one moment: read one by one, a row may be another's by then.
_ROWS = """grid => grid.ariaBusy === "false" && [...grid.querySelectorAll("[aria-rowindex]:not([aria-rowindex='1'])")]
  .map(row => [Number(row.ariaRowIndex), row.querySelectorAll("[role=gridcell]")[1]?.innerText.trim() ?? ""])
  .sort((one, other) => one[0] - other[0])"""


def shown(grid: Locator, count: int) -> list[int]:
    """Numbers of the first rows, once they have come."""

    def look() -> list[int] | None:
        rows = cast("list[tuple[int, str]] | bool", grid.evaluate(_ROWS))
        first = rows[:count] if isinstance(rows, list) else []
        return [int(number) for _, number in first] if all(number.isdigit() for _, number in first) else None

    return wait_for(look, "the first rows")


def shows(grid: Locator, expected: Sequence[int]) -> None:
    """Once its first rows are these, in this order: those of before stay until others have come."""
    seen: list[int] = []

    def look() -> bool:
        seen[:] = shown(grid, len(expected))
        return seen == list(expected)

    try:
        wait_for(look, "these rows", TIMEOUT_MS / 1000)
    except AssertionError:
        assert seen == list(expected)


def project_of(site: Site) -> int:
    return int(cast("int", site.experiment(site.search)["projectId"]))


def headed(page: Page, titles: list[str]) -> None:
    """Until these are the columns from left to right, beside the box."""
    exactly = [re.compile(rf"^[\s↑↓]*{re.escape(title)}[\s↑↓]*$") for title in titles]
    expect(page.get_by_role("columnheader")).to_have_text([re.compile(r"^\s*$"), *exactly], use_inner_text=True)


def headers(page: Page) -> list[str]:
    """From left to right, without the box."""
    return [text.strip(" \n↑↓") for text in page.get_by_role("columnheader").all_inner_texts()[1:]]
