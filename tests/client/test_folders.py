"""Workspaces, projects and models of the SDK: what is asked of the master, and what becomes of its answers."""

from __future__ import annotations

import pytest

from tenax.client import Client
from tenax.client.projects import Note
from tenax.errors import NotFound, NotNow
from tests.kits.pretend_master import PretendMaster, refused

SPACE = {"id": 2, "name": "7", "state": "WORKSPACE_STATE_DELETING", "numExperiments": 3}
PROJECT = {"id": 3, "name": "cats", "workspaceId": 2, "workspaceName": "7", "state": "WORKSPACE_STATE_UNSPECIFIED"}
MODEL = {"id": 5, "name": "bert", "creationTime": "2026-01-02T03:04:05Z", "metadata": {"a": 1}}


@pytest.fixture
def client(master: PretendMaster) -> Client:
    return Client(master.url, token="t")


def test_a_name_counts_before_a_number(master: PretendMaster, client: Client) -> None:
    """A workspace that is called 7 is found by that; with no such name it is the number."""
    master.on("GET", "/api/v1/workspaces", {"workspaces": [SPACE]}, {"workspaces": []})
    master.on("GET", "/api/v1/workspaces/7", {"workspace": {"id": 7, "name": "seven"}})
    assert client.workspace("7").id == 2
    assert client.workspace("7").name == "seven"
    assert client.workspace(7).name == "seven"


def test_deletion_is_waited_for(master: PretendMaster, client: Client) -> None:
    """Each look is shown; gone is the end, and so is a reason why it stays."""
    master.on("GET", "/api/v1/workspaces/2", {"workspace": SPACE}, {"workspace": SPACE}, refused(404, "gone"))
    master.on("DELETE", "/api/v1/workspaces/2", {"completed": False})
    seen: list[int] = []
    client.workspace(2).delete(seen=lambda now: seen.append(now.experiments_count))
    assert seen == [3]
    failed = {**SPACE, "state": "WORKSPACE_STATE_DELETE_FAILED", "errorMessage": "experiment 4 stays"}
    master.on("GET", "/api/v1/workspaces/2", {"workspace": failed})
    with pytest.raises(NotNow, match="experiment 4 stays"):
        client.workspace(2).delete()
    client.workspace(2).delete(wait=False)


def test_a_project_is_found_by_a_path(master: PretendMaster, client: Client) -> None:
    """Workspace and project in one word; its notes are values."""
    master.on("GET", "/api/v1/workspaces", {"workspaces": [SPACE]})
    master.on("GET", "/api/v1/workspaces/2/projects", {"projects": [PROJECT]})
    project = client.project("7/cats")
    assert (project.id, project.state, master.asked[-1].query["name"]) == (3, "ACTIVE", ["cats"])
    master.on("PUT", "/api/v1/projects/3/notes", {"notes": [{"name": "a", "contents": "b"}]})
    assert project.set_notes([Note("a", "b")]) == (Note("a", "b"),)
    master.on("GET", "/api/v1/workspaces/2/projects", {"projects": []})
    with pytest.raises(NotFound, match="'dogs'"):
        client.project("dogs", "7")


def test_the_newest_version_is_asked_for_in_one_request(master: PretendMaster, client: Client) -> None:
    """A model without one says so."""
    master.on("GET", "/api/v1/models/bert", {"model": MODEL})
    version = {"version": 4, "model": MODEL, "checkpoint": {"uuid": "u"}}
    master.on("GET", "/api/v1/models/5/versions", {"modelVersions": [version]}, {"modelVersions": []})
    model = client.model("bert")
    newest = model.version()
    assert (newest.version, newest.checkpoint.uuid, newest.model.metadata) == (4, "u", {"a": 1})
    assert (master.asked[-1].query["limit"], master.asked[-1].query["orderBy"]) == (["1"], ["ORDER_BY_DESC"])
    with pytest.raises(NotFound, match="no version yet"):
        model.version()


def test_only_what_is_given_is_changed(master: PretendMaster, client: Client) -> None:
    """Empty values are given, None is not."""
    master.on("GET", "/api/v1/models/5", {"model": MODEL})
    master.on("PATCH", "/api/v1/models/5", {"model": MODEL})
    client.model(5).edit(labels=[], metadata={}, notes="")
    assert master.asked[-1].body == {"labels": [], "metadata": {}, "notes": ""}
