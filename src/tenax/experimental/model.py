"""Registered models and their versions."""

from __future__ import annotations

import datetime
from typing import Any, Dict, Iterable, List, Optional, Sequence

from tenax.client import models
from tenax.client.connection import reading
from tenax.client.connection.session import Session, at
from tenax.client.trials import pages
from tenax.errors import NotFound
from tenax.experimental.checkpoint import Checkpoint
from tenax.experimental.metrics import TrialMetrics, using
from tenax.experimental.orders import ModelOrderBy as ModelOrderBy
from tenax.experimental.orders import ModelSortBy as ModelSortBy
from tenax.experimental.orders import OrderBy
from tenax.experimental.resource import Resource


class ModelVersion(Resource[models.ModelVersion]):
    """A checkpoint under a model's name."""

    def __repr__(self) -> str:
        return f"ModelVersion(version={self.model_version}, model={self.model_name}, name={self.name})"

    @property
    def model_version(self) -> int:
        return self.now.version

    @property
    def model_name(self) -> str:
        return self.now.model.name

    @property
    def model_id(self) -> int:
        return self.now.model.id

    @property
    def model(self) -> models.Model:
        return self.now.model

    @property
    def version(self) -> int:
        return self.now.version

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.now.checkpoint)

    @property
    def name(self) -> str:
        return self.now.name

    @property
    def comment(self) -> str:
        return self.now.comment

    @property
    def notes(self) -> str:
        return self.now.notes

    @property
    def metadata(self) -> Dict[str, Any]:
        return dict(self.now.metadata)

    def reload(self) -> None:
        """Ask for it again. Raises NotFound."""
        self.now = self.now.model.version(self.now.version)

    def set_name(self, name: str) -> None:
        """Give it another name."""
        self.now = self.now.edit(name=name)

    def set_notes(self, notes: str) -> None:
        """Replace its notes."""
        self.now = self.now.edit(notes=notes)

    def delete(self) -> None:
        """It; its checkpoint stays."""
        self.now.delete()

    def iter_metrics(self, group: Optional[str] = None) -> Iterable[TrialMetrics]:
        """What trials reported that said they use it."""
        return using(self._session, at("/api/v1/models/{}/versions/{}/metrics", self.model_id, self.version), group)

    def get_metrics(self, group: Optional[str] = None) -> Iterable[TrialMetrics]:
        """As `iter_metrics`."""
        return self.iter_metrics(group)


class Model(Resource[models.Model]):
    """A name for checkpoints."""

    def __repr__(self) -> str:
        return f"Model(id={self.model_id}, name={self.name})"

    @property
    def model_id(self) -> int:
        return self.now.id

    @property
    def name(self) -> str:
        return self.now.name

    @property
    def description(self) -> str:
        return self.now.description

    @property
    def creation_time(self) -> Optional[datetime.datetime]:
        return self.now.created

    @property
    def last_updated_time(self) -> Optional[datetime.datetime]:
        return self.now.updated

    @property
    def metadata(self) -> Dict[str, Any]:
        return dict(self.now.metadata)

    @property
    def labels(self) -> List[str]:
        return list(self.now.labels)

    @property
    def username(self) -> str:
        return self.now.owner

    @property
    def workspace_id(self) -> int:
        return self.now.workspace_id

    @property
    def archived(self) -> bool:
        return self.now.archived

    def get_version(self, version: int = -1) -> Optional[ModelVersion]:
        """One version; without a number the newest, or None where there is none. Raises NotFound."""
        if version != -1:
            return ModelVersion(self.now.version(version))
        try:
            return ModelVersion(self.now.version())
        except NotFound:
            return None

    def list_versions(self, order_by: OrderBy = OrderBy.DESCENDING) -> List[ModelVersion]:
        """All its versions."""
        return [ModelVersion(version) for version in self.now.versions(descending=order_by is OrderBy.DESCENDING)]

    def get_versions(self, order_by: OrderBy = OrderBy.DESCENDING) -> List[ModelVersion]:
        """As `list_versions`."""
        return self.list_versions(order_by)

    def register_version(self, checkpoint_uuid: str) -> ModelVersion:
        """Register a checkpoint as the next version. Raises NotFound, NotNow."""
        return ModelVersion(self.now.register_version(checkpoint_uuid))

    def add_metadata(self, metadata: Dict[str, Any]) -> None:
        """Write more about it; what is there under the same key is replaced."""
        self.now = self.now.edit(metadata={**self.now.metadata, **metadata})

    def remove_metadata(self, keys: Sequence[str]) -> None:
        """Leave these keys out of what is written about it."""
        left = {key: value for key, value in self.now.metadata.items() if key not in keys}
        self.now = self.now.edit(metadata=left)

    def set_labels(self, labels: Sequence[str]) -> None:
        """Replace its labels."""
        self.now = self.now.edit(labels=labels)

    def set_description(self, description: str) -> None:
        """Describe it anew."""
        self.now = self.now.edit(description=description)

    def move_to_workspace(self, workspace_name: str) -> None:
        """Raises NotFound."""
        self.now.move(workspace_name)
        self.reload()

    def archive(self) -> None:
        """It takes no new versions, and does not change."""
        self.now.archive()
        self.reload()

    def unarchive(self) -> None:
        """As it was before."""
        self.now.unarchive()
        self.reload()

    def delete(self) -> None:
        """It, and its versions; their checkpoints stay."""
        self.now.delete()


def sorted_models(
    session: Session,
    sort_by: ModelSortBy,
    order_by: OrderBy,
    name: Optional[str],
    description: Optional[str],
    model_id: Optional[int],
    workspace_names: Optional[Sequence[str]],
    workspace_ids: Optional[Sequence[int]],
) -> List[Model]:
    """Those for which all that is given holds."""
    query: Dict[str, Any] = {
        "sortBy": sort_by.value,
        "orderBy": order_by.value,
        "name": name or None,
        "description": description or None,
        "id": model_id,
        "workspaceNames": list(workspace_names) if workspace_names else None,
        "workspaceIds": list(workspace_ids) if workspace_ids else None,
    }
    values = pages(session, "/api/v1/models", "models", reading.without_nulls(query))  # type: ignore[arg-type]
    return [Model(models.Model.read(value, session)) for value in values]
