"""What the cluster asks of its database: statements and commits per trial that does nothing, and per idle agent.

Prints one JSON line of counts, which a busy machine does not change much. There is no peer: the figures are read beside
those of another commit.

- Per trial: over a random search of trials that do nothing, less what the idle cluster asks in that time.
- Idle: commits and statements per minute of a cluster with one agent and nothing to do, and what each agent more adds.

Commits are PostgreSQL's own count; statements are the lines that it logs with ``log_statement = all``, BEGIN and COMMIT
left out.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from benchmarks._cluster import client, cluster
from benchmarks._measure import LONG, Line
from benchmarks.noop_trials import CONCURRENT, search_s
from tenax.client import Client
from tenax.local.pgdata import NAME, password_of

TRIALS = 300 if LONG else 100
IDLE_S = 120 if LONG else 30
MORE_AGENTS = 8
#: The statistics of a session reach the shared ones with this delay, at most.
_STATISTICS_S = 1.5
_STATEMENT = re.compile(r"LOG:  (?:execute [^:]*|statement): (?!\s*(?:BEGIN|COMMIT|ROLLBACK))", re.IGNORECASE)


@dataclass(frozen=True)
class Work:
    """Commits and statements, and in how many seconds."""

    commits: float
    statements: float
    seconds: float

    def less(self, idle: Work) -> Work:
        """Without what an idle cluster asks in this time."""
        share = self.seconds / idle.seconds
        return Work(self.commits - idle.commits * share, self.statements - idle.statements * share, self.seconds)

    def per(self, count: float, digits: int = 1) -> dict[str, float]:
        return {"commits": round(self.commits / count, digits), "statements": round(self.statements / count, digits)}


class Counter:
    """The database of a cluster here, asked what it has done."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "postgres" / "postgres.log"
        where = (directory / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[4]
        password = password_of(directory / "postgres")
        self._arguments = {"host": where, "port": 5432, "user": NAME, "database": NAME, "password": password}
        self._ask("ALTER SYSTEM SET log_statement = 'all'", "SELECT pg_reload_conf()")
        time.sleep(_STATISTICS_S)

    def during(self, seconds: float) -> Work:
        """What is done while nothing is asked of the cluster."""
        with self.count() as done:
            time.sleep(seconds)
        return done[0]

    @contextmanager
    def count(self) -> Iterator[list[Work]]:
        """What is done within the block, once it has ended."""
        done: list[Work] = []
        commits, lines, began = self._commits(), self._statements(), time.perf_counter()
        yield done
        seconds = time.perf_counter() - began
        done.append(Work(self._commits() - commits - 1, self._statements() - lines - 1, seconds))

    def _commits(self) -> int:
        time.sleep(_STATISTICS_S)
        return self._ask("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")

    def _statements(self) -> int:
        with open(self._log, errors="replace") as log:
            return sum(1 for line in log if _STATEMENT.search(line))

    def _ask(self, *statements: str) -> int:
        async def ask() -> int:
            connection = await asyncpg.connect(**self._arguments)
            try:
                return int([await connection.fetchval(statement) for statement in statements][-1] or 0)
            finally:
                await connection.close()

        return asyncio.run(ask())


@contextmanager
def agents(directory: Path, sdk: Client, count: int) -> Iterator[None]:
    """So many agents more, each a process with one slot."""
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(_agent(directory, sdk.session.url, f"more-{number}"))
        while sum(agent.connected for agent in sdk.agents()) < count + 1:
            time.sleep(0.1)
        yield


@contextmanager
def _agent(directory: Path, master: str, name: str) -> Iterator[None]:
    command: Sequence[str] = (
        *(sys.executable, "-m", "tenax.agent", "--master-url", master, "--agent-id", name, "--slots", "1"),
        *("--join-token-file", str(directory / "join-token"), "--dir", str(directory.parent / name)),
        *("--runtime", "process"),
    )
    with open(directory.parent / f"{name}.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Measure and print the line."""
    line = Line("database_work")
    with cluster(slots=CONCURRENT) as directory, client() as sdk:
        search_s(sdk, CONCURRENT)
        counter = Counter(directory)
        idle = counter.during(IDLE_S)
        with counter.count() as done:
            search_s(sdk, TRIALS)
        with agents(directory, sdk, MORE_AGENTS):
            counter.during(_STATISTICS_S)
            more = counter.during(IDLE_S)
        minute = idle.seconds / 60
        line.add(
            trials=TRIALS,
            per_trial=done[0].less(idle).per(TRIALS),
            idle_per_minute=idle.per(minute),
            each_agent_more_per_minute=more.less(idle).per(MORE_AGENTS * more.seconds / 60),
        )
    line.emit()


if __name__ == "__main__":
    main()
