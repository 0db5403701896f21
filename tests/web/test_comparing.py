"""Trials side by side: what is selected is compared, a legend, charts of what they share, and what they differ in."""

from __future__ import annotations

import re
import statistics
from typing import cast

import pytest
from playwright.sync_api import Page, expect

from tests.kits.machine import wait_for
from tests.web.searched import DETAILED, METRICS
from tests.web.site import Site, box_of, drawn, hover_until

#: Canvases that a page has at most, however many metrics there are.
MAX_CANVASES = 12


def compare(page: Page, site: Site, count: int, more: str = "") -> list[int]:
    """The comparison of so many trials of the search."""
    trials = site.swept[:count]
    page.goto(f"{site.url}/ui/compare?trials={','.join(map(str, trials))}{more}")
    page.get_by_role("region", name="Compared trials").wait_for()
    return trials


def canvases(page: Page) -> int:
    return page.locator("canvas").count()


def test_selected_experiments_are_compared_by_their_best(page: Page, site: Site) -> None:
    """By keyboard: `x`, Shift and an arrow, `c`; exactly the best trials of these; Esc leads back to the same row."""
    page.goto(f"{site.url}/ui/experiments?q=compare-these")
    numbers = site.make("compare-these", count=3)
    trials = {number: site.make_trial(number) for number in numbers}
    page.reload()
    grid = page.get_by_role("grid")
    grid.get_by_role("gridcell", name=re.compile("compare-these")).first.wait_for()
    for key in ("j", "j", "x", "Shift+ArrowDown"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare 2 trials")
    middle, first = numbers[1], numbers[0]
    expect(page).to_have_url(
        re.compile(rf"trials={trials[first]}%2C{trials[middle]}$|trials={trials[middle]}%2C{trials[first]}$")
    )
    page.keyboard.press("Escape")
    expect(grid).to_be_focused()
    row = grid.get_by_role("row").filter(has=page.get_by_role("gridcell", name=str(first), exact=True))
    expect(grid).to_have_attribute("aria-activedescendant", str(row.get_attribute("id")))
    expect(page.get_by_text("2 selected")).to_be_visible()


def test_only_charts_in_view_are_mounted(page: Page, site: Site) -> None:
    """20 trials of 30 metrics: a few canvases, wherever one scrolls to; a metric is one request for all trials."""
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/trials/series" in sent.url else None)
    compare(page, site, DETAILED)
    expect(page.locator("figure")).to_have_count(METRICS + 1)
    page.locator("figure canvas").nth(1).wait_for()
    assert 0 < canvases(page) <= MAX_CANVASES
    assert len(asked) <= MAX_CANVASES
    last = page.locator("figure").last
    last.scroll_into_view_if_needed()
    last.locator("canvas").wait_for()
    expect(page.locator("figure").first.locator("canvas")).to_have_count(0)
    wait_for(lambda: canvases(page) <= MAX_CANVASES, "those out of view to go")


def test_a_hovered_trial_is_marked_everywhere(page: Page, site: Site) -> None:
    """In the legend it marks the chart, in the chart the legend, in the table of differences both."""
    trials = compare(page, site, 5)
    row = page.locator(f"tr[data-trial='{trials[2]}']")
    page.locator("figure canvas").first.wait_for()
    marked_lines = page.locator(f"figure svg[data-hovered='{trials[2]}']")
    hover_until(row, marked_lines.first)
    # A chart that is drawn anew, as it is whenever points arrive, does not end what the legend has begun.
    page.get_by_label("Smoothing").fill("0.5")
    expect(page).to_have_url(re.compile("smooth=0.5"))
    drawn(page)
    expect(marked_lines.first).to_be_visible()
    chart = page.locator("figure .u-over").first
    box = box_of(chart)
    marked = page.locator("tr[data-hovered]")
    for share in range(20):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * share / 20)
        drawn(page)
        if marked.count():
            break
    expect(marked).to_have_count(1)
    hovered = marked.get_attribute("data-trial")
    expect(page.locator(f"figure svg[data-hovered='{hovered}']").first).to_be_visible()
    page.get_by_role("link", name="Differences").click()
    hover_until(
        page.get_by_role("columnheader", name=re.compile(rf"^Trial {trials[1]}\b")).first,
        page.locator(f"tr[data-hovered][data-trial='{trials[1]}']"),
    )


