"""Rows of tasks as messages."""

from __future__ import annotations

import json

from tenax.master.api.shapes import shown_config
from tenax.master.auth import Caller
from tenax.master.store.listings_launched import LaunchedView
from tenax.wire.api.machines import Container, Device
from tenax.wire.api.tasks import GenericTaskState, Task, TaskState

#: Of attempts, as clients see them.
TASK_STATES = {
    "PENDING": TaskState.QUEUED,
    "ASSIGNED": TaskState.STARTING,
    "PULLING": TaskState.PULLING,
    "STARTING": TaskState.STARTING,
    "RUNNING": TaskState.RUNNING,
    "WAITING": TaskState.WAITING,
    "TERMINATING": TaskState.TERMINATING,
    "TERMINATED": TaskState.TERMINATED,
}


def container_message(view: LaunchedView) -> Container | None:
    """Where a task runs; None before it is placed, and once it has ended."""
    if view.container_id is None or view.ended_at is not None:
        return None
    return Container(
        id=view.container_id,
        parent=view.allocation_id or "",
        devices=[Device.model_validate(device) for device in view.devices],
        state=f"STATE_{view.container_state}",
    )


def config_text(view: LaunchedView, caller: Caller) -> str:
    """The configuration of a task as JSON text, as ``caller`` may see it."""
    return json.dumps(shown_config(view.config, caller, view.owner_id))


def with_launched(task: Task, view: LaunchedView, caller: Caller) -> Task:
    """A task with what only launched ones have."""
    return task.model_copy(
        update={
            "task_state": GenericTaskState(f"GENERIC_TASK_STATE_{view.state}"),
            "reason": view.wait_reason or view.reason,
            "parent_id": view.parent_id,
            "forked_from": view.forked_from,
            "no_pause": not view.pausable,
            "config": config_text(view, caller),
            "description": view.description,
            "user_id": view.owner_id,
            "username": view.username,
        }
    )
