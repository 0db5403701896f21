"""Tasks of any kind as values; and generic tasks, which are created, forked, paused and ended.

A value is a snapshot of the master's answer; `Task.reload` fetches a new one.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Tuple

from tenax.client.commands import WHOLE_ID
from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, LiveAnswer, made, only, part
from tenax.client.connection.session import Session, at
from tenax.client.context import read_context
from tenax.client.trials import LogLine, read_logs
from tenax.jsonvalue import JsonObject

_STATE = "GENERIC_TASK_STATE_"
_KIND = "TASK_TYPE_"


@dataclass(frozen=True)
class Task(LiveAnswer):
    """One task."""

    id: str = part(reading.text, "taskId")
    #: TRIAL, COMMAND, GENERIC, ...
    kind: str = made(lambda value: reading.text(value, "taskType").replace(_KIND, ""))
    #: Of a task that is no trial's: ACTIVE, PAUSED, COMPLETED, CANCELED, ERROR, or on its way there; else empty.
    state: str = made(lambda value: _state(value))
    description: str = part(reading.text, "description")
    owner: str = part(reading.text, "username")
    reason: str = made(lambda value: reading.text(value, "reason") or reading.text(_latest_attempt(value), "reason"))
    parent_id: str = part(reading.text, "parentId")
    forked_from: str = part(reading.text, "forkedFrom")
    started: Optional[datetime.datetime] = part(reading.moment, "startTime")
    ended: Optional[datetime.datetime] = part(reading.moment, "endTime")

    def reload(self) -> Task:
        """The task as it is now."""
        return get_task(self.session, self.id)

    def config(self) -> JsonObject:
        """The whole configuration. Raises NotFound for a trial's: it is that of its experiment."""
        text = reading.text(self.session.get(at("/api/v1/tasks/{}/config", self.id)), "config")
        document = json.loads(text or "{}")
        return document if isinstance(document, dict) else {}

    def pause(self) -> None:
        """It and all that came from it save and leave their slots."""
        self.session.post(at("/api/v1/tasks/{}/pause", self.id))

    def unpause(self) -> None:
        """It and all that came from it go on."""
        self.session.post(at("/api/v1/tasks/{}/unpause", self.id))

    def kill(self, *, from_root: bool = False) -> None:
        """End it and all that came from it; ``from_root``: all that came from its topmost ancestor."""
        self.session.post(at("/api/v1/tasks/{}/kill", self.id), {"taskId": self.id, "killFromRoot": from_root})

    def logs(
        self, *, follow: bool = False, head: Optional[int] = None, tail: Optional[int] = None, search: str = ""
    ) -> Iterator[LogLine]:
        """Its output, the oldest line first; ``follow`` goes on until it has ended."""
        return read_logs(self.session, at("/api/v1/tasks/{}/logs", self.id), follow, head, tail, search)


@dataclass(frozen=True)
class OpenTask(Answer):
    """An attempt of a task that waits or runs."""

    task_id: str = part(reading.text, "taskId")
    allocation_id: str = part(reading.text, "allocationId")
    name: str = part(reading.text, "name")
    slots: int = part(reading.integer, "slotsNeeded")
    priority: int = part(reading.integer, "priority")
    pool: str = part(reading.text, "resourcePool")
    agents: Tuple[str, ...] = made(lambda value: _agents(value))
    state: str = made(lambda value: reading.text(value, "state").replace("STATE_", ""))
    #: Why it waits.
    reason: str = part(reading.text, "reason")
    registered: Optional[datetime.datetime] = part(reading.moment, "registeredTime")


def create_task(
    session: Session,
    config: str,
    *,
    context: Optional[Path] = None,
    files: Sequence[Path] = (),
    project_id: Optional[int] = None,
    parent_id: str = "",
    fork: str = "",
    inherit_context: bool = False,
    pausable: bool = True,
) -> Tuple[Task, List[str]]:
    """Create a generic task from YAML text (``fork``: from that of this task); it, and what the master remarks."""
    body: JsonObject = {
        "config": config,
        "contextDirectory": list(read_context(context, files)) if context is not None or files else [],
        "projectId": project_id,
        "parentId": parent_id,
        "forkedFrom": fork,
        "inheritContext": inherit_context,
        "noPause": not pausable,
    }
    answer = session.create("/api/v1/generic-tasks", body)
    return get_task(session, reading.text(answer, "taskId")), reading.texts(answer, "notices")


def get_task(session: Session, name: str) -> Task:
    """The task of that id. Raises NotFound."""
    return Task.read(reading.record(session.get(at("/api/v1/tasks/{}", name)), "task"), session)


def find_task(session: Session, name: str) -> Task:
    """The task of that id, or the open one whose id begins so. Raises NotFound, InvalidInput for several."""
    if len(name.rpartition(".")[2]) == WHOLE_ID:
        return get_task(session, name)
    ids = sorted({task.task_id for task in open_tasks(session) if task.task_id.startswith(name)})
    return get_task(session, only(name, ids, str, "task", " that waits or runs: give its whole id."))


def open_tasks(session: Session) -> List[OpenTask]:
    """What waits or runs, of every kind, the oldest first."""
    listed = reading.record(session.get("/api/v1/tasks"), "allocationIdToSummary")
    tasks = [OpenTask.read(value) for value in listed.values() if isinstance(value, dict)]
    return sorted(tasks, key=lambda task: (task.registered is None, task.registered, task.allocation_id))


def _state(task: JsonObject) -> str:
    # Of a trial's task only its attempts say what it is at.
    state = reading.text(task, "taskState") or reading.text(_latest_attempt(task), "state")
    return state.replace(_STATE, "").replace("STATE_", "")


def _latest_attempt(task: JsonObject) -> JsonObject:
    return next(iter(reading.records(task, "allocations")), {})


def _agents(value: JsonObject) -> Tuple[str, ...]:
    return tuple(
        name for member in reading.records(value, "resources") for name in reading.record(member, "agentDevices")
    )
