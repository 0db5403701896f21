"""Users."""

from __future__ import annotations

from typing import Optional

from tenax.client import users
from tenax.client.connection.reading import without_nulls
from tenax.client.connection.session import at
from tenax.experimental.resource import Resource


class User(Resource[users.User]):
    """One user."""

    def __repr__(self) -> str:
        return f"User(user_id={self.user_id}, username={self.username})"

    @property
    def user_id(self) -> int:
        return self.now.id

    @property
    def username(self) -> str:
        return self.now.username

    @property
    def display_name(self) -> str:
        return self.now.display_name

    @property
    def admin(self) -> bool:
        return self.now.admin

    @property
    def active(self) -> bool:
        return self.now.active

    @property
    def remote(self) -> bool:
        return self.now.remote

    @property
    def agent_uid(self) -> Optional[int]:
        return self.now.agent_identity.uid if self.now.agent_identity is not None else None

    @property
    def agent_gid(self) -> Optional[int]:
        return self.now.agent_identity.gid if self.now.agent_identity is not None else None

    @property
    def agent_user(self) -> Optional[str]:
        return self.now.agent_identity.user if self.now.agent_identity is not None else None

    @property
    def agent_group(self) -> Optional[str]:
        return self.now.agent_identity.group if self.now.agent_identity is not None else None

    def rename(self, new_username: str) -> None:
        """Raises AlreadyExists, Forbidden."""
        self.now = self.now.edit(username=new_username)

    def change_display_name(self, display_name: str) -> None:
        """What people are shown."""
        self.now = self.now.edit(display_name=display_name)

    def activate(self) -> None:
        """They may log in again."""
        self.now = self.now.edit(active=True)

    def deactivate(self) -> None:
        """They may not log in any more."""
        self.now = self.now.edit(active=False)

    def change_password(self, new_password: str) -> None:
        """Raises InvalidInput for a weak one, Forbidden."""
        self.now = self.now.change_password(new_password)

    def link_with_agent(
        self,
        agent_uid: Optional[int] = None,
        agent_gid: Optional[int] = None,
        agent_user: Optional[str] = None,
        agent_group: Optional[str] = None,
    ) -> None:
        """Let their tasks run as this user and group of the agents' machines."""
        linked = {"agentUid": agent_uid, "agentGid": agent_gid, "agentUser": agent_user, "agentGroup": agent_group}
        body = {"agentUserGroup": without_nulls(linked)}  # type: ignore[arg-type]
        self._session.call("PATCH", at("/api/v1/users/{}", self.user_id), body=body)  # type: ignore[arg-type]
        self.reload()
