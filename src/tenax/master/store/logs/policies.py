"""What policies matched in the output of trials. A match counts once per trial, policy and, where it matters, agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpg import Connection

from tenax.jsonvalue import Json
from tenax.master.store.database.queries import load

Q = load("logs")

LABEL, CANCEL_RETRIES, EXCLUDE_NODE = "LABEL", "CANCEL_RETRIES", "EXCLUDE_NODE"


@dataclass(frozen=True, slots=True)
class Policies:
    """Of a trial."""

    trial_id: int
    #: As configured: [{"name", "pattern", "action"}].
    configured: Json
    #: (policy, action, agent) that have matched.
    matched: frozenset[tuple[str, str, str]]
    #: There are triggers of webhooks that wait for a line, of this task or of another.
    any_triggers: bool


async def of_task(conn: Connection, task_id: str) -> Policies | None:
    """None: it is no trial's."""
    row = await conn.fetchrow(Q.watched, task_id)
    if row is None:
        return None
    matched = frozenset(tuple(match) for match in row["matched"])
    return Policies(row["trial_id"], row["policies"], matched, row["any_triggers"])


async def record(conn: Connection, trial_id: int, policy: str, action: str, agent_id: str, line: str) -> bool:
    """A line matched; False if that was known, or the trial is gone."""
    return await conn.fetchval(Q.record, trial_id, policy, action, agent_id, line) is not None


async def no_retry(conn: Connection, trial_ids: Sequence[int]) -> dict[int, str]:
    """The policy that forbids each of these trials another try; nothing where none does."""
    return {row["trial_id"]: row["policy"] for row in await conn.fetch(Q.no_retry, list(trial_ids))}


async def excluded(conn: Connection, trial_ids: Sequence[int]) -> dict[int, list[str]]:
    """The agents on which a policy forbids to place each of these trials again; nothing where none does."""
    return {row["trial_id"]: row["agents"] for row in await conn.fetch(Q.excluded, list(trial_ids))}
