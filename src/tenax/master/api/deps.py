"""What handlers ask for: the master, and who is calling.

Handlers name these as parameter types; FastAPI fills them in. `authorize` runs before every route, declared or not:
as the first thing of a request, before its body is read, and as a dependency of the application for whatever got there
in another way.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from tenax.errors import Forbidden, NotAuthenticated
from tenax.master.api.routing import Allow, allowed
from tenax.master.auth import NOBODY, Caller, check, check_origin, credential_of
from tenax.master.context import Master
from tenax.master.store.sessions import TaskOf


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
        found = await master.credentials.caller(credential, allow)
        check(found, allow)
        return found

    connection.state.caller = await identified()
    # What is answered for a long time asks it again: `tenax.master.api.ndjson`.
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
