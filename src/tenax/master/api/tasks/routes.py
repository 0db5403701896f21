"""Tasks and their attempts as messages, and the code that a task or an agent fetches."""

from __future__ import annotations

import json

from fastapi import Response
from fastapi.responses import StreamingResponse

from tenax.config.master import PoolSettings
from tenax.errors import Forbidden
from tenax.master.access.authorization import Allow, Caller, shown_config
from tenax.master.api.agents.messages import Container, Device
from tenax.master.api.http.archives import archive_document, archive_size, pieces
from tenax.master.api.http.callers import AgentDep, CallerDep, MasterDep
from tenax.master.api.http.paging import shared_answer
from tenax.master.api.http.routing import Routes
from tenax.master.api.tasks import messages
from tenax.master.store.tasks import contexts
from tenax.master.store.tasks import lists as task_lists
from tenax.master.store.tasks.lists import AllocationView, LaunchedView, OpenAllocationView

routes = Routes("Tasks")


@routes.get("/api/v1/tasks", "GetTasks", allow=Allow.USER, response_model=messages.GetTasksResponse)
async def get_tasks(master: MasterDep) -> Response:
    """All attempts that wait or run."""

    async def make() -> messages.GetTasksResponse:
        async with master.db.connection() as conn:
            allocations = await task_lists.open_allocations(conn)
        return messages.GetTasksResponse(
            allocation_id_to_summary={
                allocation.allocation_id: _summary(allocation, master.settings.pool(allocation.pool))
                for allocation in allocations
            }
        )

    return await shared_answer(master, "GetTasks", make)


@routes.get("/tasks", "ListTasks", allow=Allow.USER, response_model=dict[str, messages.PlainAllocation])
async def list_tasks(master: MasterDep) -> dict[str, messages.PlainAllocation]:
    """The same by the id of the attempt, in the form of older clients and of scripts."""
    async with master.db.connection() as conn:
        allocations = await task_lists.open_allocations(conn)
    return {
        allocation.allocation_id: messages.PlainAllocation.model_validate(
            _summary(allocation, master.settings.pool(allocation.pool)).model_dump(mode="json", by_alias=False)
        )
        for allocation in allocations
    }


@routes.get("/api/v1/tasks/count", "GetActiveTasksCount", allow=Allow.USER)
async def count_tasks(master: MasterDep) -> messages.ActiveTasksCount:
    """How many launched tasks wait or run, by kind."""
    async with master.db.connection() as conn:
        counts = await task_lists.active_by_kind(conn)
    return messages.ActiveTasksCount(
        commands=counts.get("COMMAND", 0),
        notebooks=counts.get("NOTEBOOK", 0),
        shells=counts.get("SHELL", 0),
        tensorboards=counts.get("TENSORBOARD", 0),
    )


@routes.get("/api/v1/tasks/{task_id}", "GetTask", allow=Allow.USER)
async def get_task(master: MasterDep, caller: CallerDep, task_id: str) -> messages.GetTaskResponse:
    """One task and its attempts, the newest first."""
    async with master.db.connection() as conn:
        view, attempts = await task_lists.get(conn, task_id)
        launched = await task_lists.launched_views(conn, [task_id])
    task = messages.Task(
        task_id=view.task_id,
        task_type=f"TASK_TYPE_{view.kind}",
        allocations=[allocation_message(attempt) for attempt in attempts],
        start_time=view.created_at,
        end_time=view.ended_at,
    )
    return messages.GetTaskResponse(task=with_launched(task, launched[0], caller) if launched else task)


@routes.get("/api/v1/tasks/{task_id}/acceleratorData", "GetTaskAcceleratorData", allow=Allow.USER)
async def get_accelerator_data(master: MasterDep, task_id: str) -> messages.GetAcceleratorDataResponse:
    """The devices that members of a task found."""
    async with master.db.connection() as conn:
        await task_lists.get(conn, task_id)
        accelerators = await task_lists.accelerators(conn, task_id)
    return messages.GetAcceleratorDataResponse(
        accelerator_data=[
            messages.AcceleratorData.model_validate(
                {
                    **accelerator.data,
                    "container_id": accelerator.container_id,
                    "allocation_id": accelerator.allocation_id,
                    "task_id": accelerator.task_id,
                    "resource_pool": accelerator.pool,
                }
            )
            for accelerator in accelerators
        ]
    )


