"""Whatever people and scripts call things: each page shows it as text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import cast

import pytest
from playwright.sync_api import Page, expect

from tests.web.site import Site

#: Each part would leave a mark in the page, or ask another place, if it were more than text.
EVIL = (
    "<img src=x onerror=\"window.broken=1\"><svg onload='window.broken=1'></svg><script>window.broken=1</script>"
    "<iframe srcdoc=\"<script>parent.broken=1</script>\"></iframe><a href='javascript:window.broken=1'>go</a>"
    "[go](javascript:window.broken=1) ![](https://elsewhere.test/x) \"'`${window.broken=1}{{window.broken=1}}"
)
LINES = [
    EVIL,
    f"\x1b[31m{EVIL}\x1b[0m",
    "\x1b]8;;javascript:window.broken=1\x1b\\go\x1b]8;;\x1b\\ \x1b]0;broken\x07",
    "javascript:window.broken=1 data:text/html,<script>window.broken=1</script>",
]
#: What would be there if something of it had become an element.
ELEMENTS = (
    "img[src=x], [onerror], [onload], iframe, a[href^='javascript:' i], a[href^='data:' i], [src*='elsewhere.test']"
)
#: Pages on which it is to be seen.
SHOWN = [
    "experiments?q=onerror",
    "projects/{project}?tab=notes",
    "projects/{project}?tab=settings",
    "tasks/{task}",
    "tasks/{task}?tab=config",
    "models/{model}",
    "models/{model}/versions/2",
    "workspaces/{workspace}",
    "experiments/{experiment}",
    "trials/{trial}",
    "trials/{trial}?tab=logs&q=onerror",
    "trials/{trial}?tab=config",
    "queue",
    "cluster",
    "usage?from=2025-07-01&to=2025-07-31&by=label",
    "webhooks",
]
#: The same, of pages that show it as one of those does: as the text of a row, or in the same part of another place.
ALIKE = [
    "projects/{project}",
    "tasks?old=true",
    "tasks/{task}?tab=children",
    "models",
    "workspaces",
    "workspaces/{workspace}?tab=members",
    "workspaces/{workspace}?tab=settings",
    "projects/{project}?rows=trials",
    "trials/{trial}?tab=logs",
    "trials/{trial}?tab=attempts",
    "usage?from=2025-07-01&to=2025-07-31",
    "usage?from=2025-07-01&to=2025-07-31&by=workspace",
    "admin/users",
    "admin/groups",
    "templates",
]
#: Pages that may show it, and what is there once they are.
OTHERS = {
    "": "role=heading[name='Needs attention']",
    "trials/{measured}?tab=metrics": "figure canvas >> nth=2",
    "trials/{trial}?tab=checkpoints": "text=No checkpoints yet",
    "experiments?q=%22%5C%22%3Cimg+src%3Dx+onerror%3Dwindow.broken%3D2%3E%5C%22%22": "text=No matching experiments",
    "nowhere/%3Cimg%20src=x%20onerror=%22window.broken=1%22%3E": "text=There is no such page",
}


@pytest.fixture(scope="module")
def evil(site: Site) -> Iterator[dict[str, object]]:
    """One of everything with such a name; what others see is put back."""
    made = site.api("POST", "/api/v1/workspaces", {"name": EVIL[:80]})
    workspace = made["workspace"]["id"]  # type: ignore[index]
    project = site.api("POST", f"/api/v1/workspaces/{workspace}/projects", {"name": EVIL[:80], "description": EVIL})
    number: int = project["project"]["id"]  # type: ignore[index]
    site.api("PUT", f"/api/v1/projects/{number}/notes", {"notes": [{"name": EVIL, "contents": EVIL}]})
    (experiment,) = site.make(EVIL)
    trial = site.make_trial(experiment)
    site.api("PATCH", f"/api/v1/experiments/{experiment}", {"description": EVIL, "notes": EVIL, "labels": [EVIL]})
    documents = "update experiment_documents set config = config || jsonb_build_object('hyperparameters', $2::jsonb)"
    site.write(f"{documents} where experiment_id = $1", experiment, '{"<b>": {"type": "const", "val": "<img src=x>"}}')
    site.write("update experiments set project_id = $2, reason = $3 where id = $1", experiment, number, EVIL)
    site.write(
        "update trials set hparams = jsonb_build_object($2::text, $2::text), reason = $2 where id = $1", trial, EVIL
    )
    site.write("update users set display_name = $1 where username = 'determined'", EVIL[:250])
    site.write("update agent_presence set hostname = $1, address = $1, runtime = $1", EVIL)
    site.write("update agent_slots set name = $1 where agent_id = 'a1'", EVIL)
    task = site.api("GET", f"/api/v1/trials/{trial}")["trial"]["taskIds"][0]  # type: ignore[index]
    site.say(str(task), LINES)
    generic = f"name: {json.dumps(EVIL)}\nentrypoint: [{json.dumps(EVIL)}]\nresources: {{slots: 0}}\n"
    started = str(site.api("POST", "/api/v1/generic-tasks", {"config": generic})["taskId"])
    site.api("POST", "/api/v1/generic-tasks", {"config": generic, "parentId": started})
    site.say(started, LINES)
    # Names of models have no slash.
    told = {"name": EVIL[:36], "comment": EVIL, "notes": EVIL, "labels": [EVIL], "metadata": {EVIL: EVIL}}
    model = site.make_model(EVIL[:36], **told)
    # What it used, who, and where.
    accounts = (
        "insert into usage (container_id, allocation_id, rank, task_id, kind, user_id, username, workspace_name,"
        " labels, pool, agent_id, slots, requested_at, started_at, ended_at) select $1, $1, 0, $1, 'TRIAL', 1, $1, $1,"
        " array[$1], $1, $1, 1, day, day + interval '2 hours', day + interval '9 hours'"
        " from (values (timestamptz '2025-07-04 00:00Z')) d (day)"
    )
    site.write(accounts, EVIL)
    numbers = {"project": number, "experiment": experiment, "trial": trial, "measured": site.trial}
    _share(site)
    yield {"task": started, "workspace": workspace, "model": model, **numbers}
    site.api("DELETE", f"/api/v1/models/{model}")
    for table in ("user_groups", "templates", "webhooks"):
        site.write(f"delete from {table} where name = $1", EVIL[:80])
    site.write("update users set display_name = '' where username = 'determined'")
    site.write("update agent_presence set hostname = 'h', address = '', runtime = 'process'")
    site.write("update agent_slots set name = 'small' where agent_id = 'a1'")
    site.write("delete from usage where username = $1", EVIL)
    site.write("delete from trials where id = $1", trial)
    site.write("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", experiment)


def _share(site: Site) -> None:
    """A group, a template and a webhook."""
    name = EVIL[:80]
    site.write("insert into user_groups (name) values ($1)", name)
    site.api("POST", "/api/v1/templates/t", {"config": {"description": EVIL}})
    site.write("update templates set name = $1 where name = 't'", name)
    hooks = "insert into webhooks (name, url, kind, mode) values ($1, 'https://elsewhere.test/', 'SLACK', 'SPECIFIC')"
    site.write(hooks, name)
    triggers = "insert into webhook_triggers (webhook_id, kind, condition) select id, 'TASK_LOG'"
    site.write(f"{triggers}, jsonb_build_object('regex', $2::text) from webhooks where name = $1", name, EVIL)


@pytest.mark.parametrize("address", [*SHOWN, *OTHERS, *(pytest.param(each, marks=pytest.mark.long) for each in ALIKE)])
def test_values_are_text(page: Page, site: Site, evil: dict[str, object], address: str) -> None:
    """Nothing of it becomes an element, no script runs, and nothing is asked of another place (``page``)."""
    page.goto(f"{site.url}/ui/{address.format(**evil)}")
    if address in OTHERS:
        page.locator(OTHERS[address]).first.wait_for()
    else:
        page.get_by_text("onerror=").first.wait_for()
    assert page.locator(ELEMENTS).count() == 0
    assert page.evaluate("window.broken") is None
    assert page.title() != "broken"


def test_nothing_in_code_hides(page: Page, site: Site) -> None:
    """Signs that turn around what stands beside them, or that nobody sees, in a file and in its name."""
    name = "safe\u202egnp.py"
    code = base64.b64encode("if user != 'root\u202e \u2066# nobody\u2069': run()\n".encode()).decode()
    config = "{name: turned, entrypoint: 'true', searcher: {name: single, metric: loss}, max_restarts: 0}"
    body = {"config": config, "modelDefinition": [{"path": name, "content": code}], "activate": False}
    experiment = site.api("POST", "/api/v1/experiments", body)["experiment"]["id"]  # type: ignore[index]
    trial = site.make_trial(experiment)
    page.goto(f"{site.url}/ui/trials/{trial}?tab=code")
    shown = page.get_by_role("region", name="Contents of")
    expect(shown).to_contain_text("root<U+202E> <U+2066># nobody<U+2069>")
    expect(page.get_by_role("navigation", name="Files")).to_contain_text("safe<U+202E>gnp.py")
    site.write("delete from trials where id = $1", trial)
    site.write("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", experiment)


def test_a_filter_that_cannot_be_read_is_text(refused_page: Page, site: Site) -> None:
    """Nor in what is said of it."""
    refused_page.goto(f"{site.url}/ui/experiments?q=%3Cimg+src=x+onerror%3D%22window.broken%3D2%22%3E")
    refused_page.get_by_text("a column is missing before <").wait_for()
    assert refused_page.locator(ELEMENTS).count() == 0
    assert refused_page.evaluate("window.broken") is None


def test_what_is_typed_is_text(page: Page, site: Site, evil: dict[str, object]) -> None:
    """Nor in the palette, which finds what is called so, nor in a dialog that names it."""
    page.goto(f"{site.url}/ui/experiments/{evil['experiment']}")
    page.get_by_text("onerror=").first.wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("onerror")
    page.get_by_role("option").filter(has_text="onerror=").first.wait_for()
    assert page.locator(ELEMENTS).count() == 0
    assert page.evaluate("window.broken") is None


def test_nothing_in_a_name_hides(page: Page, site: Site) -> None:
    """Of experiments, metrics and hyperparameters, wherever they are named."""
    name, shown = "good\u202e\u200bdab", "good<U+202E><U+200B>dab"
    config = json.dumps({"name": "plain", "searcher": {"name": "single", "metric": name}})
    experiment = site.api("POST", "/api/v1/experiments", {"config": config, "unmanaged": True})["experiment"]["id"]  # type: ignore[index]
    # Such a name is refused today; what is stored may be older.
    site.write("update experiment_documents set name = $2 where experiment_id = $1", experiment, name)
    trials = []
    for value in ("a\u200b", "a"):
        body = {"experimentId": experiment, "hparams": {name: value}, "unmanaged": True}
        trial = site.api("POST", "/api/v1/trials", body)["trial"]["id"]  # type: ignore[index]
        site.api("POST", f"/api/v1/trials/{trial}/start", {"resume": False})
        for group in ("training", "validation"):
            report = {"trialId": trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {name: 1}}}
            site.api("POST", f"/api/v1/trials/{trial}/metrics", {"metrics": report, "group": group})
        trials.append(str(trial))
    page.goto(f"{site.url}/ui/compare?trials={','.join(trials)}")
    expect(page.get_by_role("region", name="Compared trials")).to_contain_text(shown)
    expect(page.locator("figcaption").filter(has_text=shown).first).to_be_visible()
    page.goto(f"{site.url}/ui/compare?trials={','.join(trials)}&by={json.dumps([name])}")
    page.get_by_role("button", name=f"View as table: validation {shown}").click()
    grouped = page.get_by_role("region", name=f"validation {shown}, as a table")
    expect(grouped).to_contain_text(f"{shown} a<U+200B>")
    expect(page.get_by_role("table", name=f"Groups of trials, by their best {shown}")).to_be_visible()
    page.goto(f"{site.url}/ui/compare?trials={','.join(trials)}&tab=diff")
    differing = page.get_by_role("region", name="Hyperparameters")
    expect(differing).to_contain_text(shown)
    expect(differing).to_contain_text("a<U+200B>")
    page.goto(f"{site.url}/ui/experiments/{experiment}")
    expect(page.get_by_role("heading", level=1)).to_have_text(shown)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("good")
    expect(page.get_by_role("option").filter(has_text=shown)).to_be_visible()


def test_nothing_hides_in_the_name_of_a_place(page: Page, site: Site) -> None:
    """Two workspaces, or projects, that look alike are told apart in lists, in titles and where one is deleted."""
    made = site.api("POST", "/api/v1/workspaces", {"name": "twin\u200b"})["workspace"]
    number = int(made["id"])  # type: ignore[index]
    project = site.api("POST", f"/api/v1/workspaces/{number}/projects", {"name": "twin\u034f"})["project"]
    page.goto(f"{site.url}/ui/workspaces")
    # Whoever makes one has it pinned.
    expect(page.get_by_role("navigation", name="Pinned").get_by_role("link", name="twin<U+200B>")).to_be_visible()
    page.get_by_role("region", name="Workspaces").get_by_role("link", name="twin<U+200B>").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("twin<U+200B>")
    expect(page.get_by_role("link", name="twin<U+034F>")).to_be_visible()
    page.goto(f"{site.url}/ui/projects/{project['id']}?tab=settings")  # type: ignore[index]
    expect(page.get_by_role("heading", level=1)).to_have_text("twin<U+200B> / twin<U+034F>")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog", name="Delete project twin<U+034F>?")).to_be_visible()
    page.keyboard.press("Escape")
    # By now it is among those opened last.
    expect(page.get_by_title("twin<U+200B> / twin<U+034F>")).to_have_text("twin<U+034F>")
    page.goto(f"{site.url}/ui/templates?new=true")
    page.get_by_label("Workspace").select_option("twin<U+200B>")
    page.get_by_label("Name", exact=True).fill("of a twin")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Template of a twin")
    expect(page.get_by_role("main").get_by_text("twin<U+200B>")).to_be_visible()
    page.goto(f"{site.url}/ui/workspaces/{number}")
    page.get_by_role("button", name="Delete").click()
    # What is shown can be typed.
    page.get_by_label("Type this name").fill("twin<U+200B>")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Workspaces")


def test_a_name_that_is_cut_shows_its_beginning(page: Page, site: Site) -> None:
    """In a script that runs from right to left, too."""
    name = "\u05e8\u05d0\u05e9\u05d5\u05df " + "\u05de\u05d9\u05dc\u05d4 " * 40
    (number,) = site.make(name.strip())
    page.goto(f"{site.url}/ui/experiments?q=id%3D{number}")
    link = page.get_by_role("grid").get_by_role("link").first
    expect(link).to_contain_text("\u05e8\u05d0\u05e9\u05d5\u05df")
    # The first letter lies within what is shown of the cell.
    assert link.evaluate("""link => {
      const text = document.createTreeWalker(link, NodeFilter.SHOW_TEXT).nextNode();
      const range = document.createRange();
      range.setStart(text, 0);
      range.setEnd(text, 1);
      const [letter, cell] = [range.getBoundingClientRect(), link.closest("[role=gridcell]").getBoundingClientRect()];
      return letter.left >= cell.left - 1 && letter.right <= cell.right + 1;
    }""")


@pytest.fixture
def webhook(site: Site) -> Iterator[int]:
    """One with a name that turns itself around. Such a name is refused today; what is stored may be older."""
    triggers = [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "ERROR"}}]
    asked = {"name": "to be hidden", "url": "http://127.0.0.1:9/", "webhookType": "WEBHOOK_TYPE_DEFAULT"}
    made = site.administer("POST", "/api/v1/webhooks", {**asked, "triggers": triggers})["webhook"]
    number = cast("dict[str, int]", made)["id"]
    site.write("update webhooks set name = $2 where id = $1", number, "good\u202edab")
    yield number
    site.administer("DELETE", f"/api/v1/webhooks/{number}")


def test_nothing_hides_in_the_name_of_a_webhook(admin_page: Page, site: Site, webhook: int) -> None:
    """Neither where its messages are nor where it is deleted."""
    admin_page.goto(f"{site.url}/ui/webhooks?webhook={webhook}")
    shown = "good<U+202E>dab"
    expect(admin_page.get_by_role("heading", name=f"Messages to {shown}")).to_be_visible()
    admin_page.get_by_role("button", name=f"Actions on webhook {shown}").click()
    admin_page.get_by_role("menuitem", name="Delete").click()
    expect(admin_page.get_by_role("dialog", name=f"Delete webhook {shown}?")).to_be_visible()


@pytest.fixture
def token(site: Site) -> Iterator[int]:
    """One for something that turns itself around."""
    user = cast("dict[str, dict[str, int]]", site.api("GET", "/api/v1/me"))["user"]["id"]
    body = {"userId": user, "description": "good\u202edab", "lifespan": "1h"}
    number = cast(int, site.api("POST", "/api/v1/tokens", body)["tokenId"])
    yield number
    site.api("PATCH", f"/api/v1/tokens/{number}", {"setRevoked": True})


@pytest.mark.usefixtures("token")
def test_nothing_hides_in_what_a_token_is_for(page: Page, site: Site) -> None:
    """Neither in the list nor where one is revoked: to revoke another stops somebody's work."""
    page.goto(f"{site.url}/ui/settings")
    grid = page.get_by_role("grid", name="Access tokens")
    expect(grid).to_contain_text("good<U+202E>dab")
    grid.get_by_role("row").filter(has_text="good<U+202E>dab").get_by_role("checkbox").check()
    page.get_by_role("button", name="Revoke").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("good<U+202E>dab")
    dialog.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("good<U+202E>dab")).to_have_count(0)
