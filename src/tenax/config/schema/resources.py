"""``resources``, ``bind_mounts``, ``slurm`` and ``pbs``: what a trial is given to run with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.constraints import CONSTRAINTS, ConstraintsConfig, fits_slots
from tenax.config.schema.durations import TIME_LIMIT
from tenax.config.schema.sizes import SIZE
from tenax.config.shapes import (
    Flag,
    IntShape,
    ListOf,
    Number,
    Respelled,
    TextShape,
    key,
    low_then_high,
    united_by,
)
from tenax.config.structs import Struct
from tenax.jsonvalue import Json

PRIORITY = IntShape(minimum=1, maximum=99)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfig:
    """A device file of the host, shown to the container."""

    host_path: Annotated[str, TextShape(filled=True)]
    container_path: Annotated[str, TextShape(filled=True)]
    mode: Annotated[str, TextShape(filled=True)] = "mrw"


def _device(value: Json, at: Path, report: ProblemReport) -> Json:
    """``/host:/container[:mode]`` as a map."""
    if not isinstance(value, str):
        return value
    parts = value.split(":")
    if len(parts) not in (2, 3) or not all(parts):
        report.add(at, f"{value!r} is not a device: write /host/path:/container/path or /host/path:/container/path:rwm")
        return None
    return dict(zip(("host_path", "container_path", "mode"), parts))


DEVICE = Respelled(Struct(DeviceConfig, atomic=True), _device)
DEVICES = ListOf(DEVICE, merge=united_by(key("container_path")))


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A directory of the host, shown to the container."""

    host_path: Annotated[str, TextShape(filled=True)]
    #: Relative ones are below the working directory.
    container_path: Annotated[str, TextShape(filled=True)]
    read_only: Annotated[bool, Flag()] = False
    propagation: Annotated[str, TextShape()] = "rprivate"


def _mountable(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    host, inside = value.get("host_path"), value.get("container_path")
    if isinstance(host, str) and not host.startswith("/"):
        report.add((*at, "host_path"), f"{host!r} must be an absolute path of the agent's machine")
    if inside == ".":
        report.add(
            (*at, "container_path"), "the working directory itself cannot be mounted over: name a directory in it"
        )


BIND_MOUNT = Struct(BindMount, atomic=True, rule=_mountable)
BIND_MOUNTS = ListOf(BIND_MOUNT, merge=united_by(key("container_path")))


#: Only what weights are to each other counts; of 0 nobody would ever get a slot.
MAX_WEIGHT = 1000.0
WEIGHT = Number(above=0, maximum=MAX_WEIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one trial gets, and what the experiment may take."""

    #: 0: no device, a place among the auxiliary containers.
    slots_per_trial: Annotated[int, IntShape(minimum=0)] = 1
    #: Most slots that all running trials together may hold.
    max_slots: Annotated[int | None, IntShape(minimum=0)] = None
    #: Seconds, or as in '4h', that a run may hold its slots: then it saves, and goes on when its turn comes. None: as
    #: long as it takes.
    time_limit: Annotated[float | None, TIME_LIMIT] = None
    #: Share under fair share scheduling.
    weight: Annotated[float, WEIGHT] = 1
    #: 1 (most urgent) to 99.
    priority: Annotated[int | None, PRIORITY] = None
    #: Empty: the default pool of the workspace or the cluster.
    resource_pool: Annotated[str, TextShape()] = ""
    #: Shared memory, bytes.
    shm_size: Annotated[int | None, SIZE] = None
    #: Whether all slots of a trial must be on one machine.
    is_single_node: Annotated[bool | None, Flag()] = None
    #: What its machines must be; None: nothing in particular.
    constraints: Annotated[ConstraintsConfig | None, CONSTRAINTS] = None
    devices: Annotated[tuple[DeviceConfig, ...], DEVICES] = ()
    native_parallel: Annotated[bool, Flag()] = False


def _can_start(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    cap, slots = value.get("max_slots"), value.get("slots_per_trial")
    if isinstance(cap, int) and isinstance(slots, int) and cap < slots:
        message = (
            f"max_slots is {cap} and each trial needs slots_per_trial = {slots}: none could ever start; raise max_slots"
        )
        report.add((*at, "max_slots"), message)
    fits_slots(value, "slots_per_trial", at, report)


#: ``slots`` is the name that notebooks and commands use; an experiment has ``slots_per_trial``.
RESOURCES = Struct(
    Resources,
    ignored={"agent_label": TextShape(), "slots": IntShape(minimum=0)},
    complete=_can_start,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    """How jobs are handed to Slurm."""

    slots_per_node: Annotated[int | None, IntShape(minimum=1)] = None
    gpu_type: Annotated[str | None, TextShape()] = None
    sbatch_args: Annotated[tuple[str, ...] | None, ListOf(TextShape(), merge=low_then_high)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pbs:
    """How jobs are handed to PBS."""

    slots_per_node: Annotated[int | None, IntShape(minimum=1)] = None
    pbsbatch_args: Annotated[tuple[str, ...] | None, ListOf(TextShape(), merge=low_then_high)] = None


SLURM = Struct(Slurm)
PBS = Struct(Pbs)
