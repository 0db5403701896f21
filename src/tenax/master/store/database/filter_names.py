"""What the columns and values of a filter that people type mean: a tree of words becomes conditions. Pure.

A name is, the first that fits: a column of the list, or its short name; ``hp.NAME``, a hyperparameter; one of the names
that the list is known to have, a hyperparameter before a metric, of validation before training before other groups;
``GROUP.NAME`` and ``val_NAME``, ``train_NAME`` for such a metric; ``GROUP.NAME.last``, or ``min``, ``max``, ``mean``.
Without one of these it is the last value. What does not fit is raised with its place, and with names that are alike.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from tenax.config.durations import parse_duration
from tenax.master.store.database.filter_language import (
    OPERATORS,
    Expression,
    Joined,
    Negated,
    QueryError,
    Term,
    Token,
    quoted,
)
from tenax.master.store.database.filter_sql import Holds, Table
from tenax.master.store.database.filter_text import Condition, FilterGroup, Location, Node, Operator, ValueKind
from tenax.master.store.database.paging import escaped

#: What states are called, and those that are meant.
STATES: Mapping[str, tuple[str, ...]] = {
    "active": ("ACTIVE",),
    "queued": ("QUEUED",),
    "pulling": ("PULLING",),
    "starting": ("STARTING",),
    "running": ("RUNNING",),
    "paused": ("PAUSED",),
    "stopping": ("STOPPING_CANCELED", "STOPPING_KILLED", "STOPPING_COMPLETED", "STOPPING_ERROR"),
    "completed": ("COMPLETED",),
    "canceled": ("CANCELED",),
    "error": ("ERROR",),
    "delete_failed": ("DELETE_FAILED",),
}
_SAME_STATES = {"cancelled": "canceled", "failed": "error", "waiting": "queued"}
_QUALIFIERS = ("last", "min", "max", "mean")
_LOCATIONS = {"validation": Location.VALIDATIONS, "training": Location.TRAINING}
_PREFIXES = {"val_": "validation", "train_": "training"}
_OPERATORS = {operator.value: operator for operator in Operator}
_ORDERS = ("<", "<=", ">", ">=")
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhdw])")
#: Columns in percent.
_PERCENTAGES = ("progress", "experimentProgress")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
#: Names that are compared with one that is not known, and characters of each: it takes time with their square.
_MAX_COMPARED, _MAX_ALIKE = 300, 40


@dataclass(frozen=True, slots=True)
class Meaning:
    """The column that a name means."""

    column: str
    location: Location
    holds: Holds


@dataclass(frozen=True, slots=True)
class Names:
    """All that a filter of one list may name."""

    table: Table
    hyperparameters: Sequence[str] = ()
    #: (group, metric).
    metrics: Sequence[tuple[str, str]] = ()
    #: Which column is the name of a row, and which its number: what a word by itself is looked for in.
    name: str = "name"
    number: str = "id"
    _own: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, column in self.table.columns.items():
            if column.filters:
                self._own[name.lower()] = name
                if column.short:
                    self._own[column.short] = name

    @property
    def own(self) -> list[str]:
        """Columns of the list, by the short name where there is one."""
        return [column.short or name for name, column in self.table.columns.items() if column.filters]

    @property
    def _tried(self) -> Location:
        """Where its hyperparameters stand: a list of runs has what each tried, others what is configured."""
        return Location.RUN_HYPERPARAMETERS if self.table.trial else Location.HYPERPARAMETERS

    def listed(self) -> list[str]:
        """All names, as they are typed."""
        metrics = [_short(group, metric) for group, metric in self.metrics]
        return list(dict.fromkeys([*self.own, *self.hyperparameters, *metrics]))

    def meaning(self, name: str) -> Meaning | None:
        """What a name means; None: nothing that is known."""
        own = self._own.get(name.lower())
        if own is not None:
            return Meaning(own, Location.EXPERIMENT, self.table.columns[own].holds)
        if name.startswith("hp.") and len(name) > len("hp."):
            return Meaning(name, self._tried, Holds.TEXT)
        if name.startswith("metadata.") and self.table.trial:
            return Meaning(name, Location.RUN_METADATA, Holds.TEXT)
        if name in self.hyperparameters:
            return Meaning(f"hp.{name}", self._tried, Holds.TEXT)
        return self._metric(name)

    def _metric(self, name: str) -> Meaning | None:
        rest, _, qualifier = name.rpartition(".")
        readings = [(name, "last")] if qualifier not in _QUALIFIERS else [(name, "last"), (rest, qualifier)]
        for metric, how in readings:
            group = self._group_of(metric)
            if group is not None:
                return _of_metric(*group, how)
        group_name, _, metric = rest.partition(".")
        return _of_metric(group_name, metric, qualifier) if qualifier in _QUALIFIERS and group_name and metric else None

    def _group_of(self, metric: str) -> tuple[str, str] | None:
        """(group, metric) of what is called so."""
        groups = sorted((group for group, name in self.metrics if name == metric), key=_rank)
        if groups:
            return groups[0], metric
        known = set(self.metrics)
        group, _, rest = metric.partition(".")
        if (group, rest) in known:
            return group, rest
        for prefix, of in _PREFIXES.items():
            if metric.startswith(prefix) and (of, metric.removeprefix(prefix)) in known:
                return of, metric.removeprefix(prefix)
        return None


def _rank(group: str) -> tuple[int, str]:
    return (("validation", "training").index(group) if group in _LOCATIONS else 2, group)


def _short(group: str, metric: str) -> str:
    """How a metric is typed."""
    prefix = {"validation": "val_", "training": "train_"}.get(group, f"{group}.")
    return metric if metric.startswith(prefix) else prefix + metric


def _of_metric(group: str, metric: str, qualifier: str) -> Meaning:
    return Meaning(f"{group}.{metric}.{qualifier}", _LOCATIONS.get(group, Location.CUSTOM_METRIC), Holds.NUMBER)


def unknown_names(expression: Expression, names: Names) -> bool:
    """Whether a filter names what ``names`` do not know."""
    if isinstance(expression, Joined):
        return any(unknown_names(part, names) for part in expression.parts)
    if isinstance(expression, Negated):
        return unknown_names(expression.part, names)
    if expression.column is None:
        return False
    named = expression.values if _asks_for_value(expression) else (expression.column,)
    return any(names.meaning(token.text) is None for token in named)


def bound(expression: Expression, names: Names, *, caller_id: int, now: datetime) -> Node:
    """The conditions of a filter. ``caller_id``: who ``me`` is; ``now``: from when ``7d`` counts. Raises QueryError."""
    return _Binder(names, caller_id, now).node(expression)


def _asks_for_value(term: Term) -> bool:
    return (
        term.column is not None
        and term.operator is not None
        and term.column.text == "has"
        and not term.column.quoted
        and term.operator.text == ":"
    )


class _Binder:
    def __init__(self, names: Names, caller_id: int, now: datetime) -> None:
        self._names = names
        self._caller_id = caller_id
        self._now = now

    def node(self, expression: Expression) -> Node:
        if isinstance(expression, Joined):
            return FilterGroup(tuple(self.node(part) for part in expression.parts), expression.any_of)
        if isinstance(expression, Negated):
            return FilterGroup((self.node(expression.part),), negated=True)
        if expression.column is None or expression.operator is None:
            return self._text(expression.values[0])
        if _asks_for_value(expression):
            return _any_of(self._has(value) for value in expression.values)
        meaning = self._meaning(expression.column)
        operator = expression.operator
        if operator.text in _ORDERS and len(expression.values) > 1:
            extra = expression.values[1]
            raise QueryError(f"{operator.text} compares with a single value", extra.start, extra.end)
        equal = _any_of(self._equal(meaning, operator, value) for value in expression.values)
        return FilterGroup((equal,), negated=True) if operator.text == "!=" else equal

    def _meaning(self, token: Token) -> Meaning:
        meaning = self._names.meaning(token.text)
        if meaning is not None:
            return meaning
        near = _alike(token.text, self._names.listed())
        hint = f"did you mean {' or '.join(quoted(name) for name in near)}?" if near else "hp.NAME is a hyperparameter"
        raise QueryError(f"there is no column {token.text[:80]}: {hint}", token.start, token.end)

    def _text(self, token: Token) -> Node:
        name = Condition(self._names.name, Location.EXPERIMENT, ValueKind.TEXT, Operator.CONTAINS, escaped(token.text))
        if token.quoted or not re.fullmatch(r"\d{1,18}", token.text, re.ASCII):
            return name
        number = Condition(self._names.number, Location.EXPERIMENT, ValueKind.NUMBER, Operator.EQUAL, token.text)
        return FilterGroup((name, number), any_of=True)

    def _has(self, token: Token) -> Node:
        meaning = self._meaning(token)
        if meaning.location is not Location.HYPERPARAMETERS:
            return Condition(meaning.column, meaning.location, ValueKind.UNSPECIFIED, Operator.NOT_EMPTY, None)
        return Condition(meaning.column, meaning.location, ValueKind.NUMBER, Operator.NOT_EMPTY, None)

    def _equal(self, meaning: Meaning, operator: Token, value: Token) -> Node:
        """What an operator says of one value; ``!=`` is not what ``=`` is."""
        if meaning.location is Location.HYPERPARAMETERS:
            return _configured(meaning, operator, value)
        if meaning.location in (Location.RUN_HYPERPARAMETERS, Location.RUN_METADATA):
            return _tried(meaning, operator, value)
        if meaning.location is not Location.EXPERIMENT:
            return _of_metric_value(meaning, operator, value)
        makers = {
            Holds.STATE: self._state,
            Holds.USER: self._user,
            Holds.LIST: _label,
            Holds.TIME: self._time,
            Holds.NUMBER: _number,
            Holds.BOOLEAN: _truth,
        }
        return makers.get(meaning.holds, _text)(meaning, operator, value)

    def _state(self, meaning: Meaning, operator: Token, value: Token) -> Node:
        _unordered(operator, "states")
        word = value.text.lower().removeprefix("state_")
        states = STATES.get(_SAME_STATES.get(word, word))
        if states is None:
            raise QueryError(
                f"there is no state {value.text[:80]}: {', '.join(STATES)} are all", value.start, value.end
            )
        return _any_of(_condition(meaning, ValueKind.TEXT, Operator.EQUAL, state) for state in states)

    def _user(self, meaning: Meaning, operator: Token, value: Token) -> Node:
        _unordered(operator, "people")
        if value.text == "me" and not value.quoted:
            return _condition(meaning, ValueKind.NUMBER, Operator.EQUAL, self._caller_id)
        return _condition(meaning, ValueKind.TEXT, Operator.EQUAL, value.text)

    def _time(self, meaning: Meaning, operator: Token, value: Token) -> Node:
        ago = _SPAN.fullmatch(value.text)
        try:
            if ago:
                moment = self._now - timedelta(seconds=parse_duration(value.text))
            else:
                moment = datetime.fromisoformat(value.text)
                moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
            after = moment + timedelta(days=1)
        except (ValueError, OverflowError):
            message = f"{value.text[:80]} is no time: write 2026-01-31, 2026-01-31T12:00, or 7d for seven days ago"
            raise QueryError(message, value.start, value.end) from None

        def compared(sign: Operator, when: datetime) -> Condition:
            return _condition(meaning, ValueKind.DATE, sign, when.isoformat())

        if operator.text in _ORDERS:
            return compared(_OPERATORS[operator.text], moment)
        if _DAY.fullmatch(value.text):
            return FilterGroup((compared(Operator.AT_LEAST, moment), compared(Operator.LESS, after)))
        return compared(Operator.EQUAL, moment)


def _alike(name: str, known: Iterable[str]) -> list[str]:
    """The two that may have been meant."""
    if len(name) > _MAX_ALIKE:
        return []
    short = (each for each in known if len(each) <= _MAX_ALIKE)
    return difflib.get_close_matches(name, itertools.islice(short, _MAX_COMPARED), 2, 0.5)


def _any_of(nodes: Iterable[Node]) -> Node:
    parts = tuple(nodes)
    return parts[0] if len(parts) == 1 else FilterGroup(parts, any_of=True)


def _condition(meaning: Meaning, kind: ValueKind, operator: Operator, value: str | float) -> Condition:
    return Condition(meaning.column, meaning.location, kind, operator, value)


def _sign(operator: Token) -> Operator:
    return _OPERATORS[operator.text] if operator.text in _ORDERS else Operator.EQUAL


def _unordered(operator: Token, what: str) -> None:
    if operator.text in _ORDERS:
        raise QueryError(f"{what} are compared by : = and !=", operator.start, operator.end)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(meaning: Meaning, operator: Token, value: Token) -> Node:
    text = value.text.removesuffix("%") if meaning.column in _PERCENTAGES else value.text
    span = _SPAN.fullmatch(text) if meaning.column == "duration" else None
    number = str(parse_duration(text)) if span else text
    if not _is_number(number):
        message = f"{value.text[:80]} is no number, and {meaning.column} is compared with one"
        raise QueryError(message, value.start, value.end)
    return _condition(meaning, ValueKind.NUMBER, _sign(operator), _spelled(number))


def _spelled(number: str) -> str | float:
    """NaN is a value like another: PostgreSQL takes it for the greatest."""
    value = float(number)
    return "NaN" if value != value else value


def _truth(meaning: Meaning, operator: Token, value: Token) -> Node:
    _unordered(operator, "true and false")
    word = {"yes": "true", "no": "false"}.get(value.text.lower(), value.text.lower())
    if word not in ("true", "false"):
        raise QueryError(f"{meaning.column} is true or false", value.start, value.end)
    return _condition(meaning, ValueKind.TEXT, Operator.EQUAL, word)


def _label(meaning: Meaning, operator: Token, value: Token) -> Node:
    """A list holds a whole entry, whatever its case."""
    _unordered(operator, "labels")
    return _condition(meaning, ValueKind.TEXT, Operator.CONTAINS, escaped(json.dumps(value.text, ensure_ascii=False)))


def _text(meaning: Meaning, operator: Token, value: Token) -> Node:
    _unordered(operator, "texts")
    if operator.text == ":":
        return _condition(meaning, ValueKind.TEXT, Operator.CONTAINS, escaped(value.text))
    return _condition(meaning, ValueKind.TEXT, Operator.EQUAL, value.text)


def _of_metric_value(meaning: Meaning, operator: Token, value: Token) -> Node:
    if not _is_number(value.text):
        if operator.text in _ORDERS:
            raise QueryError(f"{value.text[:80]} is no number, and {operator.text} needs one", value.start, value.end)
        return _condition(meaning, ValueKind.TEXT, Operator.EQUAL, value.text)
    return _condition(meaning, ValueKind.NUMBER, _sign(operator), _spelled(value.text))


def _configured(meaning: Meaning, operator: Token, value: Token) -> Node:
    """A constant is it, or what is searched over holds it."""
    number = _is_number(value.text) and not value.quoted
    kind = ValueKind.NUMBER if number else ValueKind.TEXT
    compared = _spelled(value.text) if number else value.text
    if operator.text in _ORDERS:
        if not number:
            raise QueryError(f"{value.text[:80]} is no number, and {operator.text} needs one", value.start, value.end)
        return _condition(meaning, kind, _OPERATORS[operator.text], compared)
    equal = _condition(meaning, kind, Operator.EQUAL, compared)
    # A text that is contained in another is not it.
    if not number and operator.text != ":":
        return equal
    contained = escaped(value.text) if not number else compared
    return FilterGroup((equal, _condition(meaning, kind, Operator.CONTAINS, contained)), any_of=True)


def _tried(meaning: Meaning, operator: Token, value: Token) -> Node:
    """What one run tried, or was written about it: a number, a text, or true and false."""
    if _is_number(value.text) and not value.quoted:
        return _condition(meaning, ValueKind.NUMBER, _sign(operator), _spelled(value.text))
    if operator.text in _ORDERS:
        raise QueryError(f"{value.text[:80]} is no number, and {operator.text} needs one", value.start, value.end)
    if operator.text == ":":
        return _condition(meaning, ValueKind.TEXT, Operator.CONTAINS, escaped(value.text))
    equal = _condition(meaning, ValueKind.TEXT, Operator.EQUAL, value.text)
    if value.text not in ("true", "false"):
        return equal
    truth = Condition(meaning.column, meaning.location, ValueKind.UNSPECIFIED, Operator.EQUAL, value.text == "true")
    return _any_of((equal, truth))


__all__ = ["OPERATORS", "STATES", "Meaning", "Names", "bound", "unknown_names"]
