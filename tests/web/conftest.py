"""The page as it is built, a master that serves it, and Chromium."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tenax.local.postgres import EmbeddedPostgres
from tests.kits.database import database_in
from tests.web.site import CHROMIUM, FLAGS, ROOT, TIMEOUT_MS, Site, enter, join, log_in, serving
from tests.web.troubles import watched

expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="session")
def built() -> None:
    """The page of these sources; in `make test` it is there already."""
    done = subprocess.run([sys.executable, ROOT / "webui" / "build.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def site(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory, built: None
) -> Iterator[Site]:
    """One for all tests of this folder."""
    dsn = database_in(postgres.dsn, f"w_{uuid.uuid4().hex}")
    with serving(postgres.dsn, dsn, template, tmp_path_factory.mktemp("site")) as made:
        yield made


class Chromium:
    """That of the system, one for all files that this process runs: nothing is downloaded.

    While Playwright's event loop counts as the one that runs in this thread, no other can: so between files it rests.
    """

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._opened = self._launch()
        self._loop = asyncio.get_running_loop()

    def wake(self) -> Browser:
        """To be used."""
        asyncio._set_running_loop(self._loop)
        if not self._opened.is_connected():
            self._opened = self._launch()
        return self._opened

    def rest(self) -> None:
        """Nothing of what was opened stays open."""
        for context in self._opened.contexts:
            context.close()
        asyncio._set_running_loop(None)

    def _launch(self) -> Browser:
        return self._playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """It ends with this process."""
    with sync_playwright() as playwright:
        made = Chromium(playwright)
        made.rest()
        yield made
        made.wake().close()


@pytest.fixture(scope="module")
def browser(site: Site, chromium: Chromium) -> Iterator[Browser]:
    """In which nobody is logged in and nothing is kept; the master is there before it."""
    yield chromium.wake()
    chromium.rest()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that nobody used before."""
    made = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    made.set_default_timeout(TIMEOUT_MS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def session(browser: Browser, site: Site) -> dict[str, object]:
    """What a browser keeps after a login through the page."""
    return _session(browser, site, "determined")


@pytest.fixture(scope="module")
def admin_session(browser: Browser, site: Site) -> dict[str, object]:
    """That of an administrator."""
    return _session(browser, site, "admin")


def _session(browser: Browser, site: Site, who: str) -> dict[str, object]:
    """That of another file, while the master still knows it."""
    made = browser.new_context(storage_state=site.sessions.get(who))  # type: ignore[arg-type]
    made.set_default_timeout(TIMEOUT_MS)
    if who not in site.sessions or not made.request.get(f"{site.url}/api/v1/me").ok:
        made.clear_cookies()
        log_in(made.new_page(), site, who=who)
        site.sessions[who] = dict(made.storage_state())
    made.close()
    return site.sessions[who]


@pytest.fixture(scope="module")
def used_browser(browser: Browser, session: dict[str, object]) -> Iterator[BrowserContext]:
    """One that has the page's files already, as most have: each test of a file has a tab of its own in it."""
    yield from _used(browser, session)


@pytest.fixture(scope="module")
def admin_browser(browser: Browser, admin_session: dict[str, object]) -> Iterator[BrowserContext]:
    """The same of an administrator."""
    yield from _used(browser, admin_session)


def _used(browser: Browser, session: dict[str, object]) -> Iterator[BrowserContext]:
    made = browser.new_context(storage_state=session, viewport={"width": 1440, "height": 900})  # type: ignore[arg-type]
    made.set_default_timeout(TIMEOUT_MS)
    yield made
    made.close()


@pytest.fixture
def page(used_browser: BrowserContext, site: Site, session: dict[str, object]) -> Iterator[Page]:
    """A page that is logged in. No error in its console, nothing refused by the policy, no request elsewhere."""
    yield from _page(used_browser, site, session)


@pytest.fixture
def admin_page(admin_browser: BrowserContext, site: Site, admin_session: dict[str, object]) -> Iterator[Page]:
    """The same for an administrator."""
    yield from _page(admin_browser, site, admin_session)


@pytest.fixture
def refused_page(used_browser: BrowserContext, site: Site, session: dict[str, object]) -> Iterator[Page]:
    """A page of which something is refused, which browsers write down, and nothing else."""
    yield from _page(used_browser, site, session, "status of 4")


@pytest.fixture
def home(browser: Browser, site: Site) -> Iterator[Page]:
    """Of somebody who has four experiments alone: each list of it shows the newest, and other tests leave theirs."""
    of_trials = "select experiment_id from trials where id = any($3::bigint[])"
    give = (
        "update experiments set owner_id = (select id from users where username = $1)"
        f" where id = any($2::bigint[]) or id in ({of_trials})"
    )
    theirs = [site.failed, site.waiting], [site.well, site.silent]
    join(site, "resident")
    site.write(give, "resident", *theirs)
    site.speak()
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    enter(page, site, "resident")
    troubles = watched(page, site)
    yield page
    met = list(troubles)
    context.close()
    site.write(give, "determined", *theirs)
    assert met == []


@pytest.fixture
def refused_admin_page(admin_browser: BrowserContext, site: Site, admin_session: dict[str, object]) -> Iterator[Page]:
    """That of an administrator, of which something is refused."""
    yield from _page(admin_browser, site, admin_session, "status of 40")


def _page(browser: BrowserContext, site: Site, session: dict[str, object], provoked: str = "\0") -> Iterator[Page]:
    """A tab; of what it keeps in the browser the next one has nothing."""
    browser.clear_cookies()
    browser.add_cookies(session["cookies"])  # type: ignore[arg-type]
    opened = browser.new_page()
    troubles = watched(opened, site)
    yield opened
    # What the page meets of what a test takes away at its end is no trouble of it.
    met = list(troubles)
    if opened.url.startswith(site.url):
        opened.evaluate("localStorage.clear()")
    opened.close()
    assert [trouble for trouble in met if provoked not in trouble] == []
