"""Settings of the past: still read by older training code, or accepted and without effect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import Flag, Free, FreeMap, IntShape, OneOf, TextShape
from tenax.config.structs import Struct
from tenax.jsonvalue import Json


class MixedPrecision(str, Enum):
    """Levels of NVIDIA Apex."""

    O0 = "O0"
    O1 = "O1"
    O2 = "O2"
    O3 = "O3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizations:
    """Of trials under Horovod and Apex; read by their training loops."""

    aggregation_frequency: Annotated[int, IntShape(minimum=1)] = 1
    average_aggregated_gradients: Annotated[bool, Flag()] = True
    average_training_metrics: Annotated[bool, Flag()] = True
    gradient_compression: Annotated[bool, Flag()] = False
    grad_updates_size_file: Annotated[str | None, TextShape()] = None
    mixed_precision: Annotated[MixedPrecision, OneOf(MixedPrecision)] = MixedPrecision.O0
    auto_tune_tensor_fusion: Annotated[bool, Flag()] = False
    #: MB.
    tensor_fusion_threshold: Annotated[int, IntShape(minimum=0)] = 64
    #: Milliseconds.
    tensor_fusion_cycle_time: Annotated[int, IntShape(minimum=0)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiling:
    """Whether system metrics of a trial are recorded. The window is accepted and has no effect."""

    enabled: Annotated[bool, Flag()] = False
    begin_on_batch: Annotated[int, IntShape(minimum=0)] = 0
    end_after_batch: Annotated[int | None, IntShape(minimum=0)] = None
    sync_timings: Annotated[bool, Flag()] = True


def _window(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    begin, end = value.get("begin_on_batch"), value.get("end_after_batch")
    if isinstance(begin, int) and isinstance(end, int) and begin > end:
        report.add(at, f"begin_on_batch ({begin}) must not lie beyond end_after_batch ({end})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """Accepted and ignored."""

    config_file: Annotated[str | None, TextShape()] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Accepted and ignored."""

    kerberos: Annotated[Kerberos | None, Struct(Kerberos)] = None


OPTIMIZATIONS = Struct(Optimizations)
PROFILING = Struct(Profiling, rule=_window)
SECURITY = Struct(Security)

#: Whole sections without effect.
IGNORED_SECTIONS = {"data_layer": FreeMap(), "tensorboard_storage": FreeMap(), "security": SECURITY, "internal": Free()}
