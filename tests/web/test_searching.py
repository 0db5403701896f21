"""The page of a search: how its best came about, where its trials stand, what decides, and brushes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import cast
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.kits.machine import wait_for
from tests.web.searched import PLANTED, TRIALS
from tests.web.site import Site, box_of


def opened(page: Page, site: Site, more: str = "") -> None:
    page.goto(f"{site.url}/ui/experiments/{site.sweep}{more}")
    page.get_by_role("figure", name="Hyperparameters of each trial").locator("canvas").wait_for()


def brushed(site: Site, brush: dict[str, list[float | str]]) -> int:
    """How many trials the API counts between these bounds, or with this text."""
    children = [field("experimentId", "LOCATION_TYPE_RUN", "=", site.sweep)]
    for name, values in brush.items():
        location = "LOCATION_TYPE_RUN_HYPERPARAMETERS"
        if isinstance(values[0], str):
            (text,) = values
            children.append({**field(f"hp.{name}", location, "=", text), "type": "COLUMN_TYPE_TEXT"})
            continue
        low, high = values
        children += [field(f"hp.{name}", location, ">=", low), field(f"hp.{name}", location, "<=", high)]
    group = {"kind": "group", "conjunction": "and", "children": children}
    body = {"limit": -2, "filter": json.dumps({"filterGroup": group, "showArchived": True})}
    return int(cast("dict[str, int]", site.api("POST", "/api/v1/runs", body)["pagination"])["total"])


def field(column: str, location: str, operator: str, value: object) -> dict[str, object]:
    kind = {"kind": "field", "type": "COLUMN_TYPE_NUMBER"}
    return {**kind, "columnName": column, "location": location, "operator": operator, "value": value}


def pull(page: Page, axis: Locator, first: float, second: float) -> None:
    """Along an axis with the mouse; from 0 at its upper end to 1."""
    box = box_of(axis)
    across = box["x"] + box["width"] / 2
    page.mouse.move(across, box["y"] + box["height"] * first)
    page.mouse.down()
    page.mouse.move(across, box["y"] + box["height"] * second, steps=4)
    page.mouse.up()


def test_a_brush_narrows_the_trials_to_what_the_api_counts(page: Page, site: Site) -> None:
    """It stands in the address, so that a reload shows the same; taking it away shows all again."""
    opened(page, site)
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(TRIALS + 1))
    pull(page, page.locator(f"[data-axis={PLANTED}]"), 0.3, 0.7)
    expect(page).to_have_url(re.compile("brush="))
    expect(page.get_by_text("match the selected ranges")).to_be_visible()
    brush = json.loads(parse_qs(urlsplit(page.url).query)["brush"][0])
    assert list(brush) == [PLANTED]
    left = brushed(site, brush)
    assert 0 < left < TRIALS
    expect(grid).to_have_attribute("aria-rowcount", str(left + 1))
    page.reload()
    expect(grid).to_have_attribute("aria-rowcount", str(left + 1))
    expect(page.locator(f"[data-axis={PLANTED}] [data-brushed]")).to_be_visible()
    page.get_by_role("button", name="Show all trials").click()
    expect(grid).to_have_attribute("aria-rowcount", str(TRIALS + 1))


def test_brushing_without_a_mouse(page: Page, site: Site) -> None:
    """Ranges are typed, texts are checked; both hold together."""
    opened(page, site)
    page.get_by_text("Filter by values").click()
    page.get_by_label("lr to", exact=True).fill("0.001")
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name="adam").check()
    grid = page.get_by_role("grid")
    trials = site.api("GET", f"/api/v1/experiments/{site.sweep}/search/trials?limit=1000")["trials"]
    tried = [each["hparams"] for each in cast("list[dict[str, dict[str, float | str]]]", trials)]
    left = sum(float(each["lr"]) <= 0.001 and each["optimizer"] == "adam" for each in tried)
    expect(grid).to_have_attribute("aria-rowcount", str(left + 1))


def test_the_planted_hyperparameter_decides(page: Page, site: Site) -> None:
    """It ranks first, the bars sum to one, and it is said from how many trials."""
    opened(page, site)
    bars = page.get_by_role("list", name="Importance of hyperparameters").get_by_role("listitem")
    expect(bars.first).to_contain_text(PLANTED)
    shares = [float(str(bar.get_attribute("data-importance"))) for bar in bars.all()]
    assert sum(shares) == pytest.approx(1, abs=0.01)
    assert shares[0] == max(shares)
    reply = site.api("GET", f"/api/v1/experiments/{site.sweep}/search/importance")
    expect(page.get_by_text(f"From {reply['trials']} trials")).to_be_visible()
    expect(page.get_by_label("Hyperparameter", exact=True)).to_have_value(PLANTED)


def test_too_few_trials_decide_nothing(page: Page, site: Site) -> None:
    """Then it is said how many are needed."""
    reply = site.api("GET", f"/api/v1/experiments/{site.search}/search/importance")
    assert reply["hyperparameters"] == []
    assert reply["trials"] == 3
    page.goto(f"{site.url}/ui/experiments/{site.search}")
    page.get_by_role("grid").wait_for()
    expect(page.get_by_role("list", name="Importance of hyperparameters")).to_have_count(0)


def test_where_the_trials_stand(page: Page, site: Site) -> None:
    """Over, running and to come; on each rung those that went on, were stopped, train on; the bottom one's pending."""
    opened(page, site)
    search = site.api("GET", f"/api/v1/experiments/{site.sweep}/search?limit=1")
    rungs = cast("list[dict[str, int]]", search["rungs"])
    section = page.locator("section").filter(has=page.get_by_role("heading", name="Where its trials stand"))
    for rung in rungs:
        assert rung["stopped"] + rung["ended"] + rung["running"] <= rung["count"]
        expect(section).to_contain_text(f"{rung['units']} batches")
    assert rungs[0]["stopped"] > 0
    assert rungs[0]["running"] > 0
    expect(section).to_contain_text(f"{rungs[0]['stopped']} stopped")
    expect(section).to_contain_text(f"{TRIALS - rungs[0]['count']} pending")
    expect(section).to_contain_text(f"{search['running']} running or waiting")