def test_what_is_hidden_and_how_it_is_drawn_stand_in_the_address(page: Page, site: Site) -> None:
    """A reload shows the same; the eye hides a trial from charts and their tables, and the legend keeps it."""
    trials = compare(page, site, 3, "&q=validation")
    page.get_by_role("button", name=f"Show the lines of trial {trials[0]}", exact=True).click()
    page.get_by_label("Horizontal axis").select_option("time")
    page.get_by_label("Logarithmic").check()
    page.get_by_label("Smoothing").fill("0.6")
    expect(page).to_have_url(re.compile(rf"hide={trials[0]}.*"))
    for part in ("x=time", "log=true", "smooth=0.6", "q=validation"):
        expect(page).to_have_url(re.compile(part))
    page.reload()
    expect(page.get_by_role("button", name=f"Show the lines of trial {trials[0]}", exact=True)).to_have_attribute(
        "aria-pressed", "false"
    )
    expect(page.get_by_label("Smoothing")).to_have_value("0.6")
    page.get_by_role("button", name="View as table: validation loss").click()
    table = page.get_by_role("region", name="validation loss, as a table")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table).not_to_contain_text(f"trial {trials[0]}")


def test_differences_alone(page: Page, site: Site) -> None:
    """What is the same is hidden until it is asked for, and then comes after what differs."""
    trials = compare(page, site, 2, "&tab=diff")
    table = page.get_by_role("region", name="Hyperparameters")
    expect(table.get_by_role("rowheader", name="lr")).to_be_visible()
    shown = table.locator("tbody tr[data-differs=true]")
    hparams = [site.api("GET", f"/api/v1/trials/{trial}")["trial"]["hparams"] for trial in trials]  # type: ignore[index]
    expect(shown).to_have_count(sum(hparams[0][name] != hparams[1][name] for name in hparams[0]))
    expect(table.locator("tbody tr[data-differs=false]")).to_have_count(0)
    page.get_by_label("Only differences").uncheck()
    expect(table.get_by_role("rowheader", name="batch_size")).to_be_visible()
    names = table.get_by_role("rowheader").all_text_contents()
    assert names.index("lr") < names.index("batch_size")


def test_trials_are_grouped(page: Page, site: Site) -> None:
    """One line for each value of what they are grouped by, with its band; the table has count, mean and deviation."""
    trials = compare(page, site, DETAILED)
    every = site.api("GET", f"/api/v1/experiments/{site.sweep}/search/trials?limit=1000")["trials"]
    groups: dict[str, list[float]] = {}
    for trial in cast("list[dict[str, object]]", every):
        if trial["id"] in trials:
            name = cast("dict[str, str]", trial["hparams"])["optimizer"]
            groups.setdefault(name, []).append(float(cast("float", trial["metric"])))
    page.get_by_role("button", name="Group…").click()
    dialog = page.get_by_role("dialog", name="Group trials")
    for name in ("lr", "width", "dropout"):
        dialog.get_by_role("checkbox", name=name).uncheck()
    dialog.get_by_role("button", name="Group", exact=True).click()
    rows = page.get_by_role("region", name="Groups").locator("tbody tr")
    expect(rows).to_have_count(len(groups))
    expect(page).to_have_url(re.compile("by=%5B%22optimizer%22%5D"))
    for name, values in groups.items():
        cells = rows.filter(has_text=name).get_by_role("cell")
        expect(cells.nth(2)).to_have_text(str(len(values)))
        for place in (3, 4):
            expect(cells.nth(place).locator("span")).to_have_attribute("title", re.compile(r"\d"))
        mean, spread = (float(str(cells.nth(place).locator("span").get_attribute("title"))) for place in (3, 4))
        assert mean == pytest.approx(statistics.mean(values))
        assert spread == pytest.approx(statistics.stdev(values))
    figure = page.get_by_role("figure", name="training loss")
    expect(figure).to_have_accessible_description(re.compile(f"^{len(groups)} lines"))
    figure.locator("canvas").wait_for()
    narrow = [float(end) for end in str(figure.locator("[data-values]").get_attribute("data-values")).split()]
    page.get_by_label("Band").select_option("Mean, lowest to highest")
    expect(page).to_have_url(re.compile("band=range"))
    expect(figure.locator("[data-values]")).not_to_have_attribute("data-values", " ".join(map(str, narrow)))
    hover_until(rows.first, figure.locator("svg[data-hovered]"))


