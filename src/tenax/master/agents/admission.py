"""Whom a join token lets in.

Rules: a machine's token is for that machine's agent alone, once; an id of a rented machine is for nobody else, whatever
token is shown, unless an administrator made it for that very id. The token of a machine that has no row proves that the
database is older than the machine: its agent is to ask again until a look at the provider has given it one.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import Forbidden, TryAgain
from tenax.master.access.task_tokens import machine_token, token_hash
from tenax.master.store.agents import join_tokens
from tenax.master.store.machines import rows as machines
from tenax.wire.agents import JoinRequest

_NOT_KNOWN_YET = "this master's database does not know that machine yet: it looks at the provider, try again"
_OF_NO_USE = (
    "the join token is wrong, used up, over, or for another agent: ask an administrator for a new one "
    "(tenax agent join-token create)"
)


@dataclass(frozen=True, slots=True)
class AgentAdmission:
    """As what an agent was let in."""

    #: It may take the place of one of its name.
    replaces: bool = False
    #: Seconds since its machine was ordered; None: nobody has ordered one.
    since_ordered_s: float | None = None


async def admit(conn: Connection, request: JoinRequest, secret: bytes, *, by_file: bool) -> AgentAdmission:
    """Spend the token of a request.

    ``by_file``: it is that of the operator's file. Raises Forbidden, TryAgain.
    """
    if by_file:
        await _keep_from_machines(conn, request.agent_id)
        return AgentAdmission()
    hashed = token_hash(request.token)
    token = await join_tokens.use(conn, hashed, request.agent_id)
    if token is not None:
        if token.agent_id is None:
            await _keep_from_machines(conn, request.agent_id)
        return AgentAdmission(replaces=token.agent_id is not None)
    machine = await machines.join(conn, hashed, request.agent_id, request.pool)
    if machine is not None:
        return AgentAdmission(since_ordered_s=machine.since_planned_s if machine.sent else None)
    if _is_its_own(request.token, request.agent_id, secret) and not await machines.is_known(conn, request.agent_id):
        raise TryAgain(_NOT_KNOWN_YET)
    raise Forbidden(_OF_NO_USE)


async def check_may_prepare(
    conn: Connection, token: str, machine_id: str, secret: bytes, file_token: str | None
) -> None:
    """Let whoever could join fetch what an agent is made of; nothing of the token is used up.

    ``machine_id``: of the rented machine that asks, if it is one; ``file_token``: that of the operator's file, if it
    lets agents in. Raises Forbidden, TryAgain.
    """
    if file_token is not None and secrets.compare_digest(token.encode(), file_token.encode()):
        return
    hashed = token_hash(token)
    if await join_tokens.is_good(conn, hashed) or await machines.is_starting(conn, hashed):
        return
    if _is_its_own(token, machine_id, secret) and not await machines.is_known(conn, machine_id):
        raise TryAgain(_NOT_KNOWN_YET)
    raise Forbidden(_OF_NO_USE)


def _is_its_own(token: str, machine_id: str, secret: bytes) -> bool:
    return secrets.compare_digest(token.encode(), machine_token(secret, machine_id).encode())


async def _keep_from_machines(conn: Connection, agent_id: str) -> None:
    if await machines.is_known(conn, agent_id, still_there=True):
        raise Forbidden(
            f"{agent_id} is a rented machine, whose agent joins with the token of its user data: choose another id"
        )
