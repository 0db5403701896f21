"""Logging in and out, the table and names, through the page."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.web.site import HOSTILE, TIMEOUT_MS, Site, log_in

#: That a browser loads which was never here, on the wire, until somebody may type their password.
MAX_LOGIN_BYTES = 200 * 1024


def test_the_login_is_small(context: BrowserContext, site: Site) -> None:
    """All that comes for it, with the headers."""
    page = context.new_page()
    page.goto("about:blank")
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    came: list[float] = []
    wire.on("Network.loadingFinished", lambda done: came.append(done["encodedDataLength"]))
    page.goto(f"{site.url}/ui/login")
    expect(page.get_by_label("Password")).to_be_visible()
    # Whatever was begun by then has come.
    page.wait_for_function("performance.getEntriesByType('resource').every(each => each.responseEnd > 0)")
    assert len(came) > 3
    assert 50 * 1024 < sum(came) <= MAX_LOGIN_BYTES


def test_whoever_logs_in_is_where_they_wanted_to_be(context: BrowserContext, site: Site) -> None:
    """A link to a trial leads over the login to that trial; the cookie is none that a script can read."""
    page = context.new_page()
    log_in(page, site, f"trials/{site.trial}?tab=logs")
    page.get_by_role("heading", name=f"Trial {site.trial}").wait_for()
    assert page.url == f"{site.url}/ui/trials/{site.trial}?tab=logs"
    assert page.evaluate("document.cookie") == ""
    (cookie,) = context.cookies()
    assert cookie["httpOnly"]
    assert "tnxs_" not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage}) + location.href")


def test_a_wrong_password_is_said_where_it_is_typed(context: BrowserContext, site: Site) -> None:
    """The error describes the field, which has the focus."""
    page = context.new_page()
    page.goto(f"{site.url}/ui/login")
    page.get_by_label("User name").fill("determined")
    password = page.get_by_label("Password")
    password.fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("password is wrong")
    expect(password).to_have_accessible_description("the user name or the password is wrong")
    expect(password).to_be_focused()


def test_nobody_is_led_to_another_site(context: BrowserContext, site: Site) -> None:
    """Whatever the address says is to come next."""
    page = context.new_page()
    log_in(page, site, "login?next=%2F%2Fevil.example%2F")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    assert page.url == f"{site.url}/ui/"


def test_logging_out_ends_the_session(context: BrowserContext, site: Site) -> None:
    """The master knows it no more, and the page asks for a login again."""
    page = context.new_page()
    log_in(page, site)
    page.get_by_role("button", name="determined").click()
    page.get_by_role("menuitem", name="Log out").click()
    page.get_by_label("Password").wait_for()
    page.goto(f"{site.url}/ui/experiments")
    page.get_by_label("Password").wait_for()


def test_a_theme_that_is_chosen_stays(browser: Browser, site: Site, session: dict[str, object]) -> None:
    """Whatever the system has, and from the first thing that a reload shows: no other one is seen in between."""
    context = browser.new_context(storage_state=session, color_scheme="light")  # type: ignore[arg-type]
    context.set_default_timeout(TIMEOUT_MS)
    # All themes that the document has from its beginning, and whether something was there to be seen.
    context.add_init_script(
        """window.themes = [];
        new MutationObserver(() => {
          const theme = document.documentElement?.dataset.theme;
          if (document.body && theme !== window.themes.at(-1)) window.themes.push(theme ?? "none");
        }).observe(document, { subtree: true, childList: true, attributes: true });"""
    )
    page = context.new_page()
    page.goto(f"{site.url}/ui/")
    page.locator("html[data-theme=light]").wait_for()
    page.get_by_role("button", name="determined").click()
    page.get_by_role("menuitemradio", name="Dark").click()
    page.locator("html[data-theme=dark]").wait_for()
    assert page.evaluate("window.themes") == ["light", "dark"]
    page.reload()
    page.get_by_role("heading", name="Home").wait_for()
    assert page.evaluate("window.themes") == ["dark"]
    context.close()


def test_an_old_link_keeps_the_navigation(page: Page, site: Site) -> None:
    """And where one may go on is said."""
    page.goto(f"{site.url}/ui/nowhere/at/all")
    page.get_by_role("heading", name="There is no such page").wait_for()
    page.get_by_role("navigation", name="Places").get_by_role("link", name="Queue").click()
    expect(page).to_have_url(re.compile("/ui/queue"))
    page.goto(f"{site.url}/ui/admin/nothing")
    page.get_by_role("heading", name="There is no such page").wait_for()
    expect(page.get_by_role("navigation", name="Places")).to_be_visible()


def test_a_telephone_leads_to_every_place(page: Page, site: Site) -> None:
    """Where they have no room beside a page they are a menu, each of them whole; it closes behind whoever chose."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site.url}/ui/")
    places = page.get_by_role("navigation", name="Places")
    expect(places).to_be_hidden()
    page.get_by_role("button", name="Places").click()
    links = places.get_by_role("link")
    expect(links).to_have_count(11)
    for link in links.all():
        expect(link).to_be_in_viewport(ratio=1)
    links.filter(has_text="Webhooks").click()
    expect(page.get_by_role("heading", name="Webhooks")).to_be_visible()
    expect(places).to_be_hidden()
    page.get_by_role("button", name="Places").click()
    expect(places.get_by_role("link", name="Webhooks")).to_have_attribute("aria-current", "page")
    page.keyboard.press("Escape")
    expect(places).to_be_hidden()


def test_the_table_is_what_the_api_lists(page: Page, site: Site) -> None:
    """All of it by number, the rows by name, in the order that was clicked, which stands in the address."""
    page.goto(f"{site.url}/ui/experiments")
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(site.total + 1))
    rows = grid.get_by_role("row")
    expect(rows.nth(1)).to_contain_text(str(site.found("id=desc")[0]["id"]))
    grid.get_by_role("button", name="Name").click()
    expect(page).to_have_url(f"{site.url}/ui/experiments?sort=-name")
    for place, found in enumerate(site.found("name=desc,id=desc")[:10]):
        expect(rows.nth(place + 1)).to_contain_text(str(found["id"]))
    # The last row comes over the border of windows, by a key.
    grid.focus()
    page.keyboard.press("End")
    last = site.found("name=desc,id=desc", site.total - 1, 1)[0]
    expect(grid.locator(f"[aria-rowindex='{site.total + 1}']")).to_contain_text(str(last["id"]))


def test_names_are_text(page: Page, site: Site) -> None:
    """Those of experiments, of metrics, and lines of output, whatever they hold."""
    page.goto(f"{site.url}/ui/experiments/{site.hostile}")
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    page.goto(f"{site.url}/ui/trials/{site.trial}")
    expect(page.locator("figcaption").filter(has_text=HOSTILE)).to_be_visible()
    page.goto(f"{site.url}/ui/trials/{site.trial}?tab=logs")
    expect(page.get_by_role("region", name="Output of trial")).to_contain_text("100% done")
    assert page.title() != "broken in"
    assert page.locator("b", has_text="bold").count() == 0
