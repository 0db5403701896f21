"""Rows as messages, where more than one noun needs it."""

from __future__ import annotations

from tenax.master.store.users import User
from tenax.wire.api import users as wire


def user_message(user: User) -> wire.User:
    """A user as clients see one; nothing of the password."""
    group = None
    if user.agent_uid is not None or user.agent_gid is not None:
        group = wire.AgentUserGroup(
            agent_uid=user.agent_uid,
            agent_gid=user.agent_gid,
            agent_user=user.agent_user,
            agent_group=user.agent_group,
        )
    return wire.User(
        id=user.id,
        username=user.username,
        admin=user.admin,
        active=user.active,
        display_name=user.display_name,
        agent_user_group=group,
        modified_at=user.modified_at,
        last_auth_at=user.last_login_at,
        remote=user.remote,
    )
