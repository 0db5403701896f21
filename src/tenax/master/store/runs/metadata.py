"""Metadata of runs: a document that people write, replaced as a whole, and the leaves by which runs are found.

Rules:
- The document and its leaves are written in one transaction; `flatten`, which makes the leaves, is pure.
- A leaf's key is its path with dots; an element of a list is a leaf of the list's key, objects in a list are JSON text.
- A whole number is an integer, also written 3.0; a text that is a date, or a date and time with a zone, is a moment in
  UTC; any other text is text. What is empty or null is a leaf without a value.
- Limits are those that Determined keeps, so that its tools never store what these refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

import msgspec
from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.database.queries import load

MAX_VALUE, MAX_KEY, MAX_ARRAY, MAX_DEPTH, MAX_KEYS = 5000, 50, 100, 10, 1000
_FORBIDDEN = "$.[]"
_DAY = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")
_INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf; at most one of the values is set."""

    flat_key: str
    is_array_element: bool = False
    integer_value: int | None = None
    float_value: float | None = None
    boolean_value: bool | None = None
    string_value: str | None = None
    timestamp_value: datetime | None = None


def flatten(metadata: JsonObject) -> list[Leaf]:
    """The leaves of ``metadata``. Raises InvalidInput beyond a limit."""
    leaves: list[Leaf] = []
    keys = 0
    for leaf, is_new_key in _walk(metadata, "", 1):
        keys += is_new_key
        if keys > MAX_KEYS:
            raise InvalidInput(f"request exceeds run metadata key count limit of {MAX_KEYS}: leave some keys out")
        leaves.append(leaf)
    return leaves


def _walk(document: JsonObject, prefix: str, depth: int) -> Iterator[tuple[Leaf, bool]]:
    """Leaves, and whether each is the first of its key."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"metadata exceeds maximum nesting depth of {MAX_DEPTH}: flatten it")
    for key, value in document.items():
        _check_key(key)
        path = prefix + key
        if isinstance(value, dict) and value:
            yield from _walk(value, path + ".", depth + 1)
        elif isinstance(value, list):
            for place, leaf in enumerate(_elements(path, value, depth + 1) if value else [Leaf(path, True)]):
                yield leaf, place == 0
        else:
            yield _leaf(path, value, False), True


def _elements(path: str, values: list[Json], depth: int) -> Iterator[Leaf]:
    if len(values) > MAX_ARRAY:
        raise InvalidInput(
            f"metadata array exceeds maximum length of {len(values)}/{MAX_ARRAY} elements: shorten {path}"
        )
    if depth > MAX_DEPTH + 1:
        raise InvalidInput(f"metadata exceeds maximum nesting depth of {MAX_DEPTH}: flatten it")
    for value in values:
        if isinstance(value, list) and value:
            yield from _elements(path, value, depth + 1)
        elif isinstance(value, dict) and value:
            _check_depth(value, depth)
            yield _leaf(path, msgspec.json.encode(value).decode(), True)
        else:
            yield _leaf(path, value, not isinstance(value, dict))


def _check_depth(value: Json, depth: int) -> None:
    """Of what is kept as text, too."""
    if depth > MAX_DEPTH + 1:
        raise InvalidInput(f"metadata exceeds maximum nesting depth of {MAX_DEPTH}: flatten it")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(inner, depth + 1)


def _leaf(path: str, value: Json, in_list: bool) -> Leaf:
    if isinstance(value, bool):
        return Leaf(path, in_list, boolean_value=value)
    if isinstance(value, str):
        return _text(path, value, in_list)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            raise InvalidInput(f"metadata value of {path} is too large a number") from None
        if number.is_integer() and int(value) in _INTEGERS:
            return Leaf(path, in_list, integer_value=int(value))
        return Leaf(path, in_list, float_value=number)
    return Leaf(path, in_list)


def _text(path: str, value: str, in_list: bool) -> Leaf:
    if len(value) > MAX_VALUE:
        raise InvalidInput(f"metadata value exceeds maximum length of {MAX_VALUE} characters: shorten {path}")
    moment = _moment(value)
    if moment is not None:
        return Leaf(path, in_list, timestamp_value=moment)
    return Leaf(path, in_list, string_value=value)


def _moment(value: str) -> datetime | None:
    if _DAY.fullmatch(value):
        value = f"{value if len(value) > len('2021-01') else value + '-01'}T00:00:00Z"
    if not _MOMENT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value.upper()).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def _check_key(key: str) -> None:
    if len(key) > MAX_KEY:
        raise InvalidInput(f"metadata key exceeds maximum length of {MAX_KEY} characters: shorten {key[:60]!r}")
    forbidden = [letter for letter in _FORBIDDEN if letter in key]
    if forbidden:
        raise InvalidInput(
            f"metadata keys can not contain the following character(s): {' '.join(_FORBIDDEN)}; rename {key!r}"
        )


Q = load("runs")

_COLUMNS = (
    "trial_id",
    "flat_key",
    "is_array_element",
    "integer_value",
    "float_value",
    "boolean_value",
    "string_value",
    "timestamp_value",
)
#: Values of one key that are listed at most.
_MAX_VALUES = 10_000


async def get(conn: Connection, trial_id: int) -> JsonObject:
    """Empty where nothing was written."""
    metadata: JsonObject | None = await conn.fetchval(Q.get, trial_id)
    return metadata or {}


async def replace(conn: Connection, trial_id: int, metadata: JsonObject) -> None:
    """Write it, instead of what was there. In a transaction; the trial exists. Raises InvalidInput beyond a limit."""
    leaves = flatten(metadata)
    # Locks the row: of two that write at once the index is that of the document which stays.
    await conn.execute(Q.replace, trial_id, metadata)
    await conn.execute(Q.drop_index, trial_id)
    records = [
        (
            trial_id,
            leaf.flat_key,
            leaf.is_array_element,
            leaf.integer_value,
            leaf.float_value,
            leaf.boolean_value,
            leaf.string_value,
            leaf.timestamp_value,
        )
        for leaf in leaves
    ]
    await conn.copy_records_to_table("run_metadata_index", records=records, columns=_COLUMNS)


async def values(conn: Connection, project_id: int, key: str) -> list[str]:
    """The texts that runs of a project have under ``key``, sorted, each once."""
    return [row["string_value"] for row in await conn.fetch(Q.values_of, project_id, key, _MAX_VALUES)]
