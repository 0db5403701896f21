"""Selection, the palette and all keys: what the mouse can do is done by keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.kits.machine import wait_for
from tests.web.pictures import AXE, keep, violations
from tests.web.site import ROOT, TIMEOUT_MS, Site, drawn, fits

TABLE = ROOT / "webui" / "src" / "keys" / "table.ts"


def listed(page: Page, site: Site, name: str, more: str = "") -> Locator:
    """The table of the experiments of that name, which has the focus."""
    page.goto(f"{site.url}/ui/experiments?q={name}{more}")
    grid = page.get_by_role("grid")
    grid.get_by_role("gridcell", name=re.compile(name)).first.wait_for()
    page.keyboard.press("j")
    expect(grid).to_be_focused()
    return grid


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def becomes(site: Site, number: int, field: str, value: object) -> None:
    """Until the API says so."""
    wait_for(lambda: site.experiment(number)[field] == value, f"{field} of experiment {number} to be {value}")


def selects(page: Page, names: list[str]) -> None:
    """Once the rows of these boxes, and no others, are selected."""
    rows = page.get_by_role("row", selected=True)
    expect(rows).to_have_count(len(names))
    for place, name in enumerate(names):
        expect(rows.nth(place).get_by_role("checkbox")).to_have_attribute("aria-label", name)


def test_pause_and_undo(page: Page, site: Site) -> None:
    """`x` and `p`, and `z` takes it back: of what was paused before it stays so."""
    (paused,) = site.make("keys-pause old", "PAUSED")
    (number,) = site.make("keys-pause new")
    listed(page, site, "keys-pause", "&sort=-id")
    press(page, "x", "Shift+ArrowDown")
    expect(page.get_by_text("2 selected")).to_be_visible()
    press(page, "p")
    becomes(site, number, "state", "STATE_PAUSED")
    page.get_by_role("status").get_by_text("Paused 2 experiments").wait_for()
    expect(page.get_by_text("2 selected")).to_be_hidden()
    press(page, "z")
    becomes(site, number, "state", "STATE_QUEUED")
    assert site.experiment(paused)["state"] == "STATE_PAUSED"


def test_archive_and_undo(page: Page, site: Site) -> None:
    """The row goes, and comes back; the focus stays in the table."""
    (first, second) = site.make("keys-archive", "COMPLETED", 2)
    grid = listed(page, site, "keys-archive")
    press(page, "x", "a")
    expect(grid.get_by_role("row")).to_have_count(2)
    expect(grid).to_be_focused()
    becomes(site, second, "archived", True)
    assert site.experiment(first)["archived"] is False
    press(page, "z")
    expect(grid.get_by_role("row")).to_have_count(3)
    becomes(site, second, "archived", False)


def test_kill_with_a_question(page: Page, site: Site) -> None:
    """Esc and the first button leave them; the focus returns to the table."""
    numbers = site.make("keys-kill", count=2)
    grid = listed(page, site, "keys-kill")
    press(page, "Control+a", "Shift+K")
    dialog = page.get_by_role("dialog", name="Kill 2 experiments?")
    for number in numbers:
        expect(dialog).to_contain_text(f"{number} keys-kill")
    press(page, "Escape")
    expect(dialog).to_be_hidden()
    expect(grid).to_be_focused()
    press(page, "Shift+K", "Enter")
    expect(dialog).to_be_hidden()
    assert all(site.experiment(number)["state"] == "STATE_QUEUED" for number in numbers)
    press(page, "Shift+K", "Tab", "Enter")
    expect(dialog).to_be_hidden()
    expect(grid).to_be_focused()
    for number in numbers:
        becomes(site, number, "state", "STATE_STOPPING_KILLED")


def test_partial_failure_lists_who_and_why(page: Page, site: Site) -> None:
    """Each is done by itself: those of others and those that have ended are refused, with their numbers."""
    (mine,) = site.make("keys-partly mine")
    (theirs,) = site.make("keys-partly theirs", owner="user001")
    (ended,) = site.make("keys-partly ended", "CANCELED")
    listed(page, site, "keys-partly", "&sort=-id")
    press(page, "x", "Shift+ArrowDown", "Shift+ArrowDown")
    expect(page.get_by_text("3 selected")).to_be_visible()
    press(page, "p")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Paused: 1 of 3 experiments; 2 refused")
    refused = alert.get_by_role("listitem")
    expect(refused).to_have_count(2)
    expect(refused.filter(has_text=str(theirs))).to_contain_text("belongs to someone else")
    expect(refused.filter(has_text=str(ended))).to_contain_text("has ended")
    assert site.experiment(mine)["state"] == "STATE_PAUSED"
    # What is shown of them is what they are.
    expect(page.get_by_role("row").filter(has_text=str(theirs))).to_contain_text("Queued")
    press(page, "z")
    becomes(site, mine, "state", "STATE_QUEUED")


def test_selecting_ranges(page: Page, site: Site) -> None:
    """Shift and arrows widen and narrow it; a box with Shift selects from the last one; another order keeps it."""
    numbers = site.make("keys-range", count=5)
    grid = listed(page, site, "keys-range")
    newest = [f"Select experiment {number}" for number in reversed(numbers)]
    press(page, "x", "Shift+ArrowDown", "Shift+ArrowDown")
    expect(page.get_by_text("3 selected")).to_be_visible()
    selects(page, newest[:3])
    press(page, "Shift+ArrowUp")
    expect(page.get_by_text("2 selected")).to_be_visible()
    selects(page, newest[:2])
    press(page, "Escape")
    expect(page.get_by_role("region", name="Selected")).to_be_hidden()
    grid.get_by_label(newest[1]).click()
    grid.get_by_label(newest[4]).click(modifiers=["Shift"])
    expect(page.get_by_text("4 selected")).to_be_visible()
    selects(page, newest[1:])
    grid.get_by_role("button", name="ID").click()
    expect(page).to_have_url(re.compile("sort=id"))
    expect(page.get_by_text("4 selected")).to_be_visible()
    press(page, "Escape")
    expect(page.get_by_role("region", name="Selected")).to_be_hidden()


def test_all_that_match_are_as_many_as_the_table_says(page: Page, site: Site) -> None:
    """By the filter, also those that no window has loaded; without those that are taken out again."""
    site.make("keys-all", "COMPLETED", 130)
    grid = listed(page, site, "keys-all")
    expect(grid).to_have_attribute("aria-rowcount", "131")
    grid.get_by_label("Select all 130").check()
    expect(page.get_by_text("130 selected")).to_be_visible()
    press(page, "j", "x")
    expect(page.get_by_text("129 selected")).to_be_visible()
    press(page, "a")
    page.get_by_role("status").get_by_text("Archived 129 experiments").wait_for()
    expect(grid).to_have_attribute("aria-rowcount", "2")
    press(page, "z")
    expect(grid).to_have_attribute("aria-rowcount", "131")


def test_the_palette_finds_and_does(page: Page, site: Site) -> None:
    """Pages, experiments by number and by name, and what can be done to what is shown."""
    (number,) = site.make("keys-palette found")
    page.goto(f"{site.url}/ui/")
    page.get_by_role("heading", name="Home").wait_for()
    field = page.get_by_role("combobox", name="Page, experiment or action")
    options = page.get_by_role("option")
    for typed, title in ((str(number), f"{number} keys-palette found"), ("palette fou", "keys-palette found")):
        press(page, "Control+k")
        expect(field).to_be_focused()
        page.keyboard.type(typed)
        expect(options.filter(has_text=title)).to_be_visible()
        press(page, "Enter")
        expect(page).to_have_url(f"{site.url}/ui/experiments/{number}")
        expect(page.get_by_role("heading", level=1)).to_have_text("keys-palette found")
        if typed == str(number):
            press(page, "g", "h")
            page.get_by_role("heading", name="Home").wait_for()
    press(page, "Control+k")
    expect(options.filter(has_text=f"Pause experiment {number}")).to_contain_text("p")
    page.keyboard.type("pause exp")
    expect(options.first).to_contain_text(f"Pause experiment {number}")
    press(page, "Enter")
    becomes(site, number, "state", "STATE_PAUSED")
    press(page, "Control+k")
    page.keyboard.type("cluster")
    press(page, "Enter")
    expect(page).to_have_url(f"{site.url}/ui/cluster")
    press(page, "Control+k")
    page.keyboard.type("large / project 1")
    expect(options.first).to_contain_text("Project large / project 1")
    press(page, "Enter")
    expect(page).to_have_url(re.compile("/ui/projects/"))


def test_the_focus_returns(page: Page, site: Site) -> None:
    """From the palette, the keys, a menu's dialog and a toast."""
    (number,) = site.make("keys-focus")
    page.goto(f"{site.url}/ui/experiments/{number}")
    button = page.get_by_role("button", name="Pause")
    for key, name in (("Control+k", "Palette"), ("?", "Keys")):
        button.focus()
        press(page, key)
        page.get_by_role("dialog", name=name).wait_for()
        press(page, "Escape")
        expect(button).to_be_focused()
    more = page.get_by_role("button", name="More actions for")
    more.focus()
    press(page, "Enter")
    page.get_by_role("menuitem", name="Edit").press("Enter")
    page.get_by_role("dialog", name=f"Edit experiment {number}").wait_for()
    expect(page.get_by_label("Name")).to_be_focused()
    press(page, "Escape")
    expect(more).to_be_focused()
    button.focus()
    press(page, "p")
    page.get_by_role("button", name="Undo").wait_for()
    resume = page.get_by_role("button", name="Resume")
    resume.focus()
    page.get_by_role("button", name="Undo").focus()
    press(page, "Enter")
    becomes(site, number, "state", "STATE_QUEUED")


