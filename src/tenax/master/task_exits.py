"""What a launched task becomes when an attempt of it has ended."""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import Connection

from tenax.lifecycle.container import Ending
from tenax.lifecycle.task import ENDED, TaskAttempt, TaskState, TaskVerdict
from tenax.lifecycle.task import decide_exit as decide_task_exit
from tenax.master.last_words import in_its_own_words
from tenax.master.store import logs, tasks
from tenax.master.store.allocations import Allocation
from tenax.master.store.tasks import LaunchedTask


async def attempt_ended(
    conn: Connection, task: LaunchedTask, allocation: Allocation, members: Sequence[str], ending: Ending
) -> None:
    """Apply the end of a locked task's attempt; nothing where the attempt is not its newest or the task has ended."""
    if task.state in ENDED or allocation.run_id != task.run_id:
        return
    ending = await in_its_own_words(conn, task.task_id, members, ending)
    verdict = decide_task_exit(
        TaskAttempt(task.state, ending, allocation.preemption, task.pausable, allocation.preemption_reason)
    )
    await tasks.conclude(conn, task, verdict)
    await logs.append_system_line(
        conn,
        task.task_id,
        _told(verdict),
        "ERROR" if verdict.state is TaskState.ERROR else "INFO",
        allocation_id=allocation.allocation_id,
    )


def _told(verdict: TaskVerdict) -> str:
    """A line for the task's log."""
    if verdict.state is TaskState.ACTIVE:
        return f"{verdict.reason}; the task goes on when there is room"
    return f"{verdict.reason}; the task is {verdict.state.value}"
