"""What a local cluster consists of: its servers with their settings, made from the options of ``tenax up``.

Secrets go to the servers through their environment and through files that only the owner can read, never as arguments.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import platform
import shutil
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenax.config.master import MasterSettings, load_master_settings
from tenax.errors import UserError
from tenax.host.disk import size_text
from tenax.jsonvalue import Json, JsonObject
from tenax.local.binaries import CURRENT_MAJOR
from tenax.local.copy_before_migration import copied_so_far
from tenax.local.pgdata import older_major
from tenax.local.postgres import EmbeddedPostgres
from tenax.local.state_dir import StateDir
from tenax.local.supervise.options import Options, load_options, save_options
from tenax.local.supervise.services import DatabaseService, ServerProcess, Service
from tenax.local.supervise.supervisor import ClusterSupervisor

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_ASK_S = 2.0
_HINTS = {
    errno.EADDRINUSE: "Another program has it: end that one, or choose another port with --port (0: any free one).",
    errno.EACCES: "Choose a port above 1023 with --port.",
    errno.EADDRNOTAVAIL: "Choose an address of this machine with --host.",
}


class PortInUse(UserError):
    """Nothing can listen on that port."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A local cluster as it is to be."""

    state: StateDir
    options: Options
    settings: MasterSettings

    @property
    def address(self) -> str:
        """The host under which this machine reaches the master."""
        return _ANYWHERE.get(self.settings.host, self.settings.host)

    @property
    def url(self) -> str:
        """Where this machine reaches the master."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self.settings.tls else 'http'}://{host}:{self.settings.port}"

    @property
    def certificate(self) -> Path | None:
        return self.settings.tls.cert if self.settings.tls is not None else None

    @property
    def misses_its_database(self) -> bool:
        """Whether it was last up on a database of the operator's, and no address of that is given now."""
        return self.options.own_database and self.settings.db.url is None

    def about(self) -> JsonObject:
        """What others want to know of it: the part of ``supervisor.json`` that does not change."""
        document: JsonObject = {"url": self.url, "host": self.settings.host, "port": self.settings.port}
        # A home directory may be that of several machines.
        document["machine"] = platform.node()
        document["database"] = "your own" if self.settings.db.url is not None else "embedded"
        if self.certificate is not None:
            document["certificate"] = str(self.certificate)
        return document


def plan(state: StateDir, options: Options) -> LocalCluster:
    """The cluster that these options make; reads the master's settings file. Raises ConfigError."""
    flags: dict[str, Json] = {"dir": str(state.root), "host": options.host, "port": options.port}
    flags["security.agent_join_token_file"] = str(state.join_token)
    settings = load_master_settings(Path(options.config) if options.config else None, flags=flags)
    return LocalCluster(state, options, settings)


def short_of_room(cluster: LocalCluster) -> str:
    """What is refused because the disk under an embedded database is nearly full; empty while nothing is."""
    needed = cluster.settings.budgets.min_free_bytes
    if cluster.settings.db.url is not None:
        return ""
    free = shutil.disk_usage(cluster.state.root).free
    if free >= needed:
        return ""
    refused = "logs and metrics are refused" if free < needed // 2 else "logs are refused"
    return (
        f"The disk of {cluster.state.root} has {size_text(free)} left, less than {size_text(needed)}: "
        f"{refused}, so that the state of experiments can still be written. Make room on it."
    )


def refuse_taken_port(host: str, port: int) -> None:
    """Raises PortTaken when nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except socket.gaierror as error:
            reason = str(error.strerror).lower()
            raise PortInUse(f"Nothing can listen on {host}: {reason}. {_HINTS[errno.EADDRNOTAVAIL]}") from None
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            hint = _HINTS.get(error.errno or 0, "Choose another address with --host and --port.")
            raise PortInUse(f"Nothing can listen on port {port} of {host}: {reason}. {hint}") from None


def free_port(host: str) -> int:
    """A port on which nothing listens now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def supervisor_of(cluster: LocalCluster, lock: int) -> ClusterSupervisor:
    """The supervisor of that cluster, with nothing started yet; ``lock``: the descriptor that holds its directory."""
    state, settings = cluster.state, cluster.settings
    database: EmbeddedPostgres | None = None
    services: list[Service] = []
    if settings.db.url is None:
        database = EmbeddedPostgres(state.postgres, progress=lambda message: supervisor.say(message), within=state.root)
        services.append(DatabaseService(database))
    services.append(_master(cluster, database))
    if cluster.options.agent:
        services.append(_agent(cluster))
    logs = [state.log("master"), state.log("agent"), state.log("supervisor"), state.postgres / "postgres.log"]

    def note_whose_database_it_is() -> None:
        save_options(state, load_options(state).given(own_database=database is None))

    supervisor = ClusterSupervisor(state, services, cluster.about(), lock, logs, note_whose_database_it_is)
    return supervisor


