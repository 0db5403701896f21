"""``task_container_defaults``: what the master, and over it a pool, give to every task that does not say otherwise.

A pool's are laid over the master's: maps unite, mounts and devices unite by their place in the container, variables and
capabilities by name, arguments for Slurm and PBS stand one after the other (the pool's first). Then the part that an
experiment's configuration knows becomes a layer below it; the rest is for whoever starts the container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.environment import REGISTRY_AUTH, VARIABLE, RegistryAuth, of_each, per_device
from tenax.config.schema.logs import PLAIN_LOG_POLICIES, LogPolicy
from tenax.config.schema.pod_spec import POD_SPEC
from tenax.config.schema.resources import BIND_MOUNTS, DEVICES, BindMount, DeviceConfig
from tenax.config.schema.sizes import SIZE
from tenax.config.shapes import (
    Flag,
    IntShape,
    ListOf,
    Respelled,
    TextShape,
    high_then_low,
    overridden_by,
    without_nulls,
)
from tenax.config.structs import Struct
from tenax.jsonvalue import Json, JsonObject

GIB = 1 << 30


def _name_of(variable: Json) -> object:
    return str(variable).partition("=")[0]


_LIST = ListOf(VARIABLE, merge=overridden_by(_name_of))
_CAPABILITIES = ListOf(TextShape(filled=True), merge=overridden_by(lambda capability: capability))
_ARGUMENTS = ListOf(TextShape(), merge=high_then_low)


#: Without the built-in defaults, which are for whoever sets nothing at all.
_IMAGES = Respelled(of_each(TextShape(filled=True), {}), per_device)
_VARIABLES = Respelled(of_each(_LIST, {}), per_device)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slurm:
    slots_per_node: Annotated[int | None, IntShape(minimum=1)] = None
    gpu_type: Annotated[str | None, TextShape()] = None
    sbatch_args: Annotated[tuple[str, ...] | None, _ARGUMENTS] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pbs:
    slots_per_node: Annotated[int | None, IntShape(minimum=1)] = None
    pbsbatch_args: Annotated[tuple[str, ...] | None, _ARGUMENTS] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kubernetes:
    max_slots_per_pod: Annotated[int | None, IntShape(minimum=0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerDefaults:
    """What a task gets that does not say otherwise."""

    #: Shared memory.
    shm_size_bytes: Annotated[int, SIZE] = 4 * GIB
    network_mode: Annotated[str, TextShape(filled=True)] = "bridge"
    dtrain_network_interface: Annotated[str | None, TextShape()] = None
    nccl_port_range: Annotated[str | None, TextShape()] = None
    gloo_port_range: Annotated[str | None, TextShape()] = None
    cpu_pod_spec: Annotated[JsonObject | None, POD_SPEC] = None
    gpu_pod_spec: Annotated[JsonObject | None, POD_SPEC] = None
    checkpoint_gc_pod_spec: Annotated[JsonObject | None, POD_SPEC] = None
    image: Annotated[object | None, _IMAGES] = None
    registry_auth: Annotated[RegistryAuth | None, REGISTRY_AUTH] = None
    force_pull_image: Annotated[bool | None, Flag()] = None
    environment_variables: Annotated[object | None, _VARIABLES] = None
    add_capabilities: Annotated[tuple[str, ...] | None, _CAPABILITIES] = None
    drop_capabilities: Annotated[tuple[str, ...] | None, _CAPABILITIES] = None
    devices: Annotated[tuple[DeviceConfig, ...] | None, DEVICES] = None
    bind_mounts: Annotated[tuple[BindMount, ...] | None, BIND_MOUNTS] = None
    work_dir: Annotated[str | None, TextShape()] = None
    slurm: Annotated[_Slurm | None, Struct(_Slurm)] = None
    pbs: Annotated[_Pbs | None, Struct(_Pbs)] = None
    #: Shell lines sourced before the experiment's own ``startup-hook.sh``.
    startup_hook: Annotated[str | None, TextShape()] = None
    log_policies: Annotated[tuple[LogPolicy, ...] | None, PLAIN_LOG_POLICIES] = None
    #: Seconds.
    preemption_timeout: Annotated[int | None, IntShape(minimum=0)] = None
    kubernetes: Annotated[_Kubernetes | None, Struct(_Kubernetes)] = None


CONTAINER_DEFAULTS = Struct(ContainerDefaults)

#: Where each setting goes in the layer for an experiment.
_PLACES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("image", ("environment", "image")),
    ("registry_auth", ("environment", "registry_auth")),
    ("force_pull_image", ("environment", "force_pull_image")),
    ("environment_variables", ("environment", "environment_variables")),
    ("add_capabilities", ("environment", "add_capabilities")),
    ("drop_capabilities", ("environment", "drop_capabilities")),
    ("shm_size_bytes", ("resources", "shm_size")),
    ("devices", ("resources", "devices")),
    ("bind_mounts", ("bind_mounts",)),
    ("slurm", ("slurm",)),
    ("pbs", ("pbs",)),
    ("log_policies", ("log_policies",)),
    ("preemption_timeout", ("preemption_timeout",)),
)


def merged(master: JsonObject | None, pool: JsonObject | None, report: ProblemReport) -> JsonObject:
    """The pool's defaults over the master's, in today's spelling and not yet filled. Problems go to the report."""
    low = _checked(master, ("task_container_defaults",), report)
    high = _checked(pool, ("task_container_defaults",), report)
    united = CONTAINER_DEFAULTS.merge(high, low)
    assert isinstance(united, dict)
    return united


def as_layer(defaults: JsonObject, *, slots: int) -> JsonObject:
    """What ``defaults`` (checked) mean for an experiment whose trials have ``slots`` slots."""
    layer: JsonObject = {}
    for name, place in _PLACES:
        _put(layer, place, defaults.get(name, CONTAINER_DEFAULTS.defaults[name]))
    _put(layer, ("environment", "pod_spec"), defaults.get("gpu_pod_spec" if slots > 0 else "cpu_pod_spec"))
    return layer


def _checked(document: JsonObject | None, at: Path, report: ProblemReport) -> JsonObject:
    checked = CONTAINER_DEFAULTS.check(document or {}, at, report)
    return without_nulls(checked) if isinstance(checked, dict) else {}


def _put(layer: JsonObject, place: tuple[str, ...], value: Json) -> None:
    if value is None:
        return
    for step in place[:-1]:
        inner = layer.setdefault(step, {})
        assert isinstance(inner, dict)
        layer = inner
    layer[place[-1]] = value
