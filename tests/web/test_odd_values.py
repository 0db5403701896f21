"""Charts of values that are very large, very small, all zero or no numbers, and of steps as far as numbers go."""

from __future__ import annotations

import math

import pytest
from playwright.sync_api import Page, expect

from tests.web.site import Site

FAR = 2**53
#: Of a metric, from step 1 on.
VALUES: dict[str, list[object]] = {
    "great": [-1e308, 1e308, 0.0],
    "small": [1e-30, 5e-30],
    "subnormal": [1e-320, 3e-320],
    "both": [1e-320, 1.0],
    "zero": [0.0, 0.0],
    "alone": [2.0],
}
#: Between which values each is drawn.
DRAWN = {"great": (-1.5e308, 1.5e308), "small": (0, 6e-30), "subnormal": (0, 4e-320), "both": (0, 1.2)}


@pytest.fixture(scope="module")
def odd(site: Site) -> int:
    """A trial with all of them, one that is no number, and one far away."""
    config = "name: odd values\nsearcher: {name: single, metric: loss}\n"
    made = site.api("POST", "/api/v1/experiments", {"config": config, "unmanaged": True})["experiment"]
    asked = {"experimentId": made["id"], "hparams": {}, "unmanaged": True}  # type: ignore[index]
    trial: int = site.api("POST", "/api/v1/trials", asked)["trial"]["id"]  # type: ignore[index]
    site.api("POST", f"/api/v1/trials/{trial}/start", {"resume": False})

    def report(step: int, metrics: dict[str, object]) -> None:
        body = {"trialId": trial, "trialRunId": 1, "stepsCompleted": step, "metrics": {"avgMetrics": metrics}}
        site.api("POST", f"/api/v1/trials/{trial}/metrics", {"metrics": body, "group": "training"})

    for step in (1, 2, 3):
        known = {name: values[step - 1] for name, values in VALUES.items() if step <= len(values)}
        report(step, {**known, "none": "NaN"})
    for step in (FAR - 2, FAR - 1, FAR):
        report(step, {"far": float(FAR - step)})
    return trial


@pytest.mark.parametrize("manner", ["", "&log=true", "&smooth=0.5"])
def test_an_axis_is_drawn(page: Page, site: Site, odd: int, manner: str) -> None:
    """From one number to a greater one, around what was reported, whatever scale it has."""
    page.goto(f"{site.url}/ui/trials/{odd}?tab=metrics{manner}")
    for name in VALUES:
        figure = page.get_by_role("figure", name=name, exact=True)
        figure.scroll_into_view_if_needed()
        plot = figure.locator(".uplot[data-values]")
        plot.wait_for()
        low, high = (float(end) for end in str(plot.get_attribute("data-values")).split())
        assert -math.inf < low < high < math.inf, (name, low, high)
        if name in DRAWN and "log" not in manner:
            least, greatest = DRAWN[name]
            assert least <= low < high <= greatest, (name, low, high)


def test_no_number_at_all_is_said(page: Page, site: Site, odd: int) -> None:
    """In words, where the line would be."""
    page.goto(f"{site.url}/ui/trials/{odd}?tab=metrics")
    figure = page.get_by_role("figure", name="none", exact=True)
    expect(figure).to_contain_text("None of its values is a number")


def test_steps_as_far_as_numbers_go(page: Page, site: Site, odd: int) -> None:
    """Ticks are no closer than numbers are there: an axis of them would never end, and the page stand still."""
    page.goto(f"{site.url}/ui/trials/{odd}?tab=metrics&metric=far")
    page.get_by_role("figure", name="far", exact=True).locator(".uplot[data-values]").wait_for()


def test_values_beside_one_another(page: Page, site: Site, odd: int) -> None:
    """The charts of a comparison have such axes, too."""
    page.goto(f"{site.url}/ui/compare?trials={odd}")
    plot = page.get_by_role("figure", name="training great", exact=True).locator(".uplot[data-values]")
    plot.wait_for()
    low, high = (float(end) for end in str(plot.get_attribute("data-values")).split())
    assert -math.inf < low < -1e307 < 1e307 < high < math.inf
