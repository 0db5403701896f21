"""Every verb of `det model` and every method of the SDK's `Model` and `ModelVersion`, with what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import BOTH, Det, Sdk
from tests.compat.harness import finished as finished_trial
from tests.compat.harness import submit
from tests.kits.machine import Machine

Make = Callable[..., str]


@pytest.fixture
def make(det: Det) -> Iterator[Make]:
    """Makes a model of that name, with these options; all are deleted in the end."""
    made: list[str] = []

    def create(name: str, *options: str) -> str:
        det("m", "create", name, *options)
        made.append(name)
        return name

    yield create
    for name in made:
        det("m", "delete", name, check=False)


@pytest.fixture
def checkpoint(sdk: Sdk, finished: int) -> str:
    """A checkpoint that is there."""
    return str(sdk("result = client.get_experiment(number).list_checkpoints()[0].uuid", number=finished))


def listed(det: Det, *options: object) -> list[str]:
    found = [str(one["name"]) for one in cast(list[JsonObject], det("m", "list", "--json", *options).json)]
    return [name for name in found if name.startswith("compat-")]


def test_create_list_describe_and_delete(det: Det, make: Make) -> None:
    """In its order; described by name and by number; the second of a name is refused; deleted it is gone."""
    make("compat-b", "--description", "reads")
    make("compat-a", "-w", "Uncategorized")
    assert listed(det) == ["compat-b", "compat-a"]
    assert listed(det, "--sort-by", "name", "--order-by", "asc", "-w", "Uncategorized") == ["compat-a", "compat-b"]
    told = cast(JsonObject, det("m", "describe", "compat-b", "--json").json)
    assert (told["name"], told["description"]) == ("compat-b", "reads")
    assert "compat-b" in det("m", "describe", told["id"]).out
    again = det("m", "create", "compat-b", check=False)
    assert (again.code, "compat-b" in again.err) == (1, True)
    det("m", "delete", "compat-b")
    assert listed(det) == ["compat-a"]
    assert det("m", "describe", "compat-b", check=False).code == 1


def test_register_and_list_versions(det: Det, make: Make, checkpoint: str) -> None:
    """Numbers go up by one; the newest is described, or the one that is asked for; the checkpoint is kept by it."""
    make("compat-versions")
    assert checkpoint in det("m", "register-version", "compat-versions", checkpoint).out
    second = cast(JsonObject, det("m", "register-version", "compat-versions", checkpoint, "--json").json)
    assert cast(JsonObject, second["modelVersion"])["version"] == 2
    told = cast(JsonObject, det("m", "list-versions", "compat-versions", "--json").json)
    assert [one["version"] for one in cast(list[JsonObject], told["modelVersions"])] == [1, 2]
    assert checkpoint in det("m", "list-versions", "compat-versions").out
    assert checkpoint in det("m", "describe", "compat-versions").out
    assert checkpoint in det("m", "describe", "compat-versions", "--version", 1).out
    assert det("m", "describe", "compat-versions", "--version", 3, check=False).code == 1
    kept = det("c", "delete", checkpoint, "--yes", check=False)
    assert (kept.code, "compat-versions" in kept.err + kept.out) == (1, True)
    unknown = det("m", "register-version", "compat-versions", "0" * 8, check=False)
    assert unknown.code == 1


def test_move(det: Det, make: Make) -> None:
    """Into another workspace, by name; the list of that one has it."""
    make("compat-moves")
    det("w", "create", "compat-goal")
    try:
        det("m", "move", "compat-moves", "-w", "compat-goal")
        assert listed(det, "-w", "compat-goal") == ["compat-moves"]
    finally:
        det("m", "delete", "compat-moves")
        det("w", "delete", "compat-goal", "--yes")


@BOTH
def test_sdk_model(sdk: Sdk) -> None:
    """Made, found in every way, its words, labels and metadata changed, archived, moved, deleted."""
    result = sdk(
        """
