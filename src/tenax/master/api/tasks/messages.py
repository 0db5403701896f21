"""Messages about tasks and their attempts, what members of an attempt exchange, commands and templates."""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel

from tenax.master.api.agents.messages import Container, Device
from tenax.wire.message import Document, Message, Name, Pagination, Timestamp


class TaskState(str, Enum):
    """Of an attempt: that of its least advanced member."""

    UNSPECIFIED = "STATE_UNSPECIFIED"
    QUEUED = "STATE_QUEUED"
    PULLING = "STATE_PULLING"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"
    TERMINATING = "STATE_TERMINATING"
    TERMINATED = "STATE_TERMINATED"
    WAITING = "STATE_WAITING"


class GenericTaskState(str, Enum):
    """Of a task that no search asked for."""

    UNSPECIFIED = "GENERIC_TASK_STATE_UNSPECIFIED"
    ACTIVE = "GENERIC_TASK_STATE_ACTIVE"
    CANCELED = "GENERIC_TASK_STATE_CANCELED"
    COMPLETED = "GENERIC_TASK_STATE_COMPLETED"
    ERROR = "GENERIC_TASK_STATE_ERROR"
    PAUSED = "GENERIC_TASK_STATE_PAUSED"
    STOPPING_PAUSED = "GENERIC_TASK_STATE_STOPPING_PAUSED"
    STOPPING_CANCELED = "GENERIC_TASK_STATE_STOPPING_CANCELED"
    STOPPING_COMPLETED = "GENERIC_TASK_STATE_STOPPING_COMPLETED"
    STOPPING_ERROR = "GENERIC_TASK_STATE_STOPPING_ERROR"


class Allocation(Message):
    """One attempt to run a task."""

    allocation_id: str
    task_id: str
    state: TaskState
    slots: int
    is_ready: bool = False
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    exit_reason: str | None = None
    status_code: int | None = None
    #: In words, while it waits for slots.
    reason: str = ""


class Task(Message):
    """A task and its attempts, the newest first."""

    task_id: str
    task_type: str
    allocations: list[Allocation]
    start_time: Timestamp
    end_time: Timestamp | None = None
    #: None for a trial's: its state is that of the trial.
    task_state: GenericTaskState | None = None
    #: In words: why it waits, or how it ended.
    reason: str = ""
    parent_id: str | None = None
    forked_from: str | None = None
    no_pause: bool | None = None
    #: JSON text.
    config: str | None = None
    description: str = ""
    user_id: int | None = None
    username: str = ""


class LaunchedKind(str, Enum):
    """What a task is that somebody, or the cluster itself, has launched."""

    COMMAND = "TASK_TYPE_COMMAND"
    GENERIC = "TASK_TYPE_GENERIC"
    CHECKPOINT_GC = "TASK_TYPE_CHECKPOINT_GC"
    NOTEBOOK = "TASK_TYPE_NOTEBOOK"
    SHELL = "TASK_TYPE_SHELL"
    TENSORBOARD = "TASK_TYPE_TENSORBOARD"


class ListedTask(Message):
    """A task that no search asked for, as a list shows it."""

    task_id: str
    task_type: LaunchedKind
    description: str
    task_state: GenericTaskState
    #: Of its newest attempt, while it goes on.
    state: TaskState
    #: In words: why it waits, or how it ended.
    reason: str = ""
    user_id: int
    username: str
    resource_pool: str
    priority: int
    workspace_id: int
    project_id: int | None = None
    parent_id: str | None = None
    forked_from: str | None = None
    no_pause: bool
    start_time: Timestamp
    end_time: Timestamp | None = None
    #: Of the program; None while it runs, and where it did not end by itself.
    exit_code: int | None = None
    #: Where it runs.
    container: Container | None = None


class GetLaunchedTasksResponse(Message):
    """A page of tasks that no search asked for."""

    tasks: list[ListedTask]
    pagination: Pagination


class GetTaskResponse(Message):
    """One task."""

    task: Task


class ActiveTasksCount(Message):
    """How many launched tasks wait or run, by kind."""

    commands: int
    notebooks: int
    shells: int
    tensorboards: int


class CreateGenericTaskResponse(Message):
    """What was created."""

    task_id: str
    warnings: list[str] = []
    #: Old spellings that were translated, a priority that quotas lowered, and why it will wait.
    notices: list[str] = []


class GetGenericTaskConfigResponse(Message):
    """The complete configuration, as JSON text."""

    config: str


class KillGenericTaskRequest(Message):
    """How far up it begins."""

    kill_from_root: bool = False


class GetContextResponse(Message):
    """The code of a task, as a gzip-compressed tar archive in base64; empty for none."""

    b64_tgz: str


class PreemptionResponse(Message):
    """Whether the task should save and leave."""

    preempt: bool


class ResumePointRequest(Message):
    """What the task has found out about the checkpoint that it was to go on from."""

    #: A checkpoint of this trial that has no files any more; empty for none.
    missing: str = ""


class ResumePointResponse(Message):
    """Where the trial goes on from."""

    #: Null: from the beginning.
    checkpoint: str | None = None
    steps_completed: int
    #: Its files may be gone: the database was put back to a copy.
    in_doubt: bool


class RendezvousInfo(Message):
    """The members of an attempt, in the order of their ranks."""

    addresses: list[str]
    rank: int
    slots: list[int]


