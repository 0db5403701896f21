"""Filters and orders as SQL: what a column, a hyperparameter, a metric or a key of metadata means to a statement.

A list declares its columns (`Table`); everything else is here, once for all lists:

    built = Builder(RUNS, first=3)
    text = f"select t.id {Q.sources} where {built.condition(filters.root)} order by {built.order(sorts)} t.id"
    await conn.fetch(text, first, second, *built.parameters)

Rules:
- Every value of the caller's is a parameter; what stands in the text comes from tables here and in `Table`.
- Null matches nothing but isEmpty. Text is ordered by code point; contains takes no notice of case in columns and
  metadata, and does in hyperparameters and metrics; ``%``, ``_`` and ``\\`` in it are those of LIKE.
- In an order what is missing comes last in both directions; what is equal is ordered by id, rising.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum

from tenax.errors import InvalidInput
from tenax.master.store.database.filter_text import (
    COMPARISONS,
    EMPTINESS,
    Condition,
    FilterGroup,
    Location,
    Node,
    Operator,
    Sort,
    Value,
    ValueKind,
    metric_name,
)


class Holds(str, Enum):
    """What a column holds."""

    NUMBER = "number"
    TEXT = "text"
    TIME = "time"
    BOOLEAN = "boolean"
    #: JSON of a list, as text.
    LIST = "list"
    #: A state: ACTIVE stands for every state of what is at work, too.
    STATE = "state"
    #: A user: a number is an id, a text a name.
    USER = "user"


@dataclass(frozen=True, slots=True)
class Order:
    """How a list that is ordered by one column alone is read: from an index, where there is one."""

    expression: str
    #: What it is read from beside the rows of the list.
    join: str = ""
    #: Where every row of the list has one in another table, that table: it alone is read where nothing is filtered.
    alone: str = ""
    #: It may be null, which comes last in both directions.
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column: an expression, what it holds, and what a list is ordered by where that is something else."""

    sql: str
    holds: Holds
    sort: str | None = None
    filters: bool = True
    sorts: bool = True
    #: What a list that is ordered by one column alone calls it; empty: it is not ordered by this one.
    sort_by: str = ""
    #: How it is ordered by then; None: by what `sort` says.
    order: Order | None = None
    #: What people call it; empty: its name, in words.
    label: str = ""
    #: What it is called in a filter that is typed, beside its name.
    short: str = ""
    #: It is never null, and an index has its order; for that of ``nulls last``, another, all rows would be read.
    always: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """What a list can be filtered and ordered by."""

    #: By name, of the locations EXPERIMENT and RUN.
    columns: Mapping[str, Column]
    locations: frozenset[Location]
    #: An expression: the trial whose metrics count.
    metrics_of: str
    #: An expression: the trial whose hyperparameters and metadata count; empty for a list that has none.
    trial: str = ""
    #: An expression: the configured hyperparameters; empty for a list that has none.
    configured: str = ""
    #: An expression: the name of the user that a column of `Holds.USER` is.
    username: str = "''"

    @property
    def orders(self) -> dict[str, Order]:
        """What it may be ordered by alone, by the names of `Column.sort_by`."""
        return {
            column.sort_by: column.order or Order(column.sort or column.sql)
            for column in self.columns.values()
            if column.sort_by
        }

    def label(self, name: str) -> str:
        """What people call a column: ``startTime`` is `Start time`."""
        label = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
        return self.columns[name].label or label[:1].upper() + label[1:]


#: In the order of lists: Determined's, in which what is at work comes last.
STATES = (
    "ACTIVE",
    "PAUSED",
    "STOPPING_CANCELED",
    "STOPPING_KILLED",
    "STOPPING_COMPLETED",
    "STOPPING_ERROR",
    "DELETING",
    "CANCELED",
    "COMPLETED",
    "ERROR",
    "DELETE_FAILED",
    "QUEUED",
    "PULLING",
    "STARTING",
    "RUNNING",
)
_AT_WORK = "('ACTIVE', 'QUEUED', 'PULLING', 'STARTING', 'RUNNING')"
_METRICS = (Location.VALIDATIONS, Location.TRAINING, Location.CUSTOM_METRIC)
_OWN = (Location.EXPERIMENT, Location.RUN)
_HELD = {ValueKind.NUMBER: Holds.NUMBER, ValueKind.DATE: Holds.TIME}


