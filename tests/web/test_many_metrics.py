"""A trial with 3,000 metrics, with slashes and spaces in their names: each page shows some, finds any, asks for few."""

from __future__ import annotations

import json
from typing import cast

import pytest
from playwright.sync_api import Page, expect

from tests.kits import plain_http
from tests.web.site import Site, fits

METRICS = [f"layer {number % 60}/block {number // 60}/weight norm" for number in range(3000)]
SOME = METRICS[1234]
HYPERPARAMETERS = 300
#: Elements of a page, and requests for points, at most, however many metrics there are.
MAX_ELEMENTS, MAX_SERIES = 3000, 24
#: Bytes of rows of a table: those of one trial's summaries are half a million.
MAX_ROWS_BYTES = 100_000


class Many:
    """A project of two trials."""

    project: int = 0
    trials: list[int]


@pytest.fixture(scope="module")
def many(site: Site) -> Many:
    """They are there for all tests of this file."""
    made = Many()
    own = site.api("POST", "/api/v1/workspaces", {"name": "many metrics"})["workspace"]
    in_it = f"/api/v1/workspaces/{cast('dict[str, int]', own)['id']}/projects"
    made.project = cast("dict[str, int]", site.api("POST", in_it, {"name": "many metrics"})["project"])["id"]
    values = {f"part {number}/rate": number for number in range(HYPERPARAMETERS)}
    hparams = json.dumps(values)
    config = f"name: many metrics\nhyperparameters: {hparams}\nsearcher: {{name: single, metric: '{SOME}'}}\n"
    made.trials = []
    for shift in range(2):
        asked = {"config": config, "unmanaged": True, "projectId": made.project}
        experiment = cast("dict[str, int]", site.api("POST", "/api/v1/experiments", asked)["experiment"])["id"]
        trial = cast(
            "dict[str, int]",
            site.api("POST", "/api/v1/trials", {"experimentId": experiment, "hparams": values, "unmanaged": True})[
                "trial"
            ],
        )["id"]
        site.api("POST", f"/api/v1/trials/{trial}/start", {"resume": False})
        lines = []
        for step, group in enumerate(("training", "training", "validation"), start=1):
            metrics = {name: shift + step + place / 1e4 for place, name in enumerate(METRICS)}
            body = {"group": group, "stepsCompleted": step, "metrics": metrics}
            lines.append(json.dumps({"n": step, "kind": "metrics", "at": 1.79e9 + step, "body": body}))
        reply = plain_http.post(
            f"{site.url}/api/v1/trials/{trial}/runs/1/spool?stream=reports",
            content="\n".join(lines).encode() + b"\n",
            headers={"Authorization": f"Bearer {site.token}"},
        )
        assert reply.status_code == 200, reply.text
        made.trials.append(trial)
    return made


def elements(page: Page) -> int:
    return cast("int", page.evaluate("document.querySelectorAll('*').length"))


def series(page: Page) -> list[str]:
    """Requests for points, from now on."""
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "series" in sent.url else None)
    return asked


@pytest.mark.parametrize("tab", ["", "?tab=metrics"], ids=["overview", "metrics"])
def test_a_trial_shows_some_and_finds_any(page: Page, site: Site, many: Many, tab: str) -> None:
    """Twelve charts, more when asked; by a part of a name the one that is meant."""
    asked = series(page)
    page.goto(f"{site.url}/ui/trials/{many.trials[0]}{tab}")
    page.locator("figure canvas").first.wait_for()
    assert elements(page) < MAX_ELEMENTS
    assert len(asked) <= MAX_SERIES
    fits(page)
    page.get_by_role("searchbox", name="Part of a metric name").fill(SOME)
    expect(page.get_by_role("figure", name=SOME)).to_be_visible()
    expect(page.locator("figure")).to_have_count(1)


def test_latest_values_are_a_table(page: Page, site: Site, many: Many) -> None:
    """Two hundred rows, more when asked."""
    page.goto(f"{site.url}/ui/trials/{many.trials[0]}?tab=metrics&view=table")
    page.get_by_role("button", name="Show more of the 6,000 metrics").wait_for()
    assert elements(page) < MAX_ELEMENTS
    fits(page)


def test_a_comparison_has_some_charts_and_more_when_asked(page: Page, site: Site, many: Many) -> None:
    """It does not make six thousand of them, of which each would wait to come into view."""
    asked = series(page)
    page.goto(f"{site.url}/ui/compare?trials={','.join(map(str, many.trials))}")
    page.locator("figure canvas").first.wait_for()
    more = page.get_by_role("button", name="Show more of the 6,000 metrics")
    expect(more).to_be_visible()
    assert elements(page) < MAX_ELEMENTS
    assert len(asked) <= MAX_SERIES
    fits(page)
    charts = page.locator("figure").count()
    more.click()
    expect(page.locator("figure")).to_have_count(charts + 60)
    page.get_by_role("searchbox", name="Part of a metric name").fill(f"training {SOME}")
    expect(page.get_by_role("figure", name=f"training {SOME}")).to_be_visible()


@pytest.mark.parametrize("rows", ["", "?rows=trials"], ids=["experiments", "trials"])
def test_rows_come_with_what_is_shown(page: Page, site: Site, many: Many, rows: str) -> None:
    """Of thousands of metrics and hundreds of hyperparameters a table has those that one chose, found by name."""
    sizes: list[int] = []
    lists = ("/api/v1/runs", "/api/v1/experiments-search")
    page.on("response", lambda reply: sizes.append(len(reply.body())) if reply.url.endswith(lists) else None)
    page.goto(f"{site.url}/ui/projects/{many.project}{rows}")
    page.get_by_role("gridcell").first.wait_for()
    page.get_by_role("button", name="Columns").click()
    dialog = page.get_by_role("dialog", name="Columns")
    dialog.get_by_role("group", name="Hyperparameters").wait_for()
    assert elements(page) < MAX_ELEMENTS
    for typed in (f"{SOME} validation last", "part 299/rate"):
        dialog.get_by_label("Find a column").fill(typed)
        dialog.get_by_role("checkbox").first.check()
        expect(dialog.get_by_role("checkbox")).to_have_count(1)
    dialog.get_by_role("button", name="Done").click()
    cell = page.get_by_role("row").nth(1)
    expect(cell).to_contain_text(f"{3 + 1 + METRICS.index(SOME) / 1e4:.4g}")
    assert sizes
    assert max(sizes) < MAX_ROWS_BYTES
    page.get_by_role("button", name="Columns").click()
    dialog.get_by_role("button", name="Reset").click()
