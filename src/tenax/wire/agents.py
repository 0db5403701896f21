"""What master and agent say to each other over one websocket, as JSON text frames.

The agent dials ``GET /agents/session`` with ``Authorization: Bearer <credential>`` and says :class:`Hello` with its
full state; the master answers :class:`Welcome`, then :class:`DesiredStates` now and whenever they change. After that
the agent sends :class:`AgentReport` for what changed. Nothing is a command: desired states are read from the database
and repeated in full, so a lost message repairs itself, and **absence never kills**: a container ends only by a desired
state that names it. (On the wire they are ``wants``, each with its ``want``.)

Rules an agent keeps: it obeys desired states of its own cluster id and of the generation that it was welcomed with,
with a revision not below the last one obeyed; a container of another cluster is kept and reported. Rules a master
keeps: reports of a session that is not the newest of that agent change nothing. An agent that has obeyed a revision
which the database does not have yet proves that the database was restored from a copy: the generation is raised, and
containers of earlier generations that the copy does not know are kept and shown. That it has obeyed it, it shows by the
``proof`` that came with it: raising the generation ends every master, so nobody can claim it.

The credential comes from ``POST /agents/join`` (:class:`JoinRequest`, :class:`JoinReply`), once, for a join token.
Output travels beside the websocket: ``POST /agents/logs`` (see ``tenax.wire.logs``).
"""

from __future__ import annotations

from typing import Literal, Union

import msgspec

PROTOCOL = 1
CREDENTIAL_PREFIX = "tnxg_"

ReportedState = Literal["pulling", "starting", "running", "exited"]


class JoinRequest(msgspec.Struct, forbid_unknown_fields=False):
    agent_id: str
    token: str
    #: Name of the pool it asks to be in; the master refuses one it does not have.
    pool: str = "default"
    #: What it will prove itself with: `CREDENTIAL_PREFIX` and 43 random characters of base64url. Drawn by the agent and
    #: kept before it asks, so that a request whose answer was lost can be made again. Empty: the master draws one.
    credential: str = ""


class JoinReply(msgspec.Struct):
    credential: str
    cluster_id: str


class SlotInfo(msgspec.Struct, frozen=True):
    id: int
    #: ``cpu``, ``cuda`` or ``rocm``.
    kind: str
    name: str = ""
    uuid: str = ""
    #: Bytes; None from agents, and of devices, that do not say.
    memory: int | None = None
    #: What is wrong with it; it takes no new work then.
    fault: str = ""


class Exit(msgspec.Struct, frozen=True):
    """How a container ended."""

    #: Exit code of the main process; None when it died of a signal or never ran.
    code: int | None = None
    signal: int | None = None
    #: In words, for people: "out of memory", "killed by signal 9", "could not start: ...".
    reason: str = ""
    #: The platform caused it (machine rebooted, container lost, image missing...): never counted against max_restarts.
    platform: bool = False
    out_of_memory: bool = False
    #: It failed by itself while its agent's disk was full: the platform's, but not for ever.
    disk_full: bool = False
    #: Empty when every record of the spool was acknowledged; else a sentence about what was declared lost.
    spool_lost: str = ""


class ContainerReport(msgspec.Struct, frozen=True):
    container_id: str
    cluster_id: str
    generation: int
    state: ReportedState
    pid: int | None = None
    #: Address at which the other members of its allocation reach it.
    address: str = ""
    exit: Exit | None = None


class Allowed(msgspec.Struct, frozen=True):
    """What the operator of a machine lets tasks with a uid of their own have of it."""

    bind_mounts: list[str] = []
    capabilities: list[str] = []
    devices: list[str] = []
    root: bool = False
    #: Also tasks without a uid.
    unmapped: bool = True
    #: An engine makes the containers, and gives what it is asked for: a plain process has what its uid has.
    by_engine: bool = True


class Hello(msgspec.Struct, tag="hello", tag_field="type"):
    """First frame of a connection: the agent's full state."""

    protocol: int
    agent_version: str
    hostname: str
    #: ``process`` or ``docker``: what runs its containers by default.
    runtime: str
    slots: list[SlotInfo]
    containers: list[ContainerReport]
    #: Generation and revision of the desired states obeyed last; -1 for none since the agent started.
    generation: int = -1
    revision: int = -1
    #: None from agents that do not say.
    allowed: Allowed | None = None
    #: Another one for each machine, boot and state directory, a copied one as well; empty from agents that do not say.
    place: str = ""
    #: What came with the desired states of that revision; empty from agents that do not say.
    proof: str = ""
    #: What its operator says of the machine.
    labels: dict[str, str] = {}


class AgentReport(msgspec.Struct, tag="report", tag_field="type"):
    """What changed since the last frame."""

    containers: list[ContainerReport] = []
    #: Containers of which nothing is left: no process, no directory.
    gone: list[str] = []


class Ping(msgspec.Struct, tag="ping", tag_field="type"):
    """Sent when nothing else was sent for a while."""


