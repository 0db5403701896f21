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
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Mapping, Optional
from urllib.parse import parse_qs, urlsplit

from tenax.cli.console import yaml12
from tenax.config.agreement import FILES, OF_THE_MACHINE, differences, fingerprints
from tenax.config.master import MasterSettings, load_master_settings
from tenax.config.settings import in_clear, state_directory
from tenax.errors import TryAgain, UserError
from tenax.jsonvalue import JsonObject
from tenax.local.pgdata import address_of, is_made, write_secret
from tenax.local.supervise.cluster import free_port, master_environment, plan, refuse_taken_port
from tenax.local.supervise.options import load_options

if TYPE_CHECKING:
    from tenax.local.state_dir import StateDir
    from tenax.master.store.cluster.masters import ClusterSeen

#: Below the directory of a master that has joined.
SETTINGS, CERTIFICATE, KEY, JOIN_TOKEN = "master.yaml", "master.crt", "master.key", "join-token"
_FORM = 1
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


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
    """Those of the master that ``tenax up`` runs in ``state``, or of one that runs with ``config``.

    Raises CannotInvite.
    """
    options = load_options(state)
    ran = state.supervisor.exists()
    if config is not None and not (ran and os.path.realpath(options.config) == os.path.realpath(config)):
        settings = load_master_settings(config)
        if settings.db.url is None:
            raise CannotInvite(f"{config} names no database, and neither does TENAX_MASTER_DB__URL: set db.url.")
        return settings
    if not ran:
        raise CannotInvite(
            f"There is no cluster of `tenax up` in {state.root}: name its directory with --dir, or the settings "
            "file of the master with --config."
        )
    cluster = plan(state, options)
    embedded = cluster.settings.db.url is None
    if cluster.misses_its_database:
        raise CannotInvite(
            "The database is one of your own, whose address is neither in the settings file nor in "
            "TENAX_MASTER_DB__URL here: set that as for `tenax up`."
        )
    file = Path(options.config) if options.config else None
    if embedded and not is_made(state.postgres):
        raise CannotInvite(f"There is no database in {state.root} yet: start the cluster with tenax up, then invite.")
    dsn = address_of(state.postgres) if embedded else None
    return load_master_settings(file, environ=master_environment(cluster, dsn))


def invite(settings: MasterSettings) -> Invitation:
    """Raises CannotInvite."""
    assert settings.db.url is not None
    url = settings.db.url.get_secret_value()
    try:
        cluster = _cluster_at(url)
    except TryAgain as error:
        reason = f"The database cannot be reached: {error.__cause__ or error}."
        started = " Start the cluster with tenax up, then invite." if _is_embedded(url) else ""
        raise CannotInvite(reason + started) from None
    if cluster is None:
        raise CannotInvite("The database holds no cluster yet: start its first master, then invite another.")
    _refuse_settings_of_nobody(settings, cluster)
    document = in_clear(settings, given=True)
    for name in OF_THE_MACHINE:
        document.pop(name, None)
    database, security = document["db"], document.get("security", {})
    assert isinstance(database, dict)
    assert isinstance(security, dict)
    database["url"] = url
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
    return Invitation(cluster.id, platform.node(), document, certificate, key, token)


def serves_one_machine(invitation: Invitation) -> bool:
    """Whether its database can be reached on this machine alone."""
    return _is_embedded(invitation.database_url) or _host(invitation.database_url) in _LOOPBACK


def _refuse_settings_of_nobody(settings: MasterSettings, cluster: ClusterSeen) -> None:
    """Settings that no master at work has are of another file, or were changed since it was started."""
    if not cluster.masters:
        raise CannotInvite(
            "No master of this cluster is at work: start it, then invite; another one needs the settings that it has."
        )
    own = fingerprints(settings, cluster.secret)
    apart = [differences(own, row.about.settings) for row in cluster.masters]
    closest = min(apart, key=lambda names: len(names), default=[])
    if closest:
        raise CannotInvite(
            f"No master that is at work has these settings ({', '.join(closest)}). Name the file that it runs with, as "
            "its user and with its TENAX_MASTER_ variables; where that was changed since, restart the master first."
        )


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
        target.unlink(missing_ok=True)
        raise CannotInvite(f"{target} cannot be written: {error.strerror}.") from None


