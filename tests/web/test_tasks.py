"""Tasks that no search asked for: commands and generic tasks."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.kits.machine import wait_for
from tests.web.site import Site

GENERIC = "name: {name}\nentrypoint: [python3, run.py]\nresources: {{slots: 0}}\n"


def test_a_command_is_started_followed_and_killed(page: Page, site: Site) -> None:
    """From the page: its output comes in as it is written, its configuration is there, and it is in the list."""
    page.goto(f"{site.url}/ui/tasks")
    page.get_by_role("button", name="Start a command").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Entrypoint").fill("echo 'from the page'")
    dialog.get_by_label("Pool").select_option("default")
    dialog.get_by_role("button", name="Start").click()
    page.wait_for_url("**/tasks/*-*")
    task = page.url.rpartition("/")[2]
    expect(page.get_by_text("No output yet")).to_be_visible()
    expect(page.get_by_role("main").get_by_text("Queued")).to_be_visible()
    site.say(task, ["first line of it", "second line of it"])
    expect(page.get_by_role("region", name=f"Output of task {task}").get_by_text("second line of it")).to_be_visible()
    page.get_by_label("Search the output").fill("second")
    expect(page.get_by_role("status", name="Hits")).to_contain_text("1 hits")
    page.get_by_role("link", name="Configuration").click()
    expect(page.get_by_text("echo 'from the page'")).to_be_visible()
    page.get_by_role("button", name="Kill").click()
    dialog.get_by_role("button", name="Kill").click()
    expect(page.get_by_role("main").get_by_text("Canceling")).to_be_visible()
    expect(page.get_by_role("button", name="Kill")).to_have_count(0)
    page.goto(f"{site.url}/ui/tasks?type=TASK_TYPE_COMMAND&owner=me")
    expect(page.locator(f"a[href$='/tasks/{task}']")).to_be_visible()


def test_generic_tasks_are_paused_and_many_are_killed(page: Page, site: Site) -> None:
    """With a child, which goes with it. Those that are selected are killed together, and no others."""
    made = [
        str(site.api("POST", "/api/v1/generic-tasks", {"config": GENERIC.format(name=f"many of page {n}")})["taskId"])
        for n in range(3)
    ]
    child = {"config": GENERIC.format(name="child of page"), "parentId": made[0]}
    site.api("POST", "/api/v1/generic-tasks", child)
    page.goto(f"{site.url}/ui/tasks/{made[0]}?tab=children")
    expect(page.get_by_role("cell", name="child of page")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").wait_for()
    paused = ("GENERIC_TASK_STATE_PAUSED", "GENERIC_TASK_STATE_STOPPING_PAUSED")
    # Shown at once, before the master has answered.
    wait_for(
        lambda: site.api("GET", f"/api/v1/tasks/{made[0]}")["task"]["taskState"] in paused,  # type: ignore[index]
        "the task to be paused",
    )
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Pause").wait_for()

    page.goto(f"{site.url}/ui/tasks?q=many+of+page")
    for number in (0, 1):
        page.get_by_label(f"Select generic task many of page {number}").check()
    expect(page.get_by_role("row").filter(has_text="many of page")).to_have_count(3)
    page.get_by_role("button", name="Kill").click()
    expect(page.get_by_role("dialog")).to_contain_text("many of page 1")
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(page.get_by_role("row").filter(has_text="Canceling")).to_have_count(2)
    expect(page.get_by_role("row").filter(has_text="many of page 2")).to_contain_text("Queued")


def test_what_a_task_serves_cannot_be_framed(page: Page, site: Site) -> None:
    """The policy of the page lets no frame in, and nobody frames the page."""
    reply = page.goto(f"{site.url}/ui/tasks")
    assert reply is not None
    rules = reply.headers["content-security-policy"].split("; ")
    assert {"frame-src 'none'", "frame-ancestors 'none'", "form-action 'self'"} <= set(rules)