@routes.get(
    "/api/v1/tasks/{task_id}/context_directory",
    "GetTaskContextDirectory",
    allow=Allow.USER,
    response_model=messages.GetContextResponse,
)
async def get_context_directory(master: MasterDep, task_id: str) -> Response:
    """The code of a task; empty for none."""
    async with master.db.connection() as conn:
        hashed = await contexts.of_task(conn, task_id)
    return await archive_document(master, hashed, "b64Tgz")


@routes.get("/agents/contexts/{hash}", "GetContext", allow=Allow.AGENT, response_class=Response)
async def get_context(master: MasterDep, agent_id: AgentDep, hash: str) -> StreamingResponse:
    """An archive of code, for an agent that runs something with it."""
    async with master.db.connection() as conn:
        if not await contexts.needed_by_agent(conn, agent_id, hash):
            raise Forbidden("nothing on this agent needs that code")
    size = await archive_size(master, hash)
    headers = {"Content-Length": str(size)}
    return StreamingResponse(pieces(master, hash, size), media_type="application/gzip", headers=headers)


def allocation_message(view: AllocationView) -> messages.Allocation:
    """An attempt as clients see it."""
    return messages.Allocation(
        allocation_id=view.allocation_id,
        task_id=view.task_id,
        state=TASK_STATES[view.state],
        slots=view.slots,
        is_ready=view.ready,
        start_time=view.assigned_at or view.requested_at,
        end_time=view.ended_at,
        exit_reason=view.exit_reason or None,
        status_code=view.exit_code,
        reason=view.wait_reason or "",
    )


def _summary(attempt: OpenAllocationView, pool: PoolSettings | None) -> messages.AllocationSummary:
    name = f"Trial {attempt.trial_id} (Experiment {attempt.experiment_id})"
    if attempt.trial_id is None:
        name = attempt.description or attempt.task_id
    return messages.AllocationSummary(
        allocation_id=attempt.allocation_id,
        task_id=attempt.task_id,
        name=name,
        registered_time=attempt.requested_at,
        resource_pool=attempt.pool,
        slots_needed=attempt.slots,
        priority=attempt.priority,
        scheduler_type="" if pool is None else pool.scheduler.type,
        state=TASK_STATES[attempt.state],
        reason=attempt.wait_reason or "",
        resources=[
            messages.ResourcesSummary(
                resources_id=str(member["container_id"]),
                container_id=str(member["container_id"]),
                allocation_id=attempt.allocation_id,
                agent_devices={
                    str(member["agent_id"]): messages.Devices.model_validate({"devices": member["devices"]})
                },
            )
            for member in attempt.members
        ],
    )


#: Of attempts, as clients see them.
TASK_STATES = {
    "PENDING": messages.TaskState.QUEUED,
    "ASSIGNED": messages.TaskState.STARTING,
    "PULLING": messages.TaskState.PULLING,
    "STARTING": messages.TaskState.STARTING,
    "RUNNING": messages.TaskState.RUNNING,
    "WAITING": messages.TaskState.WAITING,
    "TERMINATING": messages.TaskState.TERMINATING,
    "TERMINATED": messages.TaskState.TERMINATED,
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
    """The configuration of a task as JSON text, as ``caller`` may see it; of a generic one as it was submitted."""
    if view.submitted is not None:
        return json.dumps(shown_config(view.submitted, caller, view.owner_id, own=view.submitted))
    return json.dumps(shown_config(view.config, caller, view.owner_id, own=view.own))


def with_launched(task: messages.Task, view: LaunchedView, caller: Caller) -> messages.Task:
    """A task with the fields that only launched tasks have."""
    return task.model_copy(
        update={
            "task_state": messages.GenericTaskState(f"GENERIC_TASK_STATE_{view.state}"),
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
