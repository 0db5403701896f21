"""What handlers ask for: the master, who is calling, and for which trial.

Handlers name these as parameter types; FastAPI fills them in. `authorize` runs before every route, declared or not:
as the first thing of a request, before its body is read, and as a dependency of the application for whatever got there
in another way. A request speaks for the trial of the task's token, or for an unmanaged trial of the caller's own.
"""

from __future__ import annotations

from typing import Annotated

from asyncpg import Connection
from fastapi import Depends
from starlette.requests import HTTPConnection

from tenax.errors import Forbidden, NotAuthenticated
from tenax.master.access.authorization import NOBODY, Allow, Caller, check, check_origin, credential_of
from tenax.master.api.http.routing import allowed
from tenax.master.concurrency.turns import owner
from tenax.master.context import Master
from tenax.master.observability import log_context
from tenax.master.store.experiments import unmanaged
from tenax.master.store.users.sessions import TaskOf


async def master_of(connection: HTTPConnection) -> Master:
    """The master that serves this request."""
    master: Master = connection.app.state.master
    return master


MasterDep = Annotated[Master, Depends(master_of)]


async def authorize(connection: HTTPConnection, master: MasterDep) -> None:
    """Let the request pass, or refuse it, by the policy of its route. Raises NotAuthenticated, Forbidden, TryAgain."""
    if getattr(connection.state, "caller", None) is not None:
        return
    allow = allowed(connection.scope.get("endpoint"))
    if allow is None:
        raise Forbidden("this route has no policy, so nobody may call it")
    connection.state.caller = NOBODY
    if allow is Allow.PUBLIC:
        return
    credential = credential_of(connection)
    if credential is None:
        raise NotAuthenticated
    check_origin(connection, credential)

    async def identified() -> Caller:
        caller = await master.credentials.caller(credential, allow)
        check(caller, allow)
        return caller

    caller = connection.state.caller = await identified()
    log_context.called_by(
        allocation=None if caller.task is None else caller.task.allocation_id,
        agent=caller.agent_id,
        user=None if caller.user is None else caller.user.username,
    )
    owner.set(caller.agent_id or (caller.user.id if caller.user else None))
    # What is answered for a long time asks it again: `tenax.master.api.http.streaming`.
    connection.state.identified = identified


async def caller_of(connection: HTTPConnection) -> Caller:
    """Who is calling."""
    caller: Caller = connection.state.caller
    return caller


async def task_of(connection: HTTPConnection) -> TaskOf:
    """The attempt that is calling."""
    caller: Caller = connection.state.caller
    return caller.attempt


async def agent_of(connection: HTTPConnection) -> str:
    """The agent that is calling."""
    caller: Caller = connection.state.caller
    return caller.agent


CallerDep = Annotated[Caller, Depends(caller_of)]
TaskDep = Annotated[TaskOf, Depends(task_of)]
AgentDep = Annotated[str, Depends(agent_of)]


async def for_trial(conn: Connection, caller: Caller, trial_id: int) -> TaskOf:
    """The run that speaks for a trial. Raises Forbidden for one that the caller does not speak for, NotFound."""
    if caller.task is not None:
        if caller.task.trial_id is None:
            raise Forbidden(f"this token is that of task {caller.task.task_id}, which is no trial and speaks for none")
        if caller.task.trial_id != trial_id:
            raise Forbidden(f"this token is that of trial {caller.task.trial_id}, and speaks for no other one")
        return caller.task
    trial = await unmanaged.trial(conn, trial_id)
    if not trial.unmanaged:
        raise Forbidden("this is for tasks: it needs the token of an allocation")
    caller.may_change(trial.owner_id, f"trial {trial_id}")
    return TaskOf("", trial.task_id, trial.run_id, trial_id, trial.experiment_id, caller.person)


async def for_task(conn: Connection, caller: Caller, task_id: str) -> TaskOf:
    """The run that speaks for a task; that of a token is meant whatever is said. Raises Forbidden, NotFound."""
    if caller.task is not None:
        return caller.task
    return await for_trial(conn, caller, await unmanaged.trial_of_task(conn, task_id))