class Builder:
    """Builds conditions and an order of one statement, and gathers their parameters from number ``first`` on."""

    def __init__(self, table: Table, *, first: int = 1) -> None:
        self._table = table
        self._first = first
        self.parameters: list[object] = []

    def condition(self, node: Node) -> str:
        """A condition that is true or not, never a syntax error. Raises InvalidInput, naming column or operator."""
        if isinstance(node, FilterGroup):
            joint = " or " if node.any_of else " and "
            joined = joint.join(self.condition(child) for child in node.children) or "true"
            return f"not coalesce(({joined}), false)" if node.negated else f"({joined})"
        if node.location not in self._table.locations:
            raise InvalidInput(f"filter: this list has no columns of {node.location.value} ({node.column})")
        if node.location in _OWN:
            return self._of_column(node)
        if node.location in _METRICS:
            return self._of_metric(node)
        if node.location is Location.HYPERPARAMETERS:
            return self._of_configured(node)
        if node.location is Location.RUN_HYPERPARAMETERS:
            return self._of_hyperparameter(node)
        return self._of_metadata(node)

    def order(self, sorts: Sequence[Sort]) -> str:
        """Expressions with directions, each followed by a comma: to be followed by the id. Raises InvalidInput."""
        return "".join(
            f"{expression} {'desc' if sort.descending else 'asc'}{self._nulls(sort.column)}, "
            for sort in sorts
            for expression in self._order_by(sort.column)
        )

    def _nulls(self, name: str) -> str:
        column = self._table.columns.get(name)
        return "" if column is not None and column.always else " nulls last"

    def _parameter(self, value: object, cast: str) -> str:
        self.parameters.append(value)
        return f"${self._first + len(self.parameters) - 1}::{cast}"

    def _of_column(self, node: Condition) -> str:
        column = self._table.columns.get(node.column)
        if column is None or not column.filters:
            raise InvalidInput(f"filter: there is no column {node.column}; {', '.join(self._filterable())} are all")
        if node.operator in EMPTINESS:
            empty = f"{column.sql} is null"
            if column.holds in (Holds.TEXT, Holds.LIST):
                empty = f"coalesce({column.sql}, '') in ('', '[]')"
            return _negated(empty, node.operator is Operator.NOT_EMPTY)
        if column.holds is Holds.STATE:
            return self._of_state(column, node)
        if column.holds is Holds.USER and not _is_number(node.value):
            return self._compared(f"({self._table.username})", Holds.TEXT, node)
        holds = Holds.NUMBER if column.holds is Holds.USER else column.holds
        return self._compared(column.sql, holds, node)

    def _of_state(self, column: Column, node: Condition) -> str:
        if node.value == "ACTIVE" and node.operator in (Operator.EQUAL, Operator.UNEQUAL):
            inside = "in" if node.operator is Operator.EQUAL else "not in"
            return f"{column.sql} {inside} {_AT_WORK}"
        return self._compared(column.sql, Holds.TEXT, node)

    def _compared(self, sql: str, holds: Holds, node: Condition) -> str:
        if node.operator not in COMPARISONS:
            return self._contains(f"({sql})::text", node)
        if holds is Holds.NUMBER:
            return f"{sql} {node.operator.value} {self._parameter(_number(node), 'float8')}"
        if holds is Holds.TIME:
            return f"{sql} {node.operator.value} {self._parameter(_moment(node), 'timestamptz')}"
        if holds is Holds.BOOLEAN:
            return f"{sql} {node.operator.value} {self._parameter(_truth(node), 'boolean')}"
        return f'{sql} collate "C" {node.operator.value} {self._parameter(_text(node.value), "text")}'

    def _contains(self, sql: str, node: Condition, *, any_case: bool = True) -> str:
        pattern = self._parameter(f"%{_text(node.value)}%", "text")
        like = "ilike" if any_case else "like"
        return f"{sql} {'' if node.operator is Operator.CONTAINS else 'not '}{like} {pattern}"

    def _of_metric(self, node: Condition) -> str:
        value = self._metric(node.column)
        if node.operator in EMPTINESS:
            return _negated(f"{value} is null", node.operator is Operator.NOT_EMPTY)
        if node.operator not in COMPARISONS:
            return self._contains(f"({value} #>> '{{}}')", node, any_case=False)
        if _kind(node) is ValueKind.NUMBER:
            number = self._parameter(_number(node), "float8")
            return f"tenax_number({value}) {node.operator.value} {number}"
        text = self._parameter(_text(node.value), "text")
        return f"({value} #>> '{{}}') collate \"C\" {node.operator.value} {text}"

    def _metric(self, column: str) -> str:
        name = metric_name(column)
        parts = (self._parameter(part, "text") for part in (name.group, name.name, name.qualifier))
        return f"tenax_metric({self._table.metrics_of}, {', '.join(parts)})"

    def _of_hyperparameter(self, node: Condition) -> str:
        key = self._parameter(node.column.removeprefix("hp."), "text")
        rows = f"select 1 from run_hparams h where h.trial_id = {self._table.trial} and {key} in (h.key, h.alias)"
        columns = {Holds.TEXT: "h.text_value", Holds.BOOLEAN: "h.boolean_value", Holds.NUMBER: "h.number_value"}
        return self._exists(rows, columns, node, any_case=False)

    def _of_metadata(self, node: Condition) -> str:
        key = self._parameter(node.column.removeprefix("metadata."), "text")
        rows = f"select 1 from run_metadata_index x where x.trial_id = {self._table.trial} and x.flat_key = {key}"
        number = "coalesce(x.integer_value::float8, x.float_value)"
        columns = {Holds.TEXT: "x.string_value", Holds.BOOLEAN: "x.boolean_value", Holds.NUMBER: number}
        return self._exists(rows, {**columns, Holds.TIME: "x.timestamp_value"}, node, any_case=True)

    def _exists(self, rows: str, columns: Mapping[Holds, str], node: Condition, *, any_case: bool) -> str:
        """``columns``: where a row has what it holds; what they do not name is compared as text."""
        if node.operator in EMPTINESS:
            return _negated(f"not exists ({rows})", node.operator is Operator.NOT_EMPTY)
        kind = _kind(node)
        if node.operator not in COMPARISONS:
            _check_text(node, kind)
            return f"exists ({rows} and {self._contains(columns[Holds.TEXT], node, any_case=any_case)})"
        holds = Holds.BOOLEAN if isinstance(node.value, bool) else _HELD.get(kind, Holds.TEXT)
        holds = holds if holds in columns else Holds.TEXT
        return f"exists ({rows} and {self._compared(columns[holds], holds, node)})"

    def _of_configured(self, node: Condition) -> str:
        path = self._parameter(node.column.removeprefix("hp.").split("."), "text[]")
        hp = f"({self._table.configured} #> {path})"
        number = _kind(node) is ValueKind.NUMBER
        # What is not there, or is no hyperparameter, is neither empty nor anything else.
        if node.operator in EMPTINESS:
            return _configured_emptiness(hp, number, node.operator is Operator.NOT_EMPTY)
        if node.operator in COMPARISONS:
            return self._configured_compared(hp, number, node)
        return self._configured_contains(hp, number, node)

    def _configured_compared(self, hp: str, number: bool, node: Condition) -> str:
        sign = node.operator.value
        constant = f"{hp} ->> 'type' = 'const'"
        if not number:
            value = f"({hp} ->> 'val')"
            if node.kind is ValueKind.DATE:
                return f"coalesce({constant} and {self._compared(f'tenax_time({value})', Holds.TIME, node)}, false)"
            return f"coalesce({constant} and {self._compared(value, Holds.TEXT, node)}, false)"
        compared = self._parameter(_number(node), "float8")
        low, high = (f"tenax_number({hp} -> '{name}') {sign} {compared}" for name in ("minval", "maxval"))
        ranged = f"{hp} ->> 'type' in ('int', 'double', 'log') and ({low} or {high})"
        return f"coalesce({constant} and tenax_number({hp} -> 'val') {sign} {compared} or {ranged}, false)"

    def _configured_contains(self, hp: str, number: bool, node: Condition) -> str:
        """As in Determined, each kind by a rule of its own: what no rule names neither contains nor lacks anything."""
        contains = node.operator is Operator.CONTAINS
        if number:
            bound = _number(node)
            value = f"{bound:.15g}"
            compared = self._parameter(bound, "float8")
            from_low, to_high = ("<=", ">=") if contains else (">=", "<=")
            low, high = f"tenax_number({hp} -> 'minval')", f"tenax_number({hp} -> 'maxval')"
            ranges = f"{hp} ->> 'type' in ('int', 'double', 'log')"
            other = f"{ranges} and ({low} {from_low} {compared} or {high} {to_high} {compared})"
        else:
            value = _text(node.value)
            constant = self._contains(f"({hp} ->> 'val')", node, any_case=False)
            other = f"{hp} ->> 'type' = 'const' and {constant}"
        exists = "exists" if contains else "not exists"
        values = f"select 1 from jsonb_array_elements_text({hp} -> 'vals') v where v = {self._parameter(value, 'text')}"
        return f"coalesce({hp} ->> 'type' = 'categorical' and {exists} ({values}) or {other}, false)"

    def _order_by(self, name: str) -> Sequence[str]:
        if name.startswith("hp."):
            return self._order_by_hyperparameter(name.removeprefix("hp."))
        if name.startswith("metadata.") and self._table.trial:
            return self._order_by_metadata(name.removeprefix("metadata."))
        column = self._table.columns.get(name)
        if column is not None and column.sorts:
            return (_sortable(column),)
        if "." not in name:
            raise InvalidInput(f"invalid sort col: {name}; {', '.join(self._sortable())} are all")
        metric = self._metric(name)
        return (f"tenax_number({metric})", f"({metric} #>> '{{}}') collate \"C\"")

    def _order_by_hyperparameter(self, name: str) -> Sequence[str]:
        if self._table.configured:
            path = self._parameter(name.split("."), "text[]")
            value = f"({self._table.configured} #> {path} -> 'val')"
            return _json_order(value)
        key = self._parameter(name, "text")
        first_match = f"from run_hparams h where h.trial_id = {self._table.trial} and {key} in (h.key, h.alias) limit 1"
        # Text, numbers, booleans: the order of JSON values.
        return (
            f"(select num_nonnulls(h.number_value) + 2 * num_nonnulls(h.boolean_value) {first_match})",
            f'(select h.text_value collate "C" {first_match})',
            f"(select coalesce(h.number_value, h.boolean_value::int) {first_match})",
        )

    def _order_by_metadata(self, name: str) -> Sequence[str]:
        path = self._parameter(name.split("."), "text[]")
        value = f"(select r.metadata #> {path} from run_metadata r where r.trial_id = {self._table.trial})"
        return _json_order(value)

    def _filterable(self) -> list[str]:
        return sorted(name for name, column in self._table.columns.items() if column.filters)

    def _sortable(self) -> list[str]:
        return sorted(name for name, column in self._table.columns.items() if column.sorts)