def test_the_list_of_keys_is_the_table(page: Page, site: Site) -> None:
    """All of its lines, in words and with their keys."""
    page.goto(f"{site.url}/ui/")
    page.get_by_role("heading", name="Home").wait_for()
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keys")
    titles = re.findall(r'key\("[^"]+", "([^"]+)"', TABLE.read_text())
    assert len(titles) > 20
    for title in titles:
        expect(dialog.get_by_text(title, exact=True)).to_be_visible()
    expect(dialog.get_by_text("Ctrl", exact=True).first).to_be_visible()


def test_going_and_opening(page: Page, site: Site) -> None:
    """`g` and a letter, `/`, Enter, and `[` and `]` along the list that was left."""
    numbers = site.make("keys-going", count=3)
    page.goto(f"{site.url}/ui/")
    page.get_by_role("heading", name="Home").wait_for()
    for letter, address in (("q", "queue"), ("c", "cluster"), ("e", "experiments")):
        press(page, "g", letter)
        expect(page).to_have_url(re.compile(f"/ui/{address}"))
    grid = page.get_by_role("grid")
    # The page before, which may have a grid as well, stays until this one is loaded.
    page.get_by_label("Filter", exact=True).wait_for()
    grid.get_by_role("gridcell").first.wait_for()
    drawn(page)
    press(page, "/")
    expect(page.get_by_label("Filter", exact=True)).to_be_focused()
    page.keyboard.type("keys-going")
    expect(grid).to_have_attribute("aria-rowcount", "4")
    press(page, "Enter")
    expect(grid).to_be_focused()
    press(page, "j", "Enter")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("keys-going 2")
    press(page, "]")
    expect(heading).to_have_text("keys-going 1")
    press(page, "]")
    page.get_by_text("This is the last in the list").wait_for()
    for place in (2, 3):
        press(page, "[")
        expect(heading).to_have_text(f"keys-going {place}")
    # Without a list: by number.
    page.goto(f"{site.url}/ui/experiments/{numbers[1]}")
    expect(heading).to_have_text("keys-going 2")
    press(page, "]")
    expect(heading).to_have_text("keys-going 1")


