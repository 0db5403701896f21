"""Every reading request of Determined's client, by 25 users at once over a large database."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession

from tests.scale.place import SCALE, Large, Watched, asked, scaled, tell, together

_USERS = 25
_BUDGET_MS = 200.0
#: Of one callback of the event loop.
_HOLD_MS = 10.0

#: Operation id, path, query; ``{...}`` are the ids of things that are there. All that Determined's command line and SDK
#: read, but what a release without notebooks, shells, TensorBoards and Kubernetes refuses.
READS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("GetMe", "/api/v1/me", {}),
    ("GetMaster", "/api/v1/master", {}),
    ("GetMasterConfig", "/api/v1/master/config", {}),
    ("GetClusterMessage", "/api/v1/master/cluster_message", {}),
    ("GetAgents", "/api/v1/agents", {}),
    ("GetResourcePools", "/api/v1/resource-pools", {}),
    ("ListWorkspacesBoundToRP", "/api/v1/resource-pools/default/workspace-bindings", {}),
    ("GetJobsV2", "/api/v1/job-queues-v2", {"resourcePool": "default", "limit": "50"}),
    ("GetCommands", "/api/v1/commands", {"limit": "50"}),
    ("GetCommand", "/api/v1/commands/{command}", {}),
    ("GetNotebooks", "/api/v1/notebooks", {}),
    ("GetShells", "/api/v1/shells", {}),
    ("GetTensorboards", "/api/v1/tensorboards", {}),
    ("GetTasks", "/api/v1/tasks", {}),
    ("GetLaunchedTasks", "/api/v1/launched-tasks", {"limit": "50", "old": "true"}),
    ("GetTask", "/api/v1/tasks/{task}", {}),
    ("GetGenericTaskConfig", "/api/v1/tasks/{generic}/config", {}),
    ("TaskLogs", "/api/v1/tasks/{task}/logs", {"limit": "100"}),
    ("MasterLogs", "/api/v1/master/logs", {"limit": "100"}),
    ("GetTemplates", "/api/v1/templates", {}),
    ("GetTemplate", "/api/v1/templates/{template}", {}),
    ("GetExperiments", "/api/v1/experiments", {"limit": "50", "archived": "false"}),
    ("GetExperiments of the command line", "/api/v1/experiments", {"limit": "200", "archived": "false"}),
    ("GetExperiment", "/api/v1/experiments/{experiment}", {}),
    ("GetModelDef", "/api/v1/experiments/{made}/model_def", {}),
    ("GetExperimentTrials", "/api/v1/experiments/{experiment}/trials", {"limit": "200"}),
    ("GetExperimentCheckpoints", "/api/v1/experiments/{experiment}/checkpoints", {}),
    ("GetTrial", "/api/v1/trials/{trial}", {}),
    ("GetTrialCheckpoints", "/api/v1/trials/{trial}/checkpoints", {}),
    ("GetTrialWorkloads", "/api/v1/trials/{trial}/workloads", {"limit": "500"}),
    ("TrialLogs", "/api/v1/trials/{trial}/logs", {"limit": "100"}),
    ("GetMetrics", "/api/v1/trials/metrics/trial_metrics", {"trialIds": "{trial}", "group": "validation"}),
    ("GetTrainingMetrics", "/api/v1/trials/metrics/training_metrics", {"trialIds": "{trial}"}),
    ("GetValidationMetrics", "/api/v1/trials/metrics/validation_metrics", {"trialIds": "{trial}"}),
    ("GetCheckpoint", "/api/v1/checkpoints/{checkpoint}", {}),
    ("GetTrialMetricsByCheckpoint", "/api/v1/checkpoints/{checkpoint}/metrics", {}),
    (
        "GetBestSearcherValidationMetric",
        "/api/v1/experiments/{experiment}/searcher/best_searcher_validation_metric",
        {},
    ),
    ("GetUsers", "/api/v1/users", {}),
    ("GetUser", "/api/v1/users/1", {}),
    ("GetUserByUsername", "/api/v1/users/user003/by-username", {}),
    ("GetModels", "/api/v1/models", {}),
    ("GetModel", "/api/v1/models/{model}", {}),
    ("GetModelVersions", "/api/v1/models/{model}/versions", {}),
    ("GetModelVersion", "/api/v1/models/{model}/versions/1", {}),
    ("GetTrialMetricsByModelVersion", "/api/v1/models/{model}/versions/1/metrics", {}),
    ("GetModelLabels", "/api/v1/model/labels", {}),
    ("GetWorkspaces", "/api/v1/workspaces", {}),
    ("GetWorkspace", "/api/v1/workspaces/1", {}),
    ("GetWorkspaceProjects", "/api/v1/workspaces/1/projects", {}),
    ("ListRPsBoundToWorkspace", "/api/v1/workspaces/1/available-resource-pools", {}),
    ("GetGroupsAndUsersAssignedToWorkspace", "/api/v1/roles/workspace/1", {}),
    ("GetProject", "/api/v1/projects/1", {}),
)

#: What everyone asks another page of: nothing of an answer serves two.
PAGES = tuple(one for one in READS if one[0].startswith("GetExperiments"))


@pytest.mark.timeout(1800)
async def test_every_read_by_many_users_at_once(large: Large) -> None:
    """Each is answered, for everyone."""
    times = 4 if SCALE >= 1 else 1
    async with large.session() as http:
        there = await _things(http)
        ids = {**there, **await _made(http, there["checkpoint"])}
        for operation, path, asking in READS:
            given = {name: value.format(**ids) for name, value in asking.items()}
            taken = await together(
                lambda path=path, given=given: asked(http, path.format(**ids), **given), _USERS, times
            )
            tell(f"{operation} by {_USERS} users", taken, _BUDGET_MS)
        for operation, path, asking in PAGES:
            taken = await together(_next_page(http, path, asking), _USERS, times)
            tell(f"{operation}, another page for each, by {_USERS} users", taken, _BUDGET_MS)


@pytest.mark.timeout(1800)
async def test_how_long_a_read_holds_the_event_loop(watched: Watched) -> None:
    """Of each the longest callback, by the processor time of the loop's thread: nobody else is served meanwhile."""
    async with watched.large.session() as http:
        there = await _things(http)
        ids = {**there, **await _made(http, there["checkpoint"], "again")}
        longest = []
        for operation, path, asking in READS:
            given = {name: value.format(**ids) for name, value in asking.items()}
            await asked(http, path.format(**ids), **given)
            watched.longest_ms()
            await asked(http, path.format(**ids), **given)
            longest.append((watched.longest_ms()[0], operation))
    for held_ms, operation in sorted(longest)[-5:]:
        tell(f"the event loop, held by {operation}", [held_ms], _HOLD_MS)


