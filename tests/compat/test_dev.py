"""`det dev`, and through the functions behind it every reading request that the client can make."""

from __future__ import annotations

import json
import urllib.request
from typing import cast

from tenax.jsonvalue import Json, JsonObject
from tests.compat.client import RealClient
from tests.compat.stories import Story

#: What each of these is refused with, in a part of the words: nouns that are left out, and what is for tasks.
_REFUSED = {
    "get_AllocationPreemptionSignal": "this is for tasks",
    "get_AllocationRendezvousInfo": "this is for tasks",
    "get_GetGlobalConfigPolicies": "config policies are not offered",
    "get_GetWorkspaceConfigPolicies": "config policies are not offered",
    "get_GetKubernetesResourceManagers": "Kubernetes",
    "get_GetKubernetesResourceQuotas": "Kubernetes",
    "get_GetWorkspacesWithDefaultNamespaceBindings": "Kubernetes",
    "get_ListWorkspaceNamespaceBindings": "Kubernetes",
    "get_GetNotebook": "notebooks are not offered",
    "get_GetShell": "shells are not offered",
    "get_GetTensorboard": "TensorBoards are not offered",
    "get_GetPermissionsSummary": "there are no roles here",
    "get_GetRolesAssignedToGroup": "there are no roles here",
    "get_GetRolesAssignedToUser": "there are no roles here",
}

#: Every function that reads, with what ``values`` has for each parameter it insists on (``function.parameter`` first).
_READS = """\
import inspect
from determined.common.api import bindings

client.login()
told = {}
for name, function in inspect.getmembers(bindings, inspect.isfunction):
    if not name.startswith("get_"):
        continue
    given = {}
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        own = f"{name}.{parameter.name}"
        if own in values or parameter.default is inspect.Parameter.empty:
            given[parameter.name] = values[own if own in values else parameter.name]
    if name == "get_ResourceAllocationAggregated":
        given["period"] = bindings.v1ResourceAllocationAggregationPeriod.DAILY
    try:
        answer = function(client._determined._session, **given)
        if inspect.isgenerator(answer):
            told[name] = [str(type(next(answer, None)).__name__)]
        else:
            told[name] = [str(type(answer).__name__)]
    except Exception as error:
        told[name] = f"{type(error).__name__}: {error}"
result = told
"""


