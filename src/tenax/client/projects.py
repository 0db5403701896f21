"""Projects as values, with what can be done to them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence, Tuple, Union

from tenax.client.connection import reading
from tenax.client.connection.polling import Steps, slept, until_gone
from tenax.client.connection.reading import LiveAnswer, is_number, made, part, without_nulls
from tenax.client.connection.session import Query, Session, at
from tenax.client.experiments import Experiment, list_experiments
from tenax.client.trials import pages
from tenax.client.workspaces import folder_state, get_workspace, ordered
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Note:
    """A page of a project's notes, in Markdown."""

    name: str
    contents: str


@dataclass(frozen=True)
class Project(LiveAnswer):
    """Where experiments are filed, in one workspace."""

    id: int = part(reading.integer, "id")
    name: str = part(reading.text, "name")
    description: str = part(reading.text, "description")
    #: Begins the short names of what is in it.
    key: str = part(reading.text, "key")
    workspace_id: int = part(reading.integer, "workspaceId")
    workspace: str = part(reading.text, "workspaceName")
    owner: str = part(reading.text, "username")
    #: It, or its workspace.
    archived: bool = part(reading.flag, "archived")
    immutable: bool = part(reading.flag, "immutable")
    #: ACTIVE, DELETING or DELETE_FAILED.
    state: str = made(folder_state)
    #: Why it could not be deleted.
    error: str = part(reading.text, "errorMessage")
    notes: Tuple[Note, ...] = made(lambda value: _notes(value))
    experiments_count: int = part(reading.integer, "numExperiments")
    #: Of those, which have not ended.
    active_count: int = part(reading.integer, "numActiveExperiments")
    #: Trials.
    runs_count: int = part(reading.integer, "numRuns")
    last_experiment: Optional[datetime.datetime] = part(reading.moment, "lastExperimentStartedAt")

    def reload(self) -> Project:
        """The project as it is now. Raises NotFound."""
        return get_project(self.session, self.id)

    def experiments(
        self,
        *,
        users: Sequence[str] = (),
        archived: Optional[bool] = None,
        name: str = "",
        labels: Sequence[str] = (),
        states: Sequence[str] = (),
    ) -> List[Experiment]:
        """What is filed in it, the newest first; ``archived`` None: both kinds."""
        return list_experiments(
            self.session, users=users, states=states, archived=archived, name=name, labels=labels, project_id=self.id
        )

    def edit(
        self, *, name: Optional[str] = None, description: Optional[str] = None, key: Optional[str] = None
    ) -> Project:
        """Change what is given. Raises AlreadyExists, Forbidden, NotNow."""
        body = without_nulls({"name": name, "description": description, "key": key})
        answer = self.session.call("PATCH", self._path, body=body)
        return Project.read(reading.record(answer, "project"), self.session)

    def archive(self) -> None:
        """Nothing is filed in it any more, and it does not change."""
        self.session.post(f"{self._path}/archive")

    def unarchive(self) -> None:
        """As it was before."""
        self.session.post(f"{self._path}/unarchive")

    def move(self, workspace: Union[int, str]) -> None:
        """Into another workspace, by number or name. Raises NotFound, AlreadyExists."""
        goal = get_workspace(self.session, workspace).id
        self.session.post(f"{self._path}/move", {"projectId": self.id, "destinationWorkspaceId": goal})

    def add_note(self, name: str, contents: str) -> Tuple[Note, ...]:
        """Put a note behind the others; all of them."""
        return _notes(self.session.create(f"{self._path}/notes", {"name": name, "contents": contents}))

    def set_notes(self, notes: Sequence[Note]) -> Tuple[Note, ...]:
        """Replace all notes."""
        body: JsonObject = {
            "projectId": self.id,
            "notes": [{"name": note.name, "contents": note.contents} for note in notes],
        }
        return _notes(self.session.call("PUT", f"{self._path}/notes", body=body))

    def delete(self, *, wait: bool = True, seen: Optional[Callable[[Project], None]] = None) -> None:
        """Delete it with its experiments; ``seen`` is shown it while it goes. Raises NotNow."""
        slept(self._delete(wait=wait, seen=seen))

    def _delete(self, *, wait: bool, seen: Optional[Callable[[Project], None]]) -> Steps[None]:
        def failure(now: Project) -> str:
            if now.state == "DELETE_FAILED":
                return f"Project {self.name} was not deleted: {now.error}"
            if seen is not None:
                seen(now)
            return ""

        done = reading.flag(self.session.call("DELETE", self._path), "completed")
        if wait and not done:
            yield from until_gone(self.reload, failure)

    @property
    def _path(self) -> str:
        return at("/api/v1/projects/{}", self.id)


def list_projects(
    session: Session,
    workspace: Union[int, str],
    *,
    archived: Optional[bool] = None,
    users: Sequence[str] = (),
    sort: str = "id",
    descending: bool = False,
) -> List[Project]:
    """Projects of a workspace (0: of all), by id, name, description, creation_time or last_experiment_start_time."""
    number = workspace if workspace == 0 else get_workspace(session, workspace).id
    query: Query = {"archived": archived, "users": list(users), **ordered(sort, descending)}
    projects = pages(session, at("/api/v1/workspaces/{}/projects", number), "projects", query)
    return [Project.read(value, session) for value in projects]


def get_project(session: Session, which: Union[int, str], workspace: Union[int, str, None] = None) -> Project:
    """A project by name in a workspace; without one by number, by key, or as ``workspace/project``. Raises NotFound."""
    if workspace is None and isinstance(which, str) and "/" in which:
        workspace, _, which = which.partition("/")
    if workspace is not None:
        place = get_workspace(session, workspace)
        path = at("/api/v1/workspaces/{}/projects", place.id)
        matches = reading.records(session.get(path, {"name": which}), "projects") if which else []
        if not matches:
            raise NotFound(f"There is no project {which!r} in the workspace {place.name!r}.")
        return Project.read(matches[0], session)
    numbered = isinstance(which, int) or is_number(which)
    path = at("/api/v1/projects/{}" if numbered else "/api/v1/projects/key/{}", which)
    return Project.read(reading.record(session.get(path), "project"), session)


def create_project(
    session: Session,
    workspace: Union[int, str],
    name: str,
    *,
    description: str = "",
    key: Optional[str] = None,
) -> Project:
    """Make a project; without ``key`` one is made from its name. Raises AlreadyExists, NotFound."""
    place = get_workspace(session, workspace)
    body: JsonObject = {"name": name, "description": description, "workspaceId": place.id, "key": key}
    answer = session.create(at("/api/v1/workspaces/{}/projects", place.id), body)
    return Project.read(reading.record(answer, "project"), session)


def _notes(value: JsonObject) -> Tuple[Note, ...]:
    return tuple(
        Note(reading.text(note, "name"), reading.text(note, "contents")) for note in reading.records(value, "notes")
    )
