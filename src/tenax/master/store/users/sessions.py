"""Who a token belongs to: logins of people, tasks, agents. Only sha256 of a token is stored."""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.database.queries import load
from tenax.master.store.users.rows import UserRow, user_from

Q = load("users")


@dataclass(frozen=True, slots=True)
class TaskOf:
    """The attempt that an allocation token belongs to."""

    allocation_id: str
    task_id: str
    run_id: int
    #: None for a task that is not a trial.
    trial_id: int | None
    experiment_id: int | None
    owner: UserRow
    #: The attempt is over: it may deliver what it has left, and nothing else.
    ended: bool = False


@dataclass(frozen=True, slots=True)
class SessionOf:
    """A login, and what is left of it."""

    user: UserRow
    #: Of the task that it is the session of; None for a person's.
    allocation_id: str | None
    seconds_left: float
    #: Number of the access token that it is; None for a login.
    access_token: int | None = None


async def create(conn: Connection, user_id: int, token_hash: bytes, lifetime_s: float) -> None:
    """A login that is good for ``lifetime_s`` seconds."""
    await conn.execute(Q.session_create, user_id, token_hash, lifetime_s)


async def delete(conn: Connection, token_hash: bytes) -> bool:
    """End a person's session; whether there was one."""
    return await conn.fetchval(Q.session_delete, token_hash) is not None


async def delete_of_user(conn: Connection, user_id: int, but: bytes | None = None) -> None:
    """End all sessions of a person, except the one with the token hash ``but``."""
    await conn.execute(Q.delete_of_user, user_id, but)


async def delete_expired(conn: Connection) -> None:
    """Forget sessions that have ended."""
    await conn.execute(Q.delete_expired)


async def user_of(conn: Connection, token_hash: bytes) -> SessionOf | None:
    """Whose session it is; None for no such session."""
    row = await conn.fetchrow(Q.user_of, token_hash)
    return None if row is None else SessionOf(user_from(row), row["allocation_id"], row["seconds_left"])


async def age(conn: Connection, token_hash: bytes) -> tuple[float, float]:
    """Seconds since a login, and until its end; none of either for one that is gone."""
    row = await conn.fetchrow(Q.session_age, token_hash)
    return (0.0, 0.0) if row is None else (row["age"], row["seconds_left"])


async def task_of(conn: Connection, token_hash: bytes) -> TaskOf | None:
    """The attempt of an allocation token; None for no such token, and once nothing of the attempt is left."""
    row = await conn.fetchrow(Q.allocation_of, token_hash)
    if row is None:
        return None
    return TaskOf(
        row["allocation_id"],
        row["task_id"],
        row["run_id"],
        row["trial_id"],
        row["experiment_id"],
        user_from(row),
        row["ended"],
    )


async def agent_of(conn: Connection, credential_hash: bytes) -> str | None:
    """The agent of a credential; None for no such credential."""
    agent_id: str | None = await conn.fetchval(Q.agent_of, credential_hash)
    return agent_id
