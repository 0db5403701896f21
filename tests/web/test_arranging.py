"""A table, arranged: all trials as its rows, several orders, heat maps, heights of rows, a filter built by hand."""

from __future__ import annotations

import json
import re
from typing import cast

from playwright.sync_api import Page, expect

from tests.web.site import Site
from tests.web.table import filter_of, headers, numbers, project_of, search, shows


def trials(site: Site, query: str, sort: str, limit: int = 100) -> tuple[list[int], int]:
    """What the API itself finds, and how many there are."""
    body = {"projectId": project_of(site), "query": query, "sort": sort, "limit": limit, "filter": "{}"}
    reply = site.api("POST", "/api/v1/runs", {**body, "filter": json.dumps({"showArchived": False})})
    total = cast("dict[str, int]", reply["pagination"])["total"]
    return [run["id"] for run in cast("list[dict[str, int]]", reply["runs"])], total


def test_all_trials_are_rows(page: Page, site: Site) -> None:
    """With a filter, an order and columns of their own, all in the address; selected ones are compared, exactly these,
    and Esc leads back to the same row."""
    page.goto(f"{site.url}/ui/projects/{project_of(site)}")
    page.get_by_label("Rows", exact=True).select_option("All trials")
    expect(page).to_have_url(re.compile("rows=trials"))
    grid = page.get_by_role("grid")
    _, every = trials(site, "", "id=desc")
    expect(grid).to_have_attribute("aria-rowcount", str(every + 1))
    assert headers(page)[:3] == ["Trial", "Experiment", "State"]
    filter_of(page).fill("hp.lr<0.01 has:val_loss")
    found, total = trials(site, "hp.lr<0.01 has:val_loss", "hp.lr=asc,id=desc")
    assert 2 < total < every
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1))
    filter_of(page).press("Enter")
    page.get_by_role("button", name="Columns", exact=True).click()
    dialog = page.get_by_role("dialog", name="Columns")
    dialog.get_by_role("group", name="Hyperparameters").get_by_role("checkbox", name="lr", exact=True).click()
    dialog.get_by_role("button", name="Done").click()
    heading = page.get_by_role("columnheader", name="lr", exact=True).get_by_role("button")
    heading.click()
    heading.click()
    expect(page).to_have_url(re.compile("sort=hp.lr"))
    shows(grid, found[:5])
    page.reload()
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1))
    shows(grid, found[:5])
    for key in ("j", "x", "Shift+ArrowDown"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile(f"trials={found[0]}%2C{found[1]}$"))
    page.get_by_role("heading", name="Compare 2 trials").wait_for()
    page.keyboard.press("Escape")
    expect(grid).to_be_focused()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/trials/{found[1]}$"))
    page.goto(f"{site.url}/ui/projects/{project_of(site)}?rows=trials&state=error&owner=me")
    _, failed = trials(site, "state:error owner:determined", "id=desc")
    assert 0 < failed < every
    expect(grid).to_have_attribute("aria-rowcount", str(failed + 1))


def test_by_several_columns(page: Page, site: Site) -> None:
    """With Shift a heading comes after the others; the same is done in a dialog; the order is that of the API."""
    page.goto(f"{site.url}/ui/experiments?q=id<200&sort=state")
    grid = page.get_by_role("grid")
    grid.wait_for()
    heading = page.get_by_role("columnheader", name="Trials", exact=True)
    heading.get_by_role("button").click(modifiers=["Shift"])
    expect(page).to_have_url(re.compile("sort=state%2C-numTrials"))
    expect(heading).to_contain_text("↓2")
    expect(page.get_by_role("columnheader", name="State", exact=True)).to_have_attribute("aria-sort", "ascending")
    order = "state=asc,numTrials=desc"
    shows(grid, numbers(search(site, "id<200", f"{order},id=desc", limit=12)))
    page.get_by_role("button", name="Sort", exact=True).click()
    dialog = page.get_by_role("dialog", name="Sort by")
    dialog.get_by_label("Then by").select_option("Name")
    dialog.get_by_label("Direction of Name").select_option("smallest first")
    dialog.get_by_role("button", name="Trials earlier").click()
    dialog.get_by_role("button", name="Done").click()
    expect(page).to_have_url(re.compile("sort=-numTrials%2Cstate%2Cname"))
    order = "numTrials=desc,state=asc,name=asc,id=desc"
    expect(page.get_by_role("columnheader", name="Name", exact=True)).to_contain_text("↑3")
    shows(grid, numbers(search(site, "id<200", order, limit=12)))


