"""People, groups, tokens and the message to everyone, as an administrator changes them and as others see them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import cast

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kits import plain_http
from tests.kits.machine import wait_for
from tests.web.site import TIMEOUT_MS, Site, join

MESSAGE = "Maintenance tonight <b>from ten</b>"


@pytest.fixture
def as_before(site: Site) -> Iterator[None]:
    """Whatever a test comes to, others find no message, no group and nobody of its own among those who may log in."""
    yield
    site.write("delete from cluster_message")
    site.write("delete from user_groups where name = 'vision'")
    site.write("update users set active = false where username = 'nora'")


@pytest.mark.usefixtures("as_before")
def test_an_administrator_creates_users_and_groups(refused_admin_page: Page, site: Site) -> None:
    """With a first password, which works; deactivated they are refused, and Undo lets them in again."""
    page = refused_admin_page
    page.goto(f"{site.url}/ui/")
    page.get_by_role("navigation", name="Places").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("User name").fill("nora")
    dialog.get_by_label("First password").fill("first-of-nora")
    dialog.get_by_label("Display name").fill("Nora N.")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_text("Created user nora").wait_for()
    login = {"username": "nora", "password": "first-of-nora"}
    assert plain_http.post(f"{site.url}/api/v1/auth/login", json=login).status_code == 200
    page.get_by_label("Part of a name").fill("nora")
    page.get_by_role("checkbox", name="Select all 1", exact=True).check()
    page.get_by_role("button", name="Deactivate").click()
    expect(page.get_by_text("No matching users")).to_be_visible()
    entered = functools.partial(plain_http.post, f"{site.url}/api/v1/auth/login", json=login)
    wait_for(lambda: entered().status_code == 403, "the refusal of who is deactivated")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("gridcell", name="Active")).to_be_visible()
    _edits(page)
    _groups(page)


@pytest.mark.usefixtures("as_before")
def test_nobody_deactivates_themselves(admin_page: Page, site: Site) -> None:
    """Among all that are selected one's own row is left out, and it is said: the way back would be refused. Neither is
    it offered where one changes oneself."""
    join(site, "nora")
    site.write("update users set active = true where username = 'nora'")
    page = admin_page
    page.goto(f"{site.url}/ui/admin/users")
    for name, others in (("nora", 1), ("admin", 0)):
        page.get_by_label("Part of a name").fill(name)
        expect(page.get_by_role("gridcell", name=name, exact=True)).to_be_visible()
        expect(page.get_by_role("row")).to_have_count(2)
        page.get_by_role("row").nth(1).get_by_role("checkbox").check()
        expect(page.get_by_text(f"{2 - others} selected")).to_be_visible()
    page.get_by_role("button", name="Deactivate").click()
    stays = "You stay active: only another administrator can deactivate you"
    expect(page.get_by_role("group", name=re.compile(rf"^Deactivated user \d+\. {stays}$"))).to_be_visible()
    people = cast("list[dict[str, object]]", site.administer("GET", "/api/v1/users")["users"])
    assert {each["username"]: each["active"] for each in people if each["username"] in ("admin", "nora")} == {
        "admin": True,
        "nora": False,
    }
    page.get_by_role("row").nth(1).get_by_role("checkbox").check()
    page.get_by_role("button", name="Deactivate").click()
    # What was said before may stand beside it still.
    expect(page.get_by_role("group", name=stays, exact=True)).to_be_visible()
    page.get_by_role("button", name="admin", exact=True).click()
    dialog = page.get_by_role("dialog", name="User admin")
    dialog.get_by_role("button", name="Set a password").wait_for()
    expect(dialog.get_by_role("button", name="Deactivate")).to_have_count(0)


def _edits(page: Page) -> None:
    """By its name or by Enter on its row; an account on agents as a whole or not at all."""
    dialog = page.get_by_role("dialog", name="User nora")
    page.get_by_role("button", name="nora", exact=True).click()
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("grid", name="Users").focus()
    page.keyboard.press("Enter")
    dialog.get_by_label("User", exact=True).fill("nn")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("agentUserGroup lacks agentUid, agentGid, agentGroup")
    dialog.get_by_label("User ID").fill("1234")
    dialog.get_by_label("Group", exact=True).fill("nngroup")
    dialog.get_by_label("Group ID").fill("4321")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("gridcell", name="nn (1234) : nngroup (4321)")).to_be_visible()


def _groups(page: Page) -> None:
    page.get_by_role("navigation", name="Administration").get_by_role("link", name="Groups").click()
    page.get_by_role("button", name="New group").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("vision")
    dialog.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Add a member…").click()
    dialog.get_by_label("User name").fill("nobody-at-all")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_label("User name")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("User name").fill("nora")
    dialog.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Remove nora").click()
    expect(page.get_by_text("It has no members.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Remove nora").wait_for()
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted group vision")).to_be_visible()


@pytest.mark.usefixtures("as_before")
def test_a_message_stands_above_every_page(
    admin_page: Page, browser: Browser, site: Site, session: dict[str, object]
) -> None:
    """Of everyone at once, without a reload, and at the login, until it is removed; it is text."""
    other = browser.new_context(storage_state=session)  # type: ignore[arg-type]
    other.set_default_timeout(TIMEOUT_MS)
    seen = other.new_page()
    seen.goto(f"{site.url}/ui/queue")
    seen.get_by_role("heading", name="Queue").wait_for()
    admin_page.goto(f"{site.url}/ui/admin/message")
    admin_page.get_by_label("Text").fill(MESSAGE)
    admin_page.get_by_role("button", name="Set message").click()
    expect(seen.get_by_text(MESSAGE)).to_be_visible()
    stranger = browser.new_context().new_page()
    stranger.set_default_timeout(TIMEOUT_MS)
    stranger.goto(f"{site.url}/ui/login")
    expect(stranger.get_by_text(MESSAGE)).to_be_visible()
    stranger.context.close()
    admin_page.get_by_role("button", name="Remove it").click()
    expect(seen.get_by_text(MESSAGE)).to_be_hidden()
    other.close()


def test_join_tokens_are_shown_once_and_revoked(admin_page: Page, site: Site) -> None:
    """What is refused is said at its field; the token itself is nowhere afterwards."""
    page = admin_page
    page.goto(f"{site.url}/ui/admin/join-tokens")
    page.get_by_role("button", name="New join token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What it is for").fill("rack 4")
    dialog.get_by_role("button", name="Create").click()
    token = page.get_by_role("dialog", name="Join token").locator("code").inner_text()
    dialog.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("cell", name="rack 4")).to_be_visible()
    page.get_by_role("button", name="Revoke join token").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("cell", name="rack 4")).to_be_hidden()
    assert token.startswith("tnxj_")
    assert token not in page.content() + page.url


def test_others_are_told_that_it_is_not_theirs(page: Page, site: Site) -> None:
    """Nothing is offered that would be refused, and the page says why; nothing is asked that would be, either."""
    page.goto(f"{site.url}/ui/admin/users")
    expect(page.get_by_text("Only administrators can create and change users")).to_be_visible()
    page.get_by_role("gridcell", name="determined").first.wait_for()
    expect(page.get_by_role("button", name="New user")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Places").get_by_role("link", name="Admin")).to_have_count(0)
    for part in ("tokens", "message", "join-tokens"):
        page.goto(f"{site.url}/ui/admin/{part}")
        expect(page.get_by_text("Only administrators can see")).to_be_visible()


def test_everyones_tokens_are_listed_and_revoked(admin_page: Page, site: Site) -> None:
    """Of one person, by name; the token is of no use from then on."""
    me = site.api("GET", "/api/v1/me")["user"]
    made = site.api("POST", "/api/v1/tokens", {"userId": me["id"], "description": "of the walk"})  # type: ignore[index]
    page = admin_page
    page.goto(f"{site.url}/ui/admin/tokens?user=determined")
    page.get_by_role("gridcell", name="of the walk").wait_for()
    page.get_by_role("checkbox", name=f"Select token {made['tokenId']}", exact=True).check()
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("gridcell", name="of the walk")).to_have_count(0)
    reply = plain_http.get(f"{site.url}/api/v1/me", headers={"Authorization": f"Bearer {made['token']}"})
    assert reply.status_code == 401
