"""An experiment is created in the page: what is wrong at its line, what it would do, off it goes; nothing is lost."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.web.handling import RIGHT, write
from tests.web.site import TIMEOUT_MS, Site, box_of, log_in

BROKEN = RIGHT.replace("single", "nonsense")


def test_what_is_wrong_is_shown_at_its_line_and_what_is_right_goes_off(refused_page: Page, site: Site) -> None:
    """A pasted script is its code; the line of a problem is a way to it."""
    page = refused_page
    page.goto(f"{site.url}/ui/experiments/new")
    write(page, BROKEN)
    problems = page.get_by_role("list", name="Problems")
    expect(problems).to_contain_text("searcher.name")
    problems.get_by_role("button", name="Line 4").click()
    expect(page.get_by_role("textbox", name="Configuration")).to_be_focused()
    write(page, RIGHT)
    page.get_by_role("heading", name="It would train one trial").wait_for()
    page.get_by_label("Or a script").fill("print('hello')")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("from the page")
    expect(page).to_have_url(re.compile(r"/experiments/\d+$"))
    number = int(page.url.rpartition("/")[2])
    files = site.api("GET", f"/api/v1/experiments/{number}/file_tree")["files"]
    assert [each["path"] for each in files] == ["train.py"]  # type: ignore[attr-defined]


def test_on_a_phone_it_is_submitted_from_wherever_one_is(page: Page, site: Site) -> None:
    """What can be done stays in view, and so does what comes of it."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{site.url}/ui/experiments/new")
    write(page, RIGHT)
    page.get_by_role("heading", name="Where it would run").wait_for()
    page.locator("main").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    submit = page.get_by_role("button", name="Submit")
    expect(submit).to_be_in_viewport(ratio=1)
    submit.click()
    said = page.get_by_text("runs train.py, but no code is sent")
    expect(said).to_be_in_viewport(ratio=1)
    header = page.locator("main header")
    assert box_of(said)["y"] >= box_of(header)["y"] + box_of(header)["height"]


def test_a_script_that_is_not_sent_is_missed(page: Page, site: Site) -> None:
    """Before anything is submitted; pressed again it goes off, since the script may be where the task runs."""
    page.goto(f"{site.url}/ui/experiments/new")
    write(page, RIGHT.replace("from the page", "without code"))
    page.get_by_role("heading", name="It would train one trial").wait_for()
    submit = page.get_by_role("button", name="Submit")
    submit.click()
    page.get_by_text("runs train.py, but no code is sent").wait_for()
    expect(page).to_have_url(re.compile(r"/experiments/new$"))
    submit.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("without code")


def test_who_has_no_script_puts_in_an_example(page: Page, site: Site, tmp_path: Path) -> None:
    """It runs, outside of a cluster too, and reports what is looked for; beside what is typed nothing is offered."""
    page.goto(f"{site.url}/ui/experiments/new")
    page.get_by_role("heading", name="It would train 4 trials").wait_for()
    offer = page.get_by_role("button", name="Insert an example")
    page.get_by_label("Or a script").fill("mine")
    expect(offer).to_have_count(0)
    page.get_by_label("Or a script").fill("")
    offer.click()
    expect(page.get_by_label("Or a script")).not_to_have_value("")
    script = page.get_by_label("Or a script").input_value()
    # Nobody waits for what it pretends to compute.
    assert "time.sleep(0.1)" in script
    (tmp_path / "train.py").write_text(script.replace("time.sleep(0.1)", "time.sleep(0)"))
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "step 100: loss 0.1100" in done.stdout
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("my experiment")


def test_what_may_be_written_is_offered_at_the_cursor(refused_page: Page, site: Site) -> None:
    """By the schema of the master: keys of the map, and the values of a key."""
    page = refused_page
    page.goto(f"{site.url}/ui/experiments/new")
    page.get_by_role("heading", name="It would train 4 trials").wait_for()
    page.get_by_text(re.compile("would start at once")).wait_for()
    write(page, "name: offered\nsearcher:\n  name: adap")
    page.keyboard.press("Control+Space")
    offered = page.get_by_role("listbox")
    offered.get_by_role("option", name="adaptive_asha").click()
    page.keyboard.insert_text("\n  mo")
    page.keyboard.press("Control+Space")
    expect(page.get_by_text("standard by default")).to_be_visible()
    offered.get_by_role("option", name="mode").click()
    expect(page.get_by_role("textbox", name="Configuration")).to_contain_text("name: adaptive_asha")
    expect(page.get_by_role("textbox", name="Configuration")).to_contain_text("mode:")


def test_a_fork_begins_with_what_it_comes_from(page: Page, site: Site, tmp_path: Path) -> None:
    """Its configuration; a folder that is chosen is its code, without what no task needs."""
    folder = tmp_path / "code"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "train.py").write_text("print('hello')")
    (folder / "__pycache__" / "train.pyc").write_text("x")
    made = site.api("POST", "/api/v1/experiments", {"config": RIGHT.replace("from the page", "to be forked")})
    source = int(str(made["experiment"]["id"]))  # type: ignore[index]
    page.goto(f"{site.url}/ui/experiments/new?fork={source}")
    expect(page.get_by_role("textbox", name="Configuration")).to_contain_text("to be forked")
    page.get_by_role("heading", name="It would train one trial").wait_for()
    chooser = page.get_by_label("Folder")
    # Its button looks like all others.
    assert chooser.evaluate("field => getComputedStyle(field, '::file-selector-button').borderTopLeftRadius") == "6px"
    chooser.set_input_files(folder)
    expect(page.get_by_text("code: 1 file")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("status").get_by_text("Submitted experiment").wait_for()
    expect(page).to_have_url(re.compile(r"/experiments/\d+$"))
    number = int(page.url.rpartition("/")[2])
    assert site.experiment(number)["forkedFrom"] == source


def test_nothing_typed_is_lost_when_the_session_ends(browser: Browser, site: Site) -> None:
    """Nor when the tab is reloaded."""
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    log_in(page, site, "experiments/new")
    page.get_by_label("Or a script").fill("print('half')")
    write(page, RIGHT.replace("from the page", "half typed"))
    page.get_by_role("heading", name="It would train one trial").wait_for()
    context.clear_cookies()
    page.keyboard.type("#")
    page.get_by_label("Password").wait_for()
    page.get_by_label("User name").fill("determined")
    page.get_by_label("Password").fill(site.password)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_label("Or a script")).to_have_value("print('half')")
    expect(page.get_by_role("textbox", name="Configuration")).to_contain_text("half typed")
    page.reload()
    expect(page.get_by_label("Or a script")).to_have_value("print('half')")
    context.close()
