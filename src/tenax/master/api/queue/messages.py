"""Messages about the queue and its jobs, resource pools, and what slots were used for."""

from __future__ import annotations

from enum import Enum

from tenax.master.api.agents.messages import DeviceType
from tenax.master.api.experiments.messages import JobState, JobSummary
from tenax.master.submission.messages import QueueControl
from tenax.scheduler.explain import RemedyKind
from tenax.scheduler.outlook import Sureness
from tenax.scheduler.reasons import WaitClass
from tenax.wire.message import Document, Message, Pagination, Timestamp


class JobType(str, Enum):
    """What a job runs."""

    UNSPECIFIED = "TYPE_UNSPECIFIED"
    EXPERIMENT = "TYPE_EXPERIMENT"
    NOTEBOOK = "TYPE_NOTEBOOK"
    TENSORBOARD = "TYPE_TENSORBOARD"
    SHELL = "TYPE_SHELL"
    COMMAND = "TYPE_COMMAND"
    CHECKPOINT_GC = "TYPE_CHECKPOINT_GC"
    GENERIC = "TYPE_GENERIC"


class Job(Message):
    """One job of the queue."""

    summary: JobSummary
    type: JobType
    submission_time: Timestamp
    username: str
    user_id: int
    resource_pool: str
    is_preemptible: bool
    priority: int
    weight: float
    #: The experiment, or the task.
    entity_id: str
    job_id: str
    requested_slots: int
    allocated_slots: int
    name: str
    progress: float = 0.0
    workspace_id: int
    #: In words, why the first of its requests waits.
    reason: str = ""
    #: What has to happen before it starts.
    wait_class: WaitClass | None = None
    #: What its first request that waits asks for, and since when it waits.
    waiting_slots: int | None = None
    waiting_since: Timestamp | None = None
    #: Other pools, which its workspace may use, where that would start at once.
    room_in: list[str] = []


class NamedJob(Message):
    """A job as others are told of it."""

    job_id: str
    type: JobType
    entity_id: str
    name: str
    username: str


class JobHolder(NamedJob):
    """A job that holds slots of the pool."""

    slots: int


class QueueRemedy(Message):
    """One change after which what waits would start."""

    kind: RemedyKind
    #: To this: a number, or the name of a pool.
    value: str
    #: So many running requests would be asked to leave first.
    leaving: int


class ExplainJobResponse(Message):
    """Why the first of its requests that waits does."""

    job_id: str
    name: str
    resource_pool: str
    #: Slots that it waits for; none where nothing of it waits.
    waiting_slots: int | None = None
    reason: str = ""
    wait_class: WaitClass | None = None
    #: Jobs that wait and come to their turn before it, the first of ``ahead_total``.
    ahead: list[NamedJob] = []
    ahead_total: int = 0
    #: Those that hold most, the first of ``holding``.
    holders: list[JobHolder] = []
    holding: int = 0
    remedies: list[QueueRemedy] = []
    #: When it starts, at the latest, by the time limits of what runs; none where they do not say it.
    starts_by: Timestamp | None = None
    #: When it is likely to start, by how long runs take, and how sure that is; none where nobody can say.
    likely_start: Timestamp | None = None
    sureness: Sureness | None = None


class RbacJob(Message):
    """A job, as much of it as the caller may see: here all of it."""

    full: Job


class GetJobsResponse(Message):
    """A page of a pool's queue."""

    jobs: list[Job]
    pagination: Pagination
    #: Those that hold most, the first of ``holding``.
    holders: list[JobHolder] = []
    holding: int = 0


class GetJobsV2Response(Message):
    """A page of a pool's queue."""

    jobs: list[RbacJob]
    pagination: Pagination
    #: Those that hold most, the first of ``holding``.
    holders: list[JobHolder] = []
    holding: int = 0


class QueueStats(Message):
    """How many jobs wait, and how many have slots."""

    queued_count: int = 0
    scheduled_count: int = 0


class AggregateQueueStats(Message):
    """How long attempts waited on average on one day."""

    period_start: str
    seconds: float


class PoolQueueStats(Message):
    """Of one pool."""

    stats: QueueStats
    resource_pool: str
    aggregates: list[AggregateQueueStats] = []


class GetJobQueueStatsResponse(Message):
    """A pool each."""

    results: list[PoolQueueStats]


class JobPlace(Message):
    """What of a job its owner may change."""

    priority: int
    weight: float
    resource_pool: str


class UpdateJobQueueRequest(Message):
    """Applied in this order, all or none."""

    updates: list[QueueControl] = []