model = client.create_model("compat-sdk", description="d", metadata={"a": 1, "b": 2})
model.set_labels(["nlp", "compat"])
model.set_description("reads")
model.add_metadata({"a": 3, "c": {"deep": [1]}})
model.remove_metadata(["b"])
model.archive()
model.reload()
archived = model.archived
model.unarchive()
model.move_to_workspace("Uncategorized")
same = [client.get_model("compat-sdk").model_id, client.get_model(model.model_id).model_id,
        client.get_model_by_id(model.model_id).model_id]
again = client.get_model("compat-sdk")
found = [[m.name for m in client.get_models(name="compat-s")],
         [m.name for m in client.list_models(description="read", sort_by=client.ModelSortBy.NAME)],
         [m.name for m in client.list_models(model_id=model.model_id, workspace_ids=[1])],
         [m.name for m in client.list_models(workspace_names=["Uncategorized"], name="compat-sdk")]]
labels = client.get_model_labels()
model.delete()
left = [m.name for m in client.list_models(name="compat-s")]
result = [archived, again.archived, again.labels, again.description, again.metadata, again.workspace_id, again.username,
          same == [model.model_id] * 3, found, set(labels) >= {"nlp", "compat"}, left, again.creation_time is not None]
"""
    )
    metadata = {"a": 3, "c": {"deep": [1]}}
    found = [["compat-sdk"]] * 4
    assert result == [
        *(True, False, ["nlp", "compat"], "reads", metadata, 1, "determined"),
        *(True, found, True, [], True),
    ]


@BOTH
def test_sdk_model_version(sdk: Sdk, make: Make, checkpoint: str) -> None:
    """Registered, named, noted, reloaded, listed in both directions, deleted; its checkpoint comes with it."""
    make("compat-sdkver")
    result = sdk(
        """
model = client.get_model("compat-sdkver")
none = model.get_version()
first = model.register_version(uuid)
second = model.register_version(uuid)
first.set_name("alpha")
first.set_notes("# notes")
first.reload()
up = [v.model_version for v in model.list_versions(client.OrderBy.ASC)]
down = [v.model_version for v in model.get_versions()]
latest = model.get_version()
one = model.get_version(1)
second.delete()
left = [v.model_version for v in model.list_versions()]
metrics = list(first.iter_metrics()) + list(first.get_metrics("validation"))
result = [none, first.name, first.notes, first.model_id == model.model_id, up, down, latest.model_version, one.name,
          one.checkpoint.uuid == uuid, one.checkpoint.training.trial_id > 0, left, metrics]
""",
        uuid=checkpoint,
    )
    assert result == [None, "alpha", "# notes", True, [1, 2], [2, 1], 2, "alpha", True, True, [1], []]


INFER = """
import sys
from determined import core
from determined.experimental import client

with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
    context.experimental.report_task_using_model_version(client.get_model(sys.argv[1]).get_version(1))
    context.train.report_metrics(group="inference", steps_completed=1, metrics={"accuracy": 0.75})
"""


def test_metrics_of_a_version_from_a_task(
    cluster: Machine, sdk: Sdk, make: Make, checkpoint: str, tmp_path: Path
) -> None:
    """What a script of Determined's own library reports that says which version it uses is found by that version."""
    make("compat-inference")
    read = """
version = client.get_model("compat-inference").get_version()
result = [[m.group, m.steps_completed, m.metrics, m.trial_id] for m in version.iter_metrics("inference")]
"""
    sdk("client.get_model('compat-inference').register_version(uuid)", uuid=checkpoint)
    assert sdk(read) == []
    command = "python3 train.py compat-inference"
    experiment = submit(cluster, tmp_path / "code", {"train.py": INFER}, entrypoint=command)
    trial, _ = finished_trial(cluster, experiment)
    assert sdk(read) == [["inference", 1, {"accuracy": 0.75}, trial.id]]