class MachineNotice(msgspec.Struct, frozen=True):
    """Something that the cloud says is going to happen to the agent's machine."""

    #: ``interruption``: it is taken back; ``maintenance``: it is stopped or started anew; ``rebalance``: it is more
    #: likely than others to be taken back. A kind that a master does not know changes nothing there.
    kind: str
    #: For people. The same notice has the same words.
    reason: str
    #: Seconds that are left; None: nobody says.
    within_s: float | None = None


class MachineNotices(msgspec.Struct, tag="notices", tag_field="type"):
    """All that the cloud says now: none any more, where it has taken back what it said.

    Said when it changes, and at the beginning of each connection with the seconds that are left then; never before the
    cloud has answered, and only to a master whose welcome asks for it.
    """

    notices: list[MachineNotice] = []


FromAgent = Union[Hello, AgentReport, Ping, MachineNotices]


class Mount(msgspec.Struct, frozen=True):
    host_path: str
    container_path: str
    read_only: bool = False
    propagation: str = "rprivate"


#: At the end of a granted path that may only be read.
READ_ONLY = ":ro"


class Grants(msgspec.Struct, frozen=True):
    """What the master's own configuration gives to tasks: no user asked for it."""

    #: Paths of the machine, those that may only be read with READ_ONLY at their end.
    bind_mounts: list[str] = []
    capabilities: list[str] = []
    devices: list[str] = []


class TaskFile(msgspec.Struct, frozen=True):
    """A small file placed before the start; relative paths are under the run directory (``DET_RUN_DIR``)."""

    path: str
    content: str
    mode: int = 0o600


class ContainerSpec(msgspec.Struct, frozen=True):
    """All that an agent needs to start one container; holds the task's own credentials and no other secret."""

    container_id: str
    allocation_id: str
    task_id: str
    rank: int
    #: Number of members of the allocation.
    members: int
    slots: list[int]
    #: ``{python}`` as the first word stands for the interpreter of the place where it runs.
    argv: list[str]
    #: Without what only the agent knows (DET_MASTER, DET_AGENT_ID, DET_SLOT_IDS, DET_RUN_DIR, ports, device variables).
    env: dict[str, str]
    #: Hash of the model code, to be unpacked into the work directory before the start; empty for none.
    context_hash: str = ""
    #: Image for the docker runtime, by kind of slot: cpu, cuda, rocm.
    images: dict[str, str] = {}
    force_pull: bool = False
    mounts: list[Mount] = []
    files: list[TaskFile] = []
    shm_bytes: int = 0
    #: uid:gid, None for the agent's own.
    uid: int | None = None
    gid: int | None = None
    #: What the two are called where they have no names there; empty for none.
    user: str = ""
    group: str = ""
    add_capabilities: list[str] = []
    drop_capabilities: list[str] = []
    devices: list[str] = []
    granted: Grants = Grants()
    #: Ports on which it serves (notebooks, shells): published at the same numbers where it has a network of its own.
    ports: list[int] = []
    #: Network of the engine for a container that is alone; empty for the agent's choice.
    network: str = ""
    #: For the image's registry: ``username``, ``password``, ``serveraddress``; empty for this machine's own login.
    registry_auth: dict[str, str] = {}
    #: Bytes of output kept per stream on the agent's disk while the master is away.
    output_cap_bytes: int = 256 * 1024 * 1024


class DesiredRun(msgspec.Struct, tag="run", tag_field="want", frozen=True):
    container_id: str
    #: None once the agent has reported this container: it has the spec.
    spec: ContainerSpec | None = None


class DesiredStop(msgspec.Struct, tag="stop", tag_field="want", frozen=True):
    """End it: SIGTERM to the main process, SIGKILL to all of it after ``within_s`` (0: at once)."""

    container_id: str
    within_s: float


class DesiredGone(msgspec.Struct, tag="gone", tag_field="want", frozen=True):
    """Its exit is recorded: remove what is left (kill what runs) and report it gone."""

    container_id: str


DesiredState = Union[DesiredRun, DesiredStop, DesiredGone]


class Welcome(msgspec.Struct, tag="welcome", tag_field="type"):
    cluster_id: str
    generation: int
    session: int
    #: The agent says something at least this often.
    heartbeat_s: float
    #: Whether the master understands `MachineNotices`: one that does not would end the connection.
    notices: bool = False


class DesiredStates(msgspec.Struct, tag="wants", tag_field="type"):
    cluster_id: str
    generation: int
    revision: int
    #: Every container of this agent that is not gone.
    containers: list[DesiredState]
    #: That they were sent: the agent says it with its next hello. Empty from masters that do not ask for it.
    proof: str = ""


class SessionRefused(msgspec.Struct, tag="refused", tag_field="type"):
    """Last frame before the master closes: what is wrong and what to do."""

    message: str
    #: False: trying again will not help.
    retry: bool


FromMaster = Union[Welcome, DesiredStates, SessionRefused]