def test_the_best_trial_and_the_curves(page: Page, site: Site) -> None:
    """The best one by name, its curve among the best; more curves when asked for, which stands in the address."""
    opened(page, site)
    trials = site.api("GET", f"/api/v1/experiments/{site.sweep}/search/trials?limit=2")["trials"]
    best = cast("list[dict[str, int]]", trials)[0]["id"]
    expect(page.get_by_role("link", name=f"Trial {best}", exact=True)).to_be_visible()
    curves = page.get_by_role("figure", name="loss of the best 10 trials")
    expect(curves.locator("canvas")).to_be_visible()
    page.get_by_label("Curves").select_option("100")
    more = page.get_by_role("figure", name=re.compile(r"loss of the best \d\d trials"))
    expect(more.locator("canvas")).to_be_visible()
    expect(page).to_have_url(re.compile("best=100"))
    expect(page.get_by_role("figure", name="Best loss so far").locator("canvas")).to_be_visible()


def test_what_is_still_read_is_not_said_to_be_missing(page: Page, site: Site) -> None:
    """Until the history of the best value is there its chart says that it loads, not that nothing was validated."""
    held: list[Route] = []
    page.route("**/validation-history*", lambda route: held.append(route))
    opened(page, site)
    chart = page.get_by_role("figure", name="Best loss so far")
    expect(chart).to_contain_text("Loading…")
    expect(chart).not_to_contain_text("No validation yet")
    for route in held:
        route.continue_()
    expect(chart.locator("canvas")).to_be_visible()


@pytest.fixture
def saved(site: Site) -> Iterator[list[int]]:
    """The three trials of a search, each with a checkpoint at step 5, the first one's the newest, and a deleted one."""
    trials = cast("list[int]", site.experiment(site.search)["trialIds"])
    for place, trial in enumerate(trials):
        for step, state in ((5, "COMPLETED"), (10, "DELETED")):
            site.write(
                "insert into checkpoints (uuid, task_id, allocation_id, trial_id, run_id, state, steps_completed,"
                " metadata, resources, size_bytes, reported_at)"
                " select $2::text, task_id, task_id || '.1', id, 1, $3, $4::bigint,"
                " jsonb_build_object('steps_completed', $4::bigint), '{}', 0, now() - make_interval(secs => $5)"
                " from trials where id = $1",
                trial,
                f"{place:04d}{step:04d}-0000-4000-8000-{trial:012d}",
                state,
                step,
                float(place),
            )
    yield trials
    site.write("delete from checkpoints where trial_id = any($1::bigint[])", trials)


