"""The table of experiments: what is typed into its filter, its columns, its views."""

from __future__ import annotations

import json
import re
from typing import cast

from playwright.sync_api import Browser, Locator, Page, expect

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


def shown(grid: Locator, count: int) -> list[int]:
    """Numbers of the first rows."""
    expect(grid).to_have_attribute("aria-busy", "false")
    cells = grid.locator("[aria-rowindex]:not([aria-rowindex='1'])")
    expect(cells).not_to_have_count(0)
    rows = {int(str(row.get_attribute("aria-rowindex"))): row for row in cells.all()}
    return [int(rows[place].get_by_role("gridcell").nth(1).inner_text()) for place in sorted(rows)[:count]]


def test_a_typed_filter_is_what_the_api_finds(
    page: Page, browser: Browser, site: Site, session: dict[str, object]
) -> None:
    """It stands in the address; a second browser and a reload show the same, and Back the filter of before."""
    query = "state:error,completed trials>0"
    expected = numbers(search(site, query, limit=10))
    total = cast("dict[str, int]", search(site, query)["pagination"])["total"]
    assert 0 < total < site.total
    page.goto(f"{site.url}/ui/experiments?q=asha")
    grid = page.get_by_role("grid")
    grid.wait_for()
    filter_of(page).fill("")
    filter_of(page).press_sequentially(query, delay=5)
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1))
    expect(page).to_have_url(re.compile(r"[?&]q=state"))
    assert shown(grid, 10) == expected
    page.reload()
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1))
    other = browser.new_context(storage_state=session)  # type: ignore[arg-type]
    other.set_default_timeout(TIMEOUT_MS)
    second = other.new_page()
    second.goto(page.url)
    expect(second.get_by_role("grid")).to_have_attribute("aria-rowcount", str(total + 1))
    assert shown(second.get_by_role("grid"), 10) == expected
    other.close()
    page.go_back()
    expect(filter_of(page)).to_have_value("asha")
    expect(grid.get_by_text("asha over digits")).to_be_visible()


def test_what_is_wrong_is_underlined_and_the_rows_stay(page: Page, site: Site) -> None:
    """With the reason, which describes the field; what may stand there is offered and taken by keys."""
    page.goto(f"{site.url}/ui/experiments?q=asha")
    grid = page.get_by_role("grid")
    expect(grid.get_by_text("asha over digits")).to_be_visible()
    field = filter_of(page)
    field.fill("asha 😀 stat:error")
    expect(page.locator("[data-wrong]")).to_have_text("stat")
    expect(field).to_have_accessible_description(re.compile("there is no column stat: did you mean state"))
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(grid.get_by_text("asha over digits")).to_be_visible()
    expect(page).to_have_url(re.compile(r"q=asha$"))
    field.fill("asha st")
    offered = page.get_by_role("listbox", name="What may stand here").get_by_role("option")
    option = offered.filter(has_text="state:")
    expect(option).to_be_visible()
    field.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", str(offered.first.get_attribute("id")))
    while option.get_attribute("aria-selected") != "true":
        field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value("asha state:")
    offered.filter(has_text="active").first.click()
    expect(field).to_have_value("asha state:active")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(page).to_have_url(re.compile("state%3Aactive"))
    expect(grid.get_by_text("asha over digits")).to_be_visible()
    field.press("Enter")
    expect(grid).to_be_focused()
