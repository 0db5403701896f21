"""The model registry as values: models, and the checkpoints that are their versions."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple, Union

from tenax.client.checkpoints import Checkpoint
from tenax.client.connection import reading
from tenax.client.connection.reading import LiveAnswer, made, made_live, part, without_nulls
from tenax.client.connection.session import Query, Session, at
from tenax.client.trials import pages
from tenax.client.workspaces import get_workspace, ordered
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Model(LiveAnswer):
    """A name under which checkpoints are registered."""

    id: int = part(reading.integer, "id")
    name: str = part(reading.text, "name")
    description: str = part(reading.text, "description")
    notes: str = part(reading.text, "notes")
    labels: Tuple[str, ...] = made(lambda value: tuple(reading.texts(value, "labels")))
    metadata: JsonObject = part(reading.record, "metadata")
    workspace_id: int = part(reading.integer, "workspaceId")
    owner: str = part(reading.text, "username")
    archived: bool = part(reading.flag, "archived")
    versions_count: int = part(reading.integer, "numVersions")
    created: Optional[datetime.datetime] = part(reading.moment, "creationTime")
    updated: Optional[datetime.datetime] = part(reading.moment, "lastUpdatedTime")

    def reload(self) -> Model:
        """The model as it is now. Raises NotFound."""
        return get_model(self.session, self.id)

    def versions(self, *, descending: bool = True) -> List[ModelVersion]:
        """Its versions, the newest first."""
        versions = pages(self.session, f"{self._path}/versions", "modelVersions", ordered("version", descending))
        return [ModelVersion.read(value, self.session) for value in versions]

    def version(self, number: Optional[int] = None) -> ModelVersion:
        """One version; without a number the newest. Raises NotFound."""
        if number is not None:
            answer = self.session.get(f"{self._path}/versions/{number}")
            return ModelVersion.read(reading.record(answer, "modelVersion"), self.session)
        query: Query = {"limit": 1, **ordered("version", True)}
        newest = reading.records(self.session.get(f"{self._path}/versions", query), "modelVersions")
        if not newest:
            raise NotFound(f"Model {self.name} has no version yet.")
        return ModelVersion.read(newest[0], self.session)

    def register_version(
        self,
        checkpoint: Union[str, Checkpoint],
        *,
        name: str = "",
        comment: str = "",
        notes: str = "",
        labels: Sequence[str] = (),
        metadata: Optional[JsonObject] = None,
    ) -> ModelVersion:
        """Register a checkpoint as the next version; it is neither deleted nor collected from then on.

        Raises NotFound, and NotNow for one that is not completed and for an archived model.
        """
        body: JsonObject = {
            "checkpointUuid": checkpoint if isinstance(checkpoint, str) else checkpoint.uuid,
            "name": name,
            "comment": comment,
            "notes": notes,
            "labels": list(labels),
            "metadata": metadata or {},
        }
        answer = self.session.create(f"{self._path}/versions", body)
        return ModelVersion.read(reading.record(answer, "modelVersion"), self.session)

    def edit(
        self,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        notes: Optional[str] = None,
        labels: Optional[Sequence[str]] = None,
        metadata: Optional[JsonObject] = None,
    ) -> Model:
        """Change what is given, labels and metadata as a whole. Raises AlreadyExists, Forbidden, NotNow."""
        body: JsonObject = {"name": name, "description": description, "notes": notes, "metadata": metadata}
        body["labels"] = None if labels is None else list(labels)
        answer = self.session.call("PATCH", self._path, body=without_nulls(body))
        return Model.read(reading.record(answer, "model"), self.session)

    def move(self, workspace: Union[int, str]) -> None:
        """Into another workspace, by number or name. Raises NotFound."""
        goal = get_workspace(self.session, workspace).id
        self.session.post(f"{self._path}/move", {"destinationWorkspaceId": goal})

    def archive(self) -> None:
        """It takes no new versions, and does not change."""
        self.session.post(f"{self._path}/archive")

    def unarchive(self) -> None:
        """As it was before."""
        self.session.post(f"{self._path}/unarchive")

    def delete(self) -> None:
        """It, and its versions; their checkpoints stay, and may be deleted from then on."""
        self.session.call("DELETE", self._path)

    @property
    def _path(self) -> str:
        return at("/api/v1/models/{}", self.id)


@dataclass(frozen=True)
class ModelVersion(LiveAnswer):
    """A checkpoint under a model's name."""

    #: 1, 2, ...; never used again.
    version: int = part(reading.integer, "version")
    name: str = part(reading.text, "name")
    comment: str = part(reading.text, "comment")
    notes: str = part(reading.text, "notes")
    labels: Tuple[str, ...] = made(lambda value: tuple(reading.texts(value, "labels")))
    metadata: JsonObject = part(reading.record, "metadata")
    owner: str = part(reading.text, "username")
    created: Optional[datetime.datetime] = part(reading.moment, "creationTime")
    checkpoint: Checkpoint = made_live(
        lambda value, session: Checkpoint.read(reading.record(value, "checkpoint"), session)
    )
    model: Model = made_live(lambda value, session: Model.read(reading.record(value, "model"), session))

    def edit(
        self,
        *,
        name: Optional[str] = None,
        comment: Optional[str] = None,
        notes: Optional[str] = None,
        labels: Optional[Sequence[str]] = None,
        metadata: Optional[JsonObject] = None,
    ) -> ModelVersion:
        """Change what is given; labels and metadata are replaced as a whole. Raises Forbidden, NotNow."""
        body: JsonObject = {"name": name, "comment": comment, "notes": notes, "metadata": metadata}
        body["labels"] = None if labels is None else list(labels)
        answer = self.session.call("PATCH", self._path, body=without_nulls(body))
        return ModelVersion.read(reading.record(answer, "modelVersion"), self.session)

    def metrics(self, group: Optional[str] = None) -> List[JsonObject]:
        """Metrics of trials that reported using it: ``trialId``, ``group``, ``totalBatches``, ``metrics``..."""
        return reading.records(self.session.get(f"{self._path}/metrics", {"metricGroup": group}), "metrics")

    def delete(self) -> None:
        """It; its checkpoint stays, and may be deleted from then on."""
        self.session.call("DELETE", self._path)

    @property
    def _path(self) -> str:
        return at("/api/v1/models/{}/versions/{}", self.model.id, self.version)


