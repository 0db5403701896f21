"""Agents and their slots, as people see them."""

from __future__ import annotations

from enum import Enum

from tenax.wire.message import Message, Pagination, Timestamp
from tenax.wire.task_names import DETERMINED_VERSION


class DeviceType(str, Enum):
    """What a slot is made of."""

    UNSPECIFIED = "TYPE_UNSPECIFIED"
    CPU = "TYPE_CPU"
    CUDA = "TYPE_CUDA"
    ROCM = "TYPE_ROCM"

    @classmethod
    def of(cls, kind: str) -> DeviceType:
        """What Determined calls it; one that it does not know is UNSPECIFIED."""
        return cls.__members__.get(kind.upper(), cls.UNSPECIFIED)


class Device(Message):
    """One device."""

    id: int
    brand: str = ""
    uuid: str = ""
    type: DeviceType
    #: Bytes; none of a device that does not say.
    memory: int | None = None


class Container(Message):
    """One member of an attempt."""

    id: str
    #: The attempt.
    parent: str = ""
    devices: list[Device] = []
    state: str
    permission_denied: bool = False
    #: Whose it is and what for, in lists of agents and slots.
    username: str = ""
    task_id: str = ""
    trial_id: int | None = None
    experiment_id: int | None = None
    #: The name of the experiment, or what the task is called.
    description: str = ""


class Slot(Message):
    """A device of an agent, and what runs on it."""

    id: str
    device: Device
    enabled: bool
    draining: bool
    #: Ours: what is wrong with its device, which takes no new work then.
    fault: str = ""
    container: Container | None = None


class DeviceStats(Message):
    """How many slots there are, and what they do."""

    states: dict[str, int] = {}
    disabled: int = 0
    draining: int = 0
    total: int = 0


class SlotStats(Message):
    """By type and by brand."""

    type_stats: dict[str, DeviceStats] = {}
    brand_stats: dict[str, DeviceStats] = {}


class Agent(Message):
    """A machine that runs tasks."""

    id: str
    registered_time: Timestamp | None = None
    slots: dict[str, Slot] = {}
    containers: dict[str, Container] = {}
    addresses: list[str] = []
    enabled: bool
    draining: bool
    #: Ours: why it drains, where nobody said so.
    reason: str = ""
    #: Whether it is heard of.
    connected: bool = True
    last_seen_time: Timestamp | None = None
    runtime: str = ""
    #: What clients compare with the master's.
    version: str = DETERMINED_VERSION
    #: Ours; empty for one that has never connected.
    tenax_version: str = ""
    resource_pools: list[str]
    slot_stats: SlotStats
    #: Containers of another cluster that this machine holds: nobody here ends them.
    foreign_containers: list[dict[str, str]] = []
    #: What its operator says of it; `resources.constraints` ask for it.
    labels: dict[str, str] = {}
    #: Ours: what the cloud of its machine says of its end, and when that is.
    notice: str = ""
    notice_until: Timestamp | None = None


class GetAgentsResponse(Message):
    """A page of agents."""

    agents: list[Agent]
    pagination: Pagination


class GetAgentResponse(Message):
    """One agent."""

    agent: Agent


class GetSlotsResponse(Message):
    """The slots of an agent."""

    slots: list[Slot]


class GetSlotResponse(Message):
    """One slot."""

    slot: Slot


class DisableRequest(Message):
    """``drain``: what runs may end by itself."""

    drain: bool = False


class AgentSortBy(str, Enum):
    """What a list of agents is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    ID = "SORT_BY_ID"
    TIME = "SORT_BY_TIME"


class PostJoinTokenRequest(Message):
    """A join token to make, for so many agents (``uses``; -1: any number) and so long (``lifespan``: as in ``90m``).

    ``agent_id``: for that agent alone, also in the place of one of that name that has joined before.
    """

    description: str = ""
    agent_id: str | None = None
    uses: int = 1
    lifespan: str = "1h"


class JoinTokenView(Message):
    """All about a join token but the token."""

    id: int
    description: str = ""
    made_by: int | None = None
    agent_id: str | None = None
    #: -1: any number.
    uses_left: int
    created_at: Timestamp
    expiry: Timestamp
    revoked: bool = False
    #: It lets agents in: neither revoked nor over nor used up.
    good: bool = True


class PostJoinTokenResponse(Message):
    """The only time that the token is shown."""

    token: str
    join_token: JoinTokenView


class GetJoinTokensResponse(Message):
    """Join tokens, the oldest first; ``join_by_file``: that of the master's file lets agents in, too."""

    join_tokens: list[JoinTokenView]
    join_by_file: bool


class RevokeJoinTokenResponse(Message):
    """The token as it is now."""

    join_token: JoinTokenView


class PostAgentBootstrapRequest(Message):
    """What the script that makes an agent of a machine says, and how long its token is good (``lifespan``: ``90m``).

    ``master_url``: where the machine reaches the master, of several between commas; ``own_address``: it may be an
    address that means the machine itself. ``certificate`` (PEM): by which the master is trusted; empty: as the machine
    does. ``agent_id``: for that agent alone, else it is called as its machine. The rest is as in `agent_install` of a
    provider.
    """

    master_url: str
    own_address: bool = False
    certificate: str = ""
    pool: str = ""
    agent_id: str = ""
    lifespan: str = "1h"
    python: str = ""
    index_url: str = ""
    wheelhouse: str = ""


class PostAgentBootstrapResponse(Message):
    """A script for ``sh``. It holds the token, and is shown this once."""

    script: str
    join_token: JoinTokenView
