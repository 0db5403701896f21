"""The four questions that people come with, each answered from Home on without a mouse."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.site import Site, drawn

#: Stops of Tab until somebody would give up.
MAX_STOPS = 80
WHY = "needs 1 slot; all 1 of the pool are in use"


@pytest.fixture
def waiting(site: Site) -> Iterator[int]:
    """An experiment of ``determined`` whose trial has no slot yet. It goes in the end: a page that is asked for behind
    this is closed before."""
    (number,) = site.make("flow waits")
    trial = site.make_trial(number)
    task = "(select task_id from trials where id = $1)"
    site.write(f"update allocations set state = 'PENDING' where task_id = {task}", trial)
    site.write(
        f"insert into allocation_waits (allocation_id, reason) select allocation_id, $2 from allocations"
        f" where task_id = {task} on conflict (allocation_id) do update set reason = excluded.reason",
        trial,
        WHY,
    )
    yield number
    site.write("delete from trials where id = $1", trial)
    site.write("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", number)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def to(page: Page, there: Locator) -> None:
    """By Tab, as whoever sees where the focus is."""
    there.first.wait_for()
    for _ in range(MAX_STOPS):
        if there.first.evaluate("each => each === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{MAX_STOPS} times Tab do not lead to {there}")


def test_is_my_experiment_well(home: Page, site: Site) -> None:
    """From what failed to the line that shows why."""
    main = home.get_by_role("main")
    to(home, main.get_by_role("link", name=re.compile("out of memory")))
    press(home, "Enter")
    expect(home.get_by_role("heading", level=1)).to_contain_text("out of memory")
    expect(main.get_by_text("CUDA out of memory").first).to_be_visible()
    to(home, main.get_by_role("link", name="All output"))
    press(home, "Enter")
    expect(home).to_have_url(re.compile(f"/ui/trials/{site.failed_trial}"))
    expect(main.get_by_text("your code raised KeyError").first).to_be_visible()
    home.locator("[data-line]").first.wait_for()
    press(home, "e")
    line = home.locator("[data-line='3']")
    expect(line).to_be_in_viewport()
    expect(line).to_have_attribute("aria-current", "true")


def test_which_is_best_and_why(home: Page, site: Site) -> None:
    """Found by its name, its best trials selected and compared, and what they differ in; Esc leads back."""
    press(home, "g", "e")
    grid = home.get_by_role("grid")
    home.get_by_label("Filter", exact=True).wait_for()
    grid.get_by_role("gridcell").first.wait_for()
    drawn(home)
    press(home, "/")
    home.keyboard.type("halving over digits")
    expect(grid).to_have_attribute("aria-rowcount", "2")
    press(home, "Enter")
    expect(grid).to_be_focused()
    press(home, "j", "Enter")
    home.get_by_role("list", name="Importance of hyperparameters").wait_for()
    home.get_by_role("grid").get_by_role("gridcell").first.wait_for()
    press(home, "j", "x", "Shift+ArrowDown")
    expect(home.get_by_text("2 selected")).to_be_visible()
    press(home, "c")
    expect(home.get_by_role("heading", level=1)).to_have_text("Compare 2 trials")
    to(home, home.get_by_role("link", name="Differences"))
    press(home, "Enter")
    home.get_by_role("rowheader", name="lr").first.wait_for()
    press(home, "Escape")
    expect(home).to_have_url(re.compile(f"/ui/experiments/{site.sweep}"))


def test_why_does_mine_wait(waiting: int, page: Page, site: Site) -> None:
    """In the queue and on the experiment's own page; from there its priority is changed."""
    page.goto(f"{site.url}/ui/")
    page.get_by_role("heading", name="Needs attention").wait_for()
    press(page, "g", "q")
    row = page.get_by_role("row").filter(has_text=f"{waiting} flow waits")
    expect(row).to_contain_text(WHY)
    to(page, row.get_by_role("link", name=re.compile("flow waits")))
    press(page, "Enter")
    expect(page).to_have_url(f"{site.url}/ui/experiments/{waiting}")
    expect(page.get_by_role("main").get_by_text(WHY).first).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Pause").wait_for()
    press(page, "e")
    dialog = page.get_by_role("dialog", name=f"Edit experiment {waiting}")
    to(page, dialog.get_by_label("Priority"))
    page.keyboard.type("7")
    press(page, "Enter")
    expect(dialog).to_be_hidden()
    expect(page.get_by_text(f"Saved experiment {waiting}")).to_be_visible()


def test_who_uses_the_cluster(home: Page, site: Site) -> None:
    """The palette leads there: its pools, its machines and their slots."""
    press(home, "Control+k")
    home.get_by_role("combobox").wait_for()
    home.keyboard.type("cluster")
    expect(home.get_by_role("option").first).to_contain_text("luster")
    press(home, "Enter")
    expect(home).to_have_url(re.compile("/ui/cluster"))
    main = home.get_by_role("main")
    expect(main.get_by_text("a1").first).to_be_visible()
    expect(main.get_by_text("default").first).to_be_visible()
