"""Filters and orders of lists of experiments and runs, as the WebUI sends them: text in, values out.

Rules:
- A filter is ``{"filterGroup": group, "showArchived": bool}``; a group joins its children by ``and`` or ``or``, nested
  as deep as `MAX_DEPTH`; one without children lets everything through.
- A condition without a value, under an operator that needs one, lets everything through, whatever else it says: the
  page sends such while a person is still typing.
- What a column means is not known here (`filter_sql`); that an operator or a location exists is.
- An order is ``column=asc,other=desc``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

import msgspec

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject

MAX_DEPTH = 100
#: Groups and conditions: a statement has room for so many parameters, and a person for fewer.
MAX_NODES = 2000
#: Characters of a filter: reading more than that holds up everyone else.
MAX_FILTER = 1 << 20
#: Columns of an order: each is sorted by, and a person sees no difference beyond a few.
MAX_SORTS = 20

Value: TypeAlias = "str | float | bool | None"
Member = TypeVar("Member", bound=Enum)


class Location(str, Enum):
    """Where a column stands."""

    EXPERIMENT = "EXPERIMENT"
    HYPERPARAMETERS = "HYPERPARAMETERS"
    VALIDATIONS = "VALIDATIONS"
    TRAINING = "TRAINING"
    CUSTOM_METRIC = "CUSTOM_METRIC"
    RUN = "RUN"
    RUN_HYPERPARAMETERS = "RUN_HYPERPARAMETERS"
    RUN_METADATA = "RUN_METADATA"


class ValueKind(str, Enum):
    """How a value is to be compared; UNSPECIFIED: as what it is."""

    UNSPECIFIED = "UNSPECIFIED"
    TEXT = "TEXT"
    NUMBER = "NUMBER"
    DATE = "DATE"
    ARRAY = "ARRAY"


class Operator(str, Enum):
    """What a condition asks."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    CONTAINS = "contains"
    LACKS = "notContains"
    IS_EMPTY = "isEmpty"
    NOT_EMPTY = "notEmpty"


