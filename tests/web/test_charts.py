"""Charts of a trial: nothing that stands out is lost, a zoom has points of its own, smoothing hides nothing."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.kits import plain_http
from tests.kits.machine import wait_for
from tests.web.site import Site, box_of

STEPS = 20_000
SPIKE = 12_345


@pytest.fixture(scope="module")
def trained(site: Site) -> int:
    """A trial of many steps: one alone is high, and none is a number from 5,000 to 5,999."""
    config = "name: far\nsearcher: {name: single, metric: loss}\n"
    made = site.api("POST", "/api/v1/experiments", {"config": config, "unmanaged": True})["experiment"]
    assert isinstance(made, dict)
    asked = {"experimentId": made["id"], "hparams": {}, "unmanaged": True}
    put = site.api("PUT", "/api/v1/trials", {"createTrialRequest": asked, "externalTrialId": "far"})["trial"]
    assert isinstance(put, dict)
    number = int(put["id"])
    site.api("POST", f"/api/v1/trials/{number}/start", {})
    lines = [_line(step) for step in range(1, STEPS + 1)]
    url = f"{site.url}/api/v1/trials/{number}/runs/1/spool?stream=reports"
    for first in range(0, STEPS, 5000):
        body = "".join(lines[first : first + 5000]).encode()
        reply = plain_http.post(url, content=body, headers={"Authorization": f"Bearer {site.token}"})
        assert reply.status_code == 200, reply.text
    return number


def _line(step: int) -> str:
    value: object = "NaN" if 5000 <= step < 6000 else 50.0 if step == SPIKE else 1 + (step % 7) / 10
    body = {"group": "training", "stepsCompleted": step, "metrics": {"loss": value}}
    return json.dumps({"n": step, "kind": "metrics", "at": 1.79e9 + step, "body": body}) + "\n"


def chart(page: Page, site: Site, trial: int, more: str = "") -> Locator:
    """The chart of its loss, drawn."""
    page.goto(f"{site.url}/ui/trials/{trial}?tab=metrics{more}")
    figure = page.get_by_role("figure", name="loss")
    figure.locator("canvas").wait_for()
    return figure


def test_what_stands_out_is_seen_and_a_zoom_shows_its_own_points(page: Page, site: Site, trained: int) -> None:
    """The greatest of 20,000 values is in the chart; what is dragged stands in the address, and Back is not needed."""
    figure = chart(page, site, trained)
    expect(figure).to_have_accessible_description(re.compile("to 50,"))
    box = box_of(figure.locator(".u-over"))
    with page.expect_request(lambda sent: "/series" in sent.url and "fromStep=" in sent.url):
        page.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 60, steps=5)
        page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=[12]\d\d\d&to=[34]\d\d\d"))
    expect(figure).to_have_accessible_description(re.compile("from 1 to 1.6,"))
    page.get_by_role("button", name="All steps").click()
    expect(page).not_to_have_url(re.compile("from="))
    expect(figure).to_have_accessible_description(re.compile("to 50,"))


def test_steps_are_typed_as_well(page: Page, site: Site, trained: int) -> None:
    """By keyboard alone: the point that stands out, by itself."""
    figure = chart(page, site, trained)
    page.get_by_label("From step").fill("12340")
    page.keyboard.press("Tab")
    page.get_by_label("To step").fill("12350")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("from=12340&to=12350"))
    expect(figure).to_have_accessible_description(re.compile("to 50,"))
    figure.get_by_role("button", name="View as table: loss").click()
    expect(figure.get_by_role("row").nth(1)).to_contain_text("11")
    figure.get_by_role("button", name="View as table: loss").click()
    figure.locator("canvas").wait_for()


#: Of the columns at some shares of a chart's width: whether there is a pixel as strong as a line is, and a faint one.
#: Read from a copy: the browser complains of who reads the same canvas again and again.
COLOURED = """(canvas, shares) => {
    const over = canvas.parentElement.querySelector(".u-over").getBoundingClientRect();
    const own = canvas.getBoundingClientRect();
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    return shares.map((share) => {
        const x = Math.round((over.left - own.left + share * over.width) * canvas.width / own.width);
        const alphas = [];
        for (let at = 4 * x; at < data.length; at += 4 * canvas.width) {
            if (data[at + 2] - data[at] > 60) alphas.push(data[at + 3]);
        }
        return [alphas.some((alpha) => alpha > 150), alphas.some((alpha) => alpha > 20 && alpha <= 150)];
    });
}"""


def test_smoothing_keeps_the_line_and_the_gap(page: Page, site: Site, trained: int) -> None:
    """The line that was reported is there as well, faint; what was no number joins nothing, smoothed or not."""
    for more, behind in (("", False), ("&smooth=0.9", True)):
        figure = chart(page, site, trained, more)
        canvas = figure.locator("canvas")
        expect(figure).to_have_accessible_description(re.compile("from "))
        shares = [5500 / STEPS, *(share / 100 for share in range(5, 24))]

        def lines(canvas: Locator = canvas, shares: list[float] = shares) -> list[list[bool]] | None:
            """Once there are some: they are drawn a moment after the chart is there."""
            columns: list[list[bool]] = canvas.evaluate(COLOURED, shares)
            return columns if any(strong for strong, _ in columns) else None

        gap, *columns = wait_for(lines, "lines of a chart")
        assert gap == [False, False]
        assert any(faint for _, faint in columns) or not behind
    expect(page.get_by_label("Smoothing")).to_have_value("0.9")
