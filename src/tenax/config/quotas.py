"""The quota file: what workspaces, people and groups may have, and what they weigh against each other.

Who is meant is said by names; whether there are such is for whoever applies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from tenax.config.durations import parse_duration
from tenax.config.problems import ConfigError, Path, ProblemReport
from tenax.config.schema.resources import PRIORITY, WEIGHT
from tenax.config.shapes import IntShape, MapOf, Number, Respelled
from tenax.config.structs import Struct
from tenax.config.text import read
from tenax.jsonvalue import Json, as_object
from tenax.scheduler.quotas import HALF_LIFE_S

_DAY_S = 86400.0


def _span(value: Json, at: Path, report: ProblemReport) -> Json:
    """``"7d"`` and ``"12h"`` in seconds; a number alone is refused."""
    try:
        seconds = parse_duration(str(value).replace(" ", ""))
    except ValueError as error:
        report.add(at, str(error))
        return None
    if not 3600 <= seconds <= 365 * _DAY_S:
        report.add(at, "goes from 1h to 365d")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitConfig:
    """What the members of a group may have together; what is not set is not limited."""

    #: Slots that they hold at a time.
    max_slots: Annotated[int | None, IntShape(minimum=0)] = None
    #: The most urgent priority of their jobs: 1 is the most urgent of all.
    priority: Annotated[int | None, PRIORITY] = None
    #: Slot hours in a calendar month (UTC).
    slot_hours: Annotated[float | None, Number(minimum=0, maximum=1e9)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig(LimitConfig):
    """What a person may have, and what they weigh against others."""

    #: None: of a person in a workspace, as elsewhere; else 1.
    weight: Annotated[float | None, WEIGHT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceQuotaConfig(QuotaConfig):
    """What the jobs in a workspace may have, and people in it."""

    users: Annotated[Mapping[str, QuotaConfig], MapOf(Struct(QuotaConfig))] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFile:
    """All quotas of a cluster. What is not named weighs 1 and is not limited."""

    #: Seconds after which what was used counts half.
    half_life: Annotated[float, Respelled(Number(above=0), _span)] = HALF_LIFE_S
    workspaces: Annotated[Mapping[str, WorkspaceQuotaConfig], MapOf(Struct(WorkspaceQuotaConfig))] = field(
        default_factory=dict
    )
    users: Annotated[Mapping[str, QuotaConfig], MapOf(Struct(QuotaConfig))] = field(default_factory=dict)
    groups: Annotated[Mapping[str, LimitConfig], MapOf(Struct(LimitConfig))] = field(default_factory=dict)
    #: Of each user that ``users`` does not name.
    everyone: Annotated[QuotaConfig | None, Struct(QuotaConfig)] = None


_FILE = Struct(QuotaFile)


def parse_quotas(text: str) -> tuple[QuotaFile, Mapping[Path, int]]:
    """A quota file, and the lines of its values. Raises `ConfigError` with every problem found."""
    try:
        source = read(text)
    except ConfigError as error:
        raise ConfigError(error.problems, what="quota file", more=error.more) from None
    report = ProblemReport(lines=source.lines)
    if source.value is None or source.value == {}:
        report.add((), "says nothing: to have no quotas, remove them (tenax quota remove)")
    checked = as_object(_FILE.check({} if source.value is None else source.value, (), report))
    report.raise_if_any(what="quota file")
    return _FILE.build(_FILE.fill(checked)), source.lines
