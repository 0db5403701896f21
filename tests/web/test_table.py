"""The table of experiments: what is typed into its filter, its columns, its views."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import cast

from playwright.sync_api import Browser, Page, Route, expect

from tests.kits.machine import wait_for
from tests.web.site import HOSTILE, TIMEOUT_MS, Site, box_of, drawn
from tests.web.table import filter_of, headed, headers, numbers, project_of, search, shown, shows


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
    shows(grid, expected)
    page.reload()
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1))
    other = browser.new_context(storage_state=session)  # type: ignore[arg-type]
    other.set_default_timeout(TIMEOUT_MS)
    second = other.new_page()
    second.goto(page.url)
    expect(second.get_by_role("grid")).to_have_attribute("aria-rowcount", str(total + 1))
    shows(second.get_by_role("grid"), expected)
    other.close()
    page.go_back()
    expect(filter_of(page)).to_have_value("asha")
    expect(grid.get_by_text("asha over digits")).to_be_visible()


def test_words_are_looked_for_at_once(page: Page, site: Site) -> None:
    """What cannot be wrong does not wait until the master has said that it is right; all else does."""
    page.goto(f"{site.url}/ui/experiments")
    grid = page.get_by_role("grid")
    grid.wait_for()
    held: list[Route] = []
    page.route("**/experiments-search/query?*", lambda route: held.append(route))
    filter_of(page).fill("over digits")
    expect(page).to_have_url(re.compile(r"q=over(\+|%20)digits"))
    expect(grid.get_by_text("asha over digits")).to_be_visible()
    filter_of(page).fill("state:error")
    wait_for(lambda: drawn(page) or len(held) == 2, "the second question")
    expect(page).to_have_url(re.compile(r"q=over"))
    held[1].continue_()
    expect(page).to_have_url(re.compile("q=state"))
    page.unroute("**/experiments-search/query?*")


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
    offered = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    option = offered.filter(has_text="state:")
    expect(option).to_be_visible()
    field.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", str(offered.first.get_attribute("id")))
    while option.get_attribute("aria-selected") != "true":
        at = re.compile(f"^{re.escape(str(field.get_attribute('aria-activedescendant')))}$")
        field.press("ArrowDown")
        # Pressed once more before it has moved, it would be passed.
        expect(field).not_to_have_attribute("aria-activedescendant", at)
    field.press("Enter")
    expect(field).to_have_value("asha state:")
    offered.filter(has_text="active").first.click()
    expect(field).to_have_value("asha state:active")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(page).to_have_url(re.compile("state%3Aactive"))
    expect(grid.get_by_text("asha over digits")).to_be_visible()
    field.press("Enter")
    expect(grid).to_be_focused()


def choose(page: Page, *titles: str) -> None:
    """Show or hide columns."""
    page.get_by_role("button", name="Columns", exact=True).click()
    dialog = page.get_by_role("dialog", name="Columns")
    for title in titles:
        dialog.get_by_role("checkbox", name=title, exact=True).click()
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_be_hidden()


def test_a_metric_is_a_column_and_sorts_as_the_api(page: Page, site: Site) -> None:
    """Over the border of windows, where there is no value last, in both directions."""
    cols = json.dumps(["id@64!", "state@130", "validation.loss.last@110"])
    for sign, direction in (("", "asc"), ("-", "desc")):
        page.goto(f"{site.url}/ui/experiments?cols={cols}&sort={sign}validation.loss.last")
        grid = page.get_by_role("grid")
        expect(page.get_by_role("columnheader", name="loss", exact=True)).to_have_attribute(
            "aria-sort", "ascending" if not sign else "descending"
        )
        order = f"validation.loss.last={direction},id=desc"
        every = numbers(search(site, "", order, limit=-1))
        assert len(every) > 102
        shows(grid, every[:8])
        valued = cast("dict[str, int]", search(site, "has:val_loss")["pagination"])["total"]
        assert 0 < valued < len(every)
        assert site.search in every[:valued]
        first = grid.locator("[aria-rowindex='2']").get_by_role("gridcell").nth(3)
        expect(first).not_to_have_text("–")
        grid.evaluate("(grid) => grid.scrollTo(0, 96 * 32)")
        for place in (98, 99, 100, 101):
            row = grid.locator(f"[aria-rowindex='{place + 2}']")
            expect(row.get_by_role("gridcell").nth(1)).to_have_text(str(every[place]))
        grid.focus()
        page.keyboard.press("End")
        expect(grid.locator(f"[aria-rowindex='{len(every) + 1}']").get_by_role("gridcell").nth(3)).to_have_text("–")


def test_columns_are_chosen_and_kept(page: Page, site: Site) -> None:
    """Shown and hidden, resized by keys and by hand, dragged and pinned: a reload keeps it, a reset forgets it."""
    page.goto(f"{site.url}/ui/projects/{project_of(site)}?q=asha")
    page.get_by_role("grid").get_by_text("asha over digits").wait_for()
    before = headers(page)
    choose(page, "loss", "Owner", "training lr")
    expect(page.get_by_role("columnheader", name="Owner", exact=True)).to_have_count(0)
    changed = [name for name in before if name != "Owner"] + ["loss", "training lr"]
    headed(page, changed)
    edge = page.get_by_role("separator", name="Width of loss")
    width = int(str(edge.get_attribute("aria-valuenow")))
    edge.press("ArrowRight")
    expect(edge).to_have_attribute("aria-valuenow", str(width + 16))
    edge.hover()
    box = box_of(edge)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 30, box["y"] + 5, steps=3)
    page.mouse.up()
    expect(edge).to_have_attribute("aria-valuenow", str(width + 46))
    with page.expect_response(lambda reply: "users/setting" in reply.url and reply.request.method == "POST"):
        page.get_by_role("columnheader", name="training lr", exact=True).drag_to(
            page.get_by_role("columnheader", name="Name", exact=True)
        )
    moved = ["ID", "training lr", *[name for name in changed if name not in ("ID", "training lr")]]
    expect(page.get_by_role("columnheader").nth(2)).to_contain_text("training lr")
    headed(page, moved)
    page.reload()
    page.get_by_role("grid").get_by_text("asha over digits").wait_for()
    headed(page, moved)
    expect(edge).to_have_attribute("aria-valuenow", str(width + 46))
    page.get_by_role("button", name="Columns", exact=True).click()
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Done").click()
    headed(page, before)


def test_columns_that_no_table_has_are_left_out(page: Page, site: Site) -> None:
    """Whoever wrote them, in an address or in what is kept: not even by a name that every object has by itself."""
    nobodys = ["id@64", "constructor@100", "__proto__@100", "hp.constructor.name@100"]
    page.goto(f"{site.url}/ui/experiments?q=asha&cols={json.dumps(nobodys)}")
    page.get_by_role("grid").get_by_role("row").nth(1).wait_for()
    headed(page, ["ID", "constructor.name"])
    expect(page.get_by_role("grid")).not_to_contain_text("Object")

    kept = {"storagePath": "experiments/columns", "key": "all", "value": json.dumps(nobodys)}
    site.api("POST", "/api/v1/users/setting", {"settings": [kept]})
    page.goto(f"{site.url}/ui/experiments?q=asha")
    page.get_by_role("grid").get_by_role("row").nth(1).wait_for()
    headed(page, ["ID", "constructor.name"])
    site.api("POST", "/api/v1/users/setting", {"settings": [{**kept, "value": ""}]})


def test_an_order_that_there_is_not_is_left_again(refused_page: Page, site: Site) -> None:
    """An old link, or a view that is kept: what is wrong is said, with a way out."""
    page = refused_page
    page.goto(f"{site.url}/ui/experiments?sort=nonsense")
    page.get_by_text("This could not be shown").wait_for()
    page.get_by_role("button", name="Default order").click()
    page.get_by_role("grid").get_by_role("row").nth(1).wait_for()
    expect(page).not_to_have_url(re.compile("sort="))


def test_a_view_is_opened_by_its_link(
    page: Page, browser: Browser, site: Site, admin_session: dict[str, object]
) -> None:
    """By somebody else, who sees its filter, order and columns; it is renamed, and deleted with a way back."""
    page.goto(f"{site.url}/ui/projects/{project_of(site)}?q=state:error&sort=name")
    page.get_by_role("grid").wait_for()
    views = page.get_by_role("button", name="Views")
    views.click()
    page.get_by_role("menuitem", name="Save view").click()
    page.get_by_role("dialog", name="Save view").get_by_label("Name").fill("broken ones")
    page.keyboard.press("Enter")
    expect(views).to_contain_text("broken ones")
    expect(page).to_have_url(re.compile("cols="))
    rows = shown(page.get_by_role("grid"), 5)
    other = browser.new_context(storage_state=admin_session)  # type: ignore[arg-type]
    other.set_default_timeout(TIMEOUT_MS)
    second = other.new_page()
    second.goto(page.url)
    expect(filter_of(second)).to_have_value("state:error")
    shows(second.get_by_role("grid"), rows)
    headed(second, headers(page))
    other.close()
    views.click()
    page.get_by_role("menuitem", name="Rename view").click()
    page.get_by_role("dialog", name="Rename view").get_by_label("Name").fill("failed")
    page.keyboard.press("Enter")
    expect(views).to_contain_text("failed")
    page.goto(f"{site.url}/ui/projects/{project_of(site)}")
    views.click()
    page.get_by_role("menuitem", name="failed").click()
    expect(filter_of(page)).to_have_value("state:error")
    views.click()
    page.get_by_role("menuitem", name="Delete view").click()
    page.get_by_text("Deleted the view failed").wait_for()
    expect(views).not_to_contain_text("failed")
    page.get_by_role("button", name="Undo").click()
    expect(views).to_contain_text("failed")


def test_what_is_found_is_saved(page: Page, site: Site) -> None:
    """All rows, also those that no window has loaded, in their order, with the columns that are shown."""
    cols = json.dumps(["id@64!", "name@200", "validation.loss.last@110"])
    page.goto(f"{site.url}/ui/experiments?cols={cols}&sort=-validation.loss.last&q=id<300")
    page.get_by_role("grid").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Table", exact=True).click()
        page.get_by_role("menuitem", name="Save all rows as CSV").click()
    assert download.value.suggested_filename == "Experiments.csv"
    with Path(download.value.path()).open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["ID", "Name", "loss"]
    every = numbers(search(site, "id<300", "validation.loss.last=desc,id=desc", limit=-1))
    assert [int(row[0]) for row in rows[1:]] == every
    assert HOSTILE in [row[1] for row in rows]
    assert float(rows[1][2]) > 0
