"""The model registry in the page."""

from __future__ import annotations

import re

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


def test_a_version_stands_beside_the_one_before(page: Page, site: Site) -> None:
    """Registered from the page of its model, with where it is from and how to load it; edited, and deleted."""
    newest, earlier = site.saved()[:2]
    model = site.api("POST", "/api/v1/models", {"name": "versions of the page"})["model"]["id"]  # type: ignore[index]
    site.api("POST", f"/api/v1/models/{model}/versions", {"checkpointUuid": earlier})
    page.goto(f"{site.url}/ui/models/{model}")
    page.get_by_role("button", name="Register a version").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Checkpoint").fill(newest)
    dialog.get_by_label("Version name").fill("second")
    dialog.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("versions of the page / version 2 second")
    for heading in ("Version 2", "Version 1", "Change"):
        expect(page.get_by_role("columnheader", name=heading)).to_be_visible()
    row = page.get_by_role("row").filter(has_text="validation loss")
    for place in (1, 2, 3):
        expect(row.get_by_role("cell").nth(place)).to_have_text(re.compile(r"\d"))
    now, before, change = (row.get_by_role("cell").nth(place).inner_text() for place in (1, 2, 3))
    assert abs(float(now) - float(before) - float(change)) < 0.01
    expect(page.get_by_text(f"tenax checkpoint download {newest}")).to_be_visible()
    expect(page.get_by_text(f"client.model({model}).version(2)")).to_be_visible()
    expect(page.get_by_role("link", name=f"Trial {site.well}")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Labels").fill("stable\n")
    dialog.get_by_label("Metadata").fill("[1]")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not a JSON object")
    dialog.get_by_label("Metadata").fill('{"place": "shelf"}')
    dialog.get_by_label("Notes").fill(HOSTILE)
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("stable")).to_be_visible()
    expect(page.get_by_text("place: shelf")).to_be_visible()
    expect(page.get_by_text(HOSTILE)).to_be_visible()
    page.keyboard.press("[")
    expect(page.get_by_text("There is no earlier version")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("versions of the page")
    site.api("DELETE", f"/api/v1/models/{model}")


def test_an_empty_list_says_what_it_leaves_out(page: Page, site: Site) -> None:
    """That there is none at all is said once archived ones are looked at, too."""
    none = {"models": [], "pagination": {"offset": 0, "limit": 0, "startIndex": 0, "endIndex": 0, "total": 0}}
    page.route(re.compile(r"/api/v1/models\?"), lambda route: route.fulfill(json=none))
    page.goto(f"{site.url}/ui/models")
    expect(page.get_by_text("No active models")).to_be_visible()
    page.get_by_label("Include archived").check()
    expect(page.get_by_text("No models yet")).to_be_visible()
