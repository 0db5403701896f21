"""What tests of tables of the page ask of them, and of the API itself."""

from __future__ import annotations

import json
import re
from typing import cast

from playwright.sync_api import Locator, Page, expect

from tests.web.site import Site


def search(site: Site, query: str, sort: str = "id=desc", **more: object) -> dict[str, object]:
    """What the API itself finds."""
    body = {"query": query, "sort": sort, "filter": json.dumps({"showArchived": False}), **more}
    return site.api("POST", "/api/v1/experiments-search", body)


def numbers(reply: dict[str, object]) -> list[int]:
    rows = cast("list[dict[str, dict[str, int]]]", reply["experiments"])
    return [row["experiment"]["id"] for row in rows]


def filter_of(page: Page) -> Locator:
    return page.get_by_label("Filter", exact=True)


def shown(grid: Locator, count: int) -> list[int]:
    """Numbers of the first rows, once they have come."""
    expect(grid).to_have_attribute("aria-busy", "false")
    expect(grid.locator("[aria-rowindex='2']").get_by_role("gridcell").nth(1)).to_have_text(re.compile(r"^\d+$"))
    cells = grid.locator("[aria-rowindex]:not([aria-rowindex='1'])")
    expect(cells).not_to_have_count(0)
    rows = {int(str(row.get_attribute("aria-rowindex"))): row for row in cells.all()}
    return [int(rows[place].get_by_role("gridcell").nth(1).inner_text()) for place in sorted(rows)[:count]]


def project_of(site: Site) -> int:
    return int(cast("int", site.experiment(site.search)["projectId"]))


def headed(page: Page, titles: list[str]) -> None:
    """Until these are the columns from left to right, beside the box."""
    exactly = [re.compile(rf"^[\s↑↓]*{re.escape(title)}[\s↑↓]*$") for title in titles]
    expect(page.get_by_role("columnheader")).to_have_text([re.compile(r"^\s*$"), *exactly], use_inner_text=True)


def headers(page: Page) -> list[str]:
    """From left to right, without the box."""
    return [text.strip(" \n↑↓") for text in page.get_by_role("columnheader").all_inner_texts()[1:]]
