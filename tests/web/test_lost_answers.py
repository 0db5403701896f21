"""Answers that are lost on their way, break off, or come in another order than they were asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from playwright.sync_api import BrowserContext, Error, Page, Route, expect

from tests.kits.machine import wait_for
from tests.web.handling import write
from tests.web.site import Site, drawn

HOOK = "hook whose answer is lost"
CONFIG = "name: sent %s\nentrypoint: python3 train.py\nsearcher:\n  name: single\n  metric: loss\n"


@pytest.fixture
def poor(used_browser: BrowserContext, session: dict[str, object]) -> Iterator[Page]:
    """A page over a network that breaks, which browsers write down."""
    yield from _poor(used_browser, session)


@pytest.fixture
def poor_admin(admin_browser: BrowserContext, admin_session: dict[str, object]) -> Iterator[Page]:
    """That of an administrator."""
    yield from _poor(admin_browser, admin_session)


def _poor(browser: BrowserContext, session: dict[str, object]) -> Iterator[Page]:
    browser.clear_cookies()
    browser.add_cookies(session["cookies"])  # type: ignore[arg-type]
    page = browser.new_page()
    yield page
    page.unroute_all(behavior="ignoreErrors")
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.close()


def lose(route: Route) -> None:
    """The master does it, and nobody learns what it answered."""
    route.fetch()
    route.abort()


def lose_first(page: Page, path: str) -> list[str]:
    """The first answer to what creates something there; returns the keys that come."""
    keys: list[str] = []

    def handle(route: Route) -> None:
        if route.request.method != "POST" or '"validateOnly":true' in (route.request.post_data or ""):
            route.fallback()
            return
        keys.append(route.request.headers.get("idempotency-key", ""))
        if len(keys) == 1:
            lose(route)
        else:
            route.fallback()

    page.route(re.compile(re.escape(path) + "$"), handle)
    return keys


def test_an_experiment_is_submitted_once(poor: Page, site: Site) -> None:
    """Whoever presses Submit again, since nothing came back, has the experiment that was made."""
    poor.goto(f"{site.url}/ui/experiments/new")
    write(poor, CONFIG % "once")
    poor.get_by_label("Or a script").fill("print('hello')")
    poor.get_by_role("heading", name="It would train one trial").wait_for()
    keys = lose_first(poor, "/api/v1/experiments")
    submit = poor.get_by_role("button", name="Submit")
    submit.click()
    expect(poor.get_by_role("alert").filter(has_text="does not answer")).to_be_visible()
    submit.click()
    expect(poor.get_by_role("heading", level=1)).to_have_text("sent once")
    named = json.dumps({"showArchived": True})
    search = {"limit": 100, "filter": named, "sort": "id=desc"}
    rows = site.api("POST", "/api/v1/experiments-search", search)["experiments"]
    assert [row["experiment"]["name"] for row in rows].count("sent once") == 1  # type: ignore[attr-defined]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_webhook_is_made_once(poor_admin: Page, site: Site) -> None:
    """Nothing about it is its own by its name: a second one would be told of everything, too."""
    poor_admin.goto(f"{site.url}/ui/webhooks")
    poor_admin.get_by_role("button", name="New webhook").click()
    dialog = poor_admin.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name").fill(HOOK)
    dialog.get_by_label("Address").fill("http://127.0.0.1:9/")
    lose_first(poor_admin, "/api/v1/webhooks")
    create = dialog.get_by_role("button", name="Create")
    create.click()
    expect(dialog.get_by_role("alert")).to_contain_text("does not answer")
    create.click()
    expect(dialog.filter(has_text="New webhook")).to_have_count(0)
    hooks = site.administer("GET", "/api/v1/webhooks")["webhooks"]
    site.write("delete from webhooks where name = $1", HOOK)
    assert [each["name"] for each in hooks].count(HOOK) == 1  # type: ignore[attr-defined]


def test_a_pause_whose_answer_is_lost(poor: Page, site: Site) -> None:
    """It is not said that it was not done: nobody knows, and the page shows what the master says then."""
    (number,) = site.make("paused unheard")
    poor.goto(f"{site.url}/ui/experiments/{number}")
    poor.get_by_role("heading", name="paused unheard").wait_for()
    poor.route("**/experiments/pause", lose)
    poor.get_by_role("button", name="Pause", exact=True).click()
    expect(poor.get_by_role("alert")).to_contain_text("it is not known whether this was done")
    expect(poor.get_by_role("button", name="Resume")).to_be_visible()
    site.write("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", number)


def test_an_answer_that_breaks_off(poor: Page, site: Site) -> None:
    """It is asked for again, and then said in words, with a way to try again."""
    broken = [True]

    def cut(route: Route) -> None:
        if broken[0]:
            route.fulfill(status=200, content_type="application/json", body='{"experiment": {"id": 1, "na')
        else:
            route.fallback()

    poor.route(re.compile(rf"/api/v1/experiments/{site.search}$"), cut)
    poor.goto(f"{site.url}/ui/experiments/{site.search}")
    poor.get_by_text("The master's answer was cut off").wait_for()
    broken[0] = False
    poor.get_by_role("button", name="Try again").click()
    poor.get_by_role("heading", name="asha over digits").wait_for()


class Held:
    """Requests that are kept back until they are let go, in any order."""

    def __init__(self, page: Page, pattern: str, part: str) -> None:
        self.routes: list[Route] = []
        self.page, self.part = page, part
        page.route(re.compile(pattern), self._handle)

    def _handle(self, route: Route) -> None:
        if self.part in (route.request.post_data or "") + route.request.url:
            self.routes.append(route)
        else:
            route.fallback()

    def come(self) -> None:
        """Returns once there is one."""

        def look() -> bool:
            drawn(self.page)
            return bool(self.routes)

        wait_for(look, "a request that is kept back")

    def let_go(self) -> None:
        """What was kept back is answered now, unless nobody waits for it any more."""
        for route in self.routes:
            with suppress(Error):
                route.fulfill(response=route.fetch())


def test_the_filter_that_was_typed_last_is_shown(poor: Page, site: Site) -> None:
    """Whichever answer comes last."""
    held = Held(poor, "/experiments-search", "out of")
    poor.goto(f"{site.url}/ui/experiments")
    field = poor.get_by_label("Filter", exact=True)
    field.fill("out of")
    field.press("Enter")
    held.come()
    field.fill("asha over")
    field.press("Enter")
    expect(poor.get_by_role("row").filter(has_text="asha over digits")).to_be_visible()
    held.let_go()
    drawn(poor)
    expect(poor.get_by_role("row").filter(has_text="asha over digits")).to_be_visible()
    expect(poor.get_by_role("row").filter(has_text="out of memory")).to_have_count(0)


def test_the_trial_that_was_opened_last_is_shown(poor: Page, site: Site) -> None:
    """Nothing of the one before stands below its title."""
    held = Held(poor, rf"/trials/{site.failed_trial}(/|$)", "/trials/")
    poor.goto(f"{site.url}/ui/experiments/{site.search}")
    poor.get_by_role("heading", name="asha over digits").wait_for()
    poor.evaluate("address => history.pushState(null, '', address)", f"/ui/trials/{site.failed_trial}")
    poor.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    held.come()
    poor.evaluate("address => history.pushState(null, '', address)", f"/ui/trials/{site.trial}")
    poor.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    expect(poor.get_by_role("heading", level=1)).to_have_text(f"Trial {site.trial}")
    held.let_go()
    drawn(poor)
    expect(poor.get_by_role("heading", level=1)).to_have_text(f"Trial {site.trial}")
    expect(poor.get_by_text("KeyError")).to_have_count(0)
