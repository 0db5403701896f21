"""``tenax workspace``, ``project`` and ``model``: what is asked of the master, and what is told."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.cli.command_line import Tenax
from tests.kits.pretend_master import PretendMaster, refused

SPACE = {
    "id": 2,
    "name": "vision",
    "username": "ann",
    "numProjects": 1,
    "numExperiments": 4,
    "state": "WORKSPACE_STATE_UNSPECIFIED",
    "agentUserGroup": {"agentUid": 1000, "agentUser": "ann"},
    "checkpointStorageConfig": {"type": "s3", "bucket": "b"},
}
PROJECT = {
    "id": 3,
    "name": "cats",
    "key": "CAT",
    "description": "meow, loud",
    "workspaceId": 2,
    "workspaceName": "vision",
    "username": "ann",
    "notes": [{"name": "plan", "contents": "first"}],
    "numExperiments": 4,
    "numActiveExperiments": 1,
    "numRuns": 9,
}
MODEL = {
    "id": 5,
    "name": "bert base",
    "labels": ["nlp"],
    "metadata": {"a": 1},
    "numVersions": 1,
    "workspaceId": 2,
    "username": "ann",
}
VERSION = {
    "version": 1,
    "name": "alpha",
    "model": MODEL,
    "checkpoint": {"uuid": "u-1", "metadata": {"steps_completed": 7}, "training": {"trialId": 8, "experimentId": 9}},
}


@pytest.fixture
def full(master: PretendMaster) -> PretendMaster:
    """A master that holds one of each."""
    whole = {"endIndex": 1, "total": 1}
    master.on("GET", "/api/v1/workspaces", {"workspaces": [SPACE], "pagination": whole})
    master.on("GET", "/api/v1/workspaces/2", {"workspace": SPACE})
    master.on("GET", "/api/v1/workspaces/2/projects", {"projects": [PROJECT], "pagination": whole})
    for path in ("3", "key/CAT"):
        master.on("GET", f"/api/v1/projects/{path}", {"project": PROJECT})
    master.on("GET", "/api/v1/models", {"models": [MODEL], "pagination": whole})
    for name in ("5", "bert%20base", "bert base"):
        master.on("GET", f"/api/v1/models/{name}", {"model": MODEL})
    master.on("GET", "/api/v1/models/5/versions", {"modelVersions": [VERSION], "pagination": whole})
    master.on("GET", "/api/v1/models/5/versions/1", {"modelVersion": VERSION})
    return master


def last(master: PretendMaster) -> tuple[str, str, object]:
    """Method, path and body of the newest request that changes something."""
    request = next(candidate for candidate in reversed(master.asked) if candidate.method != "GET")
    return request.method, request.path, request.body


def test_lists_print_as_tables_json_and_csv(full: PretendMaster, tenax: Tenax) -> None:
    """The same things in each; filters reach the master."""
    for noun, name in (("workspace", "vision"), ("project", "cats"), ("model", "bert base")):
        arguments = ("list", "vision") if noun == "project" else ("list",)
        assert name in tenax(noun, *arguments).out
        assert json.loads(tenax(noun, *arguments, "--json").out)[0]["name"] == name
        assert name in next(iter(csv.DictReader(io.StringIO(tenax(noun, *arguments, "--csv").out))))["name"]
    tenax("workspace", "list", "--not-archived", "--pinned", "--user", "ann", "--sort-by", "name", "--reverse")
    query = full.asked[-1].query
    assert (query["archived"], query["pinned"], query["users"]) == (["false"], ["true"], ["ann"])
    assert (query["sortBy"], query["orderBy"]) == (["SORT_BY_NAME"], ["ORDER_BY_DESC"])
    tenax("model", "list", "-w", "a,b", "--label", "nlp")
    assert (full.asked[-1].query["labels"], full.asked[-1].query["workspaceNames"]) == (["nlp"], ["a", "b"])


def test_a_workspace_is_made_and_edited(full: PretendMaster, tenax: Tenax, tmp_path: Path) -> None:
    """With storage as text or from a file, pools, and whom its tasks run as."""
    full.on("POST", "/api/v1/workspaces", {"workspace": SPACE})
    full.on("PATCH", "/api/v1/workspaces/2", {"workspace": SPACE})
    done = tenax("w", "create", "vision", "--checkpoint-storage", "{type: s3, bucket: b}", "--agent-uid", "1000")
    storage = {"type": "s3", "bucket": "b"}
    body = {"name": "vision", "checkpointStorageConfig": storage, "agentUserGroup": {"agentUid": 1000}}
    assert last(full) == ("POST", "/api/v1/workspaces", body)
    assert ("vision (2)" in done.out, "user ann" in done.out) == (True, True)
    file = tmp_path / "storage.yaml"
    file.write_text("type: directory\ncontainer_path: /data\n")
    tenax("w", "edit", "vision", "--name", "speech", "--checkpoint-storage-file", str(file), "--default-aux-pool", "")
    directory = {"type": "directory", "container_path": "/data"}
    changes = {"name": "speech", "checkpointStorageConfig": directory, "defaultAuxPool": ""}
    assert last(full) == ("PATCH", "/api/v1/workspaces/2", changes)
    both = tenax("w", "edit", "vision", "--checkpoint-storage", "{}", "--checkpoint-storage-file", str(file))
    assert both.code == exits.USAGE


def test_verbs_of_a_workspace(full: PretendMaster, tenax: Tenax) -> None:
    """By name or id; what is not there is said."""
    for verb in ("archive", "unarchive", "pin", "unpin"):
        full.on("POST", f"/api/v1/workspaces/2/{verb}", {})
        assert tenax("workspace", verb, "vision").code == 0
        assert last(full)[1] == f"/api/v1/workspaces/2/{verb}"
    full.on("GET", "/api/v1/workspaces/2/available-resource-pools", {"resourcePools": ["gpu"]})
    assert "gpu" in tenax("workspace", "list-pools", "2").out
    assigned = {"role": {"name": "WorkspaceAdmin"}, "userRoleAssignments": [{"userId": 7}]}
    users = [{"id": 7, "username": "ann"}]
    full.on("GET", "/api/v1/roles/workspace/2", {"usersAssignedDirectly": users, "assignments": [assigned]})
    assert tenax("workspace", "list-members", "vision", "--csv").out == "user,role\nann,WorkspaceAdmin\n"
    assert "cats" in tenax("workspace", "list-projects", "vision").out
    full.on("GET", "/api/v1/workspaces", {"workspaces": [], "pagination": {}})
    missing = tenax("workspace", "describe", "nowhere")
    assert (missing.code, "'nowhere'" in missing.err) == (exits.NOT_FOUND, True)


def test_what_is_deleted_in_the_background_is_waited_for(full: PretendMaster, tenax: Tenax) -> None:
    """Until it is gone, or says why it stays."""
    full.on("DELETE", "/api/v1/workspaces/2", {"completed": False})
    full.on("GET", "/api/v1/workspaces/2", refused(404, "there is no workspace 2"))
    gone = tenax("workspace", "delete", "vision", "--yes")
    assert (gone.code, "is deleted" in gone.out) == (0, True)
    full.on("DELETE", "/api/v1/projects/3", {"completed": False})
    stuck = {**PROJECT, "state": "WORKSPACE_STATE_DELETE_FAILED", "errorMessage": "experiment 4 stays"}
    full.on("GET", "/api/v1/projects/3", {"project": stuck})
    kept = tenax("project", "delete", "CAT", "--yes")
    assert (kept.code != 0, "experiment 4 stays" in kept.err) == (True, True)


def test_a_project_is_named_in_every_way(full: PretendMaster, tenax: Tenax) -> None:
    """By workspace and name, in one word or two, by key and by id."""
    for arguments in (("vision", "cats"), ("vision/cats",), ("CAT",), ("3",)):
        done = tenax("project", "describe", *arguments)
        assert ("cats (3)" in done.out, "note plan" in done.out) == (True, True)
    full.on("GET", "/api/v1/workspaces/2/projects", {"projects": [], "pagination": {}})
    assert tenax("project", "describe", "vision", "dogs").code == exits.NOT_FOUND


def test_verbs_of_a_project(full: PretendMaster, tenax: Tenax) -> None:
    """Made, edited, moved, archived, noted; its experiments are the caller's own unless all are asked for."""
    full.on("POST", "/api/v1/workspaces/2/projects", {"project": PROJECT})
    tenax("p", "create", "vision", "cats", "--key", "CAT")
    body = {"name": "cats", "description": "", "workspaceId": 2, "key": "CAT"}
    assert last(full) == ("POST", "/api/v1/workspaces/2/projects", body)
    full.on("PATCH", "/api/v1/projects/3", {"project": PROJECT})
    tenax("p", "edit", "vision", "cats", "--name", "dogs")
    assert last(full) == ("PATCH", "/api/v1/projects/3", {"name": "dogs"})
    full.on("POST", "/api/v1/projects/3/move", {})
    assert "vision" in tenax("p", "move", "CAT", "--to", "vision").out
    assert last(full)[2] == {"projectId": 3, "destinationWorkspaceId": 2}
    for verb in ("archive", "unarchive"):
        full.on("POST", f"/api/v1/projects/3/{verb}", {})
        assert tenax("p", verb, "3").code == 0
    full.on("POST", "/api/v1/projects/3/notes", {"notes": [{}, {}]})
    assert "2 notes" in tenax("p", "add-note", "CAT", "--name", "log", "--contents", "it works").out
    full.on("PUT", "/api/v1/projects/3/notes", {"notes": []})
    tenax("p", "remove-note", "CAT", "--name", "plan")
    assert last(full)[2] == {"projectId": 3, "notes": []}
    assert tenax("p", "remove-note", "CAT", "--name", "none").code == exits.NOT_FOUND
    full.on("GET", "/api/v1/experiments", {"experiments": [{"id": 9, "name": "digits"}], "pagination": {}})
    assert "digits" in tenax("p", "list-experiments", "CAT").out
    query = full.sent("GET", "/api/v1/experiments")[-1].query
    assert (query["users"], query["projectId"]) == (["ann"], ["3"])
    tenax("p", "list-experiments", "CAT", "--all")
    assert "users" not in full.asked[-1].query