def test_heat_and_heights_and_the_first_rows(page: Page, site: Site) -> None:
    """A cell's colour is where its value lies in the project; the height is kept; the first five are selected."""
    cols = json.dumps(["id@64!", "validation.loss.last@110"])
    page.goto(f"{site.url}/ui/projects/{project_of(site)}?cols={cols}&sort=validation.loss.last")
    grid = page.get_by_role("grid")
    grid.wait_for()
    menu = page.get_by_role("button", name="Table", exact=True)
    menu.click()
    page.get_by_role("menuitem", name="Heat map of all metrics").click()
    expect(page).to_have_url(re.compile("last%40110%7E"))
    least = grid.locator("[aria-rowindex='2']").get_by_role("gridcell").nth(2)
    expect(least).to_have_css("background-color", re.compile("."))
    expect(least).to_have_attribute("style", re.compile("color-mix"))
    valued = cast("dict[str, int]", search(site, "has:val_loss", projectId=project_of(site))["pagination"])["total"]
    grid.evaluate("(grid, top) => grid.scrollTo(0, top)", (valued - 3) * 32)
    most = grid.locator(f"[aria-rowindex='{valued + 1}']").get_by_role("gridcell").nth(2)
    expect(most).to_have_attribute("style", re.compile("color-mix"))
    expect(most).not_to_have_attribute("style", str(least.get_attribute("style")))
    menu.click()
    page.get_by_role("menuitemradio", name="Tall rows").click()
    page.reload()
    second = grid.locator("[aria-rowindex='3']")
    expect(second).to_have_css("height", "52px")
    menu.click()
    page.get_by_role("menuitem", name="Select the first 5").click()
    expect(page.get_by_text("5 selected")).to_be_visible()
    expect(grid.locator("[aria-rowindex='6']")).to_have_attribute("aria-selected", "true")
    menu.click()
    with page.expect_response(lambda reply: "users/setting" in reply.url and reply.request.method == "POST"):
        page.get_by_role("menuitemradio", name="Dense rows").click()


def test_a_filter_is_built(page: Page, site: Site) -> None:
    """From what stands in the field, in groups in one another; what is built stands there, as one would type it."""
    page.goto(f"{site.url}/ui/experiments?q=state:error,completed")
    grid = page.get_by_role("grid")
    grid.wait_for()
    page.get_by_role("button", name="Build…").click()
    dialog = page.get_by_role("dialog", name="Build a filter")
    expect(dialog.get_by_label("Value")).to_have_value("error,completed")
    dialog.get_by_role("button", name="Add a group").click()
    group = dialog.get_by_role("group", name="Group, 1 deep")
    group.get_by_label("Column").select_option("Trials")
    group.get_by_label("Operator").select_option(">")
    group.get_by_label("Value").fill("none")
    expect(dialog.get_by_text("is no number")).to_be_visible()
    expect(dialog.get_by_role("button", name="Apply")).to_be_disabled()
    group.get_by_label("Value").fill("1")
    group.get_by_role("button", name="Add a condition").click()
    group.get_by_label("Column").nth(1).select_option("Name or number")
    group.get_by_label("Value").nth(1).fill('over "digits')
    group.get_by_label("not").nth(2).check()
    query = 'state:error,completed (numTrials>1 OR NOT "over \\"digits")'
    expect(dialog.get_by_text(query)).to_be_visible()
    dialog.get_by_role("button", name="Apply").click()
    expect(filter_of(page)).to_have_value(query)
    total = cast("dict[str, int]", search(site, query)["pagination"])["total"]
    expect(grid).to_have_attribute("aria-rowcount", str(total + 1))
