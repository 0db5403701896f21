"""Lanes: each kind of work has connections of its own, and limits on how long it may take.

Rules:
- Whoever waits for a free connection waits for its own kind only: slow requests hold up neither heartbeats nor leases.
- No statement, wait for a lock or idle transaction is without an end. The server ends what it can; what the server
  cannot tell us about, because nothing arrives any more, is ended here a little later, and its connection is cut.
- A transaction of a loop that stands still ends before its lease does: a master that was stopped in the middle of one
  holds nobody up who takes over.
"""

from __future__ import annotations

from dataclasses import dataclass

#: The driver's own limit comes so long after the server's: the server's answer tells more.
_GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Lane:
    """One kind of work; all times are in seconds."""

    name: str
    #: Of one statement; None: as long as it takes.
    statement_s: float | None
    #: Of waiting for one lock.
    lock_s: float | None
    #: Between two statements of a transaction.
    idle_s: float
    #: Of waiting for a free connection.
    acquire_s: float
    #: Of the connections that are left beside those of leases and listener; 0: none of the pool.
    share: float

    @property
    def command_s(self) -> float | None:
        """When a statement is given up that the server says nothing about."""
        return None if self.statement_s is None else self.statement_s + _GRACE_S

    def server_settings(self) -> dict[str, str]:
        """The limits, as PostgreSQL's settings."""
        limits = {
            "statement_timeout": self.statement_s,
            "lock_timeout": self.lock_s,
            "idle_in_transaction_session_timeout": self.idle_s,
        }
        return {name: f"{seconds * 1000:.0f}" for name, seconds in limits.items() if seconds is not None}


#: What people, scripts and tasks ask for.
REQUESTS = Lane("requests", statement_s=60.0, lock_s=20.0, idle_s=60.0, acquire_s=30.0, share=0.5)
#: The passes of loops.
LOOPS = Lane("loops", statement_s=300.0, lock_s=30.0, idle_s=10.0, acquire_s=30.0, share=0.3)
#: Heartbeats and reports of agents, and what they are sent.
AGENTS = Lane("agents", statement_s=30.0, lock_s=10.0, idle_s=30.0, acquire_s=10.0, share=0.2)
#: What keeps this master in its place: leases, and the answer to whether it is well.
LEASES = Lane("leases", statement_s=3.0, lock_s=2.0, idle_s=5.0, acquire_s=4.0, share=0.0)
#: Hears wake-ups, and holds the session that others know this process by; not of a pool.
LISTENER = Lane("listener", statement_s=3.0, lock_s=2.0, idle_s=60.0, acquire_s=0.0, share=0.0)
#: Changes the schema before anything else is done; not of a pool. Its locks are waited for.
MIGRATION = Lane("migration", statement_s=None, lock_s=None, idle_s=60.0, acquire_s=0.0, share=0.0)

POOLED = (REQUESTS, LOOPS, AGENTS, LEASES)
#: Connections for leases, and for the listener.
_OWN = {LEASES: 2, LISTENER: 1}
#: With fewer, a lane would have none.
FEWEST = sum(_OWN.values()) + 3


def connections(most: int) -> dict[Lane, int]:
    """How many connections each pool may hold, so that a process holds ``most`` at most; each has at least one."""
    rest = most - sum(_OWN.values())
    counts = {lane: max(1, round(lane.share * rest)) for lane in POOLED if lane.share}
    # Whatever rounding leaves goes to requests.
    counts[REQUESTS] = max(1, rest - counts[LOOPS] - counts[AGENTS])
    return {**counts, LEASES: _OWN[LEASES] if most >= FEWEST else 1}
