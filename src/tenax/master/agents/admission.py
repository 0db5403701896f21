"""Whom a join token lets in.

Rules: a machine's token is for that machine's agent alone, once; an id of a rented machine is for nobody else, whatever
token is shown, unless an administrator made it for that very id. The token of a machine that has no row proves that the
database is older than the machine: its agent is to ask again until a look at the provider has given it one.
"""

from __future__ import annotations

import secrets

from asyncpg import Connection

from tenax.errors import Forbidden, TryAgain
from tenax.master.access.task_tokens import machine_token, token_hash
from tenax.master.store.agents import join_tokens
from tenax.master.store.machines import rows as machines
from tenax.wire.agents import JoinRequest


async def admit(conn: Connection, request: JoinRequest, secret: bytes, *, by_file: bool) -> bool:
    """Spend the token of a request; whether the agent may take the place of one of its name.

    ``by_file``: it is that of the operator's file. Raises Forbidden, TryAgain.
    """
    if by_file:
        await _keep_from_machines(conn, request.agent_id)
        return False
    hashed = token_hash(request.token)
    token = await join_tokens.use(conn, hashed, request.agent_id)
    if token is not None:
        if token.agent_id is None:
            await _keep_from_machines(conn, request.agent_id)
        return token.agent_id is not None
    if await machines.join(conn, hashed, request.agent_id, request.pool):
        return False
    its_own = secrets.compare_digest(request.token.encode(), machine_token(secret, request.agent_id).encode())
    if its_own and not await machines.is_known(conn, request.agent_id):
        raise TryAgain("this master's database does not know that machine yet: it looks at the provider, try again")
    raise Forbidden(
        "the join token is wrong, used up, over, or for another agent: ask an administrator for a new one "
        "(tenax agent join-token create)"
    )


async def _keep_from_machines(conn: Connection, agent_id: str) -> None:
    if await machines.is_known(conn, agent_id, still_there=True):
        raise Forbidden(
            f"{agent_id} is a rented machine, whose agent joins with the token of its user data: choose another id"
        )
