"""A cluster of rows to which everything happens that changes it for the scheduler, in random order and overlapping.

Some of it through the functions that the master has for it, the rest as plain SQL: whoever writes, rows say so.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

import asyncpg
from asyncpg import Connection

from tenax.errors import TenaxError
from tenax.ids import AllocationId
from tenax.master.access.task_tokens import token_hash
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.database.connection import Database, connect
from tenax.master.store.database.lanes import REQUESTS
from tenax.master.store.queue import placements
from tenax.master.store.queue.placements import TaskCredentials
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import Size
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import PoolRules
from tenax.wire.agents import Hello, SlotInfo
from tests.kits.rows import add_experiment, add_trial

POOLS = ("default", "other", "third")
RULES = {"default": PoolRules(), "other": PoolRules(preemption=True), "third": PoolRules("least_attained")}
PLACES = {"default": 3}
#: What a statement may wait for a transaction that is still open.
_LOCK_MS = 50

_Step = Callable[[Connection], Awaitable[object]]

#: A column of one row, chosen among those that are there.
_COLUMNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "jobs": {
        "pool": ("'default'", "'other'", "'third'"),
        "priority": ("10", "42", "99"),
        "weight": ("1", "2.5"),
        "queue_position": ("1", "7", "1000000"),
        "max_slots": ("null", "0", "3"),
        "time_limit_s": ("null", "60", "3600"),
    },
    "allocations": {
        "slots": ("0", "1", "2"),
        "preemptible": ("true", "false"),
        "single_node": ("true", "false"),
        "blocked_agents": ("'{}'", "array['a1', 'a2']"),
        "constraints": ("null", """'{"device_memory": 5}'"""),
        "requested_at": ("now() - interval '1 hour'", "now()"),
        "over_time": ("true", "false"),
        "assigned_at": ("now() - interval '1 minute'",),
        "time_limit_s": ("null", "30"),
    },
    "agents": {"state": ("'ENABLED'", "'DRAINING'", "'DISABLED'"), "pool": ("'default'", "'other'")},
    "agent_presence": {"connected": ("true", "false"), "labels": ("'{}'", """'{"zone": "x"}'""")},
    "agent_slots": {
        "enabled": ("true", "false"),
        "present": ("true", "false"),
        "fault": ("''", "'it broke'"),
        "name": ("'A100'", "'H100'"),
        "memory": ("null", "80", "2"),
        "kind": ("'cpu'", "'cuda'"),
    },
    "containers": {"slots": ("'{}'", "'{0}'"), "agent_id": ("'a1'", "'a2'")},
    "experiment_tallies": {"expected_trials": ("null", "0", "9")},
}
_KEYS = {
    "jobs": "job_id",
    "allocations": "allocation_id",
    "agents": "agent_id",
    "agent_presence": "agent_id",
    "agent_slots": "agent_id, slot_id",
    "containers": "container_id",
    "experiment_tallies": "experiment_id",
}


class ChangingCluster:
    """``step`` changes it; some transactions stay open for a while, and are committed after others that began later."""

    def __init__(self, database: Database, database_url: str, chance: random.Random) -> None:
        self._database = database
        self._url = database_url
        self._chance = chance
        self._open: list[tuple[Connection, str]] = []
        #: How often each kind of change was committed.
        self.done: Counter[str] = Counter()
        self._steps: dict[str, _Step] = {
            **{f"{table}.{column}": self._column(table, column) for table in _COLUMNS for column in _COLUMNS[table]},
            "submit": self._submit,
            "place": self._place,
            "run on": self._run_on,
            "ask to leave": self._ask_to_leave,
            "end": self._end,
            "gone": self._gone,
            "withdraw": self._withdraw,
            "connect": self._connect,
            "remove an agent": self._remove,
            "delete": self._delete,
        }
        self._names = [*self._steps, *(6 * ["submit", "connect"]), *(9 * ["place", "end", "gone", "run on"])]

    @property
    def kinds(self) -> set[str]:
        """All that can happen."""
        return set(self._steps)

    async def step(self) -> None:
        """Something happens."""
        if self._open and self._chance.random() < 0.5:
            await self._close(self._open.pop(self._chance.randrange(len(self._open))))
            return
        name = self._chance.choice(self._names)
        if len(self._open) < 2 and self._chance.random() < 0.2:
            await self._begin(name)
            return
        try:
            async with self._database.transaction() as conn:
                await conn.execute(f"set local lock_timeout = '{_LOCK_MS}ms'")
                changed = await self._steps[name](conn)
            self.done[name] += changed is not False
        except (TenaxError, asyncpg.PostgresError):
            # It is in the way of another, or of a rule of the schema: then nothing has changed.
            self.done[f"refused {name}"] += 1

    async def close(self) -> None:
        """Roll back what is still open."""
        for conn, _ in self._open:
            await conn.close()

    async def _begin(self, name: str) -> None:
        conn: Connection = await connect(self._url, "late", REQUESTS)
        await conn.execute(f"begin; set local lock_timeout = '{_LOCK_MS}ms'")
        try:
            await self._steps[name](conn)
        except (TenaxError, asyncpg.PostgresError):
            await conn.close()
        else:
            self._open.append((conn, name))

    async def _close(self, opened: tuple[Connection, str]) -> None:
        conn, name = opened
        try:
            if self._chance.random() < 0.2:
                await conn.execute("rollback")
            else:
                await conn.execute("commit")
                self.done[name] += 1
                self.done[f"overlapping {name}"] += 1
        except asyncpg.PostgresError:
            self.done["refused at the commit"] += 1
        await conn.close()

    def _column(self, table: str, column: str) -> _Step:
        async def change(conn: Connection) -> bool:
            value, key = self._chance.choice(_COLUMNS[table][column]), _KEYS[table]
            which = " where state <> 'TERMINATED'" if table == "allocations" else ""
            row = await self._one(conn, f"select ctid from {table}{which} order by {key}")
            changed = f"update {table} set {column} = {value} where ctid = $1 and {column} is distinct from {value}"
            return row is not None and bool(await conn.fetch(f"{changed} returning 1", row[0]))

        return change

    async def _one(self, conn: Connection, query: str) -> asyncpg.Record | None:
        rows = await conn.fetch(query)
        return self._chance.choice(rows) if rows else None

    async def _submit(self, conn: Connection) -> bool:
        idle = await self._one(
            conn,
            "select t.id from trials t where not exists (select 1 from tasks k join allocations a"
            " on a.task_id = k.task_id and a.state <> 'TERMINATED' where k.trial_id = t.id) order by id",
        )
        if idle is not None and self._chance.random() < 0.5:
            trial = idle["id"]
        else:
            trial = await add_trial(conn, await add_experiment(conn))
        await trials.request_runs(conn, [trial], Size(self._chance.randrange(4), self._chance.random() < 0.3))
        return True

    async def _place(self, conn: Connection) -> bool:
        """As the loop does it, and at once."""
        for snapshot in await placements.snapshots(conn, RULES, PLACES):
            for name, members in plan(snapshot).placements.items():
                await placements.place(conn, name, members, TaskCredentials(token_hash(name), token_hash(f"s{name}")))
                return True
        return False

    async def _run_on(self, conn: Connection) -> bool:
        row = await self._one(conn, "select allocation_id from allocations where state = 'ASSIGNED' order by 1")
        if row is not None:
            await conn.execute("update allocations set state = 'RUNNING' where allocation_id = $1", row[0])
        return row is not None

    async def _ask_to_leave(self, conn: Connection) -> bool:
        row = await self._one(
            conn, "select allocation_id from allocations where state not in ('PENDING', 'TERMINATED') order by 1"
        )
        if row is None:
            return False
        reason = self._chance.choice(("it was paused", "makes room for 7.1, which is ahead of it"))
        await allocations.ask_to_leave(conn, [LeaveRequest(AllocationId(row[0]), reason)], 60.0)
        return True

    async def _end(self, conn: Connection) -> bool:
        row = await self._one(
            conn, "select allocation_id, state from allocations where state <> 'TERMINATED' order by 1"
        )
        if row is None:
            return False
        state = self._chance.choice(("TERMINATING", "TERMINATED"))
        await conn.execute(
            "update allocations set state = $2, ended_at = case $2 when 'TERMINATED' then now() end"
            " where allocation_id = $1",
            row[0],
            state,
        )
        return True

    async def _gone(self, conn: Connection) -> bool:
        row = await self._one(
            conn,
            "select c.container_id from containers c join allocations a using (allocation_id)"
            " where a.state in ('TERMINATING', 'TERMINATED') and c.gone_at is null order by 1",
        )
        if row is None:
            return False
        await conn.execute("delete from slots_in_use where container_id = $1", row[0])
        await conn.execute(
            "update containers set state = 'TERMINATED', exit = '{}', ended_at = now(), gone_at = now()"
            " where container_id = $1",
            row[0],
        )
        return True

    async def _withdraw(self, conn: Connection) -> bool:
        row = await self._one(conn, "select allocation_id from allocations where state = 'PENDING' order by 1")
        if row is not None:
            await conn.execute(
                "update allocations set state = 'TERMINATED', ended_at = now() where allocation_id = $1", row[0]
            )
        return row is not None

    async def _connect(self, conn: Connection) -> bool:
        """A new agent, or one that is back with other devices."""
        name = f"a{self._chance.randrange(6)}"
        if not await conn.fetchval("select 1 from agents where agent_id = $1", name):
            await agents.join(conn, name, self._chance.choice(POOLS[:2]), token_hash(f"tnxg_{name}"))
        kind = self._chance.choice(("cpu", "cuda"))
        slots = [SlotInfo(number, kind, "A100", f"{name}-{number}") for number in range(self._chance.randrange(5))]
        labels = {"zone": self._chance.choice("xy")}
        await agents.open_session(
            conn, name, Hello(1, "0.1.0", name, "process", slots, [], labels=labels), "10.0.0.1", []
        )
        return True

    async def _remove(self, conn: Connection) -> bool:
        row = await self._one(
            conn,
            "select a.agent_id from agents a where not exists"
            " (select 1 from slots_in_use u where u.agent_id = a.agent_id) order by 1",
        )
        if row is not None:
            await conn.execute("delete from agents where agent_id = $1", row[0])
        return row is not None

    async def _delete(self, conn: Connection) -> bool:
        """A task with all of its attempts, whatever they hold."""
        row = await self._one(conn, "select task_id from tasks order by 1")
        if row is not None:
            await conn.execute("delete from tasks where task_id = $1", row[0])
        return row is not None