def _json_order(value: str) -> Sequence[str]:
    place = f"case jsonb_typeof({value}) when 'string' then 0 when 'number' then 1 when 'boolean' then 2 else 3 end"
    return (
        f"case when jsonb_typeof(nullif({value}, 'null')) is not null then {place} end",
        f"tenax_number({value})",
        f"({value} #>> '{{}}') collate \"C\"",
    )


def _sortable(column: Column) -> str:
    if column.sort is not None:
        return column.sort
    if column.holds is Holds.STATE:
        return f"array_position('{{{','.join(STATES)}}}'::text[], {column.sql})"
    return f'{column.sql} collate "C"' if column.holds in (Holds.TEXT, Holds.LIST) else column.sql


def _configured_emptiness(hp: str, number: bool, filled: bool) -> str:
    parts = [("const", "val"), ("categorical", "vals")]
    test = "is not null and v <> 'null'" if filled else "is null or v = 'null'"
    checks = [
        f"({hp} ->> 'type' = '{kind}' and (select v {test} from (select {hp} -> '{key}' as v) s))"
        for kind, key in parts
    ]
    if number and filled:
        checks.append(f"{hp} ->> 'type' in ('int', 'double', 'log')")
    return f"coalesce({' or '.join(checks)}, false)"


def _negated(condition: str, negated: bool) -> str:
    return f"not ({condition})" if negated else f"({condition})"


