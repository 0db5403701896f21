"""Commands: a program run once on the cluster, as values, with queries about them and actions on them.

A value is a snapshot of the master's answer; `Command.reload` fetches a new one.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from tenax.client.connection import reading
from tenax.client.connection.polling import Steps, slept, until
from tenax.client.connection.reading import LiveAnswer, made, only, part
from tenax.client.connection.session import Query, Session, at
from tenax.client.context import read_context
from tenax.client.trials import LogLine, pages, read_logs
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject

#: A command in it stays in it.
ENDED = "TERMINATED"
WHOLE_ID = 36


@dataclass(frozen=True)
class Command(LiveAnswer):
    """A program that runs once."""

    id: str = part(reading.text, "id")
    description: str = part(reading.text, "description")
    #: QUEUED, PULLING, STARTING, RUNNING, TERMINATING or TERMINATED.
    state: str = part(reading.state, "state")
    owner: str = part(reading.text, "username")
    pool: str = part(reading.text, "resourcePool")
    priority: int = part(reading.integer, "priority")
    workspace_id: int = part(reading.integer, "workspaceId")
    #: Of the program, once it has ended by itself; None for one that did not, or runs.
    exit_code: Optional[int] = made(
        lambda value: None if value.get("exitCode") is None else reading.integer(value, "exitCode")
    )
    #: Why it waits, or how it ended.
    reason: str = made(lambda value: reading.text(value, "reason") or reading.text(value, "exitStatus"))
    started: Optional[datetime.datetime] = part(reading.moment, "startTime")
    ended: Optional[datetime.datetime] = part(reading.moment, "endTime")
    #: The whole configuration; empty in lists.
    config: JsonObject = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, value: JsonObject, session: Session, config: Optional[JsonObject] = None) -> Command:
        """From an answer of the master; ``config`` stands beside it there."""
        return replace(super().read(value, session), config=config or {})

    @property
    def has_ended(self) -> bool:
        return self.state == ENDED

    def reload(self) -> Command:
        """The command as it is now."""
        return get_command(self.session, self.id)

    def wait(self, *, interval: float = 0.5, seen: Optional[Callable[[Command], bool]] = None) -> Command:
        """The command once it has ended, or once ``seen``, which is shown every state on the way, says enough.

        A master that is away is waited for. Raises Unreachable when it stays away for ten minutes.
        """
        return slept(self._wait(interval=interval, seen=seen))

    def _wait(self, *, interval: float, seen: Optional[Callable[[Command], bool]]) -> Steps[Command]:
        def enough(command: Command) -> bool:
            return command.has_ended or (seen is not None and seen(command))

        return until(self, self.reload, enough, interval)

    def kill(self) -> None:
        """End it at once; nothing if it has ended."""
        self.session.post(at("/api/v1/commands/{}/kill", self.id))

    def set_priority(self, priority: int) -> None:
        """Its place in the queue: 1 is the most urgent, 99 the least."""
        self.session.post(at("/api/v1/commands/{}/set_priority", self.id), {"priority": priority})

    def logs(
        self, *, follow: bool = False, head: Optional[int] = None, tail: Optional[int] = None, search: str = ""
    ) -> Iterator[LogLine]:
        """Its output, the oldest line first; ``follow`` goes on until it has ended."""
        return read_logs(self.session, at("/api/v1/tasks/{}/logs", self.id), follow, head, tail, search)


def run_command(
    session: Session,
    argv: Sequence[str] = (),
    *,
    config: Optional[JsonObject] = None,
    slots: Optional[int] = None,
    context: Optional[Path] = None,
    files: Sequence[Path] = (),
    template: str = "",
    workspace_id: int = 0,
) -> Tuple[Command, List[str]]:
    """Run a program once; the command as it was launched, and what the master remarks.

    ``argv``: a program and its arguments, or a line for the shell; over the ``entrypoint`` of ``config``. ``context``:
    a directory whose content is the program's work directory; ``files`` are put beside it. Raises InvalidInput.
    """
    document = dict(config or {})
    if argv:
        document["entrypoint"] = list(argv)
    if slots is not None:
        resources = document.get("resources")
        document["resources"] = {**(resources if isinstance(resources, dict) else {}), "slots": slots}
    if not document.get("entrypoint"):
        raise InvalidInput("There is nothing to run: give a program and its arguments.")
    body: JsonObject = {"config": document, "workspaceId": workspace_id, "templateName": template}
    if context is not None or files:
        body["files"] = list(read_context(context, files))
    answer = session.create("/api/v1/commands", body)
    command = Command.read(reading.record(answer, "command"), session, reading.record(answer, "config"))
    return command, reading.texts(answer, "notices")


def get_command(session: Session, name: str) -> Command:
    """The command of that id. Raises NotFound."""
    answer = session.get(at("/api/v1/commands/{}", name))
    return Command.read(reading.record(answer, "command"), session, reading.record(answer, "config"))


def find_command(session: Session, name: str) -> Command:
    """The command whose id begins so, or whose description is this. Raises NotFound, InvalidInput for several."""
    if len(name) == WHOLE_ID and name.count("-") == 4:
        return get_command(session, name)
    matches = [
        command for command in list_commands(session) if command.id.startswith(name) or command.description == name
    ]
    otherwise = " of today: give its whole id, or see: tenax command list --all"
    return get_command(session, only(name, matches, lambda command: command.id, "command", otherwise).id)


def list_commands(session: Session, *, users: Sequence[str] = (), workspace_id: int = 0) -> List[Command]:
    """Those that live or have ended within a day, the newest first."""
    query: Query = {
        "users": list(users),
        "workspaceId": workspace_id or None,
        "sortBy": "SORT_BY_START_TIME",
        "orderBy": "ORDER_BY_DESC",
    }
    return [Command.read(value, session) for value in pages(session, "/api/v1/commands", "commands", query)]
