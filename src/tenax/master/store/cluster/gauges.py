"""The state of the cluster, and what logs and metrics take of the disk, as numbers for monitoring. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from asyncpg import Connection

from tenax.master.store.database.queries import load

Q = load("cluster")

#: So much is read to find out what is in large tables.
_SAMPLE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ContainerGauge:
    """A container on a machine, and what it belongs to."""

    container_id: str
    allocation_id: str
    agent_id: str
    task_id: str
    kind: str
    job_id: str
    experiment_id: int | None
    labels: list[str] | None
    #: The vendor's identities of its GPUs.
    devices: list[str] | None


@dataclass(frozen=True, slots=True)
class AgentGauge:
    """An agent, and whether it takes work."""

    agent_id: str
    pool: str
    state: str
    #: Whether nobody said so: start after start failed there.
    taken_out: bool
    connected: bool
    address: str
    version: str
    runtime: str
    #: Since it was heard last; None: never.
    silent_s: float | None


@dataclass(frozen=True, slots=True)
class RequestGauge:
    """Attempts of a pool: those that wait, or those that have places."""

    pool: str
    waiting: bool
    attempts: int
    slots: int
    #: Since the first of them was requested.
    longest_s: float


@dataclass(frozen=True, slots=True)
class ClusterGauges:
    """All gauges, at one moment."""

    members: list[ContainerGauge]
    agents: list[AgentGauge]
    #: (pool, kind, used | free | disabled | away) -> slots
    slots: dict[tuple[str, str, str], int]
    requests: list[RequestGauge]
    #: Of those that have not ended, by state.
    experiments: dict[str, int]


async def snapshot(conn: Connection) -> ClusterGauges:
    """In a transaction that sees one state."""
    return ClusterGauges(
        [ContainerGauge(**row) for row in await conn.fetch(Q.members)],
        await agents(conn),
        {(row["pool"], row["kind"], row["state"]): row["slots"] for row in await conn.fetch(Q.slots)},
        [RequestGauge(**row) for row in await conn.fetch(Q.requests)],
        {row["state"]: row["experiments"] for row in await conn.fetch(Q.live_experiments)},
    )


async def waiting(conn: Connection) -> dict[tuple[str, str], int]:
    """(pool, why) -> requests that wait for that reason."""
    return {(row["pool"], row["reason"]): row["requests"] for row in await conn.fetch(Q.waiting)}


async def agents(conn: Connection) -> list[AgentGauge]:
    """Every agent that was not removed."""
    return [AgentGauge(**row) for row in await conn.fetch(Q.agents)]


@dataclass(frozen=True, slots=True)
class TelemetrySizes:
    """Bytes on disk, indexes included."""

    logs: int
    metrics: int


async def telemetry_sizes(conn: Connection) -> TelemetrySizes:
    """What logs and metrics take."""
    row = await conn.fetchrow(Q.telemetry)
    return TelemetrySizes(row["logs"], row["metrics"])


async def live_size(conn: Connection, what: str) -> int:
    """What ``logs`` or ``metrics`` take without the room that deleted ones left: it is used again, but files do not get
    smaller. Of large ones an estimate, from a sample of pages."""
    heap: int = (await conn.fetchrow(Q.heaps))[what]
    percent = min(100.0, 100.0 * _SAMPLE_BYTES / max(1, heap))
    size: int = await conn.fetchval(Q.live_logs if what == "logs" else Q.live_metrics, percent)
    return size


async def database_size(conn: Connection) -> int:
    """Bytes of the whole database."""
    size: int = await conn.fetchval(Q.database_size)
    return size


async def largest_logs(conn: Connection) -> list[str]:
    """Of what the most lines are, in words: the largest first. Reads through all tasks with output."""
    return [row["what"] for row in await conn.fetch(Q.largest_logs)]


async def largest_metrics(conn: Connection) -> list[str]:
    """Of what the most reports are, in words: the largest first. Reads through all groups of metrics."""
    return [row["what"] for row in await conn.fetch(Q.largest_metrics)]


async def local_directory(conn: Connection) -> str | None:
    """The server's data directory, when the server is on this machine and says where."""
    path: str | None = await conn.fetchval(Q.local_directory)
    return path
