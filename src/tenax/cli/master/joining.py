"""``tenax master invite`` and ``tenax master join``: another master of a cluster, from one file.

Rules:

- The invitation has all that two masters must agree on: the database, pools, storage, defaults, the certificate with
  its key, and the token that agents join with. What belongs to one machine (addresses, directories) is not in it.
- It is for its owner alone, and one that others may read is refused: whoever has it has the cluster.
- Nothing is written before the database was asked whether it is the cluster's; an empty one would become a new cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Mapping, Optional
from urllib.parse import parse_qs, urlsplit

from tenax.cli.console import yaml12
from tenax.config.agreement import FILES, OF_THE_MACHINE
from tenax.config.master import MasterSettings, load_master_settings
from tenax.config.settings import in_clear
from tenax.errors import TenaxError, TryAgain, UserError
from tenax.jsonvalue import JsonObject
from tenax.local.pgdata import address_of, write_secret
from tenax.local.supervise.cluster import master_environment, plan, refuse_taken_port
from tenax.local.supervise.options import load_options

if TYPE_CHECKING:
    from tenax.local.state_dir import StateDir

#: Below the directory of a master that has joined.
SETTINGS, CERTIFICATE, KEY, JOIN_TOKEN = "master.yaml", "master.crt", "master.key", "join-token"
_FORM = 1


class CannotInvite(UserError):
    """There is nothing that another master could be made from."""


class CannotJoin(UserError):
    """No master was made, and nothing was written."""


@dataclass(frozen=True)
class Invitation:
    """What another master needs."""

    cluster_id: str
    #: The machine that it was made on.
    machine: str
    #: As in a settings file; ``db.url`` is there.
    settings: JsonObject
    #: PEM; empty where the cluster speaks plain HTTP.
    certificate: str
    key: str
    #: Empty where no token of a file lets agents in.
    join_token: str

    @property
    def database_url(self) -> str:
        database = self.settings["db"]
        assert isinstance(database, dict)
        return str(database["url"])


def settings_of(state: StateDir, config: Optional[Path]) -> MasterSettings:
    """Those of a master that runs with ``config``, or of the one that ``tenax up`` runs. Raises CannotInvite."""
    if config is not None:
        settings = load_master_settings(config)
    else:
        if not state.supervisor.exists():
            raise CannotInvite(
                f"There is no cluster of `tenax up` in {state.root}: name its directory with --dir, or the settings "
                "file of the master with --config."
            )
        cluster = plan(state, load_options(state))
        dsn = address_of(state.postgres) if cluster.settings.db.url is None else None
        file = Path(cluster.options.config) if cluster.options.config else None
        settings = load_master_settings(file, environ=master_environment(cluster, dsn))
    if settings.db.url is None:
        raise CannotInvite("These settings name no database: give the master's with --config, or set db.url.")
    return settings


def invite(settings: MasterSettings) -> Invitation:
    """Raises CannotInvite, TryAgain."""
    assert settings.db.url is not None
    url = settings.db.url.get_secret_value()
    cluster_id = _cluster_at(url)
    if cluster_id is None:
        raise CannotInvite("The database holds no cluster yet: start its first master, then invite another.")
    document = in_clear(settings, given=True)
    for name in OF_THE_MACHINE:
        document.pop(name, None)
    database, security = document["db"], document.get("security", {})
    assert isinstance(database, dict)
    assert isinstance(security, dict)
    database["url"] = url
    if _host(url).startswith("/"):
        # What copies an embedded database is on its machine.
        database.pop("backup_command", None)
    for name in FILES:
        security.pop(name, None)
    certificate = key = ""
    if settings.tls is not None:
        certificate = _read(settings.tls.cert, "certificate")
        key = _read(settings.tls.key, "key of the certificate")
    token = ""
    if settings.security.agent_join_by_file:
        token = _read(
            settings.security.agent_join_token_file or settings.dir / JOIN_TOKEN, "token that agents join with"
        )
    return Invitation(cluster_id, platform.node(), document, certificate, key, token)


def write(invitation: Invitation, target: Path) -> None:
    """A new file, for its owner alone. Raises CannotInvite."""
    document = {"v": _FORM, **vars(invitation)}
    try:
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(json.dumps(document, indent=1) + "\n")
    except FileExistsError:
        raise CannotInvite(f"{target} is there already: name a file that is not.") from None
    except OSError as error:
        raise CannotInvite(f"{target} cannot be written: {error.strerror}.") from None


def read(file: Path) -> Invitation:
    """Raises CannotJoin."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise CannotJoin(f"{file} is no file.")
            if status.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(status.st_mode) & 0o077:
                raise CannotJoin(
                    f"{file} is not for your eyes alone, and whoever reads it has the cluster: chmod 600 {file}"
                )
            document = json.load(opened)
    except OSError as error:
        raise CannotJoin(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:
        document = None
    wrong = f"{file} is no invitation of this release: make one with `tenax master invite` on a machine of the cluster."
    if not isinstance(document, dict) or document.pop("v", None) != _FORM:
        raise CannotJoin(wrong)
    try:
        invitation = Invitation(**document)
        texts = [value for name, value in vars(invitation).items() if name != "settings"]
        if not all(isinstance(text, str) for text in texts) or not invitation.database_url:
            raise CannotJoin(wrong)
    except (TypeError, KeyError, AssertionError):
        raise CannotJoin(wrong) from None
    return invitation


def join(invitation: Invitation, directory: Path, host: Optional[str], port: Optional[int]) -> Path:
    """Make the settings of another master in ``directory``; their path. Raises CannotJoin, ConfigError, PortInUse."""
    if (directory / SETTINGS).exists():
        raise CannotJoin(
            f"A master was joined in {directory} before: start it with `tenax master --config {directory / SETTINGS}`, "
            "or name another directory with --dir."
        )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise CannotJoin(f"{directory} is not empty, and a master needs a directory of its own: name one with --dir.")
    files: Dict[str, str] = {}
    settings: JsonObject = {**invitation.settings, "dir": str(directory), "host": host or "127.0.0.1"}
    if port is not None:
        settings["port"] = port
    if invitation.certificate:
        files = {CERTIFICATE: invitation.certificate, KEY: invitation.key}
        settings["tls"] = {"cert": str(directory / CERTIFICATE), "key": str(directory / KEY)}
    if invitation.join_token:
        files[JOIN_TOKEN] = invitation.join_token
    _refuse_another_cluster(invitation)
    return _put(directory, files, settings)


def _put(directory: Path, files: Mapping[str, str], settings: JsonObject) -> Path:
    """All of it, or nothing: the settings come last."""
    was_there = directory.exists()
    path = directory / SETTINGS
    draft = directory / f".{SETTINGS}"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in files.items():
            write_secret(directory / name, text.rstrip("\n"))
        write_secret(draft, yaml12.dump(settings).rstrip("\n"))
        checked = load_master_settings(draft, environ={})
        refuse_taken_port(checked.host, checked.port)
        draft.rename(path)
    except (OSError, TenaxError) as error:
        for name in (*files, draft.name):
            (directory / name).unlink(missing_ok=True)
        if not was_there and directory.exists():
            directory.rmdir()
        if isinstance(error, OSError):
            raise CannotJoin(f"{directory} cannot be written: {error.strerror}.") from None
        raise
    return path


def _refuse_another_cluster(invitation: Invitation) -> None:
    """Raises CannotJoin where the address leads to another database from here, or to none."""
    host = _host(invitation.database_url)
    if host.startswith("/") and not os.path.exists(host):
        raise CannotJoin(
            f"The database of this cluster is the one that Tenax brings along, and serves {invitation.machine} alone. "
            "Move it to a PostgreSQL that both machines reach (tenax backup, pg_restore, db.url), and invite again: "
            "docs/operations.md, Several masters."
        )
    local = (
        f" From here that address leads to {platform.node()} itself."
        if host in ("localhost", "127.0.0.1", "::1")
        else ""
    )
    try:
        cluster_id = _cluster_at(invitation.database_url)
    except TryAgain as error:
        raise CannotJoin(f"The database cannot be reached: {error.__cause__ or error}.{local}") from None
    if cluster_id != invitation.cluster_id:
        what = "no cluster" if cluster_id is None else "another cluster"
        raise CannotJoin(f"The database that the invitation names holds {what}.{local}")


def _cluster_at(url: str) -> Optional[str]:
    """The id of the cluster in a database; None: it holds none. Raises TryAgain, NoAddress."""
    from tenax.master.store.cluster.rows import cluster_id_at

    return asyncio.run(cluster_id_at(url))


def _host(url: str) -> str:
    """Of a database: a name, an address, or the directory of a socket."""
    parts = urlsplit(url)
    return next(iter(parse_qs(parts.query).get("host", [])), "") or parts.hostname or "/run/postgresql"


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip() + "\n"
    except OSError as error:
        raise CannotInvite(
            f"The {what} in {path} cannot be read: {error.strerror}. Call this where the master runs, as its user, and "
            "with the settings that it runs with."
        ) from None