def read(file: Path) -> Invitation:
    """Raises CannotJoin."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise CannotJoin(f"{file} is no file.")
            if status.st_uid not in (os.geteuid(), 0):
                raise CannotJoin(f"{file} is another user's, who has the cluster with it: make it yours, with chown.")
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise CannotJoin(
                    f"Others can read {file}, and whoever reads an invitation has the cluster: make it yours alone "
                    "(mode 600)."
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
        if not all(isinstance(text, str) for text in texts) or not _host(invitation.database_url):
            raise CannotJoin(wrong)
    except (TypeError, KeyError, ValueError, AssertionError):
        raise CannotJoin(wrong) from None
    return invitation


def usual_directory() -> Path:
    """Of a master that is not named another."""
    return state_directory("master")


def join(invitation: Invitation, directory: Path, host: Optional[str], port: Optional[int]) -> Path:
    """Make the settings of another master in ``directory``; their path. Raises CannotJoin, ConfigError, PortInUse."""
    _refuse_used(directory)
    if port == 0:
        port = free_port(host or "127.0.0.1")
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


def _refuse_used(directory: Path) -> None:
    try:
        if (directory / SETTINGS).exists():
            raise CannotJoin(
                f"A master was joined in {directory} before: start it with `tenax master --config "
                f"{directory / SETTINGS}`, or name another directory with --dir."
            )
        if directory.is_dir() and (os.stat(directory).st_uid != os.geteuid() or os.stat(directory).st_mode & 0o022):
            raise CannotJoin(f"Others can write into {directory}, and the master's settings are there: chmod 700.")
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise CannotJoin(
                f"{directory} is not empty, and a master needs a directory of its own: name one with --dir."
            )
    except OSError as error:
        raise CannotJoin(f"{directory} cannot be used: {error.strerror}. Name another directory with --dir.") from None


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
        if checked.tls is not None:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(checked.tls.cert, checked.tls.key)
        draft.rename(path)
    except BaseException as error:
        for name in (*files, draft.name):
            (directory / name).unlink(missing_ok=True)
        if not was_there and directory.exists():
            directory.rmdir()
        if isinstance(error, ssl.SSLError):
            raise CannotJoin(
                "The certificate and the key of the invitation are none, or do not belong together."
            ) from None
        if isinstance(error, OSError):
            raise CannotJoin(f"{directory} cannot be written: {error.strerror}.") from None
        raise
    return path


def _refuse_another_cluster(invitation: Invitation) -> None:
    """Raises CannotJoin where the address leads to another database from here, or to none."""
    host = _host(invitation.database_url)
    hint = ""
    if _is_embedded(invitation.database_url):
        hint = (
            " The database of this cluster is reached by a socket, as the one that Tenax brings along is, and serves "
            f"{invitation.machine} alone, there the user that runs the cluster. Move it to a PostgreSQL that both "
            "machines reach (tenax backup, pg_restore, db.url), and invite again: docs/operations.md, Several masters."
        )
        if not os.path.exists(host):
            raise CannotJoin(hint.strip())
    elif host in _LOOPBACK:
        hint = f" From here that address leads to {platform.node()} itself."
    try:
        cluster = _cluster_at(invitation.database_url)
    except TryAgain as error:
        raise CannotJoin(f"The database cannot be reached: {error.__cause__ or error}.{hint}") from None
    if cluster is None or cluster.id != invitation.cluster_id:
        what = "no cluster" if cluster is None else "another cluster"
        raise CannotJoin(f"The database that the invitation names holds {what}.{hint}")


def _cluster_at(url: str) -> Optional[ClusterSeen]:
    """The cluster in a database; None: it holds none. Raises TryAgain, NoAddress."""
    from tenax.master.store.cluster.masters import cluster_at

    return asyncio.run(cluster_at(url))


def _is_embedded(url: str) -> bool:
    return _host(url).startswith("/")


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
