"""Events, as deliveries in the queue of every webhook with a trigger for them.

Rules: a delivery is written in the transaction of the event, so that neither is there without the other; each has an id
of its own, by which a receiver knows a repetition; the shape of a message is the one that Determined sends. Where a
receiver has taken nothing for so long that `MAX_WAITING` wait, what comes next is dropped: no script fills the disk.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import structlog
from asyncpg import Connection, Record

from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.machine import MachineNews
from tenax.master.store.database.queries import existing, load
from tenax.master.store.database.wakeups import notify

Q = load("webhooks")
log = structlog.get_logger("tenax.webhook_delivery")

#: What is woken when there is something to send.
KIND = "webhook"
#: Messages that wait for one webhook.
MAX_WAITING = 20_000
#: States of an experiment that a trigger may name.
STATES = (
    ExperimentState.ACTIVE,
    ExperimentState.PAUSED,
    ExperimentState.COMPLETED,
    ExperimentState.CANCELED,
    ExperimentState.ERROR,
)


@dataclass(frozen=True, slots=True)
class LogTrigger:
    """A pattern that lines of a task's output are matched with."""

    trigger_id: int
    #: In the syntax of RE2.
    regex: str


async def experiment_changed(conn: Connection, experiment_id: int, state: ExperimentState) -> None:
    """An experiment is in another state. In the transaction that changes it."""
    if state not in STATES:
        return
    triggers = await conn.fetch(Q.triggers_of_experiment, experiment_id, "EXPERIMENT_STATE_CHANGE", state.value, None)
    if triggers:
        experiment = await _experiment(conn, experiment_id)
        for trigger in triggers:
            shown = _shown(experiment, trigger["kind"])
            data: JsonObject = {"experiment": shown}
            await _put(conn, trigger, "EXPERIMENT_STATE_CHANGE", experiment["now"], trigger["condition"], data)


async def custom(
    conn: Connection, experiment_id: int, trial_id: int | None, title: str, description: str, level: str
) -> int:
    """A script sends a message of its own; how many webhooks it goes to. In a transaction. Raises NotFound."""
    experiment = await _experiment(conn, experiment_id)
    if trial_id is not None and not await conn.fetchval(Q.trial_of, trial_id, experiment_id):
        raise NotFound(f"trial {trial_id} not found in experiment {experiment_id}")
    triggers = await conn.fetch(Q.triggers_of_experiment, experiment_id, "CUSTOM", None, None)
    message: JsonObject = {"title": title, "description": description, "level": level}
    for trigger in triggers:
        shown = _shown(experiment, trigger["kind"]) | ({} if trial_id is None else {"trial_id": trial_id})
        data: JsonObject = {"custom": message, "experiment": shown}
        await _put(conn, trigger, "CUSTOM", experiment["now"], {"state": experiment["state"]}, data)
    return len(triggers)


async def log_triggers(conn: Connection, task_id: str) -> list[LogTrigger]:
    """Patterns that lines of this task are to be matched with, but for those that have matched already."""
    return [LogTrigger(row["trigger_id"], row["regex"]) for row in await conn.fetch(Q.log_triggers, task_id)]


async def log_line_matched(conn: Connection, trigger_id: int, task_id: str, line: str, node_name: str) -> bool:
    """A line of a task's output matches the pattern of a trigger; whether it is the first of that task.

    Only the first is sent. In a transaction; nothing for a trigger that is gone.
    """
    if await conn.fetchval(Q.first_match, task_id, trigger_id) is None:
        return False
    trigger = await conn.fetchrow(Q.trigger, trigger_id)
    if trigger is None:
        return False
    match: JsonObject = {"task_id": task_id, "node_name": node_name, "triggering_log": line}
    task = await conn.fetchrow(Q.kind_of_task, task_id) if trigger["kind"] == "SLACK" else None
    if task is not None:
        # For the words of the message and its link; what other receivers get is Determined's, to the letter.
        match |= dict(task)
    await _put(conn, trigger, "TASK_LOG", trigger["now"], trigger["condition"], {"task_log": match})
    return True


async def machines_changed(conn: Connection, news: MachineNews, data: JsonObject) -> None:
    """Something happened with rented machines: for webhooks of all workspaces. In the transaction that writes it."""
    for trigger in await conn.fetch(Q.triggers_of_machines, news.value):
        await _put(conn, trigger, "MACHINE", trigger["now"], trigger["condition"], data)


async def owner_of(conn: Connection, experiment_id: int) -> int:
    """Whose experiment it is. Raises NotFound."""
    owner: int = (await _experiment(conn, experiment_id))["owner_id"]
    return owner


async def _experiment(conn: Connection, experiment_id: int) -> Record:
    return await existing(conn, f"experiment {experiment_id}", Q.experiment, experiment_id)


def _shown(row: Record, kind: str) -> JsonObject:
    # For links; what other receivers get is Determined's, to the letter.
    places = {"workspace_id": row["workspace_id"], "project_id": row["project_id"]} if kind == "SLACK" else {}
    return {
        **places,
        "id": row["id"],
        "state": row["state"],
        "name": row["name"],
        "duration": row["duration"],
        "resource_pool": row["resource_pool"],
        "slots_per_trial": row["slots_per_trial"],
        "workspace": row["workspace"],
        "project": row["project"],
    }


async def _put(
    conn: Connection, trigger: Record, kind: str, timestamp: int, condition: JsonObject, data: JsonObject
) -> None:
    event_id = uuid.uuid4()
    event: JsonObject = {
        "event_id": str(event_id),
        "event_type": kind,
        "timestamp": timestamp,
        "condition": condition,
        "event_data": data,
    }
    if await conn.fetchval(Q.enqueue, event_id, trigger["webhook_id"], event, MAX_WAITING) is None:
        log.warning(
            "an event was dropped: too much waits for the webhook, or it is gone",
            webhook=trigger["webhook_id"],
            kind=kind,
        )
        return
    await notify(conn, KIND, trigger["webhook_id"])
