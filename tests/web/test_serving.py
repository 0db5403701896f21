"""How the page is served: what is kept for how long, what is no page, and where old links lead."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tenax.master.api.web.built import WebPage, policy_of
from tests.kits.api import Api

HTML = {"Accept": "text/html,application/xhtml+xml"}
INDEX = b'<!doctype html><base href="./" /><script>let dark = 1;</script><script type="module" src="./assets/a.js">'


@pytest.fixture
def page(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small page in the place of the built one."""
    monkeypatch.setitem(api.app.state._state, "web_page", WebPage(tmp_path / "_webui"))
    assets = tmp_path / "_webui" / "assets"
    assets.mkdir(parents=True)
    (assets / "a.js").write_bytes(b"run()")
    (assets / "a.js.gz").write_bytes(gzip.compress(b"run()"))
    (assets.parent / "index.html").write_bytes(INDEX)
    (assets.parent / ".stamp").write_text("1")
    return assets.parent


async def test_what_has_its_content_in_its_name_is_kept_for_ever(api: Api, page: Path) -> None:
    """Compressed for whoever takes that, with tags of its own."""
    plain = await api.nobody.ask("GET", "/ui/assets/a.js", headers={"Accept-Encoding": "identity"})
    assert (plain.status_code, plain.content) == (200, b"run()")
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"].startswith("text/javascript")
    packed = await api.nobody.ask("GET", "/ui/assets/a.js", headers={"If-None-Match": plain.headers["etag"]})
    assert (packed.status_code, packed.headers["content-encoding"], packed.content) == (200, "gzip", b"run()")
    assert packed.headers["etag"] != plain.headers["etag"]
    same = {"Accept-Encoding": "identity", "If-None-Match": plain.headers["etag"]}
    assert (await api.nobody.ask("GET", "/ui/assets/a.js", headers=same)).status_code == 304


async def test_the_page_is_asked_for_again_and_says_where_it_lies(api: Api, page: Path) -> None:
    """At each of its own addresses, whatever a proxy puts before them."""
    for address, base in (("", b'"./"'), ("experiments", b'"./"'), ("trials/7", b'"../"'), ("a/b/c", b'"../../"')):
        reply = await api.nobody.ask("GET", f"/ui/{address}", headers=HTML)
        assert reply.status_code == 200
        assert b"<base href=" + base in reply.content
        assert reply.headers["cache-control"] == "no-cache"


async def test_only_one_script_stands_in_the_page(api: Api, page: Path) -> None:
    """Its hash is in the policy, and nothing else is let in but what comes from here."""
    scripts = policy_of(INDEX).split("; ")[1]
    assert scripts.startswith("script-src 'self' 'sha256-")
    assert scripts.count("sha256") == 1
    assert (await api.nobody.ask("GET", "/ui/", headers=HTML)).headers["content-security-policy"] == policy_of(INDEX)


async def test_what_is_no_page_is_not_answered_with_one(api: Api, page: Path) -> None:
    """A script that is gone, a path that climbs, the API."""
    for path in ("/ui/assets/gone.js", "/ui/..%2f..%2fetc%2fpasswd", "/ui/.stamp"):
        assert (await api.nobody.ask("GET", path, headers={"Accept": "*/*"})).status_code == 404
    # The browser is in another directory than the address says.
    assert (await api.nobody.ask("GET", "/ui/experiments%2F1", headers=HTML)).status_code == 404
    nope = await api.nobody.ask("GET", "/api/nope", headers=HTML)
    assert (nope.status_code, nope.headers["content-type"]) == (404, "application/json")


async def test_a_master_without_a_page_says_how_to_build_one(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 for a browser; the API goes on."""
    monkeypatch.setitem(api.app.state._state, "web_page", WebPage(tmp_path / "none"))
    reply = await api.nobody.ask("GET", "/ui/experiments/7", headers=HTML)
    assert reply.status_code == 503
    assert "make web" in reply.text
    assert (await api.nobody.get("/ui/")).status_code == 503
    assert (await api.user.get("/api/v1/me")).status_code == 200


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/", "ui/"),
        ("/ui", "ui/"),
        ("/det", "ui/"),
        ("/det/", "../ui/"),
        ("/det/login", "../ui/login"),
        ("/det/dashboard", "../ui/"),
        ("/det/experiments/7", "../../ui/experiments/7"),
        ("/det/experiments/7/overview", "../../../ui/experiments/7"),
        ("/det/experiments/7/trials/9/logs", "../../../../../ui/trials/9?tab=logs"),
        ("/det/trials/9", "../../ui/trials/9"),
        ("/det/projects/3/experiments", "../../../ui/projects/3"),
        ("/det/resourcepool/gpus/queued", "../../../ui/queue?pool=gpus"),
        ("/det/clusters", "../ui/cluster"),
        ("/det/clusters/historical-usage", "../../ui/usage"),
        ("/det/clusters/logs", "../../ui/master/logs"),
        ("/det/clusters/overview", "../../ui/cluster"),
        ("/det/workspaces", "../ui/workspaces"),
        ("/det/workspaces/4/projects", "../../../ui/workspaces/4"),
        ("/det/workspaces/4/members", "../../../ui/workspaces/4?tab=members"),
        ("/det/workspaces/4/tasks", "../../../ui/tasks?workspace=4"),
        ("/det/projects/3/notes", "../../../ui/projects/3?tab=notes"),
        ("/det/models/digits/versions/2/model", "../../../../../ui/models/digits/versions/2"),
        ("/det/models/digits", "../../ui/models/digits"),
        ("/det/tasks", "../ui/tasks"),
        ("/det/command/ab-12/logs", "../../../ui/tasks/ab-12"),
        ("/det/wait/notebook/ab-12", "../../../ui/tasks/ab-12"),
        ("/det/interactive/ab-12/notebook/name/pool", "../../../../../ui/tasks/ab-12"),
        ("/det/admin/user-management", "../../ui/admin/users"),
        ("/det/templates/manage", "../../ui/templates"),
        ("/det/webhooks", "../ui/webhooks"),
        ("/det/settings/profile", "../../ui/settings"),
        ("/det//evil.example", "../../ui//evil.example"),
    ],
)
async def test_old_links_lead_to_their_equals(api: Api, old: str, new: str) -> None:
    """As seen from where they are asked for."""
    reply = await api.nobody.get(old)
    assert (reply.status_code, reply.headers["location"]) == (302, new)
