"""Workspaces as values, with what can be done to them; what is in them: see `projects` and `models` beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Union

from tenax.client.connection import reading
from tenax.client.connection.polling import Steps, slept, until_gone
from tenax.client.connection.reading import LiveAnswer, is_number, made, part, without_nulls
from tenax.client.connection.session import Query, Session, at
from tenax.client.trials import pages
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Workspace(LiveAnswer):
    """What a team keeps its projects and models in, with defaults for what runs there."""

    id: int = part(reading.integer, "id")
    name: str = part(reading.text, "name")
    owner: str = part(reading.text, "username")
    archived: bool = part(reading.flag, "archived")
    immutable: bool = part(reading.flag, "immutable")
    #: By the user of this session.
    pinned: bool = part(reading.flag, "pinned")
    #: ACTIVE, DELETING or DELETE_FAILED.
    state: str = made(lambda value: folder_state(value))
    #: Why it could not be deleted.
    error: str = part(reading.text, "errorMessage")
    projects_count: int = part(reading.integer, "numProjects")
    experiments_count: int = part(reading.integer, "numExperiments")
    #: Below that of experiments made in it; its secrets are stars.
    checkpoint_storage: JsonObject = part(reading.record, "checkpointStorageConfig")
    default_compute_pool: str = part(reading.text, "defaultComputePool")
    default_aux_pool: str = part(reading.text, "defaultAuxPool")
    #: Whom its tasks run as: ``agentUid``, ``agentGid``, ``agentUser``, ``agentGroup``; empty: as their users say.
    agent_user: JsonObject = made(lambda value: without_nulls(reading.record(value, "agentUserGroup")))

    def reload(self) -> Workspace:
        """The workspace as it is now. Raises NotFound."""
        return get_workspace(self.session, self.id)

    def edit(
        self,
        *,
        name: Optional[str] = None,
        checkpoint_storage: Optional[JsonObject] = None,
        default_compute_pool: Optional[str] = None,
        default_aux_pool: Optional[str] = None,
        agent_user: Optional[JsonObject] = None,
    ) -> Workspace:
        """Change what is given; ``{}`` and ``""`` take a default away. Raises AlreadyExists, Forbidden, NotNow."""
        body = _settings(name, checkpoint_storage, default_compute_pool, default_aux_pool, agent_user)
        answer = self.session.call("PATCH", at("/api/v1/workspaces/{}", self.id), body=body)
        return Workspace.read(reading.record(answer, "workspace"), self.session)

    def archive(self) -> None:
        """Nothing is put into it any more, and nothing in it changes."""
        self._do("archive")

    def unarchive(self) -> None:
        """As it was before."""
        self._do("unarchive")

    def pin(self) -> None:
        """Show it first to this user."""
        self._do("pin")

    def unpin(self) -> None:
        """Show it where it stands."""
        self._do("unpin")

    def pools(self) -> List[str]:
        """Names of the pools that its tasks may use."""
        path = at("/api/v1/workspaces/{}/available-resource-pools", self.id)
        return reading.texts(self.session.get(path), "resourcePools")

    def members(self) -> List[Tuple[str, str]]:
        """(user, role) of those who have a role in it."""
        answer = self.session.get(at("/api/v1/roles/workspace/{}", self.id))
        names = {reading.integer(user, "id"): user for user in reading.records(answer, "usersAssignedDirectly")}
        members = []
        for assigned in reading.records(answer, "assignments"):
            role = reading.text(reading.record(assigned, "role"), "name")
            for assignment in reading.records(assigned, "userRoleAssignments"):
                user = names.get(reading.integer(assignment, "userId"), {})
                members.append((reading.text(user, "username"), role))
        return members

    def delete(self, *, wait: bool = True, seen: Optional[Callable[[Workspace], None]] = None) -> None:
        """Delete it with its projects and their experiments; ``seen`` is shown it while it goes. Raises NotNow."""
        slept(self._delete(wait=wait, seen=seen))

    def _delete(self, *, wait: bool, seen: Optional[Callable[[Workspace], None]]) -> Steps[None]:
        def failure(now: Workspace) -> str:
            if now.state == "DELETE_FAILED":
                return f"Workspace {self.name} was not deleted: {now.error}"
            if seen is not None:
                seen(now)
            return ""

        path = at("/api/v1/workspaces/{}", self.id)
        done = reading.flag(self.session.call("DELETE", path), "completed")
        if wait and not done:
            yield from until_gone(self.reload, failure)

    def _do(self, verb: str) -> None:
        self.session.post(at("/api/v1/workspaces/{}/{}", self.id, verb))


def list_workspaces(
    session: Session,
    *,
    archived: Optional[bool] = None,
    users: Sequence[str] = (),
    pinned: Optional[bool] = None,
    sort: str = "id",
    descending: bool = False,
) -> List[Workspace]:
    """Workspaces, by ``id`` or ``name``; ``archived`` and ``pinned`` None: both kinds."""
    query: Query = {"archived": archived, "pinned": pinned, "users": list(users), **ordered(sort, descending)}
    return [Workspace.read(value, session) for value in pages(session, "/api/v1/workspaces", "workspaces", query)]


def get_workspace(session: Session, which: Union[int, str]) -> Workspace:
    """A workspace by number or name, whatever its capitals. Raises NotFound."""
    if isinstance(which, str):
        matches = reading.records(session.get("/api/v1/workspaces", {"name": which}), "workspaces") if which else []
        if matches:
            return Workspace.read(matches[0], session)
        if not is_number(which):
            raise NotFound(f"There is no workspace {which!r}: `tenax workspace list` shows all of them.")
    answer = session.get(at("/api/v1/workspaces/{}", which))
    return Workspace.read(reading.record(answer, "workspace"), session)


def create_workspace(
    session: Session,
    name: str,
    *,
    checkpoint_storage: Optional[JsonObject] = None,
    default_compute_pool: Optional[str] = None,
    default_aux_pool: Optional[str] = None,
    agent_user: Optional[JsonObject] = None,
) -> Workspace:
    """Make a workspace. Raises AlreadyExists."""
    body = _settings(name, checkpoint_storage, default_compute_pool, default_aux_pool, agent_user)
    answer = session.create("/api/v1/workspaces", body)
    return Workspace.read(reading.record(answer, "workspace"), session)


def ordered(sort: str, descending: bool) -> Dict[str, str]:
    """The parameters that sort a list: ``last_updated_time`` as its name in the protocol."""
    return {"sortBy": f"SORT_BY_{sort.upper()}", "orderBy": f"ORDER_BY_{'DESC' if descending else 'ASC'}"}


def folder_state(value: JsonObject) -> str:
    """``WORKSPACE_STATE_DELETING`` as ``DELETING``; ACTIVE where it is not being deleted."""
    state = reading.text(value, "state").replace("WORKSPACE_STATE_", "")
    return "ACTIVE" if state in ("", "UNSPECIFIED") else state


def _settings(
    name: Optional[str],
    checkpoint_storage: Optional[JsonObject],
    compute: Optional[str],
    aux: Optional[str],
    agent_user: Optional[JsonObject],
) -> JsonObject:
    body: JsonObject = {
        "name": name,
        "checkpointStorageConfig": checkpoint_storage,
        "defaultComputePool": compute,
        "defaultAuxPool": aux,
        "agentUserGroup": agent_user,
    }
    return without_nulls(body)