def test_a_project_keeps_its_layout(page: Page, site: Site) -> None:
    """Which charts come first, which are hidden, their size, smoothing and values: on other pages, too, and later.
    They are found by a pattern."""
    trials = compare(page, site, 3, "&re=true&q=metric_0%5B0-3%5D")
    figures = page.locator("figure")
    expect(figures).to_have_count(4)

    def arrange(title: str, item: str) -> None:
        with page.expect_response(lambda reply: "users/setting" in reply.url and reply.request.method == "POST"):
            page.get_by_role("button", name=f"Arrange training {title}").click()
            page.get_by_role("menuitem", name=item).click()

    arrange("metric_03", "Pin it first")
    arrange("metric_00", "Hide")
    arrange("metric_02", "Earlier")
    page.get_by_role("button", name="Arrange training metric_01").click()
    page.get_by_role("menuitem", name="Limit values").click()
    dialog = page.get_by_role("dialog", name="Values of training metric_01")
    dialog.get_by_label("To").fill("-1e9x")
    dialog.get_by_role("button", name="Apply").click()
    expect(dialog.get_by_role("alert")).to_contain_text("is not a number")
    dialog.get_by_label("To").fill("4.5")
    dialog.get_by_role("button", name="Apply").click()
    page.get_by_label("Smoothing").fill("0.5")
    page.get_by_label("Logarithmic").check()
    layout = page.get_by_role("button", name="Layout")
    layout.click()
    page.get_by_role("menuitemradio", name="Large charts").click()
    layout.click()
    with page.expect_response(lambda reply: "users/setting" in reply.url and reply.request.method == "POST"):
        page.get_by_role("menuitem", name="Save axis, scale and smoothing").click()
    names = ["metric_03", "metric_02", "metric_01"]
    for address, prefix in (
        (f"compare?trials={trials[0]},{trials[1]}&re=true&q=metric_0%5B0-3%5D", "training "),
        (f"trials/{trials[0]}?tab=metrics&pattern=true&metric=metric_0%5B0-3%5D", ""),
    ):
        page.goto(f"{site.url}/ui/{address}")
        expect(figures).to_have_count(3)
        for place, name in enumerate(names):
            expect(figures.nth(place)).to_have_accessible_name(prefix + name)
        expect(page.get_by_label("Smoothing")).to_have_value("0.5")
        expect(page.get_by_label("Logarithmic")).to_be_checked()
        figures.nth(2).scroll_into_view_if_needed()
        expect(figures.nth(2).locator("[data-values]")).to_have_attribute("data-values", re.compile(r" 4\.5$"))
    layout.click()
    page.get_by_role("menuitem", name="Show metric_00").click()
    expect(figures).to_have_count(4)
    layout.click()
    with page.expect_response(lambda reply: "users/setting" in reply.url and reply.request.method == "POST"):
        page.get_by_role("menuitem", name="Reset the layout").click()
    expect(figures.first).to_have_accessible_name("metric_00")
