"""The model registry in the page."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.web.site import HOSTILE, Site


def test_a_model_is_created_edited_archived_and_deleted(page: Page, site: Site) -> None:
    """Notes are text, whatever is in them; Undo brings an archived one back; before it goes, a question names it."""
    page.goto(f"{site.url}/ui/models")
    page.get_by_role("button", name="New model").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("digits of the page")
    dialog.get_by_label("Notes").fill(HOSTILE)
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("digits of the page")
    expect(page.get_by_text(HOSTILE)).to_be_visible()
    expect(page.get_by_text("tenax model register-version")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Description").fill("small pictures")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("main").get_by_text("small pictures")).to_be_visible()
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_role("button", name="Unarchive")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Archive", exact=True).wait_for()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog", name="Delete model digits of the page?")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Models")
