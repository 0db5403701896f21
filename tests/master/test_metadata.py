"""Metadata of a run, leaf by leaf, and its limits."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime

import pytest

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.runs.metadata import Leaf, flatten
from tests.kits.cases import load

_CASES = load("run_metadata") or {}


def cases(*names: str) -> list[JsonObject]:
    found: list[JsonObject] = []
    for name in names:
        listed = _CASES.get(name, [])
        assert isinstance(listed, list)
        found += listed
    return found


def shown(leaf: Leaf) -> JsonObject:
    """As the cases write one."""
    document: JsonObject = {}
    for field in fields(Leaf):
        value = getattr(leaf, field.name)
        if isinstance(value, datetime):
            document[field.name] = value.isoformat().replace("+00:00", "Z")
        elif value is not None:
            document[field.name] = value
    return document


@pytest.mark.parametrize("one", cases("flatten", "derived_flatten"), ids=lambda one: str(one["name"]))
def test_leaves(one: JsonObject) -> None:
    """Every shared case comes out leaf by leaf."""
    metadata, index = one["metadata"], one["index"]
    assert isinstance(metadata, dict)
    assert isinstance(index, list)
    assert sorted(map(str, (sorted(shown(leaf).items()) for leaf in flatten(metadata)))) == sorted(
        str(sorted(leaf.items())) for leaf in index if isinstance(leaf, dict)
    )


def test_kinds_of_leaves() -> None:
    """Numbers, texts, moments and lists are told apart; a list has a leaf per element."""
    leaves = flatten({"a": {"b": 1.0}, "day": "2021-01", "at": "2021-01-01T00:00:00+01:00", "tags": ["x", [True]]})
    assert [shown(leaf) for leaf in leaves] == [
        {"flat_key": "a.b", "is_array_element": False, "integer_value": 1},
        {"flat_key": "day", "is_array_element": False, "timestamp_value": "2021-01-01T00:00:00Z"},
        {"flat_key": "at", "is_array_element": False, "timestamp_value": "2020-12-31T23:00:00Z"},
        {"flat_key": "tags", "is_array_element": True, "string_value": "x"},
        {"flat_key": "tags", "is_array_element": True, "boolean_value": True},
    ]


def nested(depth: int) -> Json:
    return {"k": nested(depth - 1)} if depth else "leaf"


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"k" * 51: 1}, "key exceeds maximum length of 50"),
        ({"a": list(range(101))}, "array exceeds maximum length of 101/100"),
        ({"a": [list(range(101))]}, "array exceeds maximum length of 101/100"),
        ({"a": "x" * 5001}, "value exceeds maximum length of 5000"),
        ({"a": ["x" * 5001]}, "value exceeds maximum length of 5000"),
        ({"a": nested(10)}, "maximum nesting depth of 10"),
        ({"a": [nested(12)]}, "maximum nesting depth of 10"),
        ({f"k{number}": number for number in range(1001)}, "exceeds run metadata key count limit"),
        ({"a.b": 1}, "can not contain"),
        ({"a": {"$b": 1}}, "can not contain"),
        ({"a": 10**400}, "too large"),
    ],
)
def test_limits(metadata: JsonObject, told: str) -> None:
    """What is beyond a limit is refused, naming the limit."""
    with pytest.raises(InvalidInput, match=told.replace("$", r"\$")):
        flatten(metadata)


def test_what_is_just_inside_the_limits() -> None:
    """Ten levels, a thousand keys, a hundred elements are taken."""
    assert len(flatten({"a": nested(9)})) == 1
    assert len(flatten({f"k{number}": number for number in range(1000)})) == 1000
    assert len(flatten({"a": list(range(100))})) == 100