def _kind(node: Condition) -> ValueKind:
    """How to compare: as the condition names it, else as what the value is."""
    if node.kind is not ValueKind.UNSPECIFIED:
        return node.kind
    return (
        ValueKind.NUMBER if isinstance(node.value, int | float) and not isinstance(node.value, bool) else ValueKind.TEXT
    )


def _check_text(node: Condition, kind: ValueKind) -> None:
    if kind is ValueKind.NUMBER or not isinstance(node.value, str):
        raise InvalidInput(f"filter: {node.operator.value} needs a text, and {node.column} is compared as a number")


def _is_number(value: Value) -> bool:
    return not isinstance(value, bool) and (
        isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal())
    )


def _number(node: Condition) -> float:
    value = node.value
    if not isinstance(value, bool) and value is not None:
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isnan(number) or value == "NaN":
            return number
    raise InvalidInput(f"filter: {node.column} is compared with a number, and {value!r} is none")


def _moment(node: Condition) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(node.value))
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"filter: {node.column} is compared with a time like 2026-01-31T12:00:00Z, and {node.value!r} is none"
        ) from None


def _truth(node: Condition) -> bool:
    value = {"true": True, "false": False}.get(_text(node.value).lower())
    if value is None:
        raise InvalidInput(f"filter: {node.column} is true or false, and {node.value!r} is neither")
    return value


def _text(value: Value) -> str:
    if isinstance(value, str):
        if "\x00" in value:
            raise InvalidInput("filter: a value holds a NUL character")
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)
