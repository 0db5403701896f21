"""The master is killed, or stands still, while pages are open: nothing typed is lost, and all goes on by itself."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tenax.local.postgres import EmbeddedPostgres
from tests.kits.database import database_in
from tests.web.handling import CURRENT, RESTART_MS, RIGHT, opened, show, write
from tests.web.site import Site, serving

AWAY = "Reconnecting"


@pytest.fixture(scope="module")
def site(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory, built: None
) -> Iterator[Site]:
    """One of its own: these stop the master."""
    dsn = database_in(postgres.dsn, f"w_{uuid.uuid4().hex}")
    with serving(postgres.dsn, dsn, template, tmp_path_factory.mktemp("away")) as made:
        yield made


@pytest.fixture
def context(browser: Browser, site: Site, session: dict[str, object]) -> Iterator[BrowserContext]:
    """A browser of its own; a test that fails leaves others their master."""
    with opened(browser, session) as made:
        yield made
    if site.process.poll() is not None:
        site.start()
    site.process.send_signal(signal.SIGCONT)


def test_a_page_that_was_not_loaded_yet_is_waited_for(context: BrowserContext, site: Site) -> None:
    """A click on it does not leave Tenax for an error of the browser; it is there once the master is."""
    page = show(context, f"{site.url}/ui/queue")
    site.kill()
    page.get_by_role("status").filter(has_text=AWAY).wait_for()
    page.get_by_role("link", name="Tasks").click()
    page.get_by_text("Loading the page").wait_for()
    site.start()
    expect(page.get_by_role("heading", level=1, name="Tasks")).to_be_visible(timeout=RESTART_MS)
    page.locator(CURRENT).wait_for(timeout=RESTART_MS)


def test_what_is_typed_stays_and_is_checked_once_it_can_be(context: BrowserContext, site: Site) -> None:
    """The preview of an experiment, which failed meanwhile, is asked for again without a press."""
    page = show(context, f"{site.url}/ui/experiments/new")
    site.kill()
    page.get_by_role("status").filter(has_text=AWAY).wait_for()
    write(page, RIGHT)
    page.get_by_label("Or a script").fill("print('typed meanwhile')")
    page.get_by_role("alert").filter(has_text="does not answer").wait_for()
    site.start()
    page.get_by_role("heading", name="It would train one trial").wait_for(timeout=RESTART_MS)
    expect(page.get_by_role("alert").filter(has_text="does not answer")).to_have_count(0)
    expect(page.get_by_label("Or a script")).to_have_value("print('typed meanwhile')")
    expect(page.get_by_role("textbox", name="Configuration")).to_contain_text("from the page")


def test_a_master_that_stands_still(context: BrowserContext, site: Site) -> None:
    """Its connections stay open and say nothing: after a few missed beats the page says that it is not current."""
    pages = [show(context, f"{site.url}/ui/{at}") for at in ("", f"trials/{site.trial}?tab=logs")]
    site.process.send_signal(signal.SIGSTOP)
    for page in pages:
        expect(page.get_by_role("status").filter(has_text=AWAY)).to_be_visible(timeout=RESTART_MS)
    site.process.send_signal(signal.SIGCONT)
    for page in pages:
        page.locator(CURRENT).wait_for(timeout=RESTART_MS)
        expect(page.get_by_text(AWAY)).to_have_count(0)
