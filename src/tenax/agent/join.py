"""How an agent gets its credential: once, for a join token; kept in a 0600 file of its directory."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec
import structlog

from tenax.agent.link import Link, MasterRefused, MasterUnreachable, pause, read_secret, retry
from tenax.config.agent import AgentSettings
from tenax.errors import UserError
from tenax.wire.agents import CREDENTIAL_PREFIX, JoinReply, JoinRequest

log = structlog.get_logger("tenax.agent")


_FILE = "credential"
#: The same while the master has not answered yet.
_PROPOSED = "credential.proposed"


class AgentCredential(msgspec.Struct, frozen=True):
    """What the agent has from its master; bound to the agent's id."""

    v: int
    agent_id: str
    cluster_id: str
    credential: str


def stored(directory: Path, agent_id: str, *, name: str = _FILE) -> AgentCredential | None:
    """The credential of this agent id, if it has joined before. Raises OSError: it may be there."""
    try:
        credential = msgspec.json.decode((directory / name).read_bytes(), type=AgentCredential)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        log.error("a credential is damaged, and of no use", file=str(directory / name), reason=str(error))
        return None
    return credential if credential.agent_id == agent_id else None


def store(directory: Path, credential: AgentCredential, *, name: str = _FILE) -> None:
    """Replace the credential atomically; nobody else can read it at any moment."""
    staged = directory / f"{name}.new"
    staged.unlink(missing_ok=True)
    with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(credential))
        file.flush()
        os.fsync(file.fileno())
    staged.rename(directory / name)


def _proposed(settings: AgentSettings) -> str:
    """What the agent will prove itself with; kept before it asks, for the answer may be lost."""
    known = stored(settings.dir, settings.agent_id, name=_PROPOSED)
    if known is None:
        drawn = CREDENTIAL_PREFIX + secrets.token_urlsafe(32)
        known = AgentCredential(1, settings.agent_id, "", drawn)
        store(settings.dir, known, name=_PROPOSED)
    return known.credential


def join_token(settings: AgentSettings) -> str:
    """Raises UserError where there is none."""
    if settings.join_token is not None:
        return settings.join_token.get_secret_value()
    if settings.join_token_file is not None:
        return read_secret(settings.join_token_file, "join token")
    raise UserError(
        f"the agent {settings.agent_id} has not joined a cluster yet: write the token that an administrator makes with "
        "tenax agent join-token create, or the master's file join-token, to a file and name it with --join-token-file"
    )


async def credential_of(link: Link, settings: AgentSettings, *, anew: bool = False) -> AgentCredential:
    """The stored one (not ``anew``), else that of joining; for as long as it takes. Raises UserError."""
    attempts = retry()
    while True:
        try:
            known = None if anew else stored(settings.dir, settings.agent_id)
            return known or await join(link, settings)
        except PermissionError as error:
            raise UserError(
                f"cannot use the credential {error.filename}: {error.strerror}; give the files of {settings.dir} back "
                "to the agent's user"
            ) from None
        except OSError:
            log.exception("the credential cannot be read or kept now")
            await pause(attempts.pause())


async def join(link: Link, settings: AgentSettings) -> AgentCredential:
    """Trade the token for a credential, trying for as long as the master is away.

    Raises UserError if it refuses; OSError where the credential cannot be kept: joining again, the agent proves itself
    with the same one.
    """
    proposed = _proposed(settings)
    request = JoinRequest(settings.agent_id, join_token(settings), settings.pool, proposed)
    attempts = retry()
    while True:
        url = link.url
        try:
            body = await link.post("/agents/join", msgspec.json.encode(request), content_type="application/json")
            reply = msgspec.json.decode(body, type=JoinReply)
            break
        except MasterUnreachable as away:
            log.warning("waiting for the master", reason=away.message)
            link.move_on(url)
            await pause(attempts.pause(away.retry_after))
        except MasterRefused as refused:
            raise UserError(f"this machine cannot join: {refused.message}") from None
        except msgspec.MsgspecError as error:
            raise UserError(f"{link.url} does not answer like a Tenax master: {error}") from None
    credential = AgentCredential(1, settings.agent_id, reply.cluster_id, reply.credential)
    store(settings.dir, credential)
    (settings.dir / _PROPOSED).unlink(missing_ok=True)
    log.info("joined", cluster=reply.cluster_id, agent=settings.agent_id, pool=settings.pool)
    return credential
