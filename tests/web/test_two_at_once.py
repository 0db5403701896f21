"""Two people edit the same thing: the second is told, loses nothing that they typed, and chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.web.handling import more, opened
from tests.web.site import Site, box_of
from tests.web.troubles import watched

TOLD = "Someone else changed this while you were editing"


@pytest.fixture
def two(browser: Browser, site: Site, admin_session: dict[str, object]) -> Iterator[tuple[Page, Page]]:
    """Two browsers of people who may both edit. Of the second saving is refused, which browsers write down."""
    with opened(browser, admin_session) as first, opened(browser, admin_session) as second:
        pages = first.new_page(), second.new_page()
        troubles = [watched(page, site) for page in pages]
        yield pages
        met = [trouble for each in troubles for trouble in each if "412 (Precondition Failed)" not in trouble]
    site.write("delete from cluster_message")
    assert met == []


def save(dialog: Locator) -> None:
    dialog.get_by_role("button", name="Save", exact=True).click()


def test_of_two_who_edit_an_experiment_the_second_chooses(two: tuple[Page, Page], site: Site) -> None:
    """What only one of them has changed is as they want it; what both have, one chooses, or makes one of both."""
    (number,) = site.make("edited by two")
    dialogs = []
    for page in two:
        page.goto(f"{site.url}/ui/experiments/{number}")
        more(page, "Edit")
        dialogs.append(page.get_by_role("dialog", name=f"Edit experiment {number}"))
        dialogs[-1].wait_for()
    theirs, mine = dialogs
    for label, text in (("Name", "theirs"), ("Labels", "theirs"), ("Notes", "theirs"), ("Description", "theirs")):
        theirs.get_by_label(label, exact=True).fill(text)
    save(theirs)
    expect(theirs).to_be_hidden()
    mine.get_by_label("Name", exact=True).fill("mine")
    mine.get_by_label("Labels", exact=True).fill("mine")
    mine.get_by_label("Notes", exact=True).fill("mine")
    save(mine)
    told = mine.get_by_role("alert").filter(has_text=TOLD)
    expect(told).to_be_visible()
    expect(mine.get_by_label("Name", exact=True)).to_have_value("mine")
    # What one has not touched is theirs, and no question.
    expect(mine.get_by_label("Description", exact=True)).to_have_value("theirs")
    expect(told.get_by_role("region")).to_have_count(3)
    # Above the buttons, however much stands in the dialog.
    refusal = mine.get_by_text("It was not saved")
    expect(refusal).to_be_in_viewport(ratio=0.95)
    below = box_of(mine.get_by_role("button", name="Save", exact=True))["y"]
    assert below - 60 < box_of(refusal)["y"] < below
    save(mine)
    expect(mine.get_by_text("Choose above what to keep")).to_be_visible()
    assert site.experiment(number)["name"] == "theirs"
    told.get_by_role("region", name="Name, as").get_by_role("button", name="Take theirs").click()
    expect(mine.get_by_label("Name", exact=True)).to_have_value("theirs")
    told.get_by_role("region", name="Labels, as").get_by_role("button", name="Keep mine").click()
    mine.get_by_label("Notes", exact=True).fill("theirs and mine")
    told.get_by_role("region", name="Notes, as").get_by_role("button", name="Keep mine").click()
    expect(told).to_be_hidden()
    save(mine)
    expect(mine).to_be_hidden()
    now = site.experiment(number)
    texts = (now["name"], now["labels"], now["notes"], now["description"])
    assert texts == ("theirs", ["mine"], "theirs and mine", "theirs")


def test_who_changes_other_fields_is_not_held_up(two: tuple[Page, Page], site: Site) -> None:
    """Both are saved, without a question."""
    (number,) = site.make("of two fields")
    page = two[1]
    page.goto(f"{site.url}/ui/experiments/{number}")
    more(page, "Edit")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Notes", exact=True).fill("mine")
    site.api("PATCH", f"/api/v1/experiments/{number}", {"description": "theirs"})
    save(dialog)
    expect(dialog).to_be_hidden()
    now = site.experiment(number)
    assert (now["notes"], now["description"]) == ("mine", "theirs")


def test_a_place_in_the_queue(two: tuple[Page, Page], site: Site) -> None:
    """The priority that somebody else has given it is shown before it is replaced."""
    (number,) = site.make("moved by two")
    site.make_trial(number)
    job = site.experiment(number)["jobId"]
    page = two[1]
    page.goto(f"{site.url}/ui/queue")
    page.get_by_role("button", name=f"Change the place of experiment {number}", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Priority", exact=True).fill("5")
    site.api("POST", "/api/v1/job-queues", {"updates": [{"jobId": job, "priority": 9}]})
    save(dialog)
    expect(dialog.get_by_role("region", name="Priority, as")).to_contain_text("9")
    dialog.get_by_role("button", name="Keep mine").click()
    save(dialog)
    expect(dialog).to_be_hidden()
    row = page.get_by_role("row").filter(has_text=f"{number} moved by two")
    expect(row.get_by_role("cell", name="5", exact=True)).to_be_visible()


def test_the_message_to_everyone(two: tuple[Page, Page], site: Site) -> None:
    """What is typed stays while another one is set, and is not put in its place unawares."""
    for page in two:
        page.goto(f"{site.url}/ui/admin/message")
        page.get_by_label("Text").wait_for()
    theirs, mine = two
    mine.get_by_label("Text", exact=True).fill("what I write")
    theirs.get_by_label("Text", exact=True).fill("we move on Friday")
    theirs.get_by_role("button", name="Set message").click()
    expect(mine.get_by_role("main").get_by_text("Shown to everyone")).to_be_visible()
    expect(mine.get_by_label("Text", exact=True)).to_have_value("what I write")
    mine.get_by_role("button", name="Set message").click()
    told = mine.get_by_role("alert").filter(has_text=TOLD)
    expect(told).to_contain_text("we move on Friday")
    told.get_by_role("button", name="Keep mine").click()
    mine.get_by_role("button", name="Set message").click()
    # Who has typed nothing is shown what there is.
    expect(theirs.get_by_label("Text", exact=True)).to_have_value("what I write")
    message = site.administer("GET", "/api/v1/master/cluster_message")["clusterMessage"]
    assert message["message"] == "what I write"  # type: ignore[index]


def _project(site: Site) -> tuple[str, str]:
    own = site.api("POST", "/api/v1/workspaces", {"name": "with a project of two"})["workspace"]["id"]  # type: ignore[index]
    number = site.api("POST", f"/api/v1/workspaces/{own}/projects", {"name": "project of two"})["project"]["id"]  # type: ignore[index]
    return f"projects/{number}?tab=settings", f"/api/v1/projects/{number}"


def _model(site: Site) -> tuple[str, str]:
    number = site.api("POST", "/api/v1/models", {"name": "model of two"})["model"]["id"]  # type: ignore[index]
    return f"models/{number}", f"/api/v1/models/{number}"


def _version(site: Site) -> tuple[str, str]:
    number = site.api("POST", "/api/v1/models", {"name": "versions of two"})["model"]["id"]  # type: ignore[index]
    site.api("POST", f"/api/v1/models/{number}/versions", {"checkpointUuid": site.saved()[0]})
    return f"models/{number}/versions/1", f"/api/v1/models/{number}/versions/1"


def _workspace(site: Site) -> tuple[str, str]:
    number = site.api("POST", "/api/v1/workspaces", {"name": "workspace of two"})["workspace"]["id"]  # type: ignore[index]
    return f"workspaces/{number}", f"/api/v1/workspaces/{number}"


def _group(site: Site) -> tuple[str, str]:
    number = site.administer("POST", "/api/v1/groups", {"name": "group of two"})["group"]["groupId"]  # type: ignore[index]
    return f"admin/groups?q={number}", f"/api/v1/groups/{number}"


def _press(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=name, exact=True).click()


#: How each is made, its dialog opened, the label of a field, its name on the wire, and how it is saved.
EDITORS = {
    "a project": (_project, _press("Edit"), "Description", "description", "PATCH"),
    "a model": (_model, _press("Edit"), "Notes", "notes", "PATCH"),
    "a version": (_version, _press("Edit"), "Comment", "comment", "PATCH"),
    "a workspace": (_workspace, _press("Rename"), "Name", "name", "PATCH"),
    "a group": (_group, _press("Rename"), "Name", "name", "PUT"),
}


@pytest.mark.parametrize("editor", EDITORS.values(), ids=EDITORS.keys())
def test_every_editor_asks(
    two: tuple[Page, Page],
    site: Site,
    editor: tuple[Callable[[Site], tuple[str, str]], Callable[[Page], None], str, str, str],
) -> None:
    """What somebody else has written is shown; what one keeps replaces it then."""
    make, open_it, label, name, method = editor
    address, path = make(site)
    page = two[1]
    page.goto(f"{site.url}/ui/{address}")
    open_it(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(label, exact=True).fill(f"mine of {address}")
    site.administer(method, path, {name: f"theirs of {address}"})
    save_it = dialog.get_by_role("button", name="Rename" if method == "PUT" else "Save", exact=True)
    save_it.click()
    expect(dialog.get_by_role("region", name=f"{label}, as")).to_contain_text(f"theirs of {address}")
    expect(dialog.get_by_label(label, exact=True)).to_have_value(f"mine of {address}")
    dialog.get_by_role("button", name="Keep mine").click()
    save_it.click()
    expect(dialog).to_be_hidden()
    (shown,) = (each for each in site.administer("GET", path).values() if isinstance(each, dict) and name in each)
    assert shown[name] == f"mine of {address}"


def test_a_user(two: tuple[Page, Page], site: Site) -> None:
    """Who only renames somebody does not take away the role that another has just given."""
    made = {"user": {"username": "edited-by-two", "active": True}, "password": "Quite-long-1"}
    user = site.administer("POST", "/api/v1/users", made)["user"]
    path = f"/api/v1/users/{user['id']}"  # type: ignore[index]
    page = two[1]
    page.goto(f"{site.url}/ui/admin/users?q=edited-by-two")
    page.get_by_role("button", name="edited-by-two").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Display name", exact=True).fill("Shown")
    site.administer("PATCH", path, {"admin": True})
    save(dialog)
    expect(dialog).to_be_hidden()
    now = site.administer("GET", path)["user"]
    assert (now["displayName"], now["admin"]) == ("Shown", True)  # type: ignore[index]


def test_settings_of_a_workspace(two: tuple[Page, Page], site: Site) -> None:
    """Nothing that was chosen is lost, and theirs is taken with a press."""
    number = site.api("POST", "/api/v1/workspaces", {"name": "settings of two"})["workspace"]["id"]  # type: ignore[index]
    path = f"/api/v1/workspaces/{number}"
    page = two[1]
    page.goto(f"{site.url}/ui/workspaces/{number}?tab=settings")
    page.get_by_label("Group", exact=True).fill("mine")
    page.get_by_label("Group ID").fill("7")
    theirs = {"agentUser": "theirs", "agentUid": 8, "agentGroup": "theirs", "agentGid": 8}
    site.administer("PATCH", path, {"agentUserGroup": theirs})
    page.get_by_role("button", name="Save").click()
    told = page.get_by_role("alert").filter(has_text=TOLD)
    expect(told).to_contain_text("agentUid: 8")
    expect(page.get_by_label("Group", exact=True)).to_have_value("mine")
    told.get_by_role("button", name="Take theirs").click()
    expect(page.get_by_label("Group", exact=True)).to_have_value("theirs")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()


def test_a_template_that_is_changed_while_it_is_saved(two: tuple[Page, Page], site: Site) -> None:
    """The master compares, not the page: whoever changes it between the look and the save is not lost, either."""
    site.administer("POST", "/api/v1/templates/of-two", {"config": {"description": "begun"}})
    page = two[1]
    page.goto(f"{site.url}/ui/templates?name=of-two")
    page.get_by_role("textbox", name="Configuration").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("description: mine\n")

    def first_theirs(route: object) -> None:
        if route.request.method == "PUT":  # type: ignore[attr-defined]
            site.administer("PUT", "/api/v1/templates/of-two", {"config": {"description": "theirs"}})
        route.continue_()  # type: ignore[attr-defined]

    page.route("**/api/v1/templates/of-two", first_theirs)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="since you began")).to_be_visible()
    page.unroute("**/api/v1/templates/of-two")
    template = site.administer("GET", "/api/v1/templates/of-two")["template"]
    assert template["config"] == {"description": "theirs"}  # type: ignore[index]
    expect(page.get_by_role("textbox", name="Configuration")).to_contain_text("mine")
    site.administer("DELETE", "/api/v1/templates/of-two")
