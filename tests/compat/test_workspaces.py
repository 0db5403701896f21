"""Every verb of `det workspace` and every method of the SDK's `Workspace`, with what it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import BOTH, Det, RealClient, Sdk

Make = Callable[[str], str]


@pytest.fixture
def space(det: Det) -> Iterator[Make]:
    """Makes a workspace of that name; all are deleted in the end."""
    made: list[str] = []

    def make(name: str) -> str:
        det("w", "create", name)
        made.append(name)
        return name

    yield make
    for name in made:
        det("w", "delete", name, "--yes", check=False)


def described(det: Det, name: str) -> JsonObject:
    return cast(JsonObject, det("w", "describe", name, "--json").json)


def names(det: Det, *options: object) -> list[str]:
    return [str(one["name"]) for one in cast(list[JsonObject], det("w", "list", "--json", *options).json)]


def test_create_list_and_describe(det: Det, space: Make) -> None:
    """What was made is in the list, in its order, and described with its owner; the second of a name is refused."""
    space("compat-b")
    space("compat-a")
    listed = [name for name in names(det, "--sort-by", "name", "--order-by", "desc") if name.startswith("compat-")]
    assert listed == ["compat-b", "compat-a"]
    assert "Uncategorized" in names(det)
    assert len(names(det, "--limit", 1, "--offset", 1)) == 1
    assert described(det, "compat-a")["username"] == "determined"
    assert "compat-a" in det("w", "list").out
    assert "compat-a" in det("w", "describe", "compat-a").out
    again = det("w", "create", "compat-a", check=False)
    assert (again.code, "compat-a" in again.err) == (1, True)


def test_what_is_not_there_is_said(det: Det) -> None:
    """By its name, as the client words it."""
    missing = det("w", "describe", "compat-none", check=False)
    assert (missing.code, "compat-none" in missing.err) == (1, True)


def test_settings_of_a_workspace(det: Det, space: Make, tmp_path: Path) -> None:
    """Name, storage from text and from a file, default pools; `{}` takes the storage away; secrets are stars."""
    space("compat-old")
    storage = json.dumps({"type": "s3", "bucket": "b", "secret_key": "hush"})
    pools = ("--default-compute-pool", "default", "--default-aux-pool", "default")
    edit = det("w", "edit", "compat-old", "--name", "compat-new", "--checkpoint-storage-config", storage, *pools)
    try:
        assert "compat-new" in edit.out
        now = described(det, "compat-new")
        assert now["checkpointStorageConfig"] == {"type": "s3", "bucket": "b", "secret_key": "********"}
        assert (now["defaultComputePool"], now["defaultAuxPool"]) == ("default", "default")
        file = tmp_path / "storage.yaml"
        file.write_text("type: directory\ncontainer_path: /data\n")
        det("w", "edit", "compat-new", "--checkpoint-storage-config-file", file)
        told = cast(JsonObject, described(det, "compat-new")["checkpointStorageConfig"])
        assert told == {"type": "directory", "container_path": "/data"}
        det("w", "edit", "compat-new", "--checkpoint-storage-config", "{}")
        assert described(det, "compat-new")["checkpointStorageConfig"] is None
        unknown = det("w", "edit", "compat-new", "--default-compute-pool", "nowhere", check=False)
        assert (unknown.code, "nowhere" in unknown.err) == (1, True)
    finally:
        det("w", "edit", "compat-new", "--name", "compat-old", check=False)


def test_whom_tasks_run_as(admin: RealClient, det: Det, space: Make) -> None:
    """An administrator says so, with `create` and with `edit`; others are refused."""
    space("compat-uid")
    refused = det("w", "edit", "compat-uid", "--agent-uid", 1000, "--agent-user", "team", check=False)
    assert (refused.code, "administrators" in refused.err) == (1, True)
    nameless = ("--agent-uid", 1000, "--agent-gid", 1001, "--agent-user", "team")
    refused = admin.det("w", "edit", "compat-uid", *nameless, check=False)
    assert (refused.code, "agentGroup" in refused.err) == (1, True)
    admin.det("w", "edit", "compat-uid", *nameless, "--agent-group", "team")
    group = cast(JsonObject, described(det, "compat-uid")["agentUserGroup"])
    assert (group["agentUid"], group["agentGid"], group["agentUser"]) == (1000, 1001, "team")


def test_archive_and_unarchive(det: Det, space: Make) -> None:
    """Archived it takes no projects; unarchived it does."""
    space("compat-shelf")
    det("w", "archive", "compat-shelf")
    assert described(det, "compat-shelf")["archived"] is True
    refused = det("p", "create", "compat-shelf", "late", check=False)
    assert (refused.code, "archived" in refused.err) == (1, True)
    det("w", "unarchive", "compat-shelf")
    det("p", "create", "compat-shelf", "late")
    assert described(det, "compat-shelf")["numProjects"] == 1


def test_projects_pools_and_members_of(det: Det, space: Make) -> None:
    """What is in it, where its tasks may run, who has a role in it."""
    space("compat-of")
    for name in ("two", "one"):
        det("p", "create", "compat-of", name)
    told = cast(list[JsonObject], det("w", "list-projects", "compat-of", "--sort-by", "name", "--json").json)
    assert [one["name"] for one in told] == ["one", "two"]
    assert "default" in det("w", "list-pools", "compat-of").out
    members = cast(JsonObject, det("w", "list-members", "compat-of", "--json").json)
    assert [one["username"] for one in cast(list[JsonObject], members["usersAssignedDirectly"])] == ["determined"]
    shown = det("w", "list-members", "compat-of").out
    assert ("determined" in shown, "WorkspaceAdmin" in shown) == (True, True)
    assert "determined,U,WorkspaceAdmin" in det("w", "list-members", "compat-of", "--csv").out


def test_delete_with_what_is_in_it(det: Det, sdk: Sdk, space: Make) -> None:
    """With its experiments, in the background; the client waits until nothing is left. Uncategorized stays."""
    space("compat-gone")
    det("p", "create", "compat-gone", "p")
    number = sdk(
        "config = {'name': 'gone', 'entrypoint': 'true', 'workspace': 'compat-gone', 'project': 'p',\n"
        "          'searcher': {'name': 'single', 'metric': 'x'}}\n"
        "experiment = client.create_experiment(config)\n"
        "experiment.wait(interval=0.2)\n"
        "result = experiment.id"
    )
    done = det("w", "delete", "compat-gone", "--yes")
    assert "deleted successfully" in done.out
    assert "compat-gone" not in names(det)
    assert det("e", "describe", number, check=False).code == 1
    kept = det("w", "delete", "Uncategorized", "--yes", check=False)
    assert kept.code == 1


@BOTH
def test_sdk_workspace(sdk: Sdk) -> None:
    """Made, listed, got, its projects made, got, listed and deleted, its pools, reloaded, deleted."""
    result = sdk(
        """
