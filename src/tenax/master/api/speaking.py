"""For which trial a request speaks: that of the task's token, or an unmanaged one of the caller's own."""

from __future__ import annotations

from asyncpg import Connection

from tenax.errors import Forbidden
from tenax.master.auth import Caller
from tenax.master.store import unmanaged
from tenax.master.store.sessions import TaskOf


async def for_trial(conn: Connection, caller: Caller, trial_id: int) -> TaskOf:
    """The run that speaks for a trial. Raises Forbidden for one that the caller does not speak for, NotFound."""
    if caller.task is not None:
        if caller.task.trial_id is None:
            raise Forbidden(f"this token is that of task {caller.task.task_id}, which is no trial and speaks for none")
        if caller.task.trial_id != trial_id:
            raise Forbidden(f"this token is that of trial {caller.task.trial_id}, and speaks for no other one")
        return caller.task
    found = await unmanaged.trial(conn, trial_id)
    if not found.unmanaged:
        raise Forbidden("this is for tasks: it needs the token of an allocation")
    caller.may_change(found.owner_id, f"trial {trial_id}")
    return TaskOf("", found.task_id, found.run_id, trial_id, found.experiment_id, caller.person)


async def for_task(conn: Connection, caller: Caller, task_id: str) -> TaskOf:
    """The run that speaks for a task; that of a token is meant whatever is said. Raises Forbidden, NotFound."""
    if caller.task is not None:
        return caller.task
    return await for_trial(conn, caller, await unmanaged.trial_of_task(conn, task_id))
