"""Every verb of `det project` and every method of the SDK's `Project`, with what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import BOTH, Det, Sdk

SPACE = "compat-projects"


@pytest.fixture(autouse=True)
def _space(det: Det) -> Iterator[None]:
    """A workspace for what is made here."""
    det("w", "create", SPACE)
    yield
    det("w", "delete", SPACE, "--yes")


def described(det: Det, name: str) -> JsonObject:
    return cast(JsonObject, det("p", "describe", SPACE, name, "--json").json)


def test_create_list_describe_and_edit(det: Det) -> None:
    """With description and key; edited they are others; what is taken is refused."""
    made = cast(JsonObject, det("p", "create", SPACE, "cats", "--description", "meow", "--key", "CATS", "--json").json)
    assert (made["name"], made["description"], made["key"]) == ("cats", "meow", "CATS")
    det("p", "create", SPACE, "bees")
    listed = cast(list[JsonObject], det("p", "list", SPACE, "--sort-by", "name", "--json").json)
    assert [one["name"] for one in listed] == ["bees", "cats"]
    shown = det("p", "describe", SPACE, "cats").out
    assert ("meow" in shown, "Associated Experiments" in shown) == (True, True)
    det("p", "edit", SPACE, "cats", "--new_name", "dogs", "--description", "bark", "--key", "DOGS")
    now = described(det, "dogs")
    assert (now["id"], now["description"], now["key"]) == (made["id"], "bark", "DOGS")
    taken = det("p", "edit", SPACE, "bees", "--key", "DOGS", check=False)
    assert (taken.code, "DOGS" in taken.err) == (1, True)
    missing = det("p", "describe", SPACE, "cats", check=False)
    assert (missing.code, "cats" in missing.err) == (1, True)


def test_archive_and_unarchive(det: Det, sdk: Sdk) -> None:
    """Archived it takes no experiments; unarchived it does, and lists them."""
    det("p", "create", SPACE, "shelf")
    det("p", "archive", SPACE, "shelf")
    assert described(det, "shelf")["archived"] is True
    submit = (
        "config = {'name': 'filed', 'entrypoint': 'true', 'max_restarts': 0, 'workspace': space, 'project': 'shelf',\n"
        "          'searcher': {'name': 'single', 'metric': 'x'}}\n"
        "try:\n"
        "    experiment = client.create_experiment(config)\n"
        "    experiment.wait(interval=0.2)\n"
        "    result = experiment.id\n"
        "except Exception as error:\n"
        "    result = str(error)"
    )
    assert "archived" in str(sdk(submit, space=SPACE))
    det("p", "unarchive", SPACE, "shelf")
    number = sdk(submit, space=SPACE)
    listed = cast(list[JsonObject], det("p", "list-experiments", SPACE, "shelf", "--json").json)
    assert [(one["id"], one["name"], one["projectName"]) for one in listed] == [(number, "filed", "shelf")]
    assert "filed" in det("p", "list-experiments", SPACE, "shelf", "--all", "--order-by", "desc").out
    assert described(det, "shelf")["numExperiments"] == 1


def test_delete(det: Det) -> None:
    """It is gone, and the rest of the workspace is there."""
    for name in ("kept", "gone"):
        det("p", "create", SPACE, name)
    det("p", "delete", SPACE, "gone", "--yes")
    listed = cast(list[JsonObject], det("p", "list", SPACE, "--json").json)
    assert [one["name"] for one in listed] == ["kept"]
    assert det("p", "delete", SPACE, "gone", "--yes", check=False).code == 1


@BOTH
def test_sdk_project(sdk: Sdk) -> None:
    """Words, key and notes set; archived and unarchived; its experiments listed; the same after `reload`."""
    result = sdk(
        """
project = client.get_workspace(space).create_project("birds", description="tweet")
project.set_name("owls")
project.set_description("hoot")
project.set_key("OWLS")
project.add_note("plan", "first")
project.add_note("log", "second")
project.remove_note("plan")
project.archive()
project.reload()
archived = project.archived
project.unarchive()
project.reload()
experiments = project.list_experiments()
result = [project.name, project.description, project.key, project.notes, archived, project.archived, project.username,
          project.n_experiments, project.n_active_experiments, len(experiments)]
""",
        space=SPACE,
    )
    notes = [{"name": "log", "contents": "second"}]
    assert result == ["owls", "hoot", "OWLS", notes, True, False, "determined", 0, 0, 0]
