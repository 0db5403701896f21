"""What holds for each route of the page, in both themes: everyone can use it, it fits, and it is quiet.

With TENAX_PICTURES=DIRECTORY pictures of each are left there, 1440 and 390 pixels wide (`make pictures`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.web.pictures import AXE, keep, loaded, violations
from tests.web.site import TIMEOUT_MS, Site, fits
from tests.web.troubles import watched

#: Name -> address, and what is there once the page is.
ROUTES = {
    "login": ("login", "role=heading[name='Tenax']"),
    "home": ("", "role=heading[name='Needs attention']"),
    "experiments": ("experiments", "role=gridcell >> nth=0"),
    "experiments-none": ("experiments?q=no-such-name", "text=No matching experiments"),
    "project": ("projects/1", "role=gridcell >> nth=0"),
    "project-notes": ("projects/1?tab=notes", "text=There are no notes yet"),
    "project-settings": ("projects/1?tab=settings", "text=Experiments that name no project go here"),
    "tasks": ("tasks?q=nightly", "role=cell[name='nightly check']"),
    "task": ("tasks/{task}", "text=line of a task"),
    "task-config": ("tasks/{task}?tab=config", "role=heading[name='Configuration']"),
    "task-children": ("tasks/{task}?tab=children", "text=It has no children"),
    "workspaces": ("workspaces", "role=columnheader[name='Workspace']"),
    "workspace": ("workspaces/1", "role=columnheader[name='Project']"),
    "workspace-members": ("workspaces/1?tab=members", "role=columnheader[name='Is allowed']"),
    "workspace-settings": ("workspaces/1?tab=settings", "text=own workspace"),
    "project-trials": ("projects/1?rows=trials", "role=gridcell >> nth=0"),
    "create": ("experiments/new", "role=heading[name='It would train 4 trials']"),
    "experiment": ("experiments/{search}", "figure canvas >> nth=0"),
    "experiment-failed": ("experiments/{failed}", "text=CUDA out of memory"),
    "search": ("experiments/{sweep}", "role=list[name='Importance of hyperparameters']"),
    "search-brushed": ("experiments/{sweep}?brush=%7B%22optimizer%22:%5B%22adam%22%5D%7D", "[data-brushed]"),
    "compare": ("compare?trials={compared}", "figure canvas >> nth=1"),
    "compare-grouped": ("compare?trials={compared}&by=%5B%22optimizer%22%5D", "role=region[name='Groups']"),
    "compare-diff": ("compare?trials={compared}&tab=diff", "role=rowheader[name='lr']"),
    "compare-nothing": ("compare", "text=Nothing to compare yet"),
    "trial": ("trials/{trial}", "figure canvas >> nth=2"),
    "trial-logs": ("trials/{trial}?tab=logs", "text=100% done"),
    "trial-logs-search": ("trials/{trial}?tab=logs&q=step+59&line=591", "text=11 hits"),
    "trial-metrics": ("trials/{trial}?tab=metrics", "figure canvas >> nth=2"),
    "trial-checkpoints": ("trials/{trial}?tab=checkpoints", "text=no checkpoint yet"),
    "trial-config": ("trials/{trial}?tab=config", "role=heading[name='Hyperparameters of this trial']"),
    "trial-well": ("trials/{well}", "figure canvas >> nth=3"),
    "trial-table": ("trials/{well}?tab=metrics&view=table", "role=columnheader[name='Greatest']"),
    "trial-system": ("trials/{well}?tab=system", "figure canvas >> nth=3"),
    "trial-code": ("trials/{well}?tab=code&file=train.py", "text=line_7 = 7"),
    "trial-saved": ("trials/{well}?tab=checkpoints", "text=◆ best"),
    "trial-attempts": ("trials/{well}?tab=attempts", "role=columnheader[name='Attempt'] >> nth=1"),
    "trial-failed": ("trials/{failed_trial}?tab=logs", "role=link[name='line 3']"),
    "queue": ("queue", "role=columnheader[name='Turn']"),
    "cluster": ("cluster", "role=columnheader[name='Agent']"),
    "cluster-pool": ("cluster?pool=default", "text=Default priority"),
    "usage": ("usage?from=2025-06-01&to=2025-06-30", "figure canvas >> nth=1"),
    "usage-projects": ("usage?by=project&from=2025-01-01&to=2025-12-31", "figure canvas >> nth=1"),
    "usage-none": ("usage?from=2001-01-01&to=2001-01-31", "text=No slots were used from 2001-01-01"),
    "master-log": ("master/logs", "role=region[name='Log of the master']"),
    "master-log-hidden": ("master/logs", "text=Only administrators can see the master's log"),
    "models": ("models", "role=button[name='New model']"),
    "model": ("models/{model}", "role=columnheader[name='Version']"),
    "version": ("models/{model}/versions/2", "role=columnheader[name='Change']"),
    "templates": ("templates", "text=No templates yet"),
    "template-new": ("templates?new=true", "role=textbox[name='Configuration of the template']"),
    "webhooks": ("webhooks", "text=No webhooks yet"),
    "admin-users": ("admin/users", "role=gridcell >> nth=0"),
    "admin-message": ("admin/message", "role=button[name='Set message']"),
    "admin-join-tokens": ("admin/join-tokens", "role=button[name='New join token']"),
    "admin-groups": ("admin/groups", "text=No groups yet"),
    "settings": ("settings", "role=button[name='New token']"),
    "missing-experiment": ("experiments/99999999", "role=alert"),
    "not-found": ("nowhere/at/all", "text=There is no such page"),
}
#: Of these is looked at what administrators have; all but the first are nobody else's.
OF_ADMINISTRATORS = ("admin-users", "admin-message", "admin-join-tokens", "master-log")


#: Another view of what a route of the same parts shows already.
ANOTHER_VIEW = (
    *("usage-projects", "usage-none", "compare-grouped", "search-brushed", "cluster-pool", "trial-logs-search"),
    "master-log-hidden",
)
BY_NAME = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in ANOTHER_VIEW else []) for name in ROUTES]
)


#: What browsers write down of a page, as they must: who is not logged in, what is not there, what is not allowed.
WRITTEN_DOWN = {"login": "401", "missing-experiment": "404", "master-log-hidden": "403"}


def _written_down(trouble: str, name: str) -> bool:
    return name in WRITTEN_DOWN and WRITTEN_DOWN[name] in trouble


def address_of(site: Site, name: str) -> str:
    address = ROUTES[name][0]
    if address.startswith("tasks"):
        site.started()
    if address.startswith("usage"):
        site.used()
    if name == "master-log":
        site.warned()
    if "{model}" in address:
        site.registered()
    return f"{site.url}/ui/" + address.format(compared=",".join(map(str, site.swept[:12])), **vars(site))


@pytest.fixture(scope="module")
def contexts(
    browser: Browser, session: dict[str, object], admin_session: dict[str, object]
) -> Iterator[dict[str, BrowserContext]]:
    """By who looks: none yet, a user, an administrator."""
    made = {}
    for who, state in {"nobody": None, "user": session, "administrator": admin_session}.items():
        made[who] = browser.new_context(
            storage_state=state,  # type: ignore[arg-type]
            viewport={"width": 1440, "height": 900},
            color_scheme="light",
            reduced_motion="reduce",
        )
        made[who].set_default_timeout(TIMEOUT_MS)
    yield made
    for context in made.values():
        context.close()


@BY_NAME
def test_everyone_can_use_it_and_it_is_quiet(contexts: dict[str, BrowserContext], site: Site, name: str) -> None:
    """Under the policy that the master sends: no error in the console, and no request elsewhere. axe finds nothing in
    the light theme, and nothing by its rules of colours in the dark one, which changes nothing else; the theme is that
    of the system and changes with it. At 200 % it fits."""
    who = "nobody" if name == "login" else "administrator" if name in OF_ADMINISTRATORS else "user"
    page = contexts[who].new_page()
    troubles = watched(page, site)
    reply = page.goto(address_of(site, name))
    assert reply is not None
    policy = reply.headers["content-security-policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts.count("'sha256-") == 1
    assert "unsafe" not in scripts
    page.locator(ROUTES[name][1]).first.wait_for()
    loaded(page)
    assert page.title() != "broken in"
    # Evaluated, as a debugger does: the page's policy would not let a script of somebody else's in.
    page.evaluate(AXE.read_text())
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.locator(f"html[data-theme={theme}]").wait_for()
        keep(page, f"{name}-{theme}")
        wrong = violations(page, colours=theme == "dark")
        assert not wrong, f"{theme}: " + "\n".join(wrong)
    # A laptop of 1280 pixels at 200 %.
    page.set_viewport_size({"width": 640, "height": 400})
    fits(page)
    page.close()
    assert [trouble for trouble in troubles if not _written_down(trouble, name)] == []