def _master(cluster: LocalCluster, database: EmbeddedPostgres | None) -> ServerProcess:
    def environment() -> Mapping[str, str]:
        return master_environment(cluster, database.dsn if database is not None else None)

    command = [sys.executable, "-P", "-m", "tenax.master", "--existing-dir"]
    if cluster.options.config:
        command += ["--config", cluster.options.config]
    return ServerProcess(
        "master",
        command,
        log=cluster.state.log("master"),
        directory=cluster.state.root,
        environment=environment,
        answers=lambda: answers(cluster),
        vital=True,
        doing=lambda: _copying(cluster.state),
    )


def _copying(state: StateDir) -> str:
    """While the database is copied because this release is about to change it."""
    copied = copied_so_far(state)
    return f"copying the database before it is upgraded ({size_text(copied)} so far)" if copied is not None else ""


def backup_command(cluster: LocalCluster) -> list[str]:
    """What is run before the embedded database is migrated: what the settings name, else a copy of it."""
    named = cluster.settings.db.backup_command
    if named is not None:
        return list(named)
    return [sys.executable, "-P", "-m", "tenax.local.copy_before_migration", str(cluster.state.root)]


def master_environment(cluster: LocalCluster, dsn: str | None) -> dict[str, str]:
    """The settings that ``tenax up`` makes, over those of the file."""
    settings, state = cluster.settings, cluster.state
    env = {
        **os.environ,
        "TENAX_MASTER_HOST": settings.host,
        "TENAX_MASTER_PORT": str(settings.port),
        "TENAX_MASTER_DIR": str(state.root),
        "TENAX_MASTER_SECURITY__AGENT_JOIN_TOKEN_FILE": str(settings.security.agent_join_token_file),
    }
    if dsn is not None:
        env["TENAX_MASTER_DB__URL"] = dsn
        env["TENAX_MASTER_DB__BACKUP_COMMAND"] = json.dumps(backup_command(cluster))
    roots = list(dict.fromkeys([*settings.checkpoint_roots, str(state.checkpoints)]))
    env["TENAX_MASTER_CHECKPOINT_ROOTS"] = json.dumps(roots)
    if settings.checkpoint_storage is None:
        storage = {"type": "shared_fs", "host_path": str(state.checkpoints)}
        env["TENAX_MASTER_CHECKPOINT_STORAGE"] = json.dumps(storage)
    return env


def _agent(cluster: LocalCluster) -> ServerProcess:
    def environment() -> Mapping[str, str]:
        env = {
            **os.environ,
            "TENAX_AGENT_MASTER_URL": cluster.url,
            "TENAX_AGENT_DIR": str(cluster.state.agent),
            "TENAX_AGENT_JOIN_TOKEN_FILE": str(cluster.settings.security.agent_join_token_file),
            "TENAX_AGENT_SLOTS": cluster.options.slots,
            "TENAX_AGENT_RUNTIME": cluster.options.runtime,
        }
        if cluster.certificate is not None:
            env["TENAX_AGENT_TLS__MASTER_CERT"] = str(cluster.certificate)
        return env

    return ServerProcess(
        "agent",
        [sys.executable, "-P", "-m", "tenax.agent", "--existing-parent"],
        log=cluster.state.log("agent"),
        directory=cluster.state.root,
        environment=environment,
        answers=lambda: True,
        vital=False,
    )


def notices(cluster: LocalCluster) -> list[str]:
    """What whoever looks after the cluster that is up should know, a sentence or two each."""
    return [notice for notice in (short_of_room(cluster), _older_database(cluster), _waiting(cluster)) if notice]


def _older_database(cluster: LocalCluster) -> str:
    major = older_major(cluster.state.postgres) if cluster.settings.db.url is None else None
    if major is None:
        return ""
    return (
        f"The database is one of PostgreSQL {major}; stop the cluster, and make it one of {CURRENT_MAJOR} with: "
        "tenax upgrade-database."
    )


def _waiting(cluster: LocalCluster) -> str:
    waiting = _health(cluster)[1].get("waiting_migrations")
    if not isinstance(waiting, list) or not waiting:
        return ""
    return (
        f"Migrations of the database wait ({', '.join(map(str, waiting))}); apply them when there is time, while the "
        "cluster is up, with: tenax upgrade-database."
    )


def answers(cluster: LocalCluster) -> bool:
    """Whether the master serves: its health page says so."""
    return _health(cluster)[0] == 200


def _health(cluster: LocalCluster) -> tuple[int, JsonObject]:
    """Status and content of the health page; 0 while nobody answers."""
    connection: http.client.HTTPConnection
    if cluster.certificate is not None:
        # We ask ourselves; whether others trust the certificate is not the question here.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(
            cluster.address, cluster.settings.port, timeout=_ASK_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(cluster.address, cluster.settings.port, timeout=_ASK_S)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        body: Json = {}
        with contextlib.suppress(ValueError):
            body = json.loads(answer.read())
        return answer.status, body if isinstance(body, dict) else {}
    except (OSError, http.client.HTTPException):
        return 0, {}
    finally:
        connection.close()
