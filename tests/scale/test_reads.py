"""Every reading request of Determined's client, by 25 users at once over a large database."""

from __future__ import annotations

import json

import pytest

from tests.scale.place import SCALE, Large, asked, tell, together

_USERS = 25
_BUDGET_MS = 200.0

#: Operation id, path, query. ``{...}`` are the ids of things that are there. What streams, and what asks one thing of
#: many kinds that this database does not hold (commands, templates, registered models), is in other tests.
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
    ("GetTasks", "/api/v1/tasks", {}),
    ("GetTask", "/api/v1/tasks/{task}", {}),
    ("GetTemplates", "/api/v1/templates", {}),
    ("GetExperiments", "/api/v1/experiments", {"limit": "50", "archived": "false"}),
    ("GetExperiment", "/api/v1/experiments/{experiment}", {}),
    ("GetExperimentTrials", "/api/v1/experiments/{experiment}/trials", {"limit": "200"}),
    ("GetExperimentCheckpoints", "/api/v1/experiments/{experiment}/checkpoints", {}),
    ("GetTrial", "/api/v1/trials/{trial}", {}),
    ("GetTrialCheckpoints", "/api/v1/trials/{trial}/checkpoints", {}),
    ("GetTrialWorkloads", "/api/v1/trials/{trial}/workloads", {"limit": "500"}),
    ("TrialLogs", "/api/v1/trials/{trial}/logs", {"limit": "100"}),
    ("GetMetrics", "/api/v1/trials/metrics/trial_metrics", {"trialIds": "{trial}", "group": "validation"}),
    ("GetUsers", "/api/v1/users", {}),
    ("GetUser", "/api/v1/users/1", {}),
    ("GetUserByUsername", "/api/v1/users/user003/by-username", {}),
    ("GetModels", "/api/v1/models", {}),
    ("GetModelLabels", "/api/v1/model/labels", {}),
    ("GetWorkspaces", "/api/v1/workspaces", {}),
    ("GetWorkspace", "/api/v1/workspaces/1", {}),
    ("GetWorkspaceProjects", "/api/v1/workspaces/1/projects", {}),
    ("ListRPsBoundToWorkspace", "/api/v1/workspaces/1/available-resource-pools", {}),
    ("GetGroupsAndUsersAssignedToWorkspace", "/api/v1/roles/workspace/1", {}),
    ("GetProject", "/api/v1/projects/1", {}),
)


@pytest.mark.timeout(1800)
async def test_every_read_by_many_users_at_once(large: Large) -> None:
    """Each is answered, for everyone."""
    times = 4 if SCALE >= 1 else 1
    async with large.session() as http:
        query = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_ASC", "limit": "1"}
        page = json.loads(await asked(http, "/api/v1/experiments", **query))
        experiment = page["experiments"][0]["id"]
        trial = json.loads(await asked(http, f"/api/v1/experiments/{experiment}/trials"))["trials"][0]
        ids = {"experiment": str(experiment), "trial": str(trial["id"]), "task": str(trial["taskId"])}
        for operation, path, asking in READS:
            given = {name: value.format(**ids) for name, value in asking.items()}
            taken = await together(
                lambda path=path, given=given: asked(http, path.format(**ids), **given), _USERS, times
            )
            tell(f"{operation} by {_USERS} users", taken, _BUDGET_MS)
