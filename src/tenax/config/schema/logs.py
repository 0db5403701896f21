"""``log_policies``: what to do when a line of a trial's output matches a pattern.

Two policies are built in; a layer turns one off by giving its name without a pattern.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from tenax.config.names import check_pattern
from tenax.config.problems import Path, ProblemReport
from tenax.config.shapes import ListMerge, ListOf, OneOf, Respelled, TextShape, united_by
from tenax.config.structs import Struct
from tenax.jsonvalue import Json


class LogAction(str, Enum):
    """What a match does beside labelling the run with the policy's name."""

    #: The trial is not restarted when it fails.
    CANCEL_RETRIES = "cancel_retries"
    #: The trial is not placed on that agent again.
    EXCLUDE_NODE = "exclude_node"


def _action(value: Json, at: Path, report: ProblemReport) -> Json:
    """``{type: cancel_retries}``, the older spelling, as ``cancel_retries``."""
    if isinstance(value, dict):
        unknown = sorted(set(value) - {"type"})
        for name in unknown:
            report.unknown_key(at, name, ["type"])
        return value.get("type")
    return value


def _pattern(value: Json, at: Path, report: ProblemReport) -> None:
    problem = check_pattern(str(value))
    if problem is not None:
        report.add(at, f"this is not a regular expression: {problem}")


LOG_ACTION = Respelled(OneOf(LogAction), _action)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPolicy:
    """One pattern and what follows from a match."""

    #: The label that a match puts on the run.
    name: Annotated[str | None, TextShape(filled=True)] = None
    #: RE2 syntax; None turns the built-in policy of that name off.
    pattern: Annotated[str | None, TextShape(filled=True, rule=_pattern)] = None
    action: Annotated[LogAction | None, LOG_ACTION] = None


def _named(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    if value.get("name") is None and (value.get("pattern") is None or value.get("action") is None):
        report.add(at, "'name' must be set (a policy without one needs both a pattern and an action)")
    elif value.get("action") is not None and value.get("pattern") is None:
        report.add(at, "an action without a pattern never happens: set the pattern")


LOG_POLICY = Struct(LogPolicy, atomic=True, rule=_named)

BUILT_IN: tuple[tuple[str, str], ...] = (
    ("CUDA OOM", ".*CUDA out of memory.*"),
    ("ECC Error", ".*uncorrectable ECC error encountered.*"),
)


def _identity(policy: Json) -> object:
    """A name, or for policies of the time before names what they say."""
    if not isinstance(policy, dict):
        return policy
    name = policy.get("name")
    return name if name is not None else (policy.get("pattern"), policy.get("action"))


def _distinct(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, list)
    names = [policy["name"] for policy in value if isinstance(policy, dict) and policy.get("name") is not None]
    for name, count in Counter(names).items():
        if count > 1:
            report.add(at, f"{count} policies have the duplicated name {name!r}: give each its own")


_MERGE: ListMerge = united_by(_identity)


class LogPoliciesConfig(ListOf):
    """Policies, with the built-in ones added below what was set."""

    def fill(self, value: Json) -> Json:
        built_in: list[Json] = [{"name": name, "pattern": pattern} for name, pattern in BUILT_IN]
        return super().fill(_MERGE(value, built_in) if isinstance(value, list) else value)


#: Of the cluster or a pool: laid under an experiment's own.
PLAIN_LOG_POLICIES = ListOf(LOG_POLICY, merge=_MERGE, rule=_distinct)
LOG_POLICIES = LogPoliciesConfig(LOG_POLICY, merge=_MERGE, rule=_distinct)