def test_the_token_of_a_session(real: RealClient) -> None:
    """It is that of the user, and opens what the user may open."""
    token = real.det("dev", "auth-token").out.strip()
    request = urllib.request.Request(f"{real.url}/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        found = json.load(reply)
    assert found["user"]["username"] == "determined"


def test_curl(real: RealClient) -> None:
    """A path of the API with the options of curl behind it; the command is shown where that is asked."""
    assert real.json("dev", "curl", "/api/v1/me")["user"]["username"] == "determined"  # type: ignore[index, call-overload]
    shown = real.det("dev", "c", "-x", "api/v1/master", "-X", "GET").out
    assert shown.startswith("curl ")
    assert '"version":"0.38.1"' in shown.replace(" ", "")


def test_functions_are_listed_and_called(real: RealClient, admin: RealClient, story: Story) -> None:
    """By their whole names, with parameters by position and by name, whatever they do."""
    listed = real.det("dev", "bindings", "list").out
    assert "get_GetTrial" in listed
    found = cast(JsonObject, real.json("dev", "bindings", "call", "get_GetTrial", str(story.trial)))
    assert cast(JsonObject, found["trial"])["experimentId"] == story.experiment
    real.det("dev", "b", "call", "post_ArchiveExperiment", f"id={story.experiment}")
    try:
        page = real.json("dev", "b", "call", "get_GetExperiments", "archived=true", "limit=5")
        assert [one["id"] for one in cast("list[JsonObject]", cast(JsonObject, page)["experiments"])] == [
            story.experiment
        ]
    finally:
        real.det("dev", "b", "call", "post_UnarchiveExperiment", str(story.experiment))
    refused = real.det("dev", "b", "call", "get_GetTrial", "987654", check=False)
    assert refused.code != 0
    assert "987654" in refused.out + refused.err


def test_every_reading_request_is_answered_as_the_client_expects(admin: RealClient, story: Story) -> None:
    """Each function of the client that reads has its answer parsed by it, but for what is left out, which says so."""
    values = cast(JsonObject, admin.sdk(_MADE, number=story.experiment))
    told = cast("dict[str, Json]", admin.sdk(_READS, values=values))
    admin.sdk(_UNMADE, values=values)
    assert len(told) > 90
    refused = {name: said for name, said in told.items() if isinstance(said, str)}
    assert {name: said for name, said in refused.items() if _REFUSED.get(name, name) not in said} == {}
    assert set(refused) == set(_REFUSED)
    # Nothing was profiled in that trial.
    assert [name for name, said in told.items() if said == ["NoneType"]] == ["get_GetTrialProfilerMetrics"]


_MADE = """\
def post(path, **body):
    return client._determined._session.post(path, json=body).json()

experiment = client.get_experiment(number)
trial = experiment.get_trials()[0]
task = client._determined._session.get(f"/api/v1/trials/{trial.id}").json()["trial"]["taskId"]
checkpoint = experiment.list_checkpoints()[0].uuid
post("/api/v1/models", name="all-reads")
post("/api/v1/models/all-reads/versions", checkpointUuid=checkpoint)
post("/api/v1/templates/all-reads", config={"description": "x"})
group = post("/api/v1/groups", name="all-reads")["group"]["groupId"]
idle = {"entrypoint": ["true"], "resources": {"slots": 0}}
command = post("/api/v1/commands", config=idle)["command"]["id"]
generic = post("/api/v1/generic-tasks", config="entrypoint: ['true']\\nresources: {slots: 0}\\n", contextDirectory=[])
outside = {"name": "outside", "searcher": {"name": "single", "metric": "x", "max_length": 1}, "entrypoint": "x"}
config = __import__("json").dumps({**outside, "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}})
client._determined._session.put(
    "/api/v1/experiments/by-external-id/all-reads",
    json={"config": config, "unmanaged": True},
)
number_outside = client._determined._session.get("/api/v1/experiments?sortBy=SORT_BY_ID&orderBy=ORDER_BY_DESC&limit=1")
number_outside = number_outside.json()["experiments"][0]["id"]
client._determined._session.put(
    "/api/v1/trials",
    json={
        "createTrialRequest": {"experimentId": number_outside, "hparams": {}, "unmanaged": True},
        "externalTrialId": "one",
    },
)
agent = client._determined._session.get("/api/v1/agents").json()["agents"][0]["id"]
project = client._determined._session.get("/api/v1/projects/1").json()["project"]
result = {
    "agentId": agent,
    "allocationId": f"{task}.1",
    "batchesProcessed": 4,
    "checkpointUuid": checkpoint,
    "commandId": command,
    "endDate": "2026-01-02",
    "experimentId": number,
    "externalExperimentId": "all-reads",
    "externalTrialId": "one",
    "get_GetExperimentCheckpoints.id": number,
    "get_GetGenericTaskConfig.taskId": generic["taskId"],
    "get_GetTrialCheckpoints.id": trial.id,
    "get_GetTrialRemainingLogRetentionDays.id": trial.id,
    "get_GetProjectByKey.key": project["key"],
    **{f"get_{name}.group": "validation" for name in ("MetricBatches", "TrialsSample", "TrialsSnapshot")},
    **{f"get_Get{name}Metrics.trialIds": [trial.id] for name in ("Training", "Validation")},
    "group": "validation",
    "groupId": group,
    "id": 1,
    "ids": [number],
    "key": "any",
    "labels_trialId": trial.id,
    "metricName": "score",
    "modelName": "all-reads",
    "modelVersionNum": 1,
    "notebookId": "x",
    "period": None,
    "projectId": 1,
    "resourcePoolName": "default",
    "resourcesId": "x",
    "runId": trial.id,
    "shellId": "x",
    "slotId": "0",
    "startDate": "2026-01-01",
    "taskId": task,
    "templateName": "all-reads",
    "tensorboardId": "x",
    "timestampAfter": "2026-01-01T00:00:00Z",
    "timestampBefore": "2026-01-02T00:00:00Z",
    "trialId": trial.id,
    "trialIds": [trial.id],
    "userId": 1,
    "username": "determined",
    "workloadType": "EXPERIMENT",
    "workspaceId": 1,
}
"""
_UNMADE = """\
client.login()
session = client._determined._session
session.delete("/api/v1/models/all-reads")
session.delete("/api/v1/templates/all-reads")
session.delete(f"/api/v1/groups/{values['groupId']}")
"""