class RendezvousResponse(Message):
    """The members have met."""

    rendezvous_info: RendezvousInfo


class AllGatherRequest(Message):
    """What one member brings to a gathering."""

    request_uuid: str = ""
    num_peers: int = 0
    data: Document = {}


class AllGatherResponse(Message):
    """What all members brought."""

    data: list[Document]


class NotifyContainerRunningRequest(Message):
    """What one member brings when it runs."""

    request_uuid: str = ""
    num_peers: int = 0
    rank: int = 0
    node_name: str = ""
    data: Document = {}


class GetAllocationResponse(Message):
    """One attempt."""

    allocation: Allocation


class AcceleratorData(Message):
    """The devices of one member, as it sees them."""

    container_id: str = ""
    accelerator_type: str = ""
    accelerator_uuids: list[str] = []
    allocation_id: str = ""
    node_name: str = ""
    resource_pool: str = ""
    task_id: str = ""


class AcceleratorDataRequest(Message):
    """The devices of one member."""

    accelerator_data: AcceleratorData = AcceleratorData()


class ProxyAddressRequest(Message):
    """Where the task's service is reached."""

    proxy_address: str = ""


class GetAcceleratorDataResponse(Message):
    """The devices of a task's members."""

    accelerator_data: list[AcceleratorData]


class Devices(Message):
    """Devices of one agent."""

    devices: list[Device] = []


class ResourcesSummary(Message):
    """One member of an attempt, and what it holds."""

    resources_id: str
    resources_type: str = "docker-container"
    allocation_id: str
    container_id: str = ""
    agent_devices: dict[str, Devices] = {}


class AllocationSummary(Message):
    """An attempt that waits or runs."""

    allocation_id: str
    task_id: str
    name: str
    registered_time: Timestamp
    resource_pool: str
    slots_needed: int
    priority: int | None = None
    scheduler_type: str = ""
    resources: list[ResourcesSummary] = []
    proxy_ports: list[Document] = []
    #: Ours: what it is at, and why it waits.
    state: TaskState
    reason: str = ""


class PlainAllocation(BaseModel):
    """An attempt outside ``/api/v1``: fields are named in snake case."""

    allocation_id: str
    task_id: str
    name: str
    registered_time: Timestamp
    resource_pool: str
    slots_needed: int
    priority: int | None = None
    scheduler_type: str = ""
    #: With ``resources_id``, ``allocation_id``, ``container_id`` and ``agent_devices``.
    resources: list[Document] = []
    proxy_ports: list[Document] = []


class GetTasksResponse(Message):
    """Attempts by id."""

    allocation_id_to_summary: dict[str, AllocationSummary]


class CommandSortBy(str, Enum):
    """What a list of commands, notebooks, shells or TensorBoards is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    ID = "SORT_BY_ID"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    START_TIME = "SORT_BY_START_TIME"
    WORKSPACE_ID = "SORT_BY_WORKSPACE_ID"


class Command(Message):
    """A command as it is now."""

    id: str
    description: str
    state: TaskState
    start_time: Timestamp
    container: Container | None = None
    display_name: str = ""
    user_id: int = 0
    username: str
    resource_pool: str
    #: In words, once it has ended.
    exit_status: str = ""
    job_id: str
    workspace_id: int
    end_time: Timestamp | None = None
    #: Of the program; None while it runs, and where it did not end by itself.
    exit_code: int | None = None
    priority: int | None = None
    #: In words, while it waits.
    reason: str = ""


class LaunchCommandResponse(Message):
    """What was launched."""

    command: Command
    config: Document
    warnings: list[str] = []
    #: Old spellings that were translated, a priority that quotas lowered, and why it will wait.
    notices: list[str] = []


class GetCommandsResponse(Message):
    """Commands that live or have ended within a day."""

    commands: list[Command]
    pagination: Pagination


class GetCommandResponse(Message):
    """One command."""

    command: Command
    config: Document


class KillCommandResponse(Message):
    """As it is now."""

    command: Command


class SetCommandPriorityRequest(Message):
    """1 (most urgent) to 99."""

    priority: int = 0


class SetCommandPriorityResponse(Message):
    """As it is now."""

    command: Command


class TemplateSortBy(str, Enum):
    """What a list of templates is ordered by."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    NAME = "SORT_BY_NAME"


class Template(Message):
    """A template as it is now."""

    name: str
    config: Document
    workspace_id: int
    workspace_name: str = ""
    user_id: int | None = None
    username: str = ""
    created_at: Timestamp | None = None
    modified_at: Timestamp | None = None


class PostTemplateRequest(Message):
    """A template to make; the name stands in the path.

    ``text``: YAML as typed, in the place of ``config``; what is wrong is said with its line.
    """

    config: Document = {}
    text: str | None = None
    #: 0: the default one.
    workspace_id: int = 0
    #: Only say what it would be.
    validate_only: bool = False
    #: What of it is to be there still, as it was shown; else nothing is changed. None: whatever is there.
    expected: Document | None = None


class PatchTemplateNameRequest(Message):
    """Another name for a template."""

    old_name: str
    new_name: Name


class TemplateResponse(Message):
    """One template."""

    template: Template


class GetTemplatesResponse(Message):
    """A page of templates."""

    templates: list[Template]
    pagination: Pagination
