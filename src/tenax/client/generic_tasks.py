"""Tasks of any kind as values; and generic tasks, which are created, forked, paused and ended.

A value is a snapshot of the master's answer; `Task.reload` fetches a new one.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Tuple

from tenax.client import reading
from tenax.client.commands import WHOLE_ID
from tenax.client.connection.session import Session, at
from tenax.client.context import read_context
from tenax.client.reading import only
from tenax.client.trials import LogLine, read_logs
from tenax.jsonvalue import JsonObject

_STATE = "GENERIC_TASK_STATE_"
_KIND = "TASK_TYPE_"


@dataclass(frozen=True)
class Task:
    """One task."""

    id: str
    #: TRIAL, COMMAND, GENERIC, ...
    kind: str
    #: Of a task that is no trial's: ACTIVE, PAUSED, COMPLETED, CANCELED, ERROR, or on its way there; else empty.
    state: str
    description: str
    owner: str
    reason: str
    parent_id: str
    forked_from: str
    started: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)
    session: Session = field(repr=False, compare=False)

    @staticmethod
    def read(value: JsonObject, session: Session) -> Task:
        """From an answer of the master."""
        attempts = reading.records(value, "allocations")
        latest = attempts[0] if attempts else {}
        # Of a trial's task only its attempts say what it is at.
        state = reading.text(value, "taskState") or reading.text(latest, "state")
        return Task(
            id=reading.text(value, "taskId"),
            kind=reading.text(value, "taskType").replace(_KIND, ""),
            state=state.replace(_STATE, "").replace("STATE_", ""),
            description=reading.text(value, "description"),
            owner=reading.text(value, "username"),
            reason=reading.text(value, "reason") or reading.text(latest, "reason"),
            parent_id=reading.text(value, "parentId"),
            forked_from=reading.text(value, "forkedFrom"),
            started=reading.moment(value, "startTime"),
            ended=reading.moment(value, "endTime"),
            raw=value,
            session=session,
        )

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
class OpenTask:
    """An attempt of a task that waits or runs."""

    task_id: str
    allocation_id: str
    name: str
    slots: int
    priority: int
    pool: str
    agents: Tuple[str, ...]
    state: str
    #: Why it waits.
    reason: str
    registered: Optional[datetime.datetime]
    raw: JsonObject = field(repr=False, compare=False)


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
    tasks = [_open(value) for value in listed.values() if isinstance(value, dict)]
    return sorted(tasks, key=lambda task: (task.registered is None, task.registered, task.allocation_id))


def _open(value: JsonObject) -> OpenTask:
    agents = [name for member in reading.records(value, "resources") for name in reading.record(member, "agentDevices")]
    return OpenTask(
        task_id=reading.text(value, "taskId"),
        allocation_id=reading.text(value, "allocationId"),
        name=reading.text(value, "name"),
        slots=reading.integer(value, "slotsNeeded"),
        priority=reading.integer(value, "priority"),
        pool=reading.text(value, "resourcePool"),
        agents=tuple(agents),
        state=reading.text(value, "state").replace("STATE_", ""),
        reason=reading.text(value, "reason"),
        registered=reading.moment(value, "registeredTime"),
        raw=value,
    )
