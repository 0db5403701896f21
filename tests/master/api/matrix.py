"""Whom each operation lets in: the table that `test_authorization` tries out with callers of every kind.

A route without a row here fails. A row says *who*, and the request that is made: on what (``at``: name of a path's
parameter -> what of `tests.kits.world`, where it is not the usual), with which query and body (``$name``: of the
world), and which status an admitted caller gets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Who(Enum):
    """Who is let in; all others are refused with 401 (nobody), 403 or 404."""

    #: Whoever asks, with or without a credential.
    PUBLIC = "public"
    #: Whoever is known, and every task.
    ALL = "all"
    #: The owner and their tasks, and administrators; not an administrator's task.
    OWNERS = "owners"
    #: The owner and administrators; no task.
    PEOPLE = "people"
    #: As OWNERS, of many things at once: the answer tells of each what became of it, and is 200 for anyone.
    EACH = "each"
    #: Administrators; not their tasks.
    ADMINS = "admins"
    #: The task whose attempt, trial or checkpoint it is.
    TASK = "task"
    #: The agent.
    AGENT = "agent"


@dataclass(frozen=True)
class Row:
    """One operation."""

    who: Who
    body: object = None
    query: str = ""
    at: dict[str, str] = field(default_factory=dict)
    status: int = 200
    #: Who is let in beside those that ``who`` names.
    also: tuple[str, ...] = ()
    #: What those who are known and not let in get, where it is not 403 or 404.
    refusal: int | None = None


#: Parameters of paths -> what of the world they name, unless a row says otherwise.
USUAL = {
    "experiment_id": "experiment",
    "trial_id": "trial",
    "run_id": "trial",
    "task_id": "task",
    "allocation_id": "allocation",
    "resources_id": "container",
    "checkpoint_uuid": "checkpoint",
    "user_id": "user",
    "username": "username",
    "group_id": "group",
    "token_id": "token",
    "join_token_id": "join_token",
    "webhook_id": "webhook",
    "workspace_id": "workspace",
    "project_id": "project",
    "model_name": "model",
    "version": "version",
    "command_id": "command",
    "template_name": "template",
    "agent_id": "agent",
    "machine_id": "machine",
    "slot_id": "slot",
    "resource_pool_name": "pool",
    "notebook_id": "task",
    "shell_id": "task",
    "tensorboard_id": "task",
}
_ALL, _OWNERS, _EACH, _ADMINS, _TASK = Who.ALL, Who.OWNERS, Who.EACH, Who.ADMINS, Who.TASK
_METRICS = {
    "trialId": "$trial",
    "trialRunId": 1,
    "stepsCompleted": 1,
    "metrics": {"avgMetrics": {"loss": 1.0}, "batchMetrics": []},
}
_SAMPLES = {
    "labels": {
        "trialId": "$trial",
        "name": "cpu_util_simple",
        "agentId": "a1",
        "metricType": "PROFILER_METRIC_TYPE_SYSTEM",
    },
    "values": [1.0],
    "batches": [0],
    "timestamps": ["2026-01-02T03:04:05Z"],
}
_SMALL = "name: far\nsearcher: {name: single, metric: score}\n"
_STEERED = {"resourcePool": "$pool", "machineIds": ["$machine"], "machines": [], "parts": []}
_BOUND = {"workspaceIds": ["$workspace"]}
_DAY = "timestamp_after=2026-01-01T00:00:00Z&timestamp_before=2026-01-02T00:00:00Z"
_RUNS = {"runIds": ["$trial"], "projectId": 1}
_SOME = {"experimentIds": ["$experiment"], "projectId": 1}
_REFUSED = Row(_ALL, {}, status=501)

PEOPLE: dict[str, Row] = {
    "Login": Row(Who.PUBLIC, {"username": "admin", "password": "$password"}),
    "Logout": Row(Who.PEOPLE),
    # For oneself: whoever asks.
    "PostPageTicket": Row(Who.PEOPLE, also=("other",)),
    "UsePageTicket": Row(Who.PUBLIC, {"ticket": "wrong"}, status=403),
    "GetMe": Row(_ALL),
    "CurrentUser": Row(_ALL),
    "GetUsers": Row(_ALL),
    "GetUser": Row(_ALL),
    "GetUserByUsername": Row(_ALL),
    "PostUser": Row(_ADMINS, {"user": {"username": "new"}, "password": "Passw0rd"}),
    "PatchUser": Row(Who.PEOPLE, {"displayName": "D"}),
    "SetUserPassword": Row(Who.PEOPLE, "Passw0rd"),
    "PatchUsers": Row(_ADMINS, {"userIds": ["$user"], "activate": True}),
    "GetUserSetting": Row(_ALL),
    "PostUserSetting": Row(_ALL, {"settings": [{"key": "k", "value": "v"}]}),
    "ResetUserSetting": Row(_ALL),
    "PostUserActivity": Row(
        _ALL, {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": "$project"}
    ),
    "LegacyLogin": Row(Who.PUBLIC, {"username": "admin", "password": "$password"}),
    "LegacyLogout": Row(Who.PEOPLE),
    "LegacyGetUsers": Row(_ALL),
    "LegacyGetMe": Row(_ALL),
    "LegacyPostUser": Row(_ADMINS, {"username": "new", "password": "Passw0rd"}),
    "LegacyPatchUser": Row(Who.PEOPLE, {"displayName": "D"}),
    "GetGroups": Row(_ALL, {"limit": 1}),
    "GetGroup": Row(_ALL),
    "CreateGroup": Row(_ADMINS, {"name": "new"}),
    "UpdateGroup": Row(_ADMINS, {"name": "new"}),
    "DeleteGroup": Row(_ADMINS),
    "AssignMultipleGroups": Row(_ADMINS, {"userIds": ["$user"], "addGroups": ["$group"]}),
    "ListRoles": _REFUSED,
    "GetRolesByID": _REFUSED,
    "SearchRolesAssignableToScope": _REFUSED,
    "GetRolesAssignedToGroup": Row(_ALL, status=501),
    "GetRolesAssignedToUser": Row(_ALL, status=501),
    "AssignRoles": _REFUSED,
    "RemoveAssignments": _REFUSED,
    "GetPermissionsSummary": Row(_ALL, status=501),
    "PostAccessToken": Row(Who.PEOPLE, {"userId": "$user"}),
    "GetAccessTokens": Row(_ALL),
    "PatchAccessToken": Row(Who.PEOPLE, {"setRevoked": True}),
    "GetWebhooks": Row(_ALL),
    "GetWebhook": Row(_ALL),
    "PostWebhook": Row(
        _OWNERS,
        {
            "name": "new",
            "url": "http://hooks.example/",
            "webhookType": "WEBHOOK_TYPE_SLACK",
            "mode": "WEBHOOK_MODE_SPECIFIC",
            "workspaceId": "$workspace",
            "triggers": [{"triggerType": "TRIGGER_TYPE_CUSTOM"}],
        },
    ),
    "PatchWebhook": Row(_OWNERS, {"url": "http://hooks.example/"}),
    "DeleteWebhook": Row(_OWNERS),
    "TestWebhook": Row(_OWNERS),
    "GetWebhookDeliveries": Row(_OWNERS),
    "GetWebhookSigningKey": Row(_ADMINS),
    "PostWebhookEventData": Row(_OWNERS, {"experimentId": "$experiment", "data": {"title": "t"}}),
}

EXPERIMENTS: dict[str, Row] = {
    "CreateExperiment": Row(_ALL, {"config": _SMALL + "entrypoint: 'true'\n"}),
    "PreviewHPSearch": Row(_ALL, {"config": {"searcher": {"name": "single", "metric": "m"}}}),
    "GetConfigSchema": Row(_ALL),
    "PutExperiment": Row(_OWNERS, {"config": _SMALL, "unmanaged": True}, at={"external_experiment_id": "far"}),
    "GetModelDef": Row(_ALL),
    "GetModelDefTree": Row(_ALL),
    "GetModelDefFile": Row(_ALL, {"path": "train.py"}),
    "DownloadModelDef": Row(_ALL),
    "DownloadModelDefFile": Row(_ALL, query="path=train.py"),
    "GetExperiments": Row(_ALL),
    "SearchExperiments": Row(_ALL, {}),
    "CheckExperimentsQuery": Row(_ALL, query="query=state:error"),
    "GetExperiment": Row(_ALL),
    "GetExperimentLabels": Row(_ALL),
    "GetExperimentTrials": Row(_ALL),
    "GetBestSearcherValidationMetric": Row(_ALL, status=404),
    "GetSearch": Row(_ALL),
    "GetSearchTrials": Row(_ALL),
    "GetHyperparameterImportance": Row(_ALL),
    # Streams that end with their experiment.
    "MetricBatches": Row(_ALL, query="group=training&metricName=loss", at={"experiment_id": "ended"}),
    "ExpMetricNames": Row(_ALL, query="ids=$ended"),
    "GetExperimentValidationHistory": Row(_ALL),
    "TrialsSnapshot": Row(
        _ALL, query="group=training&metricName=loss&batchesProcessed=1", at={"experiment_id": "ended"}
    ),
    "TrialsSample": Row(_ALL, query="group=training&metricName=loss", at={"experiment_id": "ended"}),
    "PatchExperiment": Row(_OWNERS, {"name": "new"}),
    "ActivateExperiment": Row(_OWNERS, at={"experiment_id": "paused"}),
    "PauseExperiment": Row(_OWNERS),
    "CancelExperiment": Row(_OWNERS),
    "KillExperiment": Row(_OWNERS),
    "ArchiveExperiment": Row(_OWNERS, at={"experiment_id": "ended"}),
    "UnarchiveExperiment": Row(_OWNERS, at={"experiment_id": "archived"}),
    "DeleteExperiment": Row(_OWNERS, at={"experiment_id": "ended"}),
    "ContinueExperiment": Row(_OWNERS, {"id": "$ended"}),
    "MoveExperiment": Row(_OWNERS, {"destinationProjectId": "$project"}),
    "PutExperimentRetainLogs": Row(_OWNERS, {"numDays": 3}),
    "PutExperimentLabel": Row(_OWNERS, at={"label": "new"}),
    "DeleteExperimentLabel": Row(_OWNERS, at={"label": "new"}),
    "ActivateExperiments": Row(_EACH, {"experimentIds": ["$paused"], "projectId": "$project"}),
    "PauseExperiments": Row(_EACH, _SOME, at={"project_id": "first"}),
    "CancelExperiments": Row(_EACH, _SOME, at={"project_id": "first"}),
    "KillExperiments": Row(_EACH, _SOME, at={"project_id": "first"}),
    "ArchiveExperiments": Row(_EACH, {"experimentIds": ["$ended"], "projectId": "$project"}),
    "UnarchiveExperiments": Row(_EACH, {"experimentIds": ["$archived"], "projectId": "$project"}),
    "DeleteExperiments": Row(_EACH, {"experimentIds": ["$ended"], "projectId": "$project"}),
    "MoveExperiments": Row(_EACH, {**_SOME, "destinationProjectId": "$project"}, at={"project_id": "first"}),
    "PutExperimentsRetainLogs": Row(_EACH, {**_SOME, "numDays": 3}, at={"project_id": "first"}),
    "DeleteTensorboardFiles": Row(_OWNERS, at={"experiment_id": "ended"}),
    "PreviewCheckpointGC": Row(_ALL),
    "GetExperimentGarbage": Row(_ALL),
    "GetExperimentCheckpoints": Row(_ALL),
    "GetExperimentMetricNames": Row(_ALL),
}

TRIALS: dict[str, Row] = {
    "GetTrial": Row(_ALL),
    "KillTrial": Row(_OWNERS),
    "GetSeriesOfTrials": Row(_ALL, query="trialIds=1&metric=loss"),
    "CompareTrials": Row(_ALL, query="trialIds=1&metricNames=loss&group=training"),
    "CreateTrial": Row(_OWNERS, {"experimentId": "$unmanaged", "hparams": {}, "unmanaged": True}),
    "PutTrial": Row(
        _OWNERS,
        {
            "createTrialRequest": {"experimentId": "$unmanaged", "hparams": {}, "unmanaged": True},
            "externalTrialId": "b",
        },
    ),
    "GetTrialByExternalID": Row(_ALL, at={"external_experiment_id": "far", "external_trial_id": "near"}),
    "StartTrial": Row(_OWNERS, {"resume": True}, at={"trial_id": "unmanaged_trial"}),
    "PatchTrial": Row(_OWNERS, {"state": "STATE_COMPLETED"}, at={"trial_id": "unmanaged_trial"}),
    "GetTrialCheckpoints": Row(_ALL),
    "GetTrialWorkloads": Row(_ALL),
    "GetTrialProfilerAvailableSeries": Row(_ALL),
    "GetTrialProfilerMetrics": Row(_ALL, query="labels.name=x"),
    "GetTrialSeries": Row(_ALL, query="metric=loss"),
    "GetTrialMetricSummaries": Row(_ALL),
    "GetMetrics": Row(_ALL, query="group=training&trialIds=1"),
    "GetTrainingMetrics": Row(_ALL, query="trialIds=1"),
    "GetValidationMetrics": Row(_ALL, query="trialIds=1"),
    "ReportTrialMetrics": Row(_OWNERS, {"group": "training", "metrics": _METRICS}),
    "ReportTrialTrainingMetrics": Row(_OWNERS, _METRICS),
    "ReportTrialValidationMetrics": Row(_OWNERS, _METRICS),
    "PostTrialProfilerMetricsBatch": Row(_OWNERS, {"batches": [_SAMPLES]}),
    "RunPrepareForReporting": Row(_TASK, {"runId": "$trial"}),
    "PostTrialRunnerMetadata": Row(_TASK, {"state": "training"}),
    "ReportTrialProgress": Row(_TASK, {"progress": 0.5}),
    "ReportTrialSearcherEarlyExit": Row(_TASK, {"reason": "EXITED_REASON_INVALID_HP"}),
    "ReportTrialSourceInfo": Row(
        _TASK,
        {
            "trialSourceInfo": {
                "trialId": "$trial",
                "checkpointUuid": "$checkpoint",
                "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
            }
        },
    ),
    "PutTrialRetainLogs": Row(_OWNERS, {"numDays": 3}),
    "GetTrialRemainingLogRetentionDays": Row(_ALL, at={"id": "trial"}),
    "SearchRuns": Row(_ALL, {"projectId": "$project"}),
    "GetRunMetadata": Row(_ALL),
    "PostRunMetadata": Row(_OWNERS, {"metadata": {"k": 1}}),
    "GetMetadataValues": Row(_ALL, at={"key": "k"}),
    "GetProjectColumns": Row(_ALL),
    "GetProjectNumericMetricsRange": Row(_ALL),
    "KillRuns": Row(_EACH, _RUNS),
    "PauseRuns": Row(_EACH, {"runIds": ["$paused_trial"], "projectId": "$project"}),
    "ResumeRuns": Row(_EACH, {"runIds": ["$paused_trial"], "projectId": "$project"}),
    "ArchiveRuns": Row(_EACH, {"runIds": ["$ended_trial"], "projectId": "$project"}),
    "UnarchiveRuns": Row(_EACH, {"runIds": ["$shelved_trial"], "projectId": "$project"}),
    "DeleteRuns": Row(_EACH, {"runIds": ["$ended_trial"], "projectId": "$project"}),
    "MoveRuns": Row(
        _EACH, {"runIds": ["$ended_trial"], "sourceProjectId": "$project", "destinationProjectId": "$empty_project"}
    ),
}

ARTIFACTS: dict[str, Row] = {
    "ReportCheckpoint": Row(
        _TASK,
        {"uuid": "$checkpoint", "state": "STATE_COMPLETED", "metadata": {"steps_completed": 1}, "resources": {}},
        refusal=400,
    ),
    # A task that deletes files speaks of what it was given, and every task may.
    "ReportRemovals": Row(_TASK, {"removals": []}, also=("foreign_task", "admin_task")),
    "PatchCheckpoints": Row(
        _OWNERS, {"checkpoints": [{"uuid": "$checkpoint", "resources": {"resources": {"w.bin": 4}}}]}
    ),
    "GetCheckpoint": Row(_ALL),
    "PostCheckpointMetadata": Row(_OWNERS, {"checkpoint": {"metadata": {"k": 1}}}),
    "GetTrialMetricsByCheckpoint": Row(_ALL),
    "DeleteCheckpoints": Row(_OWNERS, {"checkpointUuids": ["$checkpoint"]}),
    "CheckpointsRemoveFiles": Row(_OWNERS, {"checkpointUuids": ["$checkpoint"], "checkpointGlobs": ["*.bin"]}),
    "DownloadCheckpoint": Row(_ALL),
    "GetWorkspaces": Row(_ALL),
    "GetWorkspace": Row(_ALL),
    "GetWorkspaceProjects": Row(_ALL),
    "PostWorkspace": Row(_ALL, {"name": "new"}),
    "PatchWorkspace": Row(_OWNERS, {"name": "new"}),
    "DeleteWorkspace": Row(_OWNERS, at={"workspace_id": "empty_workspace"}),
    "ArchiveWorkspace": Row(_OWNERS),
    "UnarchiveWorkspace": Row(_OWNERS, at={"workspace_id": "archived_workspace"}),
    "PinWorkspace": Row(_ALL),
    "UnpinWorkspace": Row(_ALL),
    "GetGroupsAndUsersAssignedToWorkspace": Row(_ALL),
    "GetProjectsByUserActivity": Row(_ALL),
    "GetProjectByKey": Row(_ALL, at={"key": "project_key"}),
    "GetProject": Row(_ALL),
    "PostProject": Row(_ALL, {"name": "new"}),
    "PatchProject": Row(_OWNERS, {"name": "new"}),
    "DeleteProject": Row(_OWNERS, at={"project_id": "empty_project"}),
    "ArchiveProject": Row(_OWNERS),
    "UnarchiveProject": Row(_OWNERS, at={"project_id": "archived_project"}),
    "MoveProject": Row(_OWNERS, {"destinationWorkspaceId": "$empty_workspace"}),
    "AddProjectNote": Row(_OWNERS, {"name": "n", "contents": "c"}),
    "PutProjectNotes": Row(_OWNERS, {"notes": []}),
    "GetModels": Row(_ALL),
    "GetModelLabels": Row(_ALL),
    "GetModel": Row(_ALL),
    "PostModel": Row(_ALL, {"name": "new"}),
    "PatchModel": Row(_OWNERS, {"description": "new"}),
    "MoveModel": Row(_OWNERS, {"destinationWorkspaceId": "$empty_workspace"}),
    "ArchiveModel": Row(_OWNERS),
    "UnarchiveModel": Row(_OWNERS, at={"model_name": "archived_model"}),
    "DeleteModel": Row(_OWNERS),
    "GetModelVersions": Row(_ALL),
    "GetModelVersion": Row(_ALL),
    # Anyone may register what they trained; the model stays its owner's.
    "PostModelVersion": Row(_ALL, {"checkpointUuid": "$checkpoint"}),
    "PatchModelVersion": Row(_OWNERS, {"comment": "new"}),
    "DeleteModelVersion": Row(_OWNERS),
    "GetTrialMetricsByModelVersion": Row(_ALL),
    **dict.fromkeys(("GetTemplates", "GetTemplate"), Row(_ALL)),
    "PostTemplate": Row(_ALL, {"config": {}}, at={"template_name": "new"}),
    "PatchTemplateConfig": Row(_OWNERS, {"description": "new"}),
    "DeleteTemplate": Row(_OWNERS),
    "PutTemplate": Row(_OWNERS, {"config": {"description": "new"}}),
    "PatchTemplateName": Row(_OWNERS, {"oldName": "$template", "newName": "renamed"}),
}

_NOT_OFFERED = (
    *("IdleNotebook", "LaunchNotebook", "GetNotebook", "KillNotebook", "SetNotebookPriority"),
    *("LaunchShell", "GetShell", "KillShell", "SetShellPriority"),
    *("GetGlobalConfigPolicies", "PutGlobalConfigPolicies", "DeleteGlobalConfigPolicies"),
    *("GetWorkspaceConfigPolicies", "PutWorkspaceConfigPolicies", "DeleteWorkspaceConfigPolicies"),
    *("LaunchTensorboard", "GetTensorboard", "KillTensorboard", "SetTensorboardPriority"),
)
_LINE = {"task_id": "$task", "timestamp": "2026-01-02T03:04:05Z", "log": "x\n", "level": "LEVEL_INFO"}
TASKS: dict[str, Row] = {
    **{name: Row(_ALL, {}, at={}, status=501) for name in _NOT_OFFERED},
    "GetNotebooks": Row(_ALL),
    "GetShells": Row(_ALL),
    "GetTensorboards": Row(_ALL),
    **{name: Row(_ALL) for name in ("GetTasks", "ListTasks", "GetLaunchedTasks")},
    "GetActiveTasksCount": Row(_ALL),
    "GetTask": Row(_ALL),
    "GetTaskAcceleratorData": Row(_ALL),
    "GetTaskContextDirectory": Row(_ALL),
    "GetContext": Row(Who.AGENT, at={"hash": "context"}),
    "CreateGenericTask": Row(_ALL, {"config": "entrypoint: ['true']\n", "contextDirectory": []}),
    "GetGenericTaskConfig": Row(_ALL, at={"task_id": "generic"}),
    "KillGenericTask": Row(_OWNERS, {}, at={"task_id": "generic"}),
    "PauseGenericTask": Row(_OWNERS, at={"task_id": "generic"}),
    "UnpauseGenericTask": Row(_OWNERS, at={"task_id": "paused_generic"}),
    "LaunchCommand": Row(_ALL, {"config": {"entrypoint": ["true"], "resources": {"slots": 0}}}),
    "GetCommands": Row(_ALL),
    "GetCommand": Row(_ALL),
    "KillCommand": Row(_OWNERS),
    "SetCommandPriority": Row(_OWNERS, {"priority": 50}),
    "PostTaskLogs": Row(_TASK, {"logs": [_LINE]}, also=("admin",)),
    "PostUnmanagedLogs": Row(Who.PEOPLE, [_LINE | {"task_id": "$unmanaged_task"}]),
    "ShipTrialSpool": Row(
        Who.PEOPLE, query="stream=reports", at={"trial_id": "unmanaged_trial", "run_id": "unmanaged_run"}
    ),
    "ShipTrialOutput": Row(
        Who.PEOPLE,
        query="stream=stdout&offset=0",
        at={"trial_id": "unmanaged_trial", "run_id": "unmanaged_run"},
    ),
    "TaskLogs": Row(_ALL),
    "TrialLogs": Row(_ALL),
    "TaskLogsFields": Row(_ALL),
    "TrialLogsFields": Row(_ALL),
    "GetTaskLogLines": Row(_ALL),
    "GetTrialLogLines": Row(_ALL),
    "GetTaskLogHits": Row(_ALL, query="searchText=a"),
    "GetTrialLogHits": Row(_ALL, query="searchText=a"),
    "GetTaskLogHistogram": Row(_ALL),
    "GetTrialLogHistogram": Row(_ALL),
    "GetTrialHealth": Row(_ALL),
    "GetStalledTrials": Row(_ALL),
    "GetTrialProfilerSeries": Row(_ALL),
    "GetTrialEvents": Row(_ALL),
    "GetTrialFailure": Row(_ALL),
    "ShipSpool": Row(_TASK, query="container_id=$container&stream=rank-0"),
    "AllocationPreemptionSignal": Row(_TASK, query="timeout_seconds=0"),
    "AckAllocationPreemptionSignal": Row(_TASK),
    "AllocationPendingPreemptionSignal": Row(_TASK),
    "AllocationRendezvousInfo": Row(_TASK),
    "AllocationResumePoint": Row(_TASK, {}),
    "AllocationAllGather": Row(_TASK, {"requestUuid": "$new_uuid", "numPeers": 1, "data": {}}),
    "NotifyContainerRunning": Row(
        _TASK, {"requestUuid": "$new_uuid", "numPeers": 1, "rank": 0, "nodeName": "n", "data": {}}
    ),
    "GetAllocation": Row(_ALL),
    "AllocationReady": Row(_TASK),
    "AllocationWaiting": Row(_TASK),
    "PostAllocationProxyAddress": Row(_TASK, {"proxyAddress": "10.0.0.1"}),
    "MarkAllocationResourcesDaemon": Row(_TASK),
    "PostAllocationAcceleratorData": Row(
        _TASK, {"acceleratorData": {"containerId": "$container", "acceleratorType": "x", "acceleratorUuids": ["u"]}}
    ),
}

CLUSTER: dict[str, Row] = {
    "Info": Row(Who.PUBLIC),
    "Health": Row(Who.PUBLIC),
    "Metrics": Row(Who.PUBLIC),
    "OpenApi": Row(Who.PUBLIC),
    "GetMaster": Row(Who.PUBLIC),
    "GetTelemetry": Row(Who.PUBLIC),
    "WebRoot": Row(Who.PUBLIC, status=302),
    "WebDirectory": Row(Who.PUBLIC, status=302),
    # What is no file and is not gone to by a browser: the same answer with a page and without one.
    "WebPage": Row(Who.PUBLIC, at={"path": "far"}, status=404),
    "DeterminedRoot": Row(Who.PUBLIC, status=302),
    "DeterminedLink": Row(Who.PUBLIC, at={"path": "far"}, status=302),
    **dict.fromkeys(("GetMasters", "GetMasterConfig"), Row(_ADMINS)),
    "PatchMasterConfig": Row(
        _ADMINS, {"config": {"log": {"level": "LOG_LEVEL_WARNING"}}, "fieldMask": {"paths": ["log.level"]}}
    ),
    "ReloadMasterConfig": Row(_ADMINS),
    "MasterLogs": Row(_ALL),
    "GetClusterMessage": Row(_ADMINS),
    "SetClusterMessage": Row(_ADMINS, {"message": "m"}),
    "DeleteClusterMessage": Row(_ADMINS),
    **dict.fromkeys(("PrometheusMetrics", "PrometheusState", "PrometheusTargets"), Row(_ALL)),
    "CleanupLogs": Row(_ADMINS),
    "JoinAgent": Row(Who.PUBLIC, {"agent_id": "a9", "token": "wrong"}, status=403),
    # No such token.
    "SayMachineStep": Row(Who.PUBLIC, {}, status=400),
    "GetAgentWheel": Row(Who.PUBLIC, status=403),
    "PostAgentBootstrap": Row(_ADMINS, {"masterUrl": "http://master.example"}),
    "AgentSession": Row(Who.AGENT),
    "Stream": Row(_ALL),
    # It does not end by itself: what it is asked here is refused, by those who are let in alone.
    "FollowEvents": Row(_ALL, query="topic=nothing", status=400),
    "ShipOutput": Row(Who.AGENT, query="container_id=$container&stream=stdout&offset=0"),
    "GetOutputOffsets": Row(Who.AGENT, query="container_id=$container"),
    **dict.fromkeys(("GetAgents", "GetAgent", "GetSlots", "GetSlot"), Row(_ALL)),
    **dict.fromkeys(("DisableAgent", "DisableSlot"), Row(_ADMINS, {"drain": True})),
    "RemoveAgent": Row(_ADMINS, at={"agent_id": "idle_agent"}),
    "PostJoinToken": Row(_ADMINS, {"uses": 2}),
    **dict.fromkeys(("EnableAgent", "EnableSlot", "GetJoinTokens", "RevokeJoinToken"), Row(_ADMINS)),
    **dict.fromkeys(("GetMachineAudit", "CheckMachines"), Row(_ADMINS)),
    # Nothing is rented for that pool, that machine has ended, and nothing was left of one.
    **dict.fromkeys(("EndStrays", "DeleteMachineParts", "EndMachines"), Row(_ADMINS, _STEERED, status=400)),
    "LaunchMachines": Row(_ADMINS, _STEERED, status=400),
    "PlanSubmission": Row(_ALL, {"config": _SMALL + "entrypoint: 'true'\n"}, status=400),
    **dict.fromkeys(("GetMachines", "GetMachinePlan", "GetResourcePools", "ListRPsBoundToWorkspace"), Row(_ALL)),
    **dict.fromkeys(("GetMachine", "GetMachineCost", "GetMachineSteps", "ListWorkspacesBoundToRP"), Row(_ALL)),
    "BindRPToWorkspace": Row(_ADMINS, _BOUND, at={"resource_pool_name": "other_pool"}),
    "OverwriteRPWorkspaceBindings": Row(_ADMINS, _BOUND, at={"resource_pool_name": "other_pool"}),
    "UnbindRPFromWorkspace": Row(_ADMINS, _BOUND, at={"resource_pool_name": "other_pool"}),
    "GetQuotas": Row(_ALL),
    "PutQuotas": Row(_ADMINS, {"source": "everyone: {max_slots: 100}"}),
    "DeleteQuotas": Row(_ADMINS, status=404),
    "GetJobsV2": Row(_ALL, query="resourcePool=default"),
    "GetJobs": Row(_ALL, query="resourcePool=default"),
    "GetJobQueueStats": Row(_ALL),
    "GetQueueTrace": Row(_ALL, query=_DAY),
    "ExplainJob": Row(_ALL, at={"job_id": "job"}),
    "UpdateJobQueue": Row(_OWNERS, {"updates": [{"jobId": "$job", "priority": 50}]}),
    "ResourceAllocationRaw": Row(_ALL, query=_DAY),
    "ResourceAllocationAggregated": Row(_ALL, query="startDate=2026-01-01&endDate=2026-01-02&by=group"),
    "ResourceAllocationRawCsv": Row(_ALL, query=_DAY),
    "ResourceAllocationsCsv": Row(_ALL, query=_DAY),
    "ResourceAllocationAggregatedCsv": Row(_ALL, query="start_date=2026-01-01&end_date=2026-01-02"),
    "ListWorkspaceNamespaceBindings": Row(_ALL, at={"id": "workspace"}, status=501),
    "SetWorkspaceNamespaceBindings": Row(_ADMINS, {}, status=501),
    "DeleteWorkspaceNamespaceBindings": Row(_ADMINS, {}, status=501),
    "GetWorkspacesWithDefaultNamespaceBindings": Row(_ALL, status=501),
    "BulkAutoCreateWorkspaceNamespaceBindings": Row(_ADMINS, {}, status=501),
    "SetResourceQuotas": Row(_ADMINS, {}, at={"id": "workspace"}, status=501),
    "GetKubernetesResourceQuotas": Row(_ALL, at={"id": "workspace"}, status=501),
    "GetKubernetesResourceManagers": Row(_ALL, status=501),
}

ROWS: dict[str, Row] = {**PEOPLE, **EXPERIMENTS, **TRIALS, **ARTIFACTS, **TASKS, **CLUSTER}