def _next_page(http: ClientSession, path: str, asking: dict[str, str]) -> Callable[[], Awaitable[bytes]]:
    """Asks for the next page that nobody has asked for."""
    pages = itertools.count()

    def ask() -> Awaitable[bytes]:
        return asked(http, path, **asking, offset=str(next(pages) * int(asking["limit"]) % scaled(80_000, 400)))

    return ask


async def _things(http: ClientSession) -> dict[str, str]:
    """Of what was there before: an experiment with a best trial, and a checkpoint of it."""
    lists = {"sortBy": "SORT_BY_CHECKPOINT_COUNT", "orderBy": "ORDER_BY_DESC", "limit": "50"}
    page = json.loads(await asked(http, "/api/v1/experiments", **lists))["experiments"]
    experiment = next(one for one in page if one["bestTrialSearcherMetric"] is not None)
    number = experiment["id"]
    checkpoint = json.loads(await asked(http, f"/api/v1/experiments/{number}/checkpoints"))["checkpoints"][0]
    trial = json.loads(await asked(http, f"/api/v1/trials/{checkpoint['training']['trialId']}"))["trial"]
    return {
        "experiment": str(number),
        "checkpoint": str(checkpoint["uuid"]),
        "trial": str(trial["id"]),
        "task": str(trial["taskId"]),
    }


async def _made(http: ClientSession, checkpoint: str, prefix: str = "") -> dict[str, str]:
    """Templates, models, commands, a generic task and an experiment with code: what the last ones are known by."""
    for n in range(scaled(50, 2)):
        await _post(http, f"/api/v1/templates/{prefix}template-{n}", {"config": {"description": f"number {n}"}})
        await _post(http, "/api/v1/models", {"name": f"{prefix}model-{n}", "labels": [f"label-{n % 7}"]})
        for _ in range(3):
            await _post(http, f"/api/v1/models/{prefix}model-{n}/versions", {"checkpointUuid": checkpoint})
        idle = {"config": {"entrypoint": ["true"], "resources": {"slots": 1}}}
        command = (await _post(http, "/api/v1/commands", idle))["command"]
    config = "entrypoint: [python3, run.py]\nresources: {slots: 1}\n"
    generic = await _post(http, "/api/v1/generic-tasks", {"config": config, "contextDirectory": [_FILE]})
    config = "name: with code\nentrypoint: python3 run.py\nsearcher: {name: single, metric: loss}\n"
    config += "checkpoint_storage: {type: shared_fs, host_path: /tmp}\n"
    experiment = await _post(http, "/api/v1/experiments", {"config": config, "modelDefinition": [_FILE]})
    named = {"template": f"{prefix}template-0", "model": f"{prefix}model-0"}
    return {
        **named,
        "command": command["id"],
        "generic": generic["taskId"],
        "made": str(experiment["experiment"]["id"]),
    }


_FILE = {"path": "run.py", "type": 48, "content": base64.b64encode(b"print(1)\n" * 1000).decode(), "mode": 0o644}


async def _post(http: ClientSession, path: str, body: object) -> dict[str, Any]:
    async with http.post(path, json=body) as reply:
        text = await reply.text()
        assert reply.status == 200, f"{path}: {reply.status} {text[:300]}"
        return json.loads(text)
