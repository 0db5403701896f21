"""What changes is seen where it is shown, without a question: by one stream of a browser, whatever happens to it."""

from __future__ import annotations

import json
import re
import statistics
import time
import uuid
from collections.abc import Iterator
from typing import cast

import pytest
from playwright.sync_api import Browser, Page, expect

from tenax.local.postgres import EmbeddedPostgres
from tests.kits.database import database_in
from tests.kits.figures import Figures
from tests.kits.http_counter import counting
from tests.web.handling import CURRENT, RESTART_MS, opened, show
from tests.web.pictures import AXE, violations
from tests.web.site import TIMEOUT_MS, Site, log_in, serving
from tests.web.troubles import watched

CHANGES = 10
#: With the worker that all tabs share, and where a browser has none.
BROWSERS = pytest.mark.parametrize("shared", [True, False], ids=["shared-worker", "no-shared-worker"])
#: The same, of what both do alike once the stream is there.
MAINLY_SHARED = pytest.mark.parametrize(
    "shared",
    [pytest.param(True, id="shared-worker"), pytest.param(False, id="no-shared-worker", marks=pytest.mark.long)],
)


@pytest.fixture(scope="module")
def site(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory, built: None
) -> Iterator[Site]:
    """One of its own: what other tests make stands above what these look at, and these kill the master."""
    dsn = database_in(postgres.dsn, f"w_{uuid.uuid4().hex}")
    with serving(postgres.dsn, dsn, template, tmp_path_factory.mktemp("live")) as made:
        yield made


@pytest.fixture(autouse=True)
def as_before(site: Site) -> Iterator[None]:
    """A test that fails between a kill and a start leaves others their master, and the name that they look for."""
    yield
    if site.process.poll() is not None:
        site.start()
    site.rename(site.search, "asha over digits")


def fetched(page: Page) -> list[str]:
    """All that a page has loaded or asked for; not what its worker did."""
    names: list[str] = page.evaluate("performance.getEntriesByType('resource').map(each => each.name)")
    return names