def test_no_key_acts_while_somebody_types(page: Page, site: Site) -> None:
    """Nor while a dialog is open."""
    (number,) = site.make("keys-typing")
    asked: list[Route] = []
    page.route("**/experiments/pause", lambda route: asked.append(route))
    listed(page, site, "keys-typing")
    press(page, "x", "/")
    page.keyboard.type("pazx?gh")
    expect(page.get_by_label("Filter", exact=True)).to_have_value(re.compile("pazx\\?gh$"))
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.goto(f"{site.url}/ui/experiments/{number}")
    page.get_by_role("button", name="Pause").wait_for()
    press(page, "e")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Save").focus()
    press(page, "p", "g", "h")
    expect(dialog).to_be_visible()
    assert asked == []


COVERED = {
    "palette": ("Control+k", "Palette"),
    "help": ("?", "Keys"),
    "edit": ("e", "Edit"),
    "move": ("m", "Move"),
    "kill": ("Shift+K", "Kill"),
}


@pytest.mark.parametrize("name", COVERED)
def test_everyone_can_use_what_lies_over_a_page(
    browser: Browser, site: Site, session: dict[str, object], name: str
) -> None:
    """axe finds nothing in dialogs and the palette, in either theme; at 200 % they fit."""
    context = browser.new_context(
        storage_state=session,  # type: ignore[arg-type]
        viewport={"width": 1440, "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
        bypass_csp=True,
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(f"{site.url}/ui/experiments/{site.search}")
    page.get_by_role("button", name="Pause").wait_for()
    key, title = COVERED[name]
    press(page, key)
    page.get_by_role("dialog", name=title).wait_for()
    passes_axe(page, f"over-{name}")
    context.close()


def test_everyone_can_use_selection_and_toasts(browser: Browser, site: Site, session: dict[str, object]) -> None:
    """The bar of what is selected, what was done, and what was refused."""
    site.make("keys-axe mine")
    site.make("keys-axe theirs", owner="user001")
    context = browser.new_context(
        storage_state=session,  # type: ignore[arg-type]
        viewport={"width": 1440, "height": 900},
        color_scheme="light",
        reduced_motion="reduce",
        bypass_csp=True,
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    listed(page, site, "keys-axe")
    press(page, "Control+a", "p")
    page.get_by_role("alert").get_by_role("listitem").wait_for()
    press(page, "x")
    page.get_by_role("region", name="Selected").wait_for()
    passes_axe(page, "over-toasts")
    context.close()


def passes_axe(page: Page, name: str) -> None:
    """In both themes, and it is no wider than its window."""
    page.add_script_tag(path=AXE)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.locator(f"html[data-theme={theme}]").wait_for()
        keep(page, f"{name}-{theme}")
        wrong = violations(page, colours=theme == "dark")
        assert not wrong, f"{theme}: " + "\n".join(wrong)
    page.set_viewport_size({"width": 640, "height": 400})
    fits(page)
