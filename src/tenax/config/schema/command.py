"""Configuration of a task that is no experiment: notebook, TensorBoard, shell, command; and of a generic task."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.constraints import CONSTRAINTS, ConstraintsConfig, fits_slots
from tenax.config.schema.durations import TIME_LIMIT, duration
from tenax.config.schema.environment import ENVIRONMENT, Environment
from tenax.config.schema.resources import (
    BIND_MOUNTS,
    DEVICES,
    PBS,
    PRIORITY,
    SLURM,
    WEIGHT,
    BindMount,
    DeviceConfig,
    Pbs,
    Slurm,
)
from tenax.config.schema.sizes import SIZE
from tenax.config.shapes import Flag, IntShape, ListOf, Number, OneOf, Respelled, TextShape
from tenax.config.structs import Struct
from tenax.jsonvalue import Json


class NotebookIdleType(str, Enum):
    """What counts as use of a notebook."""

    KERNELS_OR_TERMINALS = "kernels_or_terminals"
    KERNEL_CONNECTIONS = "kernel_connections"
    ACTIVITY = "activity"


def _line(value: Json, at: Path, report: ProblemReport) -> Json:
    """A line for the shell as a list of one."""
    return [value] if isinstance(value, str) else value


def _some(value: Json, at: Path, report: ProblemReport) -> None:
    if value == [] or value == [""]:
        report.add(at, "the command is empty: give a program and its arguments, or a line for the shell")


#: One word is a line for the shell, several are a program and its arguments.
ENTRYPOINT = Respelled(ListOf(TextShape(), rule=_some), _line)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResources:
    """What the task gets."""

    slots: Annotated[int, IntShape(minimum=0)] = 1
    #: Seconds, or as in '4h', that it may hold them; None: as long as it takes.
    time_limit: Annotated[float | None, TIME_LIMIT] = None
    priority: Annotated[int | None, PRIORITY] = None
    resource_pool: Annotated[str, TextShape()] = ""
    #: Bytes.
    shm_size: Annotated[int | None, SIZE] = None
    #: What its machine must be; None: nothing in particular.
    constraints: Annotated[ConstraintsConfig | None, CONSTRAINTS] = None
    devices: Annotated[tuple[DeviceConfig, ...], DEVICES] = ()
    weight: Annotated[float, WEIGHT] = 1
    is_single_node: Annotated[bool | None, Flag()] = None


def _has_devices(value: Json, at: Path, report: ProblemReport) -> None:
    fits_slots(value, "slots", at, report)


COMMAND_RESOURCES = Struct(CommandResources, complete=_has_devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """A task that is no experiment."""

    description: Annotated[str | None, TextShape()] = None
    bind_mounts: Annotated[tuple[BindMount, ...], BIND_MOUNTS] = ()
    environment: Annotated[Environment, ENVIRONMENT] = field(default_factory=Environment)
    resources: Annotated[CommandResources, COMMAND_RESOURCES] = field(default_factory=CommandResources)
    #: A program and its arguments; nothing to run is done at once.
    entrypoint: Annotated[tuple[str, ...], ENTRYPOINT] = ()
    tensorboard_args: Annotated[tuple[str, ...], ListOf(TextShape())] = ()
    #: Seconds without use after which the task is stopped; None: never.
    idle_timeout: Annotated[float | None, Respelled(Number(minimum=0), duration)] = None
    notebook_idle_type: Annotated[NotebookIdleType, OneOf(NotebookIdleType)] = NotebookIdleType.KERNELS_OR_TERMINALS
    #: May hold ``$AGENT_USER`` and ``$DET_USER``.
    work_dir: Annotated[str | None, TextShape()] = None
    debug: Annotated[bool, Flag()] = False
    slurm: Annotated[Slurm, SLURM] = field(default_factory=Slurm)
    pbs: Annotated[Pbs, PBS] = field(default_factory=Pbs)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericTaskConfig:
    """A task that may have children, and may be paused."""

    name: Annotated[str | None, TextShape(name=True)] = None
    description: Annotated[str | None, TextShape()] = None
    workspace: Annotated[str, TextShape(name=True)] = ""
    project: Annotated[str, TextShape(name=True)] = ""
    bind_mounts: Annotated[tuple[BindMount, ...], BIND_MOUNTS] = ()
    environment: Annotated[Environment, ENVIRONMENT] = field(default_factory=Environment)
    resources: Annotated[CommandResources, COMMAND_RESOURCES] = field(default_factory=CommandResources)
    entrypoint: Annotated[tuple[str, ...], ENTRYPOINT]
    #: May hold ``$AGENT_USER`` and ``$DET_USER``.
    work_dir: Annotated[str | None, TextShape()] = None
    debug: Annotated[bool, Flag()] = False
    #: Seconds that it may take to save and leave when it is paused; None: a minute.
    preemption_timeout: Annotated[int | None, IntShape(minimum=0)] = None


COMMAND = Struct(CommandConfig)
GENERIC = Struct(GenericTaskConfig)