def list_models(
    session: Session,
    *,
    name: Optional[str] = None,
    description: Optional[str] = None,
    labels: Sequence[str] = (),
    users: Sequence[str] = (),
    workspaces: Sequence[str] = (),
    archived: Optional[bool] = None,
    sort: str = "name",
    descending: bool = False,
) -> List[Model]:
    """Models whose name and description contain these, with all these labels, in any of these workspaces.

    By name, description, creation_time, last_updated_time, num_versions or workspace; ``archived`` None: both kinds.
    """
    query: Query = {
        "name": name,
        "description": description,
        "labels": list(labels),
        "users": list(users),
        "workspaceNames": list(workspaces),
        "archived": archived,
        **ordered(sort, descending),
    }
    return [Model.read(value, session) for value in pages(session, "/api/v1/models", "models", query)]


def get_model(session: Session, which: Union[int, str]) -> Model:
    """A model by name or number. Raises NotFound."""
    return Model.read(reading.record(session.get(at("/api/v1/models/{}", which)), "model"), session)


def create_model(
    session: Session,
    name: str,
    *,
    description: str = "",
    notes: str = "",
    labels: Sequence[str] = (),
    metadata: Optional[JsonObject] = None,
    workspace: Union[int, str, None] = None,
) -> Model:
    """Make a model, in Uncategorized where no workspace is named. Raises AlreadyExists, InvalidInput, NotFound."""
    body: JsonObject = {
        "name": name,
        "description": description,
        "notes": notes,
        "labels": list(labels),
        "metadata": metadata or {},
        "workspaceId": None if workspace is None else get_workspace(session, workspace).id,
    }
    answer = session.create("/api/v1/models", body)
    return Model.read(reading.record(answer, "model"), session)


def model_labels(session: Session) -> List[str]:
    """Labels of models, the most used first."""
    return reading.texts(session.get("/api/v1/model/labels"), "labels")