def test_verbs_of_a_model(full: PretendMaster, tenax: Tenax) -> None:
    """Made, described with its newest version, edited, moved, archived, deleted."""
    full.on("POST", "/api/v1/models", {"model": MODEL})
    tenax("m", "create", "bert base", "-w", "vision", "--label", "nlp", "--description", "reads")
    assert last(full)[2] == {
        "name": "bert base",
        "description": "reads",
        "notes": "",
        "labels": ["nlp"],
        "metadata": {},
        "workspaceId": 2,
    }
    shown = tenax("m", "describe", "bert base").out
    assert ("u-1" in shown, "metadata" in shown) == (True, True)
    assert json.loads(tenax("m", "describe", "5", "--version", "1", "--json").out)["modelVersion"]["version"] == 1
    full.on("PATCH", "/api/v1/models/5", {"model": MODEL})
    tenax("m", "edit", "5", "--metadata", "{a: [1]}", "--no-labels")
    assert last(full)[2] == {"metadata": {"a": [1]}, "labels": []}
    full.on("POST", "/api/v1/models/5/move", {})
    tenax("m", "move", "5", "-w", "vision")
    assert last(full)[2] == {"destinationWorkspaceId": 2}
    for verb in ("archive", "unarchive"):
        full.on("POST", f"/api/v1/models/5/{verb}", {})
        assert tenax("m", verb, "5").code == 0
    full.on("DELETE", "/api/v1/models/5", {})
    assert tenax("m", "delete", "5", "--yes").code == 0
    full.on("GET", "/api/v1/model/labels", {"labels": ["nlp", "small"]})
    assert tenax("m", "labels", "--csv").out == "label\nnlp\nsmall\n"


def test_verbs_of_a_version(full: PretendMaster, tenax: Tenax) -> None:
    """Registered, listed, edited, deleted."""
    full.on("POST", "/api/v1/models/5/versions", {"modelVersion": VERSION})
    full.on("GET", "/api/v1/checkpoints/u", {"checkpoint": {"uuid": "u-1"}})
    assert "u-1" in tenax("m", "register-version", "5", "u", "--name", "alpha").out
    body = last(full)[2]
    assert isinstance(body, dict)
    assert (body["checkpointUuid"], body["name"]) == ("u-1", "alpha")
    listed = tenax("m", "list-versions", "5", "--csv").out.splitlines()[1].split(",")
    assert listed[:6] == ["1", "alpha", "u-1", "9", "8", "7"]
    full.on("PATCH", "/api/v1/models/5/versions/1", {"modelVersion": VERSION})
    tenax("m", "edit-version", "5", "1", "--comment", "best")
    assert last(full)[2] == {"comment": "best"}
    full.on("DELETE", "/api/v1/models/5/versions/1", {})
    assert tenax("m", "delete-version", "5", "1", "--yes").code == 0
    assert last(full)[:2] == ("DELETE", "/api/v1/models/5/versions/1")
