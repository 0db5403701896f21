"""What the web page remembers for a user: settings under a path and a key, and the projects they visited last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asyncpg import Connection

from tenax.errors import NotFound, TooLarge
from tenax.master.store.database.queries import load

Q = load("users")

#: All settings of one person, and characters of them; they are read as a whole.
MAX_SETTINGS, MAX_TOGETHER = 2000, 1 << 20


@dataclass(frozen=True, slots=True)
class SettingKey:
    """What a setting is kept under."""

    storage_path: str
    key: str


async def of_user(conn: Connection, user_id: int) -> dict[SettingKey, str]:
    """All settings of a person."""
    return {SettingKey(row["storage_path"], row["key"]): row["value"] for row in await conn.fetch(Q.all, user_id)}


async def put(conn: Connection, user_id: int, values: Mapping[SettingKey, str]) -> None:
    """Keep these settings beside the others. In a transaction. Raises TooLarge."""
    paths, keys = [place.storage_path for place in values], [place.key for place in values]
    await conn.execute(Q.put, user_id, paths, keys, list(values.values()))
    count, characters = await conn.fetchrow(Q.size, user_id)
    if count > MAX_SETTINGS:
        raise TooLarge(f"one user may have {MAX_SETTINGS} settings: reset them, or store less")
    if characters > MAX_TOGETHER:
        raise TooLarge(
            f"the settings of one user may have {MAX_TOGETHER} characters together: reset them, or store less"
        )


async def reset(conn: Connection, user_id: int) -> None:
    """Forget all settings of a person."""
    await conn.execute(Q.reset, user_id)


async def saw_project(conn: Connection, user_id: int, project_id: int) -> None:
    """A user has visited a project. Raises NotFound."""
    if not await conn.fetchval(Q.project_exists, project_id):
        raise NotFound(f"project {project_id} not found")
    await conn.execute(Q.saw_project, user_id, project_id)


async def recent_projects(conn: Connection, user_id: int, most: int = 5) -> list[int]:
    """The projects that a user visited, the latest first."""
    return [row["project_id"] for row in await conn.fetch(Q.recent_projects, user_id, most)]
