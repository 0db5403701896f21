"""The whole configuration of an experiment: every key, its shape and its default."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.entrypoint import ENTRYPOINT
from tenax.config.schema.environment import ENVIRONMENT, Environment
from tenax.config.schema.hang import HANG, HangConfig
from tenax.config.schema.hyperparameters import HYPERPARAMETERS, MAX_POINTS, MAX_TOLD_POINTS, check_grid, grid_points
from tenax.config.schema.integrations import INTEGRATIONS, Integrations
from tenax.config.schema.legacy import IGNORED_SECTIONS, OPTIMIZATIONS, PROFILING, Optimizations, Profiling
from tenax.config.schema.lengths import LENGTH, Length
from tenax.config.schema.logs import LOG_POLICIES, LogPolicy
from tenax.config.schema.resources import BIND_MOUNTS, PBS, RESOURCES, SLURM, BindMount, Pbs, Resources, Slurm
from tenax.config.schema.searcher import END_OF_LIFE, SEARCHER, CommonConfig
from tenax.config.schema.storage import CHECKPOINT_STORAGE, CheckpointStorage
from tenax.config.shapes import Flag, FreeMap, IntShape, ListOf, OneOf, Respelled, TextShape
from tenax.config.structs import Struct
from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle.trial import MAX_RESTARTS
from tenax.search.config import Map
from tenax.search.methods.registry import is_on_grid

#: What one seed of an experiment may be: 32 bits, as the generator takes them.
SEED = IntShape(minimum=0, maximum=(1 << 32) - 1)
#: How many labels there are, and how long one is: of what is submitted, and of what is put on later.
MAX_LABELS, MAX_LABEL = 100, 500


class CheckpointPolicyConfig(str, Enum):
    """Which validations of a trial class also save a checkpoint."""

    BEST = "best"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproducibility:
    """What makes two runs alike."""

    #: None only before a configuration is resolved.
    experiment_seed: Annotated[int | None, SEED] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    """How long logs are kept."""

    #: -1: for ever.
    log_retention_days: Annotated[int | None, IntShape(minimum=-1, maximum=32767)] = None


def _each_once(value: Json, at: Path, report: ProblemReport) -> Json:
    """Labels are a set: one that stands twice is one."""
    if isinstance(value, list) and all(isinstance(label, str) for label in value):
        return list(dict.fromkeys(value))
    return value


def _short(value: Json, at: Path, report: ProblemReport) -> None:
    if isinstance(value, str) and len(value) > MAX_LABEL:
        report.add(at, f"has {len(value)} characters, and a label at most {MAX_LABEL}")


def _few(value: Json, at: Path, report: ProblemReport) -> None:
    if isinstance(value, list) and len(value) > MAX_LABELS:
        report.add(at, f"there are {len(value)} labels, and at most {MAX_LABELS} are taken")


_LABELS = Respelled(ListOf(TextShape(filled=True, name=True, rule=_short), rule=_few), _each_once)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentConfig:
    """An experiment as its owner wants it, with defaults filled in."""

    #: None only before a configuration is resolved: three random words then.
    name: Annotated[str | None, TextShape(filled=True, name=True)] = None
    description: Annotated[str | None, TextShape()] = None
    labels: Annotated[tuple[str, ...], _LABELS] = ()
    workspace: Annotated[str, TextShape(name=True)] = ""
    project: Annotated[str, TextShape(name=True)] = ""
    #: A line for the shell, or a program and its arguments.
    entrypoint: Annotated[str | tuple[str, ...] | None, ENTRYPOINT] = None
    hyperparameters: Annotated[Map, HYPERPARAMETERS] = field(default_factory=Map)
    searcher: Annotated[CommonConfig, SEARCHER]
    resources: Annotated[Resources, RESOURCES] = field(default_factory=Resources)
    environment: Annotated[Environment, ENVIRONMENT] = field(default_factory=Environment)
    #: None only before a configuration is resolved.
    checkpoint_storage: Annotated[CheckpointStorage | None, CHECKPOINT_STORAGE] = None
    checkpoint_policy: Annotated[CheckpointPolicyConfig, OneOf(CheckpointPolicyConfig)] = CheckpointPolicyConfig.BEST
    #: Failures of a trial's own doing after which it is not started again.
    max_restarts: Annotated[int, IntShape(minimum=0)] = MAX_RESTARTS
    bind_mounts: Annotated[tuple[BindMount, ...], BIND_MOUNTS] = ()
    data: Annotated[JsonObject, FreeMap()] = field(default_factory=dict)
    debug: Annotated[bool, Flag()] = False
    reproducibility: Annotated[Reproducibility, Struct(Reproducibility)] = Reproducibility()
    profiling: Annotated[Profiling, PROFILING] = field(default_factory=Profiling)
    perform_initial_validation: Annotated[bool, Flag()] = False
    #: Seconds; None: the cluster's.
    preemption_timeout: Annotated[int | None, IntShape(minimum=0)] = None
    hang: Annotated[HangConfig, HANG] = field(default_factory=HangConfig)
    log_policies: Annotated[tuple[LogPolicy, ...], LOG_POLICIES] = ()
    retention_policy: Annotated[RetentionConfig | None, Struct(RetentionConfig)] = None
    integrations: Annotated[Integrations | None, INTEGRATIONS] = None
    slurm: Annotated[Slurm, SLURM] = field(default_factory=Slurm)
    pbs: Annotated[Pbs, PBS] = field(default_factory=Pbs)
    min_validation_period: Annotated[Length, LENGTH] = field(default_factory=lambda: Length(batches=0))
    min_checkpoint_period: Annotated[Length, LENGTH] = field(default_factory=lambda: Length(batches=0))
    scheduling_unit: Annotated[int, IntShape(minimum=1)] = 100
    records_per_epoch: Annotated[int, IntShape(minimum=0)] = 0
    optimizations: Annotated[Optimizations, OPTIMIZATIONS] = field(default_factory=Optimizations)


def _grid_has_counts(value: Json, at: Path, report: ProblemReport) -> None:
    """Also on a single layer, so that a file that cannot work is refused where it stands."""
    assert isinstance(value, dict)
    searcher = value.get("searcher")
    if isinstance(searcher, dict) and is_on_grid(searcher.get("name")):
        check_grid(value.get("hyperparameters") or {}, (*at, "hyperparameters"), report)


def _whole(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    if bool(value.get("workspace")) != bool(value.get("project")):
        given, other = ("workspace", "project") if value.get("workspace") else ("project", "workspace")
        report.add((*at, given), f"{given} and {other} go together: set both, or neither for Uncategorized")
    searcher = value.get("searcher")
    name = searcher.get("name") if isinstance(searcher, dict) else None
    if isinstance(name, str) and name in END_OF_LIFE:
        report.add((*at, "searcher", "name"), f"the searcher {name!r} is no longer there: {END_OF_LIFE[name]}")
    points = grid_points(value.get("hyperparameters")) if is_on_grid(name) else 1
    if points > MAX_POINTS:
        count = points if points < MAX_TOLD_POINTS else f"{MAX_TOLD_POINTS} or more"
        message = f"the grid has {count} points, and at most {MAX_POINTS} are run: lower the counts, or use random"
        report.add((*at, "hyperparameters"), message)
    if value.get("checkpoint_storage") is None:
        report.missing(at, "checkpoint_storage", "here, or as a default of the workspace or of the master")


EXPERIMENT = Struct(ExperimentConfig, ignored=IGNORED_SECTIONS, rule=_grid_has_counts, complete=_whole)
