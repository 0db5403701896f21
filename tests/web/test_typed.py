"""What somebody types stays until they save it, or say that they do not want it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.handling import CURRENT
from tests.web.site import TIMEOUT_MS, Site, box_of, log_in


@pytest.fixture
def own_page(browser: Browser, site: Site) -> Iterator[Page]:
    """Of an administrator whose session is this test's alone."""
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    log_in(page, site, who="admin")
    yield page
    context.close()
    site.write("delete from cluster_message")


def log_in_again(page: Page, password: str) -> None:
    """Over the page, as whoever one was."""
    asked = page.get_by_role("dialog", name="Your session has ended")
    expect(asked).to_contain_text("log in as admin")
    asked.get_by_label("Password").fill(password)
    asked.get_by_role("button", name="Log in").click()


def test_a_dialog_outlives_the_session(own_page: Page, site: Site) -> None:
    """A wrong password changes nothing; once one is logged in, what was typed is saved."""
    own_page.goto(f"{site.url}/ui/workspaces")
    own_page.get_by_role("button", name="New workspace").click()
    dialog = own_page.get_by_role("dialog", name="New workspace")
    dialog.get_by_label("Name").fill("typed for long")
    own_page.context.clear_cookies()
    dialog.get_by_role("button", name="Create").click()
    log_in_again(own_page, "wrong")
    expect(own_page.get_by_role("dialog", name="Your session has ended").get_by_role("alert")).not_to_be_empty()
    log_in_again(own_page, site.admin_password)
    expect(own_page.get_by_role("dialog", name="Your session has ended")).to_be_hidden()
    expect(dialog.get_by_label("Name")).to_have_value("typed for long")
    dialog.get_by_role("button", name="Create").click()
    expect(own_page.get_by_role("heading", level=1)).to_have_text("typed for long")
    site.administer("DELETE", f"/api/v1/workspaces/{own_page.url.rpartition('/')[2]}")


def test_so_does_a_form_of_a_page(own_page: Page, site: Site) -> None:
    """Also where one logs in elsewhere, and comes back."""
    own_page.goto(f"{site.url}/ui/admin/message")
    text = own_page.get_by_label("Text")
    text.fill("the cluster rests on Sunday")
    own_page.context.clear_cookies()
    own_page.get_by_role("form", name="Message").locator("[type=submit]").click()
    own_page.get_by_role("dialog", name="Your session has ended").wait_for()
    log_in(own_page.context.new_page(), site, who="admin")
    own_page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(own_page.get_by_role("dialog")).to_have_count(0)
    expect(text).to_have_value("the cluster rests on Sunday")
    own_page.get_by_role("form", name="Message").locator("[type=submit]").click()
    expect(own_page.get_by_text("Set the message")).to_be_visible()


def test_a_filter_that_has_not_taken_effect_is_not_lost(own_page: Page, site: Site) -> None:
    """It does once one is logged in."""
    own_page.goto(f"{site.url}/ui/experiments")
    own_page.locator(CURRENT).wait_for()
    own_page.context.clear_cookies()
    own_page.get_by_role("combobox", name="Filter").fill("state:error")
    log_in_again(own_page, site.admin_password)
    expect(own_page.get_by_role("dialog")).to_have_count(0)
    expect(own_page.get_by_role("combobox", name="Filter")).to_have_value("state:error")
    expect(own_page).to_have_url(re.compile(r"/ui/experiments\?q=state%3Aerror$"))


def test_a_click_beside_a_dialog_takes_nothing(page: Page, site: Site) -> None:
    """Nor does text that is selected with the pointer until beyond its edge; an untouched one closes."""
    page.goto(f"{site.url}/ui/workspaces")
    dialog = page.get_by_role("dialog", name="New workspace")
    page.get_by_role("button", name="New workspace").click()
    dialog.wait_for()
    page.mouse.click(5, 5)
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="New workspace").click()
    name = dialog.get_by_label("Name")
    field = box_of(name)
    page.mouse.move(field["x"] + 20, field["y"] + 5)
    page.mouse.down()
    page.mouse.move(5, field["y"] + 5)
    page.mouse.up()
    name.fill("half typed")
    page.mouse.click(5, 5)
    # What a click would have closed is gone by the time the next key is heard.
    name.press("End")
    expect(name).to_have_value("half typed")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
