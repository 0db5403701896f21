"""Workspaces."""

from __future__ import annotations

from typing import List, Optional

from tenax.client import projects, workspaces
from tenax.experimental.project import Project
from tenax.experimental.resource import Resource
from tenax.experimental.resource_pool import ResourcePool


class Workspace(Resource[workspaces.Workspace]):
    """A folder of projects."""

    def __repr__(self) -> str:
        return f"Workspace(id={self.id}, name={self.name})"

    @property
    def id(self) -> int:
        return self.now.id

    @property
    def name(self) -> str:
        return self.now.name

    def list_pools(self) -> List[ResourcePool]:
        """The pools that its tasks may use."""
        return [ResourcePool(self._session, name) for name in self.now.pools()]

    def list_projects(self) -> List[Project]:
        """All its projects."""
        return [Project(project) for project in projects.list_projects(self._session, self.id)]

    def get_project(self, project_name: str) -> Project:
        """Raises NotFound."""
        return Project(projects.get_project(self._session, project_name, self.id))

    def create_project(self, name: str, description: Optional[str] = None) -> Project:
        """Raises AlreadyExists."""
        return Project(projects.create_project(self._session, self.id, name, description=description or ""))

    def delete_project(self, name: str) -> None:
        """With its experiments. Raises NotFound."""
        self.get_project(name).now.delete(wait=False)
