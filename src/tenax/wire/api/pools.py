"""Resource pools: what they have, how they are scheduled, and which workspaces they are kept for."""

from __future__ import annotations

from enum import Enum

from tenax.wire.api.jobs import QueueStats
from tenax.wire.api.machines import DeviceType
from tenax.wire.api.message import Message, Pagination


class PoolType(str, Enum):
    """Where its machines come from."""

    UNSPECIFIED = "RESOURCE_POOL_TYPE_UNSPECIFIED"
    AWS = "RESOURCE_POOL_TYPE_AWS"
    GCP = "RESOURCE_POOL_TYPE_GCP"
    STATIC = "RESOURCE_POOL_TYPE_STATIC"
    K8S = "RESOURCE_POOL_TYPE_K8S"


class SchedulerType(str, Enum):
    """By which rule requests compete."""

    UNSPECIFIED = "SCHEDULER_TYPE_UNSPECIFIED"
    PRIORITY = "SCHEDULER_TYPE_PRIORITY"
    FAIR_SHARE = "SCHEDULER_TYPE_FAIR_SHARE"

    @classmethod
    def of(cls, policy: str) -> SchedulerType:
        """What Determined calls it; one that it does not know is UNSPECIFIED."""
        return cls.__members__.get(policy.upper(), cls.UNSPECIFIED)


class FittingPolicy(str, Enum):
    """Which of the agents that fit is taken."""

    UNSPECIFIED = "FITTING_POLICY_UNSPECIFIED"
    BEST = "FITTING_POLICY_BEST"
    WORST = "FITTING_POLICY_WORST"


class PrioritySchedulerDetail(Message):
    """How the priority scheduler is set."""

    preemption: bool
    default_priority: int


class PoolDetail(Message):
    """What only some kinds of pool and scheduler have."""

    priority_scheduler: PrioritySchedulerDetail | None = None


class ResourcePool(Message):
    """One pool, with every field that Determined's client insists on."""

    name: str
    description: str
    type: PoolType = PoolType.STATIC
    num_agents: int
    slots_available: int
    slots_used: int
    slot_type: DeviceType
    #: -1 where agents differ, or there is none.
    slots_per_agent: int
    accelerator: str = ""
    aux_container_capacity: int
    aux_container_capacity_per_agent: int
    aux_containers_running: int
    default_compute_pool: bool
    default_aux_pool: bool
    #: Whether the machines themselves may be taken away.
    preemptible: bool = False
    #: How many machines may be started; 0: they are not started from here.
    min_agents: int = 0
    max_agents: int = 0
    max_idle_agent_period: float = 0.0
    max_agent_starting_period: float = 0.0
    instance_type: str = ""
    image_id: str = ""
    location: str = "on-prem"
    scheduler_type: SchedulerType
    scheduler_fitting_policy: FittingPolicy
    details: PoolDetail
    stats: QueueStats
    cluster_name: str
    resource_manager_metadata: dict[str, str] = {}
    master_url: str = ""
    master_cert_name: str = ""
    startup_script: str = ""
    container_startup_script: str = ""
    agent_docker_network: str = ""
    agent_docker_runtime: str = ""
    agent_docker_image: str = ""
    agent_fluent_image: str = ""
    #: It is kept for some workspaces.
    bound: bool = False


class GetResourcePoolsResponse(Message):
    """A page of pools."""

    resource_pools: list[ResourcePool]
    pagination: Pagination


class BindingRequest(Message):
    """Workspaces, by number or name; the pool is that of the path."""

    workspace_ids: list[int] = []
    workspace_names: list[str] = []


class BoundWorkspacesResponse(Message):
    """A page of workspaces that a pool is kept for."""

    workspace_ids: list[int]
    pagination: Pagination


class UsablePoolsResponse(Message):
    """A page of pools that a workspace may use."""

    resource_pools: list[str]
    pagination: Pagination
