"""What tests of the page do with it alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page

from tests.web.site import TIMEOUT_MS

#: All that is shown is as the master has it, and what changes of it will be told.
CURRENT = "html[data-current=true]"
#: A master of a busy machine takes its time to start.
RESTART_MS = 120_000
#: A configuration that is taken as it is.
RIGHT = "name: from the page\nentrypoint: python3 train.py\nsearcher:\n  name: single\n  metric: loss\n"


@contextmanager
def opened(browser: Browser, session: dict[str, object], *, shared: bool = True) -> Iterator[BrowserContext]:
    """A browser that is logged in."""
    context = browser.new_context(storage_state=session, viewport={"width": 1440, "height": 900})  # type: ignore[arg-type]
    context.set_default_timeout(TIMEOUT_MS)
    if not shared:
        context.add_init_script("delete window.SharedWorker")
    try:
        yield context
    finally:
        context.close()


def show(context: BrowserContext, address: str) -> Page:
    """A page, once it is current."""
    page = context.new_page()
    page.goto(address)
    page.locator(CURRENT).wait_for()
    return page


def write(page: Page, text: str) -> None:
    """Into the editor, in place of all that is there."""
    page.get_by_role("textbox", name="Configuration").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def more(page: Page, item: str) -> None:
    """Choose from the menu of the page's experiment."""
    page.get_by_role("button", name="More actions for").click()
    page.get_by_role("menuitem", name=item).click()
