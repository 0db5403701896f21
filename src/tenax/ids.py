"""The identities that all parts share. Standard library only, Python 3.9: tasks import it too.

An experiment and a trial are numbered by the database; a task, an allocation and a container are named from them,
so that a log line tells where it comes from.
"""

from __future__ import annotations

from typing import NewType

ExperimentId = NewType("ExperimentId", int)
TrialId = NewType("TrialId", int)
UserId = NewType("UserId", int)
#: Drawn by the search from its random stream: names a trial before the database has numbered it.
RequestId = NewType("RequestId", str)
#: ``{experiment}.{request id}`` for a trial, with ``-1``, ``-2`` ... after it for its further tasks; a UUID for others.
TaskId = NewType("TaskId", str)
#: ``{task}.{run id}``.
AllocationId = NewType("AllocationId", str)
#: UUID of one member of an allocation; ``DET_CONTAINER_ID`` and ``DET_RESOURCES_ID`` in the task.
ContainerId = NewType("ContainerId", str)
AgentId = NewType("AgentId", str)
#: Number of a device on its agent.
SlotId = NewType("SlotId", int)
JobId = NewType("JobId", str)
PoolName = NewType("PoolName", str)
CheckpointId = NewType("CheckpointId", str)


def trial_task_id(experiment: ExperimentId, request: RequestId) -> TaskId:
    """The task of a trial, in the form that Determined's client accepts."""
    return TaskId(f"{experiment}.{request}")


def allocation_id(task: TaskId, run_id: int) -> AllocationId:
    """The name of a task's placement attempt number ``run_id`` (1, 2, ...)."""
    return AllocationId(f"{task}.{run_id}")
