"""The quota file: what workspaces, people and groups may have, and what they weigh against each other.

Who is meant is said by names; whether there are such is for whoever applies it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from tenax.config.durations import parse_duration
from tenax.config.problems import ConfigError, Path, ProblemReport, nearest
from tenax.config.schema.resources import PRIORITY, WEIGHT
from tenax.config.shapes import IntShape, MapOf, Number, Respelled
from tenax.config.structs import Struct
from tenax.config.text import read
from tenax.jsonvalue import Json, as_object
from tenax.scheduler.quotas import HALF_LIFE_S, Association, Quota, Quotas

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


@dataclass(frozen=True, slots=True)
class NamedIds:
    """Numbers by lower-case name."""

    users: Mapping[str, int]
    workspaces: Mapping[str, int]
    groups: Mapping[str, int]


def people_of(file: QuotaFile) -> list[str]:
    """Whom a file names, also in workspaces."""
    return [*file.users, *(user for workspace in file.workspaces.values() for user in workspace.users)]


def by_number(
    file: QuotaFile, lines: Mapping[Path, int], ids: NamedIds, known: Mapping[str, Iterable[str]] = {}
) -> Quotas:
    """The quotas of those that names are of. Raises `ConfigError` for names of nobody; ``known``: names that there are,
    of users, workspaces or groups, for whoever misspelled one."""
    report = ProblemReport(lines=lines)
    given: set[tuple[str | int, ...]] = set()

    def id_of(kind: str, name: str, at: Path) -> int:
        its_id = {"users": ids.users, "workspaces": ids.workspaces, "groups": ids.groups}[kind].get(name.lower())
        if its_id is None:
            near = nearest(name, list(known.get(kind, ())))
            report.add(at, f"there is no {kind[:-1]} {name!r}" + (f"; did you mean {near!r}?" if near else ""))
            return 0
        if (kind, *at[:-1], its_id) in given:
            report.add(at, f"{name!r} is given a second time: upper and lower case are the same {kind[:-1]}")
        given.add((kind, *at[:-1], its_id))
        return its_id

    workspaces: dict[int, Quota] = {}
    associations: dict[Association, Quota] = {}
    for name, workspace in file.workspaces.items():
        workspace_id = id_of("workspaces", name, ("workspaces", name))
        workspaces[workspace_id] = _quota(workspace)
        for user, quota in workspace.users.items():
            associations[id_of("users", user, ("workspaces", name, "users", user)), workspace_id] = _quota(quota)
    users = {id_of("users", name, ("users", name)): _quota(quota) for name, quota in file.users.items()}
    groups = {id_of("groups", name, ("groups", name)): _quota(quota) for name, quota in file.groups.items()}
    report.raise_if_any(what="quota file")
    everyone = _quota(file.everyone) if file.everyone is not None else Quota()
    return Quotas(file.half_life, workspaces, users, groups, associations, everyone)


def _quota(config: LimitConfig) -> Quota:
    weight = config.weight if isinstance(config, QuotaConfig) else None
    return Quota(weight, config.max_slots, config.priority, config.slot_hours)