#: Operators without a value.
EMPTINESS = (Operator.IS_EMPTY, Operator.NOT_EMPTY)
COMPARISONS = (
    Operator.EQUAL,
    Operator.UNEQUAL,
    Operator.LESS,
    Operator.AT_MOST,
    Operator.GREATER,
    Operator.AT_LEAST,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One column against one value. ``value`` means nothing under `EMPTINESS`, and is never None elsewhere."""

    column: str
    location: Location
    kind: ValueKind
    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class FilterGroup:
    """All of the children hold, or with ``any_of`` one of them; without children it always holds. With ``negated`` it
    is the rest: whatever it does not hold of, also where there is no value."""

    children: tuple[Node, ...] = ()
    any_of: bool = False
    negated: bool = False


Node: TypeAlias = "Condition | FilterGroup"


@dataclass(frozen=True, slots=True)
class Filter:
    """What is to be listed."""

    root: FilterGroup = FilterGroup()
    show_archived: bool = True


@dataclass(frozen=True, slots=True)
class Sort:
    """One part of an order."""

    column: str
    descending: bool


@dataclass(frozen=True, slots=True)
class MetricName:
    """A column that is a metric."""

    group: str
    name: str
    #: min, max, mean or last.
    qualifier: str


_QUALIFIERS = ("min", "max", "mean", "last")
_ALWAYS = FilterGroup()


def parse(text: str | None) -> Filter:
    """The filter in ``text``; none of it lists everything. Raises InvalidInput, naming what is wrong with it."""
    if text is None or not text.strip():
        return Filter()
    if len(text) > MAX_FILTER:
        raise InvalidInput(f"filter has {len(text)} characters: {MAX_FILTER} are the most")
    try:
        document: Json = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"filter is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidInput("filter must be an object with filterGroup and showArchived")
    archived = document.get("showArchived", False)
    if not isinstance(archived, bool | None):
        raise InvalidInput("filter: showArchived must be true or false")
    group = document.get("filterGroup")
    if group is None:
        return Filter(show_archived=bool(archived))
    root = _Reader().node(group, "filterGroup", 0)
    return Filter(root if isinstance(root, FilterGroup) else FilterGroup((root,)), bool(archived))


def parse_sort(text: str | None) -> tuple[Sort, ...]:
    """The parts of ``column=asc,other=desc``, the most important first. Raises InvalidInput."""
    if text is None or not text.strip():
        return ()
    if text.count(",") >= MAX_SORTS:
        raise InvalidInput(f"sort names more than {MAX_SORTS} columns: name those that matter most")
    parts = []
    for part in text.split(","):
        column, equals, direction = part.strip().rpartition("=")
        if not equals or not column:
            raise InvalidInput(f"invalid sort parameter: {part.strip()}; write column=asc or column=desc")
        if direction not in ("asc", "desc"):
            raise InvalidInput(f"invalid sort direction: {direction}; asc and desc are all")
        parts.append(Sort(column, direction == "desc"))
    return tuple(parts)


def metric_name(column: str) -> MetricName:
    """The parts of ``group.name.qualifier``; the name may have dots. Raises InvalidInput."""
    group, _, rest = column.partition(".")
    name, _, qualifier = rest.rpartition(".")
    if not group or not name or qualifier not in _QUALIFIERS:
        raise InvalidInput(
            f"{column} is not a valid metrics id: write group.name.qualifier, with one of {', '.join(_QUALIFIERS)}"
        )
    return MetricName(group, name, qualifier)


class _Reader:
    """Reads one filter; keeps count."""

    def __init__(self) -> None:
        self._nodes = 0

    def node(self, value: Json, at: str, depth: int) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise InvalidInput(f"filter: more than {MAX_NODES} groups and conditions")
        if not isinstance(value, dict):
            raise InvalidInput(f"filter: {at} must be an object")
        kind = value.get("kind")
        if kind == "group":
            return self._group(value, at, depth)
        if kind == "field":
            return self._field(value, at)
        raise InvalidInput(f"filter: {at}.kind is {kind!r}; group and field are all")

    def _group(self, value: JsonObject, at: str, depth: int) -> FilterGroup:
        if depth >= MAX_DEPTH:
            raise InvalidInput(f"filter: groups are nested more than {MAX_DEPTH} deep")
        conjunction = value.get("conjunction")
        if conjunction not in ("and", "or"):
            raise InvalidInput(f"filter: {at}.conjunction is {conjunction!r}; and, or are all")
        children = value.get("children")
        if children is None:
            return _ALWAYS
        if not isinstance(children, list):
            raise InvalidInput(f"filter: {at}.children must be a list")
        read = [self.node(child, f"{at}.children[{place}]", depth + 1) for place, child in enumerate(children)]
        return FilterGroup(tuple(read), conjunction == "or")

    def _field(self, value: JsonObject, at: str) -> Node:
        sign = value.get("operator")
        compared = value.get("value")
        if compared is None and sign not in [operator.value for operator in EMPTINESS]:
            return _ALWAYS
        operator = _member(Operator, sign, f"{at}.operator")
        if operator not in EMPTINESS and not isinstance(compared, str | int | float | bool):
            raise InvalidInput(f"filter: {at}.value must be a text, a number, true or false")
        column = value.get("columnName")
        if not isinstance(column, str) or not column:
            raise InvalidInput(f"filter: {at}.columnName is missing")
        location = value.get("location") or "LOCATION_TYPE_EXPERIMENT"
        if isinstance(location, str):
            location = location.removeprefix("LOCATION_TYPE_").replace("UNSPECIFIED", "EXPERIMENT")
        return Condition(
            column,
            _member(Location, location, f"{at}.location"),
            _kind(value.get("type")),
            operator,
            compared if isinstance(compared, str | int | float | bool) else None,
        )


def _kind(text: Json) -> ValueKind:
    """A kind that is not known is taken as UNSPECIFIED."""
    name = text.removeprefix("COLUMN_TYPE_") if isinstance(text, str) else ""
    return next((kind for kind in ValueKind if kind.value == name), ValueKind.UNSPECIFIED)


def _member(kind: type[Member], text: Json, at: str) -> Member:
    for member in kind:
        if member.value == text:
            return member
    raise InvalidInput(f"filter: {at} is {text!r}; {', '.join(str(member.value) for member in kind)} are all")