def hide(page: Page, *, hidden: bool) -> None:
    """As a browser does to a tab: headless it shows all of them."""
    page.evaluate(
        """hidden => {
          const become = (name, value) => Object.defineProperty(document, name, { value, configurable: true });
          become("visibilityState", hidden ? "hidden" : "visible");
          become("hidden", hidden);
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def run_until_current(page: Page) -> None:
    """By the clock of the page, which is ahead of what is fetched: what took long by it waits for several times
    that before it is asked for again."""
    end = time.monotonic() + TIMEOUT_MS / 1000
    while page.locator("html").get_attribute("data-current") != "true" and time.monotonic() < end:
        page.clock.run_for(1000)


@BROWSERS
def test_a_row_changes_without_a_question(
    browser: Browser, site: Site, session: dict[str, object], shared: bool
) -> None:
    """Its state, as somebody else pauses it: what the stream says is written into the row, and nothing is fetched."""
    with opened(browser, session, shared=shared) as context:
        page = context.new_page()
        # The menu with one's name comes last, and asks for one's settings.
        with page.expect_response("**/api/v1/users/setting"):
            page.goto(f"{site.url}/ui/experiments")
        page.locator(CURRENT).wait_for()
        row = page.get_by_role("row").filter(has_text="asha over digits")
        expect(row).to_contain_text("Running")
        before = fetched(page)
        assert any("experiments-search" in name for name in before)
        for verb, word in (("pause", "Paused"), ("activate", "Running")):
            site.api("POST", f"/api/v1/experiments/{site.search}/{verb}")
            expect(row).to_contain_text(word)
        assert fetched(page) == before
        assert page.evaluate("'SharedWorker' in window") is shared


@MAINLY_SHARED
def test_a_trial_that_trains(browser: Browser, site: Site, session: dict[str, object], shared: bool) -> None:
    """Its steps, a metric that is new, its output and its end, as they come in; its experiment shows them as well."""
    config = "name: far\nsearcher: {name: single, metric: loss}\n"
    made = site.api("POST", "/api/v1/experiments", {"config": config, "unmanaged": True})["experiment"]
    experiment = cast("dict[str, int]", made)["id"]
    body = {"experimentId": experiment, "hparams": {"lr": 1}, "unmanaged": True}
    trial = cast("dict[str, int]", site.api("POST", "/api/v1/trials", body)["trial"])
    at = f"/api/v1/trials/{trial['id']}"
    site.api("POST", f"{at}/start", {"resume": False})
    with opened(browser, session, shared=shared) as context:
        pages = [
            show(context, f"{site.url}/ui/{way}") for way in (f"trials/{trial['id']}", f"experiments/{experiment}")
        ]
        for step in (7, 8):
            report = {"trialRunId": 1, "stepsCompleted": step, "metrics": {"avgMetrics": {f"loss {step}": 0.5}}}
            site.api("POST", f"{at}/metrics", {"metrics": {"trialId": trial["id"], **report}, "group": "training"})
            line = {"task_id": trial["taskId"], "timestamp": "2026-01-01T00:00:00Z", "log": f"at step {step}\n"}
            site.api("POST", "/task-logs", [line])
            expect(pages[0].locator("dl").filter(has_text="Steps")).to_contain_text(f"Steps{step}")
            for page in pages:
                expect(page.locator("figcaption").filter(has_text=f"loss {step}")).to_be_visible()
            newest = pages[0].get_by_role("link", name=re.compile(f"newest line .*at step {step}"))
            expect(newest).to_be_visible()
            expect(pages[1].get_by_role("region", name="Output of trial")).to_contain_text(f"at step {step}")
        site.api("PATCH", at, {"trialId": trial["id"], "state": "STATE_ERROR", "reason": "it gave up"})
        for page in pages:
            expect(page.get_by_text("it gave up").first).to_be_visible()
            expect(page.get_by_text("✕Error").first).to_be_visible()


def test_an_experiment_that_is_new_or_leaves(browser: Browser, site: Site, session: dict[str, object]) -> None:
    """A list that it comes into, or falls out of, is asked for again: of the rest nothing changes."""
    with opened(browser, session) as context:
        page = show(context, f"{site.url}/ui/experiments?q=renamed")
        expect(page.get_by_text("No matching experiments")).to_be_visible()
        site.rename(site.long, "renamed to be here")
        expect(page.get_by_role("row").filter(has_text="renamed to be here")).to_be_visible()
        site.rename(site.long, "something else")
        expect(page.get_by_text("No matching experiments")).to_be_visible()


def test_what_somebody_else_writes_is_seen(browser: Browser, site: Site, session: dict[str, object]) -> None:
    """Description, labels and notes, each edited elsewhere while its experiment is shown; and in the list of all."""
    experiment = site.make("written about")[0]
    at = f"/api/v1/experiments/{experiment}"
    with opened(browser, session) as context:
        page = show(context, f"{site.url}/ui/experiments/{experiment}")
        row = show(context, f"{site.url}/ui/experiments?cols={json.dumps(['id@64!', 'description@300'])}")
        for time in ("first", "second"):
            site.api("PATCH", at, {"notes": f"its {time} notes"})
            expect(page.get_by_text(f"its {time} notes")).to_be_visible()
            site.api("PATCH", at, {"description": f"its {time} purpose"})
            expect(page.get_by_text(f"its {time} purpose")).to_be_visible()
            expect(row.get_by_role("row").filter(has_text=f"its {time} purpose")).to_be_visible()
            site.api("PATCH", at, {"labels": [f"{time} label", "kept"]})
            expect(page.get_by_role("list", name="Labels")).to_have_text(f"{time} labelkept")


def test_what_somebody_else_sets_up_is_seen(browser: Browser, site: Site, admin_session: dict[str, object]) -> None:
    """Users, groups, templates, webhooks and tokens of agents, as they come, change and go."""
    with opened(browser, admin_session) as context:
        places = ("admin/users", "admin/groups", "templates", "webhooks", "admin/join-tokens")
        users, groups, templates, webhooks, tokens = (show(context, f"{site.url}/ui/{place}") for place in places)
        site.administer(
            "POST", "/api/v1/users", {"user": {"username": "grace", "active": True}, "password": "Xy7-grace-of-hoppers"}
        )
        expect(users.get_by_role("row").filter(has_text="grace")).to_be_visible()
        group = site.administer("POST", "/api/v1/groups", {"name": "night shift"})["group"]
        expect(groups.get_by_role("row").filter(has_text="night shift")).to_be_visible()
        site.administer("DELETE", f"/api/v1/groups/{cast('dict[str, int]', group)['groupId']}")
        expect(groups.get_by_text("No groups yet")).to_be_visible()
        site.administer("POST", "/api/v1/templates/small", {"config": {"resources": {"slots_per_trial": 1}}})
        expect(templates.get_by_role("row").filter(has_text="small")).to_be_visible()
        hook = {"name": "chat", "url": "https://127.0.0.1/hook", "webhookType": "WEBHOOK_TYPE_DEFAULT"}
        trigger = {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}
        site.administer("POST", "/api/v1/webhooks", {**hook, "triggers": [trigger]})
        expect(webhooks.get_by_role("row").filter(has_text="chat")).to_be_visible()
        site.administer("POST", "/api/v1/join-tokens", {"description": "for the attic", "uses": 1, "lifespan": "1h"})
        expect(tokens.get_by_role("row").filter(has_text="for the attic")).to_be_visible()


def test_eight_tabs_are_one_stream(browser: Browser, site: Site, session: dict[str, object]) -> None:
    """All of them load, which they would not with a connection each, and all of them hear of the next change."""
    with opened(browser, session) as context, counting(site.url) as between:
        pages = [show(context, f"{between.url}/ui/experiments") for _ in range(8)]
        site.rename(site.search, "seen by all")
        for page in pages:
            expect(page.get_by_role("row").filter(has_text="seen by all")).to_be_visible()
        assert between.streams() == 1
    site.rename(site.search, "asha over digits")


def test_data_that_are_dimmed_can_be_read(browser: Browser, site: Site, session: dict[str, object]) -> None:
    """While the master is away: axe finds nothing in either theme. After a while the page says what starts one."""
    # axe is put into the page by this test, which the page's policy would not let in.
    context = browser.new_context(storage_state=session, bypass_csp=True)  # type: ignore[arg-type]
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.clock.install()
    page.goto(f"{site.url}/ui/experiments")
    page.locator(CURRENT).wait_for()
    page.add_script_tag(path=AXE)
    site.kill()
    expect(page.get_by_role("status").filter(has_text="Reconnecting")).to_be_visible()
    expect(page.get_by_text("tenax up")).to_have_count(0)
    page.clock.fast_forward(20_000)
    expect(page.get_by_role("status").get_by_text("tenax up")).to_be_visible()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.locator(f"html[data-theme={theme}]").wait_for()
        assert (theme, violations(page)) == (theme, [])
    context.close()
    site.start()


@MAINLY_SHARED
def test_a_master_that_is_killed_and_comes_back(
    browser: Browser, site: Site, session: dict[str, object], shared: bool
) -> None:
    """Pages say that they reconnect, and keep what they show; then they have what they missed, without another word."""
    with opened(browser, session, shared=shared) as context:
        pages = [show(context, f"{site.url}/ui/{at}") for at in ("experiments", f"experiments/{site.search}")]
        # What it consists of has come, and not only the beginning.
        expect(pages[0].get_by_text("asha over digits").first).to_be_visible()
        expect(pages[1].get_by_role("heading", name="Where its trials stand")).to_be_visible()
        site.kill()
        for page in pages:
            expect(page.get_by_role("status").filter(has_text="Reconnecting")).to_be_visible()
            expect(page.get_by_text("asha over digits").first).to_be_visible()
        site.write("update experiment_documents set name = 'renamed meanwhile' where experiment_id = $1", site.search)
        site.start()
        for page in pages:
            expect(page.get_by_text("renamed meanwhile").first).to_be_visible(timeout=RESTART_MS)
            expect(page.get_by_text("Reconnecting")).to_have_count(0)
            expect(page.get_by_role("alert").filter(has_text=re.compile(r"\S"))).to_have_count(0)
            page.locator(CURRENT).wait_for()
        site.rename(site.search, "asha over digits")
        for page in pages:
            expect(page.get_by_text("asha over digits").first).to_be_visible()


def test_without_a_stream_it_asks_now_and_then(browser: Browser, site: Site, session: dict[str, object]) -> None:
    """Where the master refuses one: ever more rarely, and only while it is shown; then it is live without a word."""
    with opened(browser, session, shared=False) as context:
        page = context.new_page()
        page.clock.install()
        refused = {"status": 429, "headers": {"Retry-After": "120"}, "json": {"message": "too many streams"}}
        page.route("**/api/v1/events?*", lambda route: route.fulfill(**refused))  # type: ignore[arg-type]
        page.goto(f"{site.url}/ui/experiments")
        page.get_by_text("asha over digits").wait_for()
        note = page.get_by_text("Not live")
        expect(note).to_have_attribute("title", "too many streams")
        site.rename(site.search, "asked for")
        page.clock.run_for(20_000)
        expect(page.get_by_text("asked for", exact=True)).to_be_visible()
        asked: list[str] = []
        page.on("request", lambda request: "experiments-search" in request.url and asked.append(request.url))
        page.clock.run_for(60_000)
        expect(page.get_by_text("asked for", exact=True)).to_be_visible()
        assert 1 <= len(asked) <= 3
        page.unroute_all(behavior="wait")
        page.clock.run_for(200_000)
        run_until_current(page)
        # Waiting inside of the page would be by its clock.
        expect(page.locator("html")).to_have_attribute("data-current", "true")
        expect(note).to_have_count(0)
        site.rename(site.search, "asha over digits")
        expect(page.get_by_text("asha over digits")).to_be_visible()


@MAINLY_SHARED
def test_a_hidden_tab_asks_for_nothing(browser: Browser, site: Site, session: dict[str, object], shared: bool) -> None:
    """Whatever happens, for ten minutes of its clock; once it is shown again it has what it missed."""
    with opened(browser, session, shared=shared) as context, counting(site.url) as between:
        page = context.new_page()
        page.clock.install()
        # The menu with one's name comes last, and asks for one's settings.
        with page.expect_response("**/api/v1/users/setting"):
            page.goto(f"{between.url}/ui/experiments")
        page.locator(CURRENT).wait_for()
        hide(page, hidden=True)
        asked = list(between.paths)
        site.rename(site.search, "while it was hidden")
        with opened(browser, session) as others:
            seen = show(others, f"{site.url}/ui/experiments")
            expect(seen.get_by_text("while it was hidden")).to_be_visible()
            site.rename(site.search, "and once more")
            expect(seen.get_by_text("and once more")).to_be_visible()
        page.clock.run_for(600_000)
        assert between.paths == asked
        hide(page, hidden=False)
        expect(page.get_by_text("and once more")).to_be_visible()
    site.rename(site.search, "asha over digits")


def test_an_idle_page_asks_for_nothing(
    browser: Browser, site: Site, session: dict[str, object], figures: Figures
) -> None:
    """That of an experiment of which nothing changes, while others do, for ten minutes of its clock."""
    with opened(browser, session) as context, counting(site.url) as between:
        page = context.new_page()
        page.clock.install()
        # The menu with one's name comes last, and asks for one's settings.
        with page.expect_response("**/api/v1/users/setting"):
            page.goto(f"{between.url}/ui/experiments/{site.search}")
        page.locator("figure canvas").first.wait_for()
        page.locator(CURRENT).wait_for()
        asked = list(between.paths)
        with opened(browser, session) as others:
            seen = show(others, f"{site.url}/ui/experiments")
            site.rename(site.long, "another one")
            expect(seen.get_by_text("another one")).to_be_visible()
        page.clock.run_for(600_000)
        figures.tell("requests of an idle experiment page", minutes=10, requests=len(between.paths) - len(asked))
        assert between.paths == asked


def test_a_session_that_ends_leads_to_the_login_and_back(browser: Browser, site: Site) -> None:
    """Of all tabs, at once; who logs in again is where they were."""
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    log_in(context.new_page(), site)
    page = show(context, f"{site.url}/ui/experiments?state=queued")
    assert context.request.post(f"{site.url}/api/v1/auth/logout", headers={"Origin": site.url}).ok
    for tab in context.pages:
        tab.get_by_label("Password").wait_for()
    page.get_by_label("User name").fill("determined")
    page.get_by_label("Password").fill(site.password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("grid").wait_for()
    assert page.url == f"{site.url}/ui/experiments?state=queued"
    page.locator(CURRENT).wait_for()
    context.close()


def test_below_a_prefix_at_a_name_without_a_certificate(browser: Browser, site: Site) -> None:
    """As many clusters are reached: no secure context, a proxy in between, and no error in the console; it copies."""
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    with counting(site.url, "/some/cluster") as between:
        there = Site(f"http://tenax.test:{between.port}/some/cluster", site.password, site.token)
        log_in(context.new_page(), there)
        page = context.new_page()
        troubles = watched(page, there)
        page.goto(f"{there.url}/ui/experiments")
        page.locator(CURRENT).wait_for()
        assert page.evaluate("isSecureContext") is False
        site.rename(site.search, "seen through a proxy")
        expect(page.get_by_text("seen through a proxy")).to_be_visible()
        page.goto(f"{there.url}/ui/trials/{site.trial}?tab=config")
        page.get_by_role("button", name="Copy").last.click()
        page.get_by_role("button", name="Copied").wait_for()
        page.goto(f"{there.url}/ui/experiments")
        page.get_by_label("Filter", exact=True).focus()
        page.keyboard.press("Control+v")
        expect(page.get_by_label("Filter", exact=True)).to_have_value(re.compile("searcher"))
        # What browsers say of a header that holds where they trust the address.
        assert [trouble for trouble in troubles if "Cross-Origin-Opener-Policy" not in trouble] == []
        context.close()
    site.rename(site.search, "asha over digits")


def test_how_long_a_change_takes_to_be_seen(
    browser: Browser, site: Site, session: dict[str, object], figures: Figures
) -> None:
    """From the request that makes it until the frame that shows it; all of them come."""
    with opened(browser, session) as context:
        page = show(context, f"{site.url}/ui/experiments")
        page.evaluate(
            """() => {
              window.drawn = {};
              const look = () => {
                const names = document.body.innerText.matchAll(/measured \\d+/g);
                for (const [name] of names) window.drawn[name] ??= Date.now();
              };
              new MutationObserver(() => requestAnimationFrame(look)).observe(
                document.body, { subtree: true, childList: true, characterData: true });
            }"""
        )
        took: list[float] = []
        for number in range(CHANGES):
            name = f"measured {number}"
            began = time.time()
            site.rename(site.search, name)
            page.wait_for_function("name => name in window.drawn", arg=name)
            took.append(page.evaluate("name => window.drawn[name]", name) - began * 1000)
        figures.tell(
            "ms from the request of a change to the frame that shows it, one right after the other",
            changes=len(took),
            median=round(statistics.median(took)),
            p95=round(statistics.quantiles(took, n=20)[-1]),
            max=round(max(took)),
        )
        assert len(took) == CHANGES
    site.rename(site.search, "asha over digits")
