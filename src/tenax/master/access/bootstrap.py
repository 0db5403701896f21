"""Bootstrap: what a new database needs before anyone can use it: the cluster's identity, first users, first project.

Rules it keeps: all of it is made once, whoever starts first; each user has a password of its own, which is random
unless the operator gave the administrator's, and stands in a file that only its owner can read; blank passwords are
made only where the settings say so.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

import structlog

from tenax.config.master import MasterSettings
from tenax.errors import InvalidInput
from tenax.master.access.passwords import Passwords, check_length, hashed_password
from tenax.master.store.cluster import rows as cluster
from tenax.master.store.cluster.rows import ClusterRow
from tenax.master.store.database.connection import Database
from tenax.master.store.queue import pools
from tenax.master.store.users import rows as users
from tenax.master.store.workspaces import projects

#: Under the state directory: ``{"username", "password"}`` of the first administrator, for the local command line, and
#: ``users``: each first user's password, by name.
CREDENTIALS_FILE = "credentials.json"
#: Under the state directory, where the settings name no other file.
JOIN_FILE = "join-token"
#: Name -> whether an administrator. The names that Determined's clients expect.
FIRST_USERS = {"admin": True, "determined": False}
ADMINISTRATOR = "admin"

log = structlog.get_logger("tenax.bootstrap")


async def bootstrap(db: Database, settings: MasterSettings, passwords: Passwords) -> ClusterRow:
    """Make what is missing. Raises InvalidInput for a password file that cannot be read, OSError, TryAgain."""
    if settings.security.agent_join_by_file:
        join_token(settings)
    async with db.transaction() as conn:
        row = await cluster.ensure(conn, settings.cluster_name)
        await projects.create_first(conn)
        users_missing = await users.none_yet(conn)
        bound = await pools.bindings(conn)
    for name in {settings.default_compute_pool, settings.default_aux_pool} & bound.keys():
        # It was bound before it became a default: the master must run for that to be undone.
        log.warning("a default pool is kept for some workspaces: others must name another, or free it", pool=name)
    if users_missing:
        await _create_first_users(db, settings, passwords)
    return row


async def _create_first_users(db: Database, settings: MasterSettings, passwords: Passwords) -> None:
    drawn = first_passwords(settings)
    stored = {name: await passwords.hash(hashed_password(password)) for name, password in drawn.items()}
    async with db.transaction() as conn:
        if not await users.create_first(conn, FIRST_USERS, stored):
            return
        # Before the commit: users whose password is nowhere would be of no use.
        path = settings.dir / CREDENTIALS_FILE
        first = {"username": ADMINISTRATOR, "password": drawn[ADMINISTRATOR], "users": drawn}
        write_private(path, json.dumps(first) + "\n")
    log.info("created the first users", users=list(FIRST_USERS), passwords_in=str(path))


def first_passwords(settings: MasterSettings) -> dict[str, str]:
    """What the first users log in with. Raises InvalidInput for a file of the operator's that will not do."""
    security = settings.security
    if security.initial_password_file is not None:
        given = _operators_password(security.initial_password_file, security.allow_blank_passwords)
    else:
        given = "" if security.allow_blank_passwords else secrets.token_urlsafe(18)
    # Whoever may train is no administrator by knowing how.
    return {name: given if admin or not given else secrets.token_urlsafe(18) for name, admin in FIRST_USERS.items()}


def _operators_password(file: Path, blank_allowed: bool) -> str:
    try:
        password = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the initial password cannot be read from {file}: {error}") from None
    if not password and not blank_allowed:
        raise InvalidInput(
            f"the initial password in {file} is blank: write one there, or set security.allow_blank_passwords"
        )
    if password:
        check_length(password, f"the initial password in {file}")
    return password


def join_token(settings: MasterSettings) -> str:
    """What agents join with; made where it is not there yet. Raises InvalidInput for a blank one, OSError."""
    path = settings.security.agent_join_token_file or settings.dir / JOIN_FILE
    if not path.exists():
        if path.parent != settings.dir:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, secrets.token_urlsafe(32) + "\n")
    token = path.read_text(encoding="utf-8").strip()
    if not token:
        raise InvalidInput(f"the join token in {path} is blank, and anyone could join: write one there, or remove it")
    return token


def write_private(path: Path, text: str) -> None:
    """Replace ``path`` as a whole with a file that only its owner can read. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