made = client.create_workspace("compat-sdk")
other = client.get_workspace("COMPAT-sdk")
project = made.create_project("cats", description="meow")
dogs = made.create_project("dogs")
listed = sorted(p.name for p in made.list_projects())
got = made.get_project("cats").description
made.delete_project("dogs")
pools = "default" in [p.name for p in made.list_pools()]
other.reload()
names = [w.name for w in client.list_workspaces()]
client.delete_workspace("compat-sdk")
left = [w.name for w in client.list_workspaces()]
try:
    client.get_workspace("compat-sdk")
    missing = False
except Exception as error:
    missing = "NotFound" in type(error).__name__
result = [made.id == other.id, other.name, listed, got, pools, "compat-sdk" in names, "compat-sdk" in left, missing]
"""
    )
    assert result == [True, "compat-sdk", ["cats", "dogs"], "meow", True, True, False, True]


def test_sdk_workspace_by_id_or_name(sdk: Sdk) -> None:
    """The class itself finds one by name, and lists the projects that are left after one is deleted."""
    result = sdk(
        """
from determined.common.experimental import workspace
one = workspace.Workspace(client.list_workspaces()[0]._session, workspace_name="Uncategorized")
one.reload()
result = [one.id, one.name, [p.name for p in one.list_projects()][:1]]
"""
    )
    assert result == [1, "Uncategorized", ["Uncategorized"]]
