"""Pools, and the workspaces that they are kept for."""

from __future__ import annotations

from typing import List, Optional

from tenax.client import pools, workspaces
from tenax.client.connection.session import Session


class ResourcePool:
    """Which workspaces a pool is kept for."""

    def __init__(self, session: Session, name: str = "") -> None:
        self._session = session
        self.name = name

    def __repr__(self) -> str:
        return f"ResourcePool(name={self.name})"

    def list_workspaces(self) -> List[Optional[str]]:
        """Names; none: it is for all."""
        numbers = pools.bound_workspaces(self._session, self.name)
        return [workspaces.get_workspace(self._session, number).name for number in numbers]

    def add_bindings(self, workspace_names: List[str]) -> None:
        """Keep it for these, too."""
        pools.bind_pool(self._session, self.name, workspace_names)

    def remove_bindings(self, workspace_names: List[str]) -> None:
        """Keep it for these no longer."""
        pools.unbind_pool(self._session, self.name, workspace_names)

    def replace_bindings(self, workspace_names: List[str]) -> None:
        """Keep it for these alone."""
        pools.rebind_pool(self._session, self.name, workspace_names)
