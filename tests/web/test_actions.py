"""What can be done to experiments, trials, jobs and machines, by mouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from playwright.sync_api import BrowserContext, Page, Request, Route, expect

from tests.kits.machine import wait_for
from tests.web.handling import more
from tests.web.site import Site

STATES = {"Pause": "STATE_PAUSED", "Stop": "STATE_STOPPING_CANCELED", "Kill": "STATE_STOPPING_KILLED"}


def becomes(site: Site, number: int, field: str, value: object) -> None:
    """Until the API says so."""
    wait_for(lambda: site.experiment(number)[field] == value, f"{field} of experiment {number} to be {value}")


def sure(page: Page, title: str, yes: str) -> None:
    """Answer the question that is asked first."""
    dialog = page.get_by_role("dialog", name=title)
    dialog.get_by_role("button", name=yes, exact=True).click()
    expect(dialog).to_be_hidden()


def test_pausing_is_shown_at_once_and_undone(page: Page, site: Site) -> None:
    """Before the master has answered; Undo resumes it."""
    (number,) = site.make("to pause")
    page.goto(f"{site.url}/ui/experiments/{number}")
    held: list[Route] = []
    page.route("**/experiments/pause", lambda route: held.append(route))
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("main header").get_by_text("Paused")).to_be_visible()
    assert site.experiment(number)["state"] != "STATE_PAUSED"
    wait_for(lambda: bool(held) or page.wait_for_timeout(10) is not None, "the request")
    held[0].continue_()
    page.get_by_role("status").get_by_text(f"Paused experiment {number}").wait_for()
    assert site.experiment(number)["state"] == "STATE_PAUSED"
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("main header").get_by_text("Queued")).to_be_visible()
    becomes(site, number, "state", "STATE_QUEUED")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_what_is_refused_is_taken_back_and_said(page: Page, site: Site) -> None:
    """In the words of the master: it has ended meanwhile."""
    (number,) = site.make("about to end")
    page.goto(f"{site.url}/ui/experiments/{number}")
    refusal = {"results": [{"id": number, "error": "the experiment has ended and cannot pause; continue it"}]}
    page.route("**/experiments/pause", lambda route: route.fulfill(json=refusal))
    page.get_by_role("button", name="Pause").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("was refused")
    expect(alert).to_contain_text("the experiment has ended and cannot pause; continue it")
    expect(page.locator("main header").get_by_text("Paused")).to_be_hidden()
    alert.get_by_role("button", name="Dismiss").click()
    expect(alert).to_be_hidden()


@pytest.mark.parametrize("verb", ["Stop", "Kill"])
def test_what_cannot_be_undone_is_asked_first(page: Page, site: Site, verb: str) -> None:
    """No leaves it as it is; the question names it."""
    (number,) = site.make("to be ended")
    page.goto(f"{site.url}/ui/experiments/{number}")
    for answer in ("No, leave it", verb):
        if verb == "Stop":
            page.get_by_role("button", name="Stop", exact=True).click()
        else:
            more(page, "Kill")
        expect(page.get_by_role("dialog")).to_contain_text("to be ended")
        expect(page.get_by_role("button", name="No, leave it")).to_be_focused()
        sure(page, f"{verb} experiment {number}?", answer)
        if answer != verb:
            assert site.experiment(number)["endTime"] is None
            assert "STOPPING" not in str(site.experiment(number)["state"])
    becomes(site, number, "state", STATES[verb])


def test_archive_unarchive_and_delete(page: Page, site: Site) -> None:
    """Of one that has ended; Undo brings it back into the lists."""
    (number,) = site.make("of the past", "COMPLETED")
    page.goto(f"{site.url}/ui/experiments/{number}")
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    page.get_by_role("button", name="Archive", exact=True).click()
    becomes(site, number, "archived", True)
    page.get_by_role("button", name="Undo").click()
    becomes(site, number, "archived", False)
    more(page, "Delete")
    sure(page, f"Delete experiment {number}?", "Delete")
    becomes(site, number, "state", "STATE_DELETING")


def test_editing_sends_what_was_changed(refused_page: Page, site: Site) -> None:
    """Name, description, labels, notes and its share; a refusal stands in the dialog, which stays."""
    page = refused_page
    (number,) = site.make("to be edited")
    page.goto(f"{site.url}/ui/experiments/{number}")
    more(page, "Edit")
    dialog = page.get_by_role("dialog", name=f"Edit experiment {number}")
    dialog.get_by_label("Name").fill("   ")
    dialog.get_by_label("Description").fill("by hand")
    dialog.get_by_label("Labels").fill("first\nbest, so far")
    dialog.get_by_label("Notes").fill("lines\nof notes")
    dialog.get_by_label("Priority").fill("7")
    dialog.get_by_label("Maximum slots").fill("2")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text("a name cannot be blank")
    dialog.get_by_label("Name").fill("edited")
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "PATCH" else None)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    assert sent[0].post_data_json["resources"] == {
        "unlimited": False,
        "withoutTimeLimit": False,
        "priority": 7,
        "maxSlots": 2,
    }
    now = site.experiment(number)
    assert (now["name"], now["description"], now["notes"]) == ("edited", "by hand", "lines\nof notes")
    assert set(now["labels"]) == {"first", "best, so far"}  # type: ignore[call-overload]
    expect(page.get_by_role("heading", level=1)).to_have_text("edited")
    expect(page.get_by_role("list", name="Labels")).to_contain_text("best, so far")


def test_moving_and_moving_back(page: Page, site: Site) -> None:
    """To a project that is chosen by its name."""
    (number,) = site.make("to be moved")
    page.goto(f"{site.url}/ui/experiments/{number}")
    more(page, "Move")
    dialog = page.get_by_role("dialog", name=f"Move experiment {number}")
    dialog.get_by_label("To the project").select_option(label="large / project 1")
    dialog.get_by_role("button", name="Move").click()
    expect(page.get_by_role("main").get_by_role("link", name="project 1")).to_be_visible()
    becomes(site, number, "projectName", "project 1")
    page.get_by_role("button", name="Undo").click()
    becomes(site, number, "projectId", 1)


def test_one_that_has_ended_goes_on(admin_page: Page, site: Site) -> None:
    """After a question; with the same configuration."""
    ended = ("single", "STATE_CANCELED")
    rows = (row for offset in range(0, site.total, 100) for row in site.found("id=desc", offset))
    number = next(int(str(row["id"])) for row in rows if (row["searcherType"], row["state"]) == ended)
    admin_page.goto(f"{site.url}/ui/experiments/{number}")
    admin_page.get_by_role("button", name="Continue").click()
    sure(admin_page, f"Continue experiment {number}?", "Continue")
    admin_page.get_by_role("status").get_by_text(f"Continued experiment {number}").wait_for()
    expect(admin_page.get_by_role("button", name="Pause")).to_be_visible()
    assert site.experiment(number)["endTime"] is None


def test_why_one_is_not_continued_is_said(page: Page, site: Site) -> None:
    """In the menu in which it is looked for: by its search, its state, whose it is."""
    (ended,) = site.make("a search that has ended", "COMPLETED")
    (paused,) = site.make("not at its end", "PAUSED")
    (other,) = site.make("to continue for others", "CANCELED", owner="user001")
    for number, why in (
        (ended, "The search stops trials early, and what it stopped stays stopped. Fork the experiment instead."),
        (paused, "The experiment is only paused: resume it."),
        (other, "Only the owner of the experiment and administrators can continue it."),
    ):
        page.goto(f"{site.url}/ui/experiments/{number}")
        page.get_by_role("button", name="More actions for").click()
        item = page.get_by_role("menuitem", name="Continue")
        expect(item).to_contain_text(why)
        expect(item).to_be_disabled()
        item.click(force=True)
        expect(item).to_be_visible()
        page.keyboard.press("Escape")


def test_many_are_moved_and_moved_back(page: Page, site: Site) -> None:
    """Those that are selected by their boxes; each goes back to where it was."""
    numbers = site.make("many to move", count=3)
    page.goto(f"{site.url}/ui/experiments?q=many+to+move")
    for number in numbers[:2]:
        page.get_by_label(f"Select experiment {number}").check()
    bar = page.get_by_role("region", name="Selected")
    expect(bar).to_contain_text("2 selected")
    bar.get_by_role("button", name="Move").click()
    dialog = page.get_by_role("dialog", name="Move 2 experiments")
    dialog.get_by_label("To the project").select_option(label="large / project 0")
    dialog.get_by_role("button", name="Move").click()
    page.get_by_role("status").get_by_text("Moved 2 experiments").wait_for()
    expect(bar).to_be_hidden()
    names = [site.experiment(number)["projectName"] for number in numbers]
    assert names[:2] == ["project 0", "project 0"]
    assert names[2] != "project 0"
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("status").get_by_text("Moved back 2 experiments").wait_for()
    assert [site.experiment(number)["projectName"] for number in numbers] == [names[2]] * 3


def test_the_configuration_is_downloaded_and_copied(page: Page, site: Site) -> None:
    """As it was submitted; where nothing is kept of that, as it is."""
    number = site.found("id=asc")[0]["id"]
    text = site.experiment(int(str(number)))["originalConfig"]
    page.goto(f"{site.url}/ui/experiments/{number}")
    with page.expect_download() as download:
        more(page, "Download configuration")
    assert download.value.suggested_filename == f"experiment-{number}.yaml"
    assert download.value.path().read_text() == text
    more(page, "Copy configuration")
    page.get_by_role("status").get_by_text(f"Copied the configuration of experiment {number}").wait_for()


def test_a_trial_is_killed(page: Page, site: Site) -> None:
    """After a question; its search goes on without it."""
    (number,) = site.make("with a trial")
    trial = site.make_trial(number)
    page.goto(f"{site.url}/ui/trials/{trial}")
    page.get_by_role("button", name="Kill").click()
    sure(page, f"Kill trial {trial}?", "Kill")
    page.get_by_role("status").get_by_text(f"Killing trial {trial}").wait_for()
    assert site.experiment(number)["state"] not in STATES.values()


def test_who_may_not_is_not_offered_it(page: Page, admin_page: Page, site: Site) -> None:
    """Neither the experiment, the job nor the machine of others; an administrator is."""
    (number,) = site.make("of somebody else", owner="user001")
    trial = site.make_trial(number)
    offers: dict[str, Callable[[Page], object]] = {
        f"experiments/{number}": lambda at: at.get_by_role("button", name="Pause"),
        f"trials/{trial}": lambda at: at.get_by_role("button", name="Kill"),
        "queue": lambda at: at.get_by_role("button", name=f"Change the place of experiment {number}", exact=True),
        "cluster": lambda at: at.get_by_role("button", name="Actions on agent a1"),
    }
    for address, offer in offers.items():
        for who, count in ((page, 0), (admin_page, 1)):
            who.goto(f"{site.url}/ui/{address}")
            if address == "queue":
                who.get_by_role("link", name=f"{number} of somebody else").wait_for()
            elif address == "cluster":
                who.get_by_role("region", name="Agents").get_by_text("a1").wait_for()
            else:
                who.get_by_text("started").first.wait_for()
            expect(offer(who)).to_have_count(count)  # type: ignore[arg-type]


def test_a_job_gets_another_place(page: Page, site: Site) -> None:
    """By its priority, and beside another job."""
    first, second = site.make("in the queue", count=2)
    for number in (first, second):
        site.make_trial(number)
    page.goto(f"{site.url}/ui/queue")
    page.get_by_role("button", name=f"Change the place of experiment {second}", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Priority").fill("5")
    dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("row").filter(has_text=f"{second} in the queue")
    expect(row.get_by_role("cell", name="5", exact=True)).to_be_visible()
    # Beside another, it has that one's priority again.
    page.get_by_role("button", name=f"Change the place of experiment {second}", exact=True).click()
    dialog.get_by_label("Turn").select_option(label=f"ahead of experiment {first} (priority 42)")
    dialog.get_by_role("button", name="Save").click()
    expect(row.get_by_role("cell", name="42", exact=True)).to_be_visible()
    rows = page.get_by_role("row").filter(has_text="in the queue")
    expect(rows.nth(0)).to_contain_text(str(second))
    expect(rows.nth(1)).to_contain_text(str(first))


def test_a_machine_and_a_slot_are_switched(admin_page: Page, site: Site) -> None:
    """Drained, disabled and enabled again; a slot by itself, and by Undo back.

    A machine that is away counts as disabled, so that nobody knows what Undo would bring back: it is not offered.
    """
    page = admin_page
    page.goto(f"{site.url}/ui/cluster")
    actions = page.get_by_role("button", name="Actions on agent a1")
    for item, past, slot in (
        ("Drain", "Draining agent a1", False),
        ("Disable", "Disabled agent a1", False),
        ("Enable", "Enabled agent a1", True),
    ):
        actions.click()
        page.get_by_role("menuitem", name=item).click()
        page.get_by_role("status").get_by_text(past).wait_for()
        agent = cast("dict[str, object]", site.api("GET", "/api/v1/agents/a1")["agent"])
        assert (agent["draining"], _slot(site)["enabled"]) == (item == "Drain", slot)
    actions.click()
    page.get_by_role("menuitem", name="Slots").click()
    dialog = page.get_by_role("dialog", name="Slots of a1")
    dialog.get_by_role("button", name="Disable slot 0").click()
    expect(dialog).to_contain_text("disabled")
    wait_for(lambda: not _slot(site)["enabled"], "the slot")
    page.get_by_role("status", include_hidden=True).get_by_text("Disabled slot 0 of a1").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("z")
    wait_for(lambda: bool(_slot(site)["enabled"]), "the slot")


def _slot(site: Site) -> dict[str, object]:
    return cast("dict[str, object]", site.api("GET", "/api/v1/agents/a1/slots/0")["slot"])


def test_a_dialog_that_is_gone_takes_nothing_with_it(used_browser: BrowserContext, site: Site) -> None:
    """A page that is older than its master lacks what it has not loaded yet: it says so, and stays what it was."""
    (number,) = site.make("shown by an older page")
    page = used_browser.new_page()
    page.route("**/assets/MoveDialog-*.js", lambda route: route.fulfill(status=404))
    page.goto(f"{site.url}/ui/experiments/{number}")
    page.get_by_role("button", name="Pause").wait_for()
    page.keyboard.press("m")
    expect(page.get_by_text("reload the page")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("shown by an older page")
    page.keyboard.press("e")
    expect(page.get_by_role("dialog", name=f"Edit experiment {number}")).to_be_visible()
    page.close()
