"""How much has to come before anything of the page is shown."""

from __future__ import annotations

import gzip
import re

from tests.web.site import ROOT

BUILT = ROOT / "src" / "tenax" / "_webui"
#: Bytes, compressed: scripts and styles that the page names itself.
MAX_ENTRY = 130 * 1024
#: Beyond them for each route, without what all routes have in common: the menus.
MAX_ROUTE = 60 * 1024


def compressed(name: str) -> int:
    return len(gzip.compress((BUILT / "assets" / name).read_bytes(), 9))


def test_the_entry_keeps_to_its_budget(built: None) -> None:
    """And what is only needed later is no part of it: the palette, the list of keys, dialogs, charts, menus."""
    named = re.findall(r"\./assets/([\w.-]+)", (BUILT / "index.html").read_text())
    assert len(named) > 1
    assert sum(compressed(name) for name in named) <= MAX_ENTRY
    for late in ("palette", "help", "EditDialog", "trial", "Menu"):
        assert list(BUILT.glob(f"assets/{late}-*.js")), f"{late} is no file of its own any more"
        assert not any(name.startswith(f"{late}-") for name in named)


def test_each_route_keeps_to_its_budget(built: None) -> None:
    """With all that its file imports, and what that imports."""
    index = (BUILT / "index.html").read_text()
    scripts = "".join(path.read_text() for path in BUILT.glob("assets/*.js"))
    for route in (
        "experiments",
        "experiment",
        "Search",
        "trial",
        "compare",
        "create",
        "tasks",
        "task",
        "workspaces",
        "workspace",
        "project",
        "models",
        "model",
        "version",
        "queue",
        "cluster",
        "usage",
        "masterlog",
        "settings",
        "admin",
        "templates",
        "webhooks",
    ):
        files = set(re.findall(rf"import\([`\"']\./({route}-[\w-]+\.js)", scripts))
        assert len(files) == 1, f"{route} does not come by itself any more"
        late = {name for name in _imported(*files, set()) if name not in index and not name.startswith("Menu-")}
        assert sum(compressed(name) for name in late) <= MAX_ROUTE, f"{route}: {sorted(late)}"


def _imported(name: str, known: set[str]) -> set[str]:
    if name not in known:
        known.add(name)
        for other in re.findall(r"from\s*[\"']\./([\w.-]+\.js)", (BUILT / "assets" / name).read_text()):
            _imported(other, known)
    return known
