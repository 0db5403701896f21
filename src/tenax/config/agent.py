"""Settings of an agent: YAML file, environment ``TENAX_AGENT_*``, flags.

The join token is read from a file or from the environment, never from a flag: arguments can be read by every user.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from tenax.config.schema.constraints import LABEL_KEY, LABEL_VALUE, NO_LABELS
from tenax.config.settings import Settings, load, state_directory
from tenax.host.runtimes import AUTO, CHOICES
from tenax.jsonvalue import Json
from tenax.scheduler.devices import DeviceKind
from tenax.scheduler.snapshot import MAX_LABELS

#: No slots: this agent takes only work that asks for none.
NO_SLOTS = "none"
#: What the file of a lease holds before any agent has renewed it.
NEVER_RENEWED = "0"
#: Which devices become slots; ``auto``: the first kind of GPU that the machine has, else the CPU.
SLOT_TYPES = (AUTO, *(kind.value for kind in DeviceKind), NO_SLOTS)


class AgentTlsSettings(Settings):
    """How an ``https`` master is trusted."""

    #: CA or the master's own certificate (PEM); None: the system's store.
    master_cert: Path | None = None
    #: The name to expect in the certificate, where it differs from the address.
    master_cert_name: str | None = None


class AllowedSettings(Settings):
    """What tasks may have of this machine beyond their own files, where their owners are mapped to uids."""

    #: Paths that containers may mount, with what lies below; ``/data:ro`` for reading alone.
    bind_mounts: tuple[str, ...] = ()
    #: ``IPC_LOCK``, ``SYS_PTRACE``, ...
    capabilities: tuple[str, ...] = ()
    #: Device files: ``/dev/infiniband/uverbs0``.
    devices: tuple[str, ...] = ()
    #: The machine's network for containers of tasks with several members, where others have one of their own.
    host_network: bool = False
    #: Uid 0, for users or workspaces that are linked with it.
    root: bool = False
    #: Tasks of users without a uid, as the agent's own user.
    unmapped: bool = True

    @field_validator("bind_mounts", "devices")
    @classmethod
    def _are_absolute(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for path in given:
            if not path.startswith("/"):
                raise ValueError(f"{path!r} is not an absolute path of this machine")
        return given


class HookSettings(Settings):
    """Programs that the agent runs when something happens to it: each a list of the program and its arguments."""

    #: A connection to the master that stood was lost.
    on_connection_lost: tuple[str, ...] = ()
    #: No master was heard for ``orphan_after_s`` and nothing runs here, or none for ``orphan_busy_after_s``.
    on_orphaned: tuple[str, ...] = ("shutdown", "-P", "now")


class AgentSettings(Settings):
    """All settings of an agent process."""

    #: Of several masters of one cluster all, between commas: one that answers is used.
    master_url: str = "http://127.0.0.1:8080"
    #: Where tasks reach the master, when that differs from where the agent does; of several in the same order.
    task_master_url: str | None = None
    #: Unique in the cluster.
    agent_id: str = Field(default_factory=socket.gethostname, min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    pool: str = Field(default="default", min_length=1)
    #: ``auto``: one per GPU, or one for all CPU cores; a number cuts a CPU agent into that many slots.
    slots: Literal["auto"] | int = "auto"
    #: One of `SLOT_TYPES`.
    slot_type: str = AUTO
    #: Indices or identities of the GPUs to offer; empty: all that ``CUDA_VISIBLE_DEVICES`` and its like let through.
    visible_gpus: tuple[str, ...] = ()
    #: One directory per container of the process runtime, spools, the credential.
    dir: Path = Field(default_factory=lambda: state_directory("agent"))
    #: ``auto``: a container engine where one answers, else plain processes.
    runtime: str = AUTO
    #: Socket of the Docker Engine API (podman serves the same); None: ``DOCKER_HOST`` or the usual places.
    docker_host: str | None = None
    #: Network of docker containers: ``bridge``, ``host``; ``auto``: ``bridge`` unless the master is on this machine's
    #: loopback. Members of a distributed task always use the host's.
    docker_network: Literal["auto", "bridge", "host"] = "auto"
    allowed: AllowedSettings = AllowedSettings()
    #: Interpreter of tasks in the process runtime; None: the agent's own.
    python: Path | None = None
    join_token_file: Path | None = None
    #: Environment only (``TENAX_AGENT_JOIN_TOKEN``); for a file use ``join_token_file``.
    join_token: SecretStr | None = None
    tls: AgentTlsSettings = AgentTlsSettings()
    hooks: HookSettings = HookSettings()
    #: What it is, as ``zone=a``: `resources.constraints` of a configuration ask for it.
    labels: tuple[str, ...] = ()
    #: Where the other machines of a distributed task reach this one; None: the address that faces the master.
    address: str | None = None
    #: Seconds that a task's last reports are offered to a master that is there and refuses them, before they are
    #: declared lost. A master that is away is waited for without end.
    spool_patience_s: float = Field(default=600.0, ge=0)
    #: Seconds without any master after which ``hooks.on_orphaned`` is run, once nothing runs here; None: never. Rented
    #: machines have it.
    orphan_after_s: float | None = Field(default=None, gt=0)
    #: The same, whatever runs here: it is asked to save some minutes before.
    orphan_busy_after_s: float = Field(default=86400.0, gt=0, le=86400)
    #: Renewed while a master is heard, or something runs here; a rented machine powers itself off where it is not.
    lease_file: Path | None = None
    #: Whose machine this is: what that cloud's metadata service says of its end is told to the master. Empty: nobody's.
    cloud: str = ""
    #: Of that service, where it is not at its usual address.
    metadata_url: str = ""
    #: Seconds between two questions to it, of a cloud that does not say by itself when something changes.
    metadata_every_s: float = Field(default=5.0, gt=0, le=60)
    #: False: nothing starts here that could ask that service for this machine's own rights.
    tasks_see_metadata: bool = True
    #: Bytes of model code kept on this machine's disk.
    context_cache_bytes: int = Field(default=4 * 1024**3, ge=0)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("slots", mode="before")
    @classmethod
    def _auto_or_a_number(cls, value: object) -> object:
        if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        raise ValueError("write 'auto' or how many slots to offer: 0, 1, 2, ...")

    @field_validator("runtime")
    @classmethod
    def _is_there(cls, value: str) -> str:
        if value not in CHOICES:
            raise ValueError(f"there is no runtime {value!r}: use {' or '.join(CHOICES)}")
        return value

    @field_validator("slot_type")
    @classmethod
    def _is_a_kind(cls, value: str) -> str:
        if value not in SLOT_TYPES:
            raise ValueError(f"there is no slot type {value!r}: use {' or '.join(SLOT_TYPES)}")
        return value

    @field_validator("labels", mode="before")
    @classmethod
    def _pairs(cls, value: object) -> object:
        """A map as pairs, ``a=1,b`` as environment and flags write it; a name alone is true."""
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, Mapping):
            for key, item in value.items():
                if isinstance(item, float):
                    raise ValueError(f"{key}: {item} is a number to YAML, which changes how it is written: use quotes")
            value = [f"{key}={str(item).lower() if isinstance(item, bool) else item}" for key, item in value.items()]
        if isinstance(value, (list, tuple)):
            return tuple(item if not isinstance(item, str) or "=" in item else f"{item}=true" for item in value)
        return value

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        keys = [label.partition("=")[0] for label in labels]
        for label, key in zip(labels, keys):
            if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(label.partition("=")[2]):
                raise ValueError(f"{label!r} is no label: write KEY=VALUE, as in zone=a")
            if key in NO_LABELS:
                raise ValueError(f"{key!r} is no name for a label: constraints have another meaning for it")
            if keys.count(key) > 1:
                raise ValueError(f"the label {key!r} stands there twice")
        if len(labels) > MAX_LABELS:
            raise ValueError(f"an agent has at most {MAX_LABELS} labels")
        return labels

    @field_validator("visible_gpus", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """``0,1`` as ``[0, 1]``: that is how the vendors' variables are written."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        if isinstance(value, int) and not isinstance(value, bool):
            return (str(value),)
        if isinstance(value, (list, tuple)):
            return tuple(str(item) if isinstance(item, int) else item for item in value)
        return value

    @field_validator("master_url", "task_master_url")
    @classmethod
    def _with_scheme(cls, value: str | None) -> str | None:
        if value is None:
            return None
        urls = [url.strip().rstrip("/") for url in value.split(",")]
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"write the whole address: http://{url}, or https:// when the master has TLS")
        if len(set(urls)) < len(urls):
            raise ValueError("one address stands there twice: name each master once")
        return ",".join(urls)

    @model_validator(mode="after")
    def _are_as_many(self) -> AgentSettings:
        if self.task_master_url is not None and len(self.task_master_urls) not in (1, len(self.master_urls)):
            raise ValueError("task_master_url names other masters than master_url: name as many, in the same order")
        return self

    @property
    def master_urls(self) -> tuple[str, ...]:
        """Where this agent reaches the masters."""
        return tuple(self.master_url.split(","))

    @property
    def task_master_urls(self) -> tuple[str, ...]:
        """Where tasks do."""
        return tuple((self.task_master_url or self.master_url).split(","))

    @property
    def is_of_this_machine(self) -> bool:
        """Whether tasks reach a master over an address that is this machine's own, reached from nowhere else."""
        return any(is_loopback(url) for url in self.task_master_urls)

    @property
    def uses_tls(self) -> bool:
        """Whether any of the masters has TLS."""
        return any(url.startswith("https://") for url in self.master_urls)


def load_agent_settings(
    file: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Json] | None = None,
) -> AgentSettings:
    """The agent's settings. A flag whose value is None was not given. Raises `ConfigError`."""
    return load(
        AgentSettings,
        what="agent's configuration",
        prefix="TENAX_AGENT_",
        file=file,
        environ=os.environ if environ is None else environ,
        flags=flags or {},
    )


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own, reached from nowhere else."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
