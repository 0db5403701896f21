"""Every verb of `det model` and every method of the SDK's `Model` and `ModelVersion`, with what it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.conftest import Det, Sdk

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


def test_metrics_of_a_version_from_a_task(sdk: Sdk, make: Make, checkpoint: str) -> None:
    """What a script reports that says which version it uses is found by that version."""
    make("compat-inference")
    script = """
import json, os, sys, urllib.request
from tenax import core
with core.init() as context:
    source = {"checkpointUuid": sys.argv[1], "modelId": int(sys.argv[2]), "modelVersion": 1,
              "trialId": int(os.environ["DET_TRIAL_ID"]), "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE"}
    request = urllib.request.Request(os.environ["DET_MASTER"] + "/api/v1/trial-source-info",
        data=json.dumps({"trialSourceInfo": source}).encode(),
        headers={"Grpc-Metadata-x-allocation-token": "Bearer " + os.environ["DET_SESSION_TOKEN"]})
    urllib.request.urlopen(request).read()
    context.train.report_metrics(group="inference", steps_completed=1, metrics={"accuracy": 0.75})
"""
    result = sdk(
        """
import pathlib, tempfile
model = client.get_model("compat-inference")
version = model.register_version(uuid)
directory = tempfile.mkdtemp()
pathlib.Path(directory, "infer.py").write_text(script)
config = {"name": "infer", "entrypoint": f"python3 infer.py {uuid} {model.model_id}", "max_restarts": 0,
          "searcher": {"name": "single", "metric": "x"}, "resources": {"slots_per_trial": 0}}
experiment = client.create_experiment(config, directory)
state = experiment.wait(interval=0.2)
assert state == client.ExperimentState.COMPLETED, list(experiment.get_trials()[0].logs())
told = [[m.group, m.steps_completed, m.metrics] for m in version.iter_metrics("inference")]
experiment.delete()
result = told
""",
        uuid=checkpoint,
        script=script,
    )
    assert result == [["inference", 1, {"accuracy": 0.75}]], json.dumps(result)
