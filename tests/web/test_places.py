"""Where things are filed: workspaces, projects and their notes."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.kits.machine import wait_for
from tests.web.handling import CURRENT
from tests.web.site import HOSTILE, TIMEOUT_MS, Site

NOTE = f"# Plan\n\n- **first** {HOSTILE}\n- [go](javascript:alert(1)) and [there](https://a.test/)\n"


def test_a_workspace_is_made_changed_and_deleted(page: Page, site: Site) -> None:
    """With a project in it: pinned beside every page, archived and back, and gone once its name was typed."""
    page.goto(f"{site.url}/ui/workspaces")
    page.get_by_role("button", name="New workspace").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("places <b>")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("places <b>")
    # Whoever makes one has it pinned.
    expect(page.get_by_role("navigation", name="Pinned").get_by_role("link", name="places <b>")).to_be_visible()
    page.get_by_role("button", name="Unpin").click()
    page.get_by_role("button", name="Pin", exact=True).wait_for()
    expect(page.get_by_role("navigation", name="Pinned").get_by_text("places <b>")).to_have_count(0)

    page.get_by_role("button", name="New project").click()
    dialog.get_by_label("Name").fill("cats")
    dialog.get_by_label("Key").fill("cat")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("places <b> / cats")
    expect(page.get_by_role("navigation", name="Recently opened").get_by_role("link", name="cats")).to_be_visible()
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("button", name="Archive", exact=True).click()
    page.get_by_role("button", name="Unarchive").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Archive", exact=True).wait_for()

    page.get_by_role("heading", level=1).get_by_role("link").click()
    expect(page.get_by_role("row").filter(has_text="CAT")).to_contain_text("cats")
    page.get_by_role("navigation", name="Parts of this workspace").get_by_role("link", name="Members").click()
    expect(page.get_by_text("This cluster has no roles")).to_be_visible()
    page.get_by_role("navigation", name="Parts of this workspace").get_by_role("link", name="Settings").click()
    page.get_by_label("Kind").select_option("s3")
    page.get_by_label("Bucket").fill("kept")
    page.get_by_label("Secret key").fill("hush")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved workspace")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Bucket")).to_have_value("kept")
    expect(page.get_by_label("Secret key")).to_have_value("")

    page.get_by_role("button", name="Delete").click()
    dialog.get_by_label("Type this name").fill("places")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not its name")
    dialog.get_by_label("Type this name").fill("places <b>")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Workspaces")
    expect(page.get_by_role("cell", name="places <b>")).to_have_count(0)


def test_what_one_deletes_is_not_asked_for_again(page: Page, site: Site) -> None:
    """Of it the page is told before its deletion is answered: it asks for nothing that is gone (``page``)."""
    number = int(site.api("POST", "/api/v1/workspaces", {"name": "short-lived"})["workspace"]["id"])  # type: ignore[index, call-overload]
    pinned = page.get_by_role("navigation", name="Pinned")

    def late(route: Route) -> None:
        answer = route.fetch()
        # What the page asks for again by now has all been asked for.
        expect(pinned.get_by_text("short-lived")).to_have_count(0)
        later = site.api("POST", "/api/v1/workspaces", {"name": "later"})["workspace"]["id"]  # type: ignore[index]
        expect(pinned.get_by_text("later")).to_be_visible()
        site.api("DELETE", f"/api/v1/workspaces/{later}")
        expect(pinned.get_by_text("later")).to_have_count(0)
        route.fulfill(response=answer)

    page.goto(f"{site.url}/ui/workspaces/{number}")
    page.get_by_text("No projects yet").wait_for()
    page.locator(CURRENT).wait_for()
    page.route(
        lambda address: address.endswith(f"/workspaces/{number}"),
        lambda route: late(route) if route.request.method == "DELETE" else route.continue_(),
    )
    page.get_by_role("button", name="Delete").click()
    page.get_by_label("Type this name").fill("short-lived")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Workspaces")


def test_notes_are_written_by_two(page: Page, site: Site) -> None:
    """As Markdown in which HTML is text; of two who write the same note the second is told, and loses nothing."""
    workspace = site.api("POST", "/api/v1/workspaces", {"name": "noted"})["workspace"]["id"]  # type: ignore[index]
    made = site.api("POST", f"/api/v1/workspaces/{workspace}/projects", {"name": "notes"})
    number = made["project"]["id"]  # type: ignore[index]
    page.goto(f"{site.url}/ui/projects/{number}?tab=notes")
    page.get_by_role("button", name="New note").press("Enter")
    # What was pressed is gone: the focus goes where one writes, and from there back to the page.
    expect(page.get_by_label("Name")).to_be_focused()
    page.get_by_label("Name").fill("plan")
    page.get_by_label("Text").fill(NOTE)
    page.get_by_role("button", name="Save").click()
    article = page.get_by_role("article")
    expect(article.get_by_role("heading", name="Plan", exact=True).last).to_be_visible()
    expect(page.get_by_role("main")).to_be_focused()
    expect(article.get_by_text(HOSTILE)).to_be_visible()
    expect(article.get_by_role("link")).to_have_count(1)
    assert page.evaluate("document.title") != "broken in"

    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Text")).to_be_focused()
    page.get_by_label("Text").fill("mine")
    # Another note is nobody's loss.
    path = f"/api/v1/projects/{number}/notes"
    site.api("POST", path, {"name": "log", "contents": "theirs"})
    page.get_by_role("link", name="Notes (2)").wait_for()
    expect(page.get_by_role("button", name="Save")).to_be_enabled()
    site.api("PUT", path, {"notes": [{"name": "plan", "contents": "theirs"}, {"name": "log", "contents": "theirs"}]})
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("Someone else changed")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    # What was typed outlives the tab's reload.
    page.reload()
    expect(page.get_by_label("Text")).to_have_value("mine")
    page.get_by_role("button", name="Keep mine, in place of theirs").click()
    page.get_by_role("button", name="Save").click()
    expect(article).to_contain_text("mine")
    kept = [{"name": "plan", "contents": "mine"}, {"name": "log", "contents": "theirs"}]
    asked = f"/api/v1/projects/{number}"
    wait_for(lambda: site.api("GET", asked)["project"]["notes"] == kept, "the notes")  # type: ignore[index]
    page.get_by_role("button", name="Delete").click()
    expect(article).to_contain_text("theirs")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Notes (2)").wait_for()
    site.api("DELETE", f"/api/v1/workspaces/{workspace}")


def test_an_administrator_says_as_whom_tasks_run(admin_page: Page, site: Site) -> None:
    """A user and a group, by name and number; what is wrong is said by the master, and what was typed stays."""
    number = site.api("POST", "/api/v1/workspaces", {"name": "as whom"})["workspace"]["id"]  # type: ignore[index]
    admin_page.goto(f"{site.url}/ui/workspaces/{number}?tab=settings")
    admin_page.get_by_label("User", exact=True).fill("trainer")
    admin_page.get_by_label("User ID").fill("1234")
    admin_page.get_by_role("button", name="Save").click()
    expect(admin_page.get_by_text("Saved workspace as whom")).to_be_visible(timeout=TIMEOUT_MS)
    kept = site.api("GET", f"/api/v1/workspaces/{number}")["workspace"]["agentUserGroup"]  # type: ignore[index]
    assert (kept["agentUser"], kept["agentUid"]) == ("trainer", 1234)
    site.api("DELETE", f"/api/v1/workspaces/{number}")
