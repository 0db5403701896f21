"""What a change costs the loop that schedules: rows in, decision, rows committed; and a pass from nothing.

Prints one JSON line for each cluster. There is no peer: the figures are read beside those of another commit.

- A cluster is rows: agents of eight slots, each held by one attempt, and requests of one to eight slots that wait, of
  jobs of fifty, with some priorities.
- ``from_nothing_ms``: the first pass of a master, reasons of all that wait among what it writes; ``again_ms``: one
  that finds nothing changed.
- ``change_ms``: an attempt has left its slots, and the first that fits has them, committed. Reasons are written in most
  of these passes, as once a second.
- ``change_cpu_ms``: the processor time of this process in such a pass, which a busy machine does not change much.
- ``loop_held_ms``: the longest that anything else on the event loop had to wait in such a pass; ``idle_held_ms``: the
  same while this process does nothing for two seconds, which is the machine's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from asyncpg import Connection

from benchmarks._measure import LONG, Line, summary
from tenax.config.master import PoolSettings
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.loops.loop import PassContext
from tenax.master.loops.scheduling import Scheduling
from tenax.master.store.database import leases
from tenax.master.store.database.connection import Database
from tenax.master.store.database.migrate import migrate
from tenax.master.store.database.wakeups import Woken

#: Agents, requests that wait, pools.
CLUSTERS = ((1_000, 10_000, 1),) + (((10_000, 100_000, 1), (10_000, 100_000, 10)) if LONG else ())
CHANGES = 9
_TICK_S = 0.001
_FILL = """
insert into users (id, username) values (1, 'owner') on conflict do nothing;
insert into workspaces (id, name) values (1, 'w') on conflict do nothing;
insert into projects (id, workspace_id, name) values (1, 1, 'p') on conflict do nothing;
insert into agents (agent_id, pool, credential_hash)
select 'a' || n, 'p' || n % {pools}, sha256(n::text::bytea) from generate_series(1, {agents}) n;
insert into agent_presence (agent_id, connected) select agent_id, true from agents;
insert into agent_slots (agent_id, slot_id, kind) select a.agent_id, s, 'cuda' from agents a, generate_series(0, 7) s;
insert into jobs (job_id, pool, priority, queue_position, owner_id)
select 'j' || n, 'p' || n % {pools}, 40 + n % 5, n, 1 from generate_series(1, {jobs}) n;
insert into jobs (job_id, pool, priority, queue_position, owner_id)
select 'r' || n, 'p' || n % {pools}, 40, 0, 1 from generate_series(1, {agents}) n;
insert into tasks (task_id, kind, job_id, spec)
select 'w' || n, 'COMMAND', 'j' || 1 + n % {jobs}, '{{}}' from generate_series(1, {queued}) n;
insert into tasks (task_id, kind, job_id, spec)
select 'r' || n, 'COMMAND', 'r' || n, '{{}}' from generate_series(1, {agents}) n;
insert into allocations (allocation_id, task_id, run_id, slots)
select 'w' || n || '.1', 'w' || n, 1, 1 + n % 8 from generate_series(1, {queued}) n;
insert into allocations (allocation_id, task_id, run_id, slots, state, assigned_at)
select 'r' || n || '.1', 'r' || n, 1, 8, 'RUNNING', now() from generate_series(1, {agents}) n;
insert into containers (container_id, allocation_id, rank, agent_id, slots, state)
select 'c' || n, 'r' || n || '.1', 0, 'a' || n, array[0, 1, 2, 3, 4, 5, 6, 7], 'RUNNING'
from generate_series(1, {agents}) n;
insert into slots_in_use (agent_id, slot_id, container_id)
select 'a' || n, s, 'c' || n from generate_series(1, {agents}) n, generate_series(0, 7) s;
analyze;
"""


@asynccontextmanager
async def filled(agents: int, queued: int, pools: int) -> AsyncIterator[Database]:
    """A database with such a cluster in it."""
    root = Path(tempfile.mkdtemp(prefix="tenax-bench-"))
    # PostgreSQL may run as another user.
    os.chmod(root, 0o755)
    postgres = EmbeddedPostgres(root / "postgres")
    try:
        database = await Database.open(postgres.start())
        async with database.connection() as conn:
            await migrate(conn)
            jobs = queued // 50
            await conn.execute(_FILL.format(agents=agents, queued=queued, pools=pools, jobs=jobs), timeout=600)
        yield database
        await database.close()
    finally:
        postgres.stop()
        shutil.rmtree(root)


async def held_ms(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Milliseconds that some work takes, and the longest that the event loop was kept from anything else."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_TICK_S)
            longest = max(longest, time.perf_counter() - began - _TICK_S)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    began = time.perf_counter()
    await work()
    took = time.perf_counter() - began
    # What was held up by the end of the work has its turn.
    await asyncio.sleep(2 * _TICK_S)
    ticking.cancel()
    return took * 1e3, longest * 1e3


async def leave(conn: Connection, number: int) -> None:
    """What one agent runs has ended, and its slots are free."""
    await conn.execute("update allocations set state = 'TERMINATED', ended_at = now() where task_id = $1", f"r{number}")
    await conn.execute("delete from slots_in_use where container_id = $1", f"c{number}")
    await conn.execute(
        "update containers set state = 'TERMINATED', exit = '{}', ended_at = now(), gone_at = now()"
        " where container_id = $1",
        f"c{number}",
    )


async def measure(agents: int, queued: int, pools: int) -> None:
    """One cluster, one line."""
    line = Line("scheduling_pass")
    async with filled(agents, queued, pools) as database:
        async with database.transaction() as conn:
            lease = await leases.acquire(conn, "scheduling", "bench", 36000.0)
        assert lease is not None
        context = PassContext(database, lease)
        loop = Scheduling([PoolSettings(name=f"p{n}") for n in range(pools)], b"s" * 32, 60.0)
        first, _ = await held_ms(lambda: loop.make_pass(context, Woken(frozenset(), full=True)))
        woken = Woken(frozenset({"freed:a1", ""}), full=False)
        again = [await held_ms(lambda: loop.make_pass(context, woken)) for _ in range(3)]
        _, idle = await held_ms(lambda: asyncio.sleep(2))
        changed, cpu_ms = [], []
        for number in range(1, CHANGES + 1):
            async with database.transaction() as conn:
                await leave(conn, number)
            began = time.process_time()
            changed.append(await held_ms(lambda: loop.make_pass(context, woken)))
            cpu_ms.append((time.process_time() - began) * 1e3)
        async with database.connection() as conn:
            placed = await conn.fetchval("select count(*) from allocations where task_id ~ '^w' and state = 'ASSIGNED'")
        line.add(
            agents=agents,
            queued=queued,
            pools=pools,
            placed=placed,
            from_nothing_ms=round(first),
            again_ms=summary([took for took, _ in again], 1),
            change_ms=summary([took for took, _ in changed], 1),
            change_cpu_ms=summary(cpu_ms, 1),
            idle_held_ms=round(idle, 1),
            loop_held_ms=summary([held for _, held in changed], 1),
        )
    line.emit()


def main() -> None:
    """Measure and print the lines."""
    for cluster in CLUSTERS:
        asyncio.run(measure(*cluster))


if __name__ == "__main__":
    main()
