"""The output of a trial in the page: its end, following, search, links to lines, and what lines may hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.site import HOSTILE_LINE, Site


def opened(page: Page, site: Site, more: str = "") -> Locator:
    """The output view of the trial with 601 lines."""
    page.goto(f"{site.url}/ui/trials/{site.trial}?tab=logs{more}")
    view = page.get_by_role("region", name="Output of trial")
    view.locator("[data-line]").first.wait_for()
    return view


def line(view: Locator, number: int) -> Locator:
    return view.locator(f"[data-line='{number}']")


def at_rest(view: Locator) -> None:
    """Once it is no longer on its way to where the wheel sent it, or to its end: the wheel does not stop that."""
    view.evaluate("""async (view) => {
      const frame = () => new Promise(requestAnimationFrame);
      for (let same = 0, top = view.scrollTop; same < 10; top = view.scrollTop) {
        await frame();
        same = view.scrollTop === top ? same + 1 : 0;
      }
    }""")


@pytest.fixture
def talking(site: Site) -> Iterator[tuple[int, str]]:
    """A trial that runs, and its task: it has said some lines. It goes in the end: a page that is asked for behind this
    is closed before."""
    (experiment,) = site.make("talks")
    trial = site.make_trial(experiment)
    task = str(site.api("GET", f"/api/v1/trials/{trial}")["trial"]["taskId"])  # type: ignore[index]
    site.post(task, [f"line {number}" for number in range(1, 201)])
    yield trial, task
    site.write("delete from trials where id = $1", trial)
    site.write("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", experiment)


def test_what_is_new_comes_into_view_while_it_follows(talking: tuple[int, str], page: Page, site: Site) -> None:
    """A bar of progress stays one line that changes; who has scrolled up is not moved."""
    trial, task = talking
    page.goto(f"{site.url}/ui/trials/{trial}?tab=logs")
    view = page.get_by_role("region", name="Output of trial")
    expect(line(view, 200)).to_be_in_viewport()
    site.post(task, [f"line {number}" for number in range(201, 300)])
    site.post(task, ["10%\r 40%\r 70%"])
    expect(line(view, 300)).to_be_in_viewport()
    expect(line(view, 300)).to_contain_text("70%")
    expect(line(view, 300)).not_to_contain_text("40%")
    at_rest(view)
    view.hover()
    page.mouse.wheel(0, -1500)
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    at_rest(view)
    first = view.locator("[data-line]").first.get_attribute("data-line")
    site.post(task, ["after all"])
    page.get_by_text("301 lines").wait_for()
    expect(line(view, 301)).not_to_be_in_viewport()
    expect(view.locator("[data-line]").first).to_have_attribute("data-line", str(first))


def test_it_opens_at_the_end_and_follows_until_one_scrolls_up(page: Page, site: Site) -> None:
    """Few lines are in the document; `f` follows again."""
    view = opened(page, site)
    follow = page.get_by_role("button", name="Follow")
    expect(line(view, 601)).to_be_in_viewport()
    expect(follow).to_have_attribute("aria-pressed", "true")
    assert view.locator("[data-line]").count() < 200
    at_rest(view)
    view.hover()
    page.mouse.wheel(0, -3000)
    expect(line(view, 601)).not_to_be_in_viewport()
    expect(follow).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("f")
    expect(line(view, 601)).to_be_in_viewport()
    expect(follow).to_have_attribute("aria-pressed", "true")


def test_a_search_counts_what_the_api_counts(page: Page, site: Site) -> None:
    """Text and patterns, and n and N go from hit to hit."""
    for asked, query, number in (
        ("&q=step+59", "searchText=step%2059", 11),
        ("&q=step+.*[13]+of&re=true", "searchText=step%20.*%5B13%5D%20of&enableRegex=true", 120),
    ):
        view = opened(page, site, asked)
        hits = site.api("GET", f"/api/v1/trials/{site.trial}/logs/hits?{query}")
        ranges = zip(hits["first"], hits["last"])  # type: ignore[call-overload]
        assert sum(last - first + 1 for first, last in ranges) == number
        expect(page.get_by_label("Hits")).to_have_text(f"{number} hits")
    view = opened(page, site, "&q=step+59")
    expect(page.get_by_label("Hits")).to_have_text("11 hits")
    page.keyboard.press("n")
    expect(line(view, 60)).to_be_in_viewport()
    expect(page.get_by_label("Hits")).to_have_text("1 of 11 hits")
    page.keyboard.press("Shift+N")
    expect(line(view, 600)).to_be_in_viewport()
    expect(line(view, 600).locator("mark")).to_have_text("step 59")


def test_a_link_to_a_line_opens_there(page: Page, site: Site) -> None:
    """It is in view and marked, and does not run away to the end."""
    view = opened(page, site, "&line=123")
    expect(line(view, 123)).to_be_in_viewport()
    expect(line(view, 123)).to_have_attribute("aria-current", "true")
    expect(line(view, 123)).to_contain_text("step 122 of 600")
    line(view, 125).get_by_role("button").click()
    expect(page).to_have_url(f"{site.url}/ui/trials/{site.trial}?tab=logs&line=125")


def test_lines_are_text_whatever_they_hold(page: Page, site: Site) -> None:
    """HTML is text, colours are ours, and of progress the last state is shown."""
    assert "\r" in HOSTILE_LINE
    view = opened(page, site)
    expect(line(view, 601)).to_contain_text("100% done")
    expect(line(view, 601)).not_to_contain_text("10%\r")
    assert page.title() != "broken in"
    page.goto(f"{site.url}/ui/trials/{site.trial}?tab=logs&q=script")
    expect(page.get_by_label("Hits")).to_have_text("1 hits")
    assert page.title() != "broken in"


def test_a_failed_trial_leads_to_the_line_that_shows_why(page: Page, site: Site) -> None:
    """Its health stands on every tab; so does the next error lead there."""
    page.goto(f"{site.url}/ui/trials/{site.failed_trial}")
    expect(page.get_by_text("your code raised KeyError")).to_be_visible()
    page.get_by_role("link", name="line 3").click()
    view = page.get_by_role("region", name="Output of trial")
    expect(line(view, 3)).to_be_in_viewport()
    expect(line(view, 3)).to_have_attribute("aria-current", "true")
    expect(line(view, 3)).to_contain_text("KeyError: 'x'")
    page.goto(f"{site.url}/ui/trials/{site.failed_trial}?tab=logs")
    line(view, 1).wait_for()
    page.keyboard.press("e")
    expect(line(view, 3)).to_have_attribute("aria-current", "true")