__all__ = [
    "AggregateQueueStats",
    "ExplainJobResponse",
    "GetJobQueueStatsResponse",
    "GetJobsResponse",
    "GetJobsV2Response",
    "Job",
    "JobHolder",
    "JobState",
    "JobSummary",
    "JobType",
    "NamedJob",
    "PoolQueueStats",
    "QueueRemedy",
    "QueueStats",
    "RbacJob",
    "UpdateJobQueueRequest",
]


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
    #: Also those of agents that are disabled, draining or not connected: what is over ``slots_available`` is offline.
    slots_total: int = 0
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
    #: As the settings spell it; Determined knows no other name than those above.
    policy: str
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


class AggregationPeriod(str, Enum):
    """How long a period is."""

    UNSPECIFIED = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_UNSPECIFIED"
    DAILY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"
    MONTHLY = "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY"


class UsageBy(str, Enum):
    """By what slot seconds are summed."""

    USER = "user"
    GROUP = "group"
    WORKSPACE = "workspace"
    PROJECT = "project"
    POOL = "pool"
    AGENT = "agent"
    TYPE = "type"
    EXPERIMENT = "experiment"
    LABEL = "label"
    #: How many slots an attempt held.
    SIZE = "size"


class RawEntry(Message):
    """One attempt that held slots."""

    #: ``experiment``, ``command``, ``notebook``...
    kind: str
    start_time: Timestamp
    #: Absent while it goes on.
    end_time: Timestamp | None = None
    experiment_id: int | None = None
    username: str
    user_id: int
    labels: list[str] = []
    #: In the window that was asked for; times ``slots`` they are slot seconds.
    seconds: float
    slots: int
    allocation_id: str
    resource_pool: str
    agents: list[str] = []
    workspace_name: str = ""


class RawResponse(Message):
    """In the order of their start."""

    resource_entries: list[RawEntry]


class AggregatedEntry(Message):
    """Slot seconds of one day or month, in all and by whom, where and what for."""

    #: ``2026-11-21``, ``2026-11``.
    period_start: str
    period: AggregationPeriod
    seconds: float
    by_username: dict[str, float] = {}
    #: An experiment with several labels counts for each of them.
    by_experiment_label: dict[str, float] = {}
    by_resource_pool: dict[str, float] = {}
    by_agent: dict[str, float] = {}
    by_experiment: dict[str, float] = {}
    #: These are there if ``by`` asks for them, which leaves out all the others. What is in no workspace, project or
    #: group has an empty name; projects, by their numbers, and groups are those of now.
    by_workspace: dict[str, float] = {}
    by_project: dict[str, float] = {}
    by_group: dict[str, float] = {}
    by_type: dict[str, float] = {}
    by_size: dict[str, float] = {}
    #: Slot seconds from the request until the placement, of what was placed: in all, and by the same names.
    waited_seconds: float = 0.0
    waited: dict[str, float] = {}


class AggregatedResponse(Message):
    """One entry for each period, also for one without any use."""

    resource_entries: list[AggregatedEntry]


class QueueTracePool(Message):
    """The rules of a pool."""

    name: str
    policy: str
    preemption: bool
    fitting: str
    reservation: bool
    uneven_gangs: bool


class QueueTraceDevice(Message):
    """So many slots of one make."""

    name: str
    memory: int | None = None
    slots: int


class QueueTraceAgent(Message):
    """A machine that may have work now, and its slots that may."""

    id: str
    resource_pool: str
    slots: int
    #: ``cpu``, ``cuda``, ``rocm``.
    kind: str
    labels: dict[str, str] = {}
    devices: list[QueueTraceDevice] = []


class QueueTraceGroup(Message):
    """A group, and who is in it."""

    name: str
    usernames: list[str]


class QueueTraceAttempt(Message):
    """An attempt that has ended: what it asked for, and when it had it."""

    task_id: str
    #: The same for all attempts of it: ``experiment 7``, or the id of a task.
    job: str
    username: str
    workspace_name: str
    resource_pool: str
    slots: int
    requested_at: Timestamp
    started_at: Timestamp
    ended_at: Timestamp
    #: Absent, these three, where the job was deleted.
    priority: int | None = None
    weight: float | None = None
    max_slots: int | None = None
    single_node: bool = False
    preemptible: bool = True
    time_limit_s: float | None = None
    #: As its configuration asked for them.
    constraints: Document | None = None


class QueueTrace(Message):
    """What a simulation replays: attempts in the order of their start; rules, machines and groups as they are now."""

    pools: list[QueueTracePool]
    agents: list[QueueTraceAgent]
    groups: list[QueueTraceGroup]
    attempts: list[QueueTraceAttempt]
