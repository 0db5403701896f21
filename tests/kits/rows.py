"""Rows that other parts write in life: agents, trials, attempts. For tests that look at what the API makes of them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from asyncpg import Connection

from tenax.ids import RequestId
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending
from tenax.master.access.task_tokens import token_hash
from tenax.master.store.agents import rows as agents
from tenax.master.store.allocations import containers
from tenax.master.store.allocations.containers import MemberChange, NewMember
from tenax.master.store.database.queries import load
from tenax.master.store.trials import rows as trials
from tenax.master.store.trials.rows import Size
from tenax.search.journal import Create
from tenax.wire.agents import Hello, SlotInfo

_PLACE = load("allocations").place
#: It asks for the slots of its configuration; whoever names others has them.
_ASKED_FOR = """
    update allocations a set slots = $2 from tasks k
    where k.trial_id = $1 and a.task_id = k.task_id and a.state = 'PENDING' returning a.allocation_id
"""


async def add_agent(conn: Connection, agent_id: str = "a1", slots: int = 2, pool: str = "default") -> str:
    """A connected agent, if it is not there yet; its credential."""
    credential = f"tnxg_{agent_id}"
    if await conn.fetchval("select 1 from agents where agent_id = $1", agent_id):
        return credential
    await agents.join(conn, agent_id, pool, token_hash(credential))
    slot_list = [SlotInfo(number, "cpu", f"core {number}", f"cpu-{agent_id}-{number}") for number in range(slots)]
    hello = Hello(1, "0.1.0", f"{agent_id}.local", "process", slot_list, [])
    await agents.open_session(conn, agent_id, hello, "10.0.0.1", [])
    return credential


async def add_trial(conn: Connection, experiment_id: int, seq: int = 1, hparams: dict[str, float] | None = None) -> int:
    """A trial as the search makes one, in the place of those that it began with by itself."""
    await forget_search(conn, experiment_id)
    request = RequestId(str(uuid.UUID(int=seq)))
    sample = Create(request, 7, dict(hparams or {"lr": 0.1}), seq, 0, None)
    (trial,) = await trials.create(conn, experiment_id, {seq: sample}, None)
    return trial


async def forget_search(conn: Connection, experiment_id: int) -> None:
    """The experiment as it was before its search began: without a trial, and without a journal."""
    if await conn.fetch("delete from search_journal where experiment_id = $1 returning 1", experiment_id):
        await conn.execute("delete from trials where experiment_id = $1", experiment_id)
        # Tallies are counted anew when trials go: before others come.
        await conn.execute("set constraints all immediate")
        await conn.execute("set constraints all deferred")
        # Tests name trials by their numbers.
        await conn.execute(
            "select setval(pg_get_serial_sequence('trials', 'id'), coalesce(max(id), 0) + 1, false) from trials"
        )


@dataclass(frozen=True)
class Attempt:
    """An attempt with running members."""

    allocation_id: str
    containers: tuple[str, ...]


async def request_attempt(conn: Connection, trial_id: int, slots: int = 1) -> str:
    """An attempt that waits for slots: the one that was asked for when the last one ended, or a new one."""
    waiting = await conn.fetchval(_ASKED_FOR, trial_id, slots)
    if waiting is not None:
        return str(waiting)
    (allocation,) = await trials.request_runs(conn, [trial_id], Size(slots, False))
    return allocation


async def run_attempt(conn: Connection, trial_id: int, agents_of: tuple[str, ...] = ("a1",)) -> Attempt:
    """An attempt with one running member of one slot on each of these agents; the agents' lowest free slots."""
    allocation = await request_attempt(conn, trial_id, len(agents_of))
    await conn.execute(_PLACE, allocation)
    names = []
    for rank, agent_id in enumerate(agents_of):
        name = str(uuid.uuid4())
        used = {
            row["slot_id"] for row in await conn.fetch("select slot_id from slots_in_use where agent_id = $1", agent_id)
        }
        slot = next(number for number in range(64) if number not in used)
        await containers.create(conn, allocation, [NewMember(name, rank, agent_id, [slot])])
        names.append(name)
    for member in (await containers.lock_members(conn, [allocation]))[allocation]:
        running = Container(member.container.container_id, ContainerState.RUNNING, Desired.RUN, None, False)
        await containers.save(conn, [MemberChange(member, running, f"10.0.0.{member.agent_id.lstrip('a')}")])
    await conn.execute("update allocations set state = 'RUNNING' where allocation_id = $1", allocation)
    return Attempt(allocation, tuple(names))


async def end_member(conn: Connection, attempt: Attempt, rank: int, reason: str = "it crashed") -> None:
    """One member of an attempt has ended."""
    member = (await containers.lock_members(conn, [attempt.allocation_id]))[attempt.allocation_id][rank]
    ended = Container(
        member.container.container_id, ContainerState.TERMINATED, Desired.RUN, Ending(1, None, reason), False
    )
    await containers.save(conn, [MemberChange(member, ended)])


async def add_experiment(conn: Connection, state: str = "ACTIVE", config: JsonObject | None = None) -> int:
    """An experiment of the user 1, who is made if nobody was."""
    await conn.execute("insert into users (id, username) values (1, 'owner') on conflict do nothing")
    await conn.execute("insert into workspaces (id, name) values (1, 'w') on conflict do nothing")
    await conn.execute("insert into projects (id, workspace_id, name) values (1, 1, 'p') on conflict do nothing")
    job = f"job-{uuid.uuid4()}"
    await conn.execute(
        "insert into jobs (job_id, pool, priority, queue_position, owner_id) values ($1, 'default', 42, 1, 1)", job
    )
    made: int = await conn.fetchval(
        "insert into experiments (job_id, owner_id, project_id, state) values ($1, 1, 1, $2) returning id", job, state
    )
    await conn.execute(
        "insert into experiment_documents (experiment_id, name, original_config, config, seed)"
        " values ($1, 'e', '', $2, 0)",
        made,
        config or {"searcher": {"name": "single", "metric": "loss"}},
    )
    return made
