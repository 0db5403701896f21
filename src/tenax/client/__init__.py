"""Speaks wire over HTTP; the Python SDK.

    from tenax.client import Client

    with Client() as client:
        experiment = client.create_experiment("examples/digits/adaptive.yaml", "examples/digits")
        experiment = experiment.wait()
        best = experiment.best_checkpoint()
        best.download("best")

`AsyncClient` is the same for event loops.

Names are loaded when they are first used: a training process that imports one module here does not pay for the others.
"""

from __future__ import annotations

# Not from typing: a task that imports a neighbour would pay 5 ms for it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.client.access_tokens import AccessToken
    from tenax.client.agents import Agent, Slot
    from tenax.client.asynchronous import (
        AsyncAccessToken,
        AsyncCheckpoint,
        AsyncClient,
        AsyncCommand,
        AsyncExperiment,
        AsyncGroup,
        AsyncModel,
        AsyncModelVersion,
        AsyncProject,
        AsyncStream,
        AsyncTask,
        AsyncTrial,
        AsyncUser,
        AsyncWebhook,
        AsyncWorkspace,
    )
    from tenax.client.checkpoints import Checkpoint, GcPolicy
    from tenax.client.commands import Command
    from tenax.client.connect import Client
    from tenax.client.connection.address import Unreachable
    from tenax.client.connection.session import BrokenStream
    from tenax.client.experiments import Experiment
    from tenax.client.generic_tasks import Task
    from tenax.client.groups import Group
    from tenax.client.jobs import Job
    from tenax.client.models import Model, ModelVersion
    from tenax.client.pools import Pool
    from tenax.client.projects import Project
    from tenax.client.runs import Run
    from tenax.client.templates import Template
    from tenax.client.trials import LogFilter, LogLine, Report, Trial
    from tenax.client.users import User
    from tenax.client.webhooks import Webhook
    from tenax.client.workspaces import Workspace

_HOMES = {
    "Webhook": "webhooks",
    "Group": "groups",
    "AccessToken": "access_tokens",
    "Agent": "agents",
    "AsyncAccessToken": "asynchronous",
    "AsyncCheckpoint": "asynchronous",
    "AsyncClient": "asynchronous",
    "AsyncCommand": "asynchronous",
    "AsyncExperiment": "asynchronous",
    "AsyncGroup": "asynchronous",
    "AsyncModel": "asynchronous",
    "AsyncModelVersion": "asynchronous",
    "AsyncProject": "asynchronous",
    "AsyncStream": "asynchronous",
    "AsyncTask": "asynchronous",
    "AsyncTrial": "asynchronous",
    "AsyncUser": "asynchronous",
    "AsyncWebhook": "asynchronous",
    "AsyncWorkspace": "asynchronous",
    "BrokenStream": "connection.session",
    "Checkpoint": "checkpoints",
    "GcPolicy": "checkpoints",
    "Client": "connect",
    "Command": "commands",
    "Task": "generic_tasks",
    "Template": "templates",
    "Experiment": "experiments",
    "Job": "jobs",
    "LogLine": "trials",
    "Model": "models",
    "ModelVersion": "models",
    "Pool": "pools",
    "Project": "projects",
    "Report": "trials",
    "LogFilter": "trials",
    "Run": "runs",
    "Slot": "agents",
    "Trial": "trials",
    "Unreachable": "connection.address",
    "User": "users",
    "Workspace": "workspaces",
}

__all__ = [
    "AccessToken",
    "Agent",
    "AsyncAccessToken",
    "AsyncCheckpoint",
    "AsyncClient",
    "AsyncCommand",
    "AsyncExperiment",
    "AsyncGroup",
    "AsyncModel",
    "AsyncModelVersion",
    "AsyncProject",
    "AsyncStream",
    "AsyncTask",
    "AsyncTrial",
    "AsyncUser",
    "AsyncWebhook",
    "AsyncWorkspace",
    "BrokenStream",
    "Checkpoint",
    "Client",
    "Command",
    "Experiment",
    "GcPolicy",
    "Group",
    "Job",
    "LogFilter",
    "LogLine",
    "Model",
    "ModelVersion",
    "Pool",
    "Project",
    "Report",
    "Run",
    "Slot",
    "Task",
    "Template",
    "Trial",
    "Unreachable",
    "User",
    "Webhook",
    "Workspace",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
