"""Home: what of mine needs me, what runs, and what to do where there is nothing."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.web.site import Site, box_of, enter, join
from tests.web.trained import NAMES, WAITS


def test_what_needs_me_says_why_and_leads_there(home: Page, site: Site) -> None:
    """What hangs, what failed and what waits for long; each link opens the page that says the same."""
    needs = home.get_by_role("list", name="Needs attention")
    for name, reason, address in (
        (NAMES[1], "Stalled: no line of output and no metric for 2 h", f"trials/{site.silent}"),
        ("out of memory", "trial 1 failed: CUDA out of memory", f"experiments/{site.failed}"),
        (NAMES[2], WAITS, f"experiments/{site.waiting}"),
    ):
        row = needs.get_by_role("listitem").filter(has_text=name)
        expect(row).to_contain_text(reason)
        row.get_by_role("link").click()
        expect(home).to_have_url(f"{site.url}/ui/{address}")
        expect(home.get_by_text(reason).first).to_be_visible()
        home.go_back()
        needs.wait_for()


def test_what_runs_has_its_curve_and_its_end(home: Page) -> None:
    """The metric of its best trial as a line, its best value, how far it is, and for how long it will go on."""
    row = home.get_by_role("listitem").filter(has_text=NAMES[0])
    expect(row.get_by_role("img", name="loss of its best trial over its steps")).to_be_visible()
    expect(row).to_contain_text("loss 0.1")
    home.get_by_role("heading", name="Recent projects").wait_for()
    home.get_by_role("heading", name="Free now").wait_for()
    expect(row).to_contain_text("60 %")
    expect(row).to_contain_text(re.compile(r"\d+ s left"))


def test_what_is_paused_is_found_again(home: Page, site: Site) -> None:
    """As whoever paused it yesterday looks for it; it leaves the list once it goes on."""
    paused = home.get_by_role("heading", name="Paused", exact=True)
    home.get_by_role("heading", name="Running").wait_for()
    expect(paused).to_have_count(0)
    (number,) = site.make("held since yesterday", "PAUSED", owner="resident")
    home.reload()
    section = home.locator("section").filter(has=paused)
    row = section.get_by_role("listitem").filter(has_text="held since yesterday")
    expect(row).to_contain_text("Paused")
    expect(row).to_contain_text("ran for")
    row.get_by_role("link").click()
    expect(home).to_have_url(f"{site.url}/ui/experiments/{number}")
    home.get_by_role("heading", name="held since yesterday").wait_for()
    site.write("update experiments set state = 'CANCELED', ended_at = now() where id = $1", number)
    home.go_back()
    home.reload()
    home.get_by_role("heading", name="Running").wait_for()
    expect(paused).to_have_count(0)


def test_what_has_completed_is_found_again(home: Page, site: Site) -> None:
    """With its best value and when it was over; all of them are one link away."""
    expect(home.get_by_role("heading", name="Recently completed")).to_have_count(0)
    (number,) = site.make("done at last", "COMPLETED", owner="resident")
    home.reload()
    section = home.locator("section").filter(has=home.get_by_role("heading", name="Recently completed"))
    row = section.get_by_role("listitem").filter(has_text="done at last")
    expect(row).to_contain_text("just now")
    row.get_by_role("link").click()
    expect(home).to_have_url(f"{site.url}/ui/experiments/{number}")


def test_rows_have_room(home: Page) -> None:
    """Wide and narrow: what is written in a row keeps away from its lines."""
    for width in (1440, 390):
        home.set_viewport_size({"width": width, "height": 844})
        row = home.get_by_role("listitem").filter(has_text=NAMES[0])
        outer, inner = box_of(row), box_of(row.get_by_role("link"))
        below = outer["y"] + outer["height"] - inner["y"] - inner["height"]
        assert min(inner["x"] - outer["x"], inner["y"] - outer["y"], below) >= 8


def test_who_has_nothing_is_told_how_to_begin(context: BrowserContext, site: Site) -> None:
    """With a command to copy, that names this cluster, and by the page on which an experiment is made."""
    join(site, "newcomer")
    page = context.new_page()
    enter(page, site, "newcomer")
    page.get_by_text("You have no experiments yet").wait_for()
    expect(page.get_by_text(f"tenax -m {site.url} experiment create config.yaml .")).to_be_visible()
    expect(
        page.get_by_text("Nothing of yours has failed recently, is stuck, or has been waiting long.")
    ).to_be_visible()
    page.get_by_role("link", name="Create one here").click()
    expect(page.get_by_role("heading", name="New experiment")).to_be_visible()
