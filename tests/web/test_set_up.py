"""Templates and webhooks: what is set up once and serves many."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import pytest
from playwright.sync_api import Page, expect

from tests.web.site import Site

TEMPLATE, HOOK = "of/the tests", "pager of the tests"


@pytest.fixture(autouse=True)
def as_before(site: Site) -> Iterator[None]:
    """Whatever a test comes to, others find no webhook and no template."""
    yield
    site.write("delete from webhooks where name = $1", HOOK)
    site.write("delete from templates where name = any($1::text[])", [TEMPLATE, "of admin"])


class Receiver:
    """Takes messages."""

    def __init__(self) -> None:
        self.types: list[str] = []
        types = self.types

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                types.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["event_type"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hooks/very-secret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_webhook_is_created_tried_and_deleted(
    refused_admin_page: Page, page: Page, site: Site, receiver: Receiver
) -> None:
    """By the palette; others see its host alone, and nothing that they could do to it."""
    mine, dialog = refused_admin_page, refused_admin_page.get_by_role("dialog")
    mine.goto(f"{site.url}/ui/settings")
    mine.get_by_role("button", name="Search or run").click()
    mine.get_by_role("combobox", name="Page, experiment or action").fill("to the webhooks")
    mine.keyboard.press("Enter")
    mine.get_by_role("button", name="New webhook").click()
    dialog.get_by_label("Name", exact=True).fill(HOOK)
    expect(dialog.get_by_label("Name", exact=True)).to_have_accessible_description("It cannot be changed later.")
    dialog.get_by_label("Address").fill(receiver.url)
    dialog.get_by_label("Paused").check()
    dialog.get_by_label("Completed").uncheck()
    dialog.get_by_label("Budget used up").check()
    pattern = dialog.get_by_label("Lines of output matching")
    pattern.fill("(")
    dialog.get_by_role("button", name="Create").click()
    expect(pattern).to_have_attribute("aria-invalid", "true")
    pattern.fill("out of memory")
    dialog.get_by_role("button", name="Create").click()
    row = mine.get_by_role("row").filter(has_text=HOOK)
    expect(row).to_contain_text('Error, Paused; output like "out of memory"; machines: budget used up')
    expect(row).to_contain_text("all workspaces")
    expect(mine.get_by_text("Only the address can be changed.")).to_be_visible()
    mine.get_by_role("button", name="Send a test").click()
    mine.get_by_text("the receiver accepted a message").wait_for()
    assert len(receiver.types) == 1
    (paused,) = site.make("of whose pause is told")
    site.api("POST", f"/api/v1/experiments/{paused}/pause")
    mine.get_by_role("button", name="Refresh").click()
    expect(mine.get_by_role("row").filter(has_text="EXPERIMENT_STATE_CHANGE")).to_contain_text("Waiting")
    page.goto(f"{site.url}/ui/webhooks")
    expect(page.get_by_role("row").filter(has_text=HOOK)).to_contain_text("http://127.0.0.1/********")
    expect(page.get_by_role("button", name="Actions on webhook")).to_have_count(0)
    assert "very-secret" not in page.content()
    mine.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def write(page: Page, text: str) -> None:
    """Into the editor, in place of all that is there."""
    page.get_by_role("textbox", name="Configuration of the template").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_template_is_written_by_two_at_once(refused_page: Page, site: Site) -> None:
    """What is wrong stands at its line; nothing that was typed is lost, and nothing of what the other one saved."""
    page = refused_page
    page.goto(f"{site.url}/ui/templates")
    page.get_by_role("button", name="New template").click()
    page.get_by_label("Name").fill(TEMPLATE)
    write(page, "max_restarts: 2\nresources: {slots_per_trial: many}")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("Line 2")
    page.reload()
    expect(page.get_by_label("Name")).to_have_value(TEMPLATE)
    write(page, "max_restarts: 3")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name=f"Template {TEMPLATE}").wait_for()
    write(page, "max_restarts: 4")
    at = "/api/v1/templates/of%2Fthe%20tests"
    site.api("PUT", at, {"text": "max_restarts: 5"})
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Someone has changed this template since you began").wait_for()
    expect(page.locator("details")).to_contain_text("max_restarts: 5")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_role("button", name="Keep mine").click()
    page.get_by_role("button", name="Save").click()
    page.get_by_text(f"Saved template {TEMPLATE}").wait_for()
    kept = cast("dict[str, object]", site.api("GET", at)["template"])
    assert kept["config"] == {"max_restarts": 4}
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No templates yet")).to_be_visible()


def test_a_template_of_somebody_else_is_read(page: Page, site: Site) -> None:
    """Without what only its owner sees, and without anything to change it by."""
    site.write(
        "insert into templates (name, workspace_id, owner_id, config) values ('of admin', 1,"
        " (select id from users where username = 'admin'), $1)",
        json.dumps({"environment": {"environment_variables": ["API_TOKEN=very-secret"]}}),
    )
    page.goto(f"{site.url}/ui/templates")
    page.get_by_role("link", name="of admin").click()
    page.get_by_text("Only its owner and administrators can change it").wait_for()
    expect(page.get_by_text("environment_variables")).to_be_visible()
    assert "very-secret" not in page.content()
    for name in ("Save", "Rename", "Delete"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