def test_checkpoints_of_all_trials_in_one_list(page: Page, site: Site, saved: list[int]) -> None:
    """The best first, or the newest; those whose files are gone are none, and each leads to what is in it."""
    page.goto(f"{site.url}/ui/experiments/{site.search}")
    page.get_by_role("heading", name="Checkpoints", exact=True).scroll_into_view_if_needed()
    rows = page.get_by_role("region", name="Checkpoints of all trials").get_by_role("row")
    # The loss is the least in the last one.
    for order, trials in (("best", reversed(saved)), ("newest", saved)):
        page.get_by_label("Order of checkpoints").select_option(order)
        for place, trial in enumerate(trials, 1):
            expect(rows.nth(place).get_by_role("link").nth(1)).to_have_text(str(trial))
        expect(rows).to_have_count(4)
    rows.nth(1).get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(f"/trials/{saved[0]}.tab=checkpoints&checkpoint=00000005"))
    expect(page.get_by_role("heading", name="Checkpoint 00000005")).to_be_visible()


def test_selected_trials_are_compared(page: Page, site: Site) -> None:
    """`x`, a range and `c`; exactly these."""
    opened(page, site, "?sort=id")
    page.get_by_role("gridcell", name=f"{site.swept[0]}", exact=True).wait_for()
    for key in ("j", "x", "Shift+ArrowDown", "Shift+ArrowDown"):
        page.keyboard.press(key)
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare 3 trials")
    rows = page.get_by_role("region", name="Compared trials").locator("tbody tr")
    expect(rows).to_have_count(3)
    for place, trial in enumerate(site.swept[:3]):
        expect(rows.nth(place)).to_have_attribute("data-trial", str(trial))


def test_axes_are_arranged(page: Page, site: Site) -> None:
    """By hand and by keys, and each with a linear or a logarithmic scale; it stands in the address."""
    opened(page, site)
    axes = page.locator("[data-axis]")
    expect(axes.first).to_have_attribute("data-axis", PLANTED)
    names = [str(axis.get_attribute("data-axis")) for axis in axes.all()]
    page.get_by_text("Filter by values").click()
    order = page.get_by_role("list", name="Axes from left to right")
    order.get_by_role("button", name="lr to the right").click()
    expect(axes.nth(1)).to_have_attribute("data-axis", PLANTED)
    page.locator("[data-title=metric]").drag_to(page.locator(f"[data-title={names[1]}]"))
    expect(axes.first).to_have_attribute("data-axis", "metric")
    expect(order.get_by_role("checkbox", name="lr logarithmic")).to_be_checked()
    order.get_by_role("checkbox", name="lr logarithmic").uncheck()
    page.reload()
    expect(axes.nth(2)).to_have_attribute("data-axis", PLANTED)
    page.get_by_text("Filter by values").click()
    expect(order.get_by_role("checkbox", name="lr logarithmic")).not_to_be_checked()


def test_the_metric_over_hyperparameters(page: Page, site: Site) -> None:
    """A small chart for each of them; over two a heat map, of which a cell narrows the table to its trials."""
    opened(page, site)
    page.get_by_label("Hyperparameter", exact=True).select_option("All of them")
    expect(page.locator("[data-scatters] canvas")).to_have_count(4)
    page.get_by_label("From left to right", exact=True).select_option("optimizer")
    page.get_by_label("Upwards", exact=True).select_option("lr")
    figure = page.get_by_role("figure", name="loss by optimizer and lr")
    trials = site.api("GET", f"/api/v1/experiments/{site.sweep}/search/trials?limit=1000")["trials"]
    figure.get_by_role("button", name="View as table").click()
    figure.get_by_role("cell").first.wait_for()
    with_metric = [trial for trial in cast("list[dict[str, object]]", trials) if trial.get("metric") is not None]
    counts = figure.locator("tbody tr td:nth-of-type(3)")
    wait_for(lambda: sum(map(int, counts.all_inner_texts())) == len(with_metric), "all trials in it")
    figure.get_by_role("button", name="View as table").click()
    drawing = figure.locator("[data-heatmap]")
    box = box_of(drawing)
    # The best rates lie in the middle of their range.
    drawing.click(position={"x": box["width"] / 6, "y": box["height"] * 0.45})
    expect(page).to_have_url(re.compile("brush="))
    brush = json.loads(parse_qs(urlsplit(page.url).query)["brush"][0])
    assert brush["optimizer"] == ["adam"]
    assert set(brush) == {"optimizer", "lr"}
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(brushed(site, brush) + 1))
