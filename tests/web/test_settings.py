"""What people set for themselves: their name, their password, how the page looks, their access tokens."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kits import plain_http
from tests.web.site import HOSTILE, JOINED_PASSWORD, TIMEOUT_MS, Site, enter, join, log_in
from tests.web.troubles import watched

FIRST, SECOND = "first-password-of-mira", "second-password-of-mira"


@pytest.fixture
def mira(browser: Browser, site: Site) -> Iterator[Page]:
    """The page of a person of her own, at an address that is no secure context."""
    token = _login(site, "admin", site.admin_password).json()["token"]
    body = {"user": {"username": "mira", "active": True}, "password": FIRST}
    headers = {"Authorization": f"Bearer {token}"}
    assert plain_http.post(f"{site.url}/api/v1/users", json=body, headers=headers).status_code == 200
    made = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    made.set_default_timeout(TIMEOUT_MS)
    there = Site(site.url.replace("127.0.0.1", "tenax.test"), FIRST, "")
    page = made.new_page()
    troubles = watched(page, there)
    log_in(page, there, "settings", who="mira")
    yield page
    made.close()
    # What is refused browsers write down, and that this origin is no secure one.
    noted = ("401", "403", "400 (Bad Request)", "Cross-Origin-Opener-Policy")
    assert [trouble for trouble in troubles if not any(word in trouble for word in noted)] == []


def _login(site: Site, who: str, password: str) -> httpx2.Response:
    return plain_http.post(f"{site.url}/api/v1/auth/login", json={"username": who, "password": password})


def test_people_change_their_name_and_their_password(mira: Page, site: Site) -> None:
    """A name is text, whatever is in it; a password only with the present one, and each refusal stands at its field."""
    mira.get_by_label("Display name").fill(HOSTILE)
    mira.get_by_role("button", name="Save").click()
    expect(mira.get_by_role("button", name=HOSTILE)).to_be_visible()
    assert mira.title() == "Settings · Tenax"
    mira.get_by_label("Display name").fill("admin")
    mira.get_by_role("button", name="Save").click()
    expect(mira.get_by_label("Display name")).to_have_attribute("aria-invalid", "true")
    expect(mira.get_by_text("'admin' is another user's name")).to_be_visible()
    present = mira.get_by_label("Current password")
    for label in ("New password", "Repeat the new password"):
        mira.get_by_label(label, exact=True).fill(SECOND)
    present.fill("not it")
    mira.get_by_role("button", name="Change the password").click()
    expect(present).to_have_attribute("aria-invalid", "true")
    expect(present).to_be_focused()
    present.fill(FIRST)
    mira.get_by_role("button", name="Change the password").click()
    expect(mira.get_by_text("Changed your password.")).to_be_visible()
    expect(present).to_have_value("")
    assert _login(site, "mira", FIRST).status_code == 401
    assert _login(site, "mira", SECOND).status_code == 200
    _looks(mira)
    _tokens(mira, site)


def test_a_token_that_outlives_the_login_takes_the_password(context: BrowserContext, site: Site) -> None:
    """Where it is refused, the dialog says what to do in it, and nothing of a command line."""
    join(site, "holder")
    page = context.new_page()
    enter(page, site, "holder")
    site.write(
        "update user_sessions set created_at = now() - interval '1 h'"
        " where user_id = (select id from users where username = 'holder')"
    )
    page.goto(f"{site.url}/ui/settings")
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What it is for").fill("longer than the login")
    dialog.get_by_role("button", name="Create").click()
    password = dialog.get_by_label("Your password")
    expect(password).to_be_focused()
    expect(dialog.get_by_role("alert")).to_contain_text("makes none that ends later: type your password here")
    expect(dialog).not_to_contain_text("--")
    password.fill(JOINED_PASSWORD)
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("dialog", name="Access token of holder")).to_be_visible()


def _looks(page: Page) -> None:
    """Rows and theme are kept by the master: a browser that knows nothing of them has them, too."""
    page.get_by_label("Table rows").select_option("comfortable")
    with page.expect_response("**/api/v1/users/setting") as kept:
        page.get_by_label("Theme").select_option("dark")
    assert kept.value.ok
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_attribute("data-density", "comfortable")


def _tokens(page: Page, site: Site) -> None:
    """A token is shown once, can be copied, works, stands in nothing that is kept, and ends when it is revoked."""
    page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What it is for").fill("nightly job")
    dialog.get_by_role("button", name="Create").click()
    token = page.get_by_role("dialog", name="Access token of mira").locator("code").inner_text()
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.get_by_text("Copied")).to_be_visible()
    dialog.get_by_role("button", name="I have saved it").click()
    page.get_by_label("Display name").fill("")
    page.get_by_label("Display name").press("Control+v")
    expect(page.get_by_label("Display name")).to_have_value(token)
    page.get_by_label("Display name").fill("")
    asked = {"Authorization": f"Bearer {token}"}
    assert plain_http.get(f"{site.url}/api/v1/me", headers=asked).json()["user"]["username"] == "mira"
    page.reload()
    expect(page.get_by_role("gridcell", name="nightly job")).to_be_visible()
    assert token not in page.content() + page.url
    assert token not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    page.get_by_role("checkbox", name="Select token").check()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("No access tokens")).to_be_visible()
    assert plain_http.get(f"{site.url}/api/v1/me", headers=asked).status_code == 401
    page.get_by_label("Include revoked and expired").check()
    expect(page.get_by_role("gridcell", name="Revoked")).to_be_visible()
