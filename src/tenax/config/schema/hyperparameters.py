"""``hyperparameters``: what to sample, as a tree of names.

A map whose ``type`` is one of the known ones is a hyperparameter; any other map is a level of nesting, and anything
else a constant. Null is a value here. In its present spelling a tree holds only explicit hyperparameters and levels, so
that ``lr: 0.1`` becomes ``lr: {type: const, val: 0.1}``. Layers unite level by level; a hyperparameter is replaced
whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from tenax.config.problems import Path, ProblemReport, nearest
from tenax.config.shapes import INT64, IntShape, ListOf, Number, Shape
from tenax.config.structs import Struct
from tenax.config.text import kind
from tenax.jsonvalue import Json, JsonObject
from tenax.search import config as search


class _Value(Shape):
    """Any JSON, null as well."""

    keeps_null = True


#: More points than any grid is meant to have: it is made as a whole.
MAX_POINTS = 1_000_000
#: Beyond these a grid is not counted: thousands of axes make a number that takes pages.
MAX_TOLD_POINTS = 10**15

_COUNT = IntShape(minimum=1, maximum=MAX_POINTS)
_INTEGER = IntShape(minimum=-INT64 - 1, maximum=INT64)
_NUMBER = Number()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Const:
    val: Annotated[object, _Value()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Int:
    minval: Annotated[int, _INTEGER]
    maxval: Annotated[int, _INTEGER]
    count: Annotated[int | None, _COUNT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Double:
    minval: Annotated[float, _NUMBER]
    maxval: Annotated[float, _NUMBER]
    count: Annotated[int | None, _COUNT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    minval: Annotated[float, _NUMBER]
    maxval: Annotated[float, _NUMBER]
    base: Annotated[float, Number(above=0)]
    count: Annotated[int | None, _COUNT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Categorical:
    vals: Annotated[tuple[object, ...], ListOf(_Value())]


def _ordered(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    low, high = value.get("minval"), value.get("maxval")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low >= high:
        report.add(at, f"minval ({low}) must be below maxval ({high})")
    elif isinstance(low, (int, float)) and isinstance(high, (int, float)) and not math.isfinite(float(high) - low):
        report.add(at, f"from minval ({low}) to maxval ({high}) is farther than a number can say: narrow the range")


def _not_empty(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, dict)
    if value.get("vals") == []:
        report.add((*at, "vals"), "there is nothing to choose from: give at least one value")


CONST = Struct(_Const, atomic=True)
INT = Struct(_Int, atomic=True, rule=_ordered)
DOUBLE = Struct(_Double, atomic=True, rule=_ordered)
LOG = Struct(_Log, atomic=True, rule=_ordered)
CATEGORICAL = Struct(_Categorical, atomic=True, rule=_not_empty)

_KINDS: dict[str, Struct[object]] = {
    "const": CONST,
    "int": INT,
    "double": DOUBLE,
    "log": LOG,
    "categorical": CATEGORICAL,
}
_RANGES = ("int", "double", "log")
_TELLTALES = frozenset({"minval", "maxval", "vals", "val", "base", "count"})
#: With these a map is a range or a choice, whatever else it says of itself.
_UNMISTAKABLE = (frozenset({"minval", "maxval"}), frozenset({"vals"}))
#: What other tools call the kinds.
_ELSEWHERE = {
    "float": "double",
    "real": "double",
    "uniform": "double",
    "loguniform": "log",
    "log_uniform": "log",
    "choice": "categorical",
    "discrete": "categorical",
}


class HyperparameterConfig(Shape):
    """One value of the tree: a hyperparameter or a level of nesting."""

    keeps_null = True

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if not isinstance(value, dict):
            _check_list(value, at, report)
            return {"type": "const", "val": value}
        name = value.get("type")
        if isinstance(name, str) and name in _KINDS:
            rest = {key: item for key, item in value.items() if key != "type"}
            checked = _KINDS[name].check(rest, at, report)
            return {"type": name, **checked} if isinstance(checked, dict) else None
        if isinstance(name, str) and _TELLTALES & set(value):
            meant = _ELSEWHERE.get(name.lower()) or nearest(name, _KINDS)
            unknown = f"type {name!r} is not a kind of hyperparameter"
            all_kinds = f"there are {', '.join(_KINDS)}"
            # As a nested map it would be trained with, and cost what a search costs.
            if meant or any(keys <= value.keys() for keys in _UNMISTAKABLE):
                report.add((*at, "type"), f"{unknown}; " + (f"did you mean {meant!r}?" if meant else all_kinds))
                return None
            report.note(at, f"{unknown} ({all_kinds}), so this is taken as a nested map")
        return {key: self.check(item, (*at, key), report) for key, item in value.items()}

    def merge(self, high: Json, low: Json) -> Json:
        if not _is_level(high) or not _is_level(low):
            return high
        assert isinstance(high, dict)
        assert isinstance(low, dict)
        both = {key: self.merge(high[key], low[key]) for key in high.keys() & low.keys()}
        return {**low, **high, **both}

    def build(self, value: Json) -> search.Hyperparameter:
        """The value that the search reads."""
        if not isinstance(value, dict):
            return search.Const(value)
        if _is_level(value):
            return search.Map({name: self.build(item) for name, item in value.items()})
        return _BUILDERS[str(value["type"])](value)

    def json_schema(self) -> JsonObject:
        """A kind, or whatever else: a level of names, or a constant."""
        return {"anyOf": [*(_kind_schema(name, struct) for name, struct in _KINDS.items()), {}]}


def _kind_schema(name: str, struct: Struct[object]) -> JsonObject:
    schema = struct.json_schema()
    properties, required = schema["properties"], schema.get("required")
    assert isinstance(properties, dict)
    return {
        **schema,
        "properties": {"type": {"const": name}, **properties},
        "required": ["type", *(required if isinstance(required, list) else [])],
    }


class HyperparametersConfig(HyperparameterConfig):
    """The outermost level: always a map of names."""

    keeps_null = False

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if not isinstance(value, dict):
            report.add(at, f"a map of names is expected, and this is {kind(value)}")
            return None
        return {name: HYPERPARAMETER.check(item, (*at, name), report) for name, item in value.items()}

    def merge(self, high: Json, low: Json) -> Json:
        assert isinstance(high, dict)
        assert isinstance(low, dict)
        both = {name: HYPERPARAMETER.merge(high[name], low[name]) for name in high.keys() & low.keys()}
        return {**low, **high, **both}

    def build(self, value: Json) -> search.Map:
        """The space that the search samples from."""
        assert isinstance(value, dict)
        return search.Map({name: HYPERPARAMETER.build(item) for name, item in value.items()})

    def json_schema(self) -> JsonObject:
        return {"type": "object", "additionalProperties": HYPERPARAMETER.json_schema()}


HYPERPARAMETER = HyperparameterConfig()
HYPERPARAMETERS = HyperparametersConfig()


def check_grid(value: Json, at: Path, report: ProblemReport) -> None:
    """Report each range that has no ``count``: a grid needs to know how many points to take."""
    for path, _hyperparameter in _ranges_without_count(value, at):
        report.add(path, "a grid search needs to know how many points to take here: set count")


def grid_points(value: Json) -> int:
    """How many points the grid over a checked tree has; `MAX_TOLD_POINTS`: so many, or more."""
    if not isinstance(value, dict):
        return 1
    if _is_level(value):
        points = 1
        for item in value.values():
            points *= grid_points(item)
            if points > MAX_TOLD_POINTS:
                return MAX_TOLD_POINTS
        return points
    if isinstance(value.get("vals"), list):
        return len(value["vals"])  # type: ignore[arg-type]  # just seen to be a list
    points = _count(value) or 1
    if value["type"] == "int":
        points = min(points, _int(value["maxval"]) - _int(value["minval"]) + 1)
    return points


def _ranges_without_count(value: Json, at: Path) -> Iterator[tuple[Path, JsonObject]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _ranges_without_count(item, (*at, index))
    elif isinstance(value, dict) and value.get("type") in _RANGES:
        if value.get("count") is None:
            yield at, value
    elif isinstance(value, dict) and value.get("type") == "const":
        if isinstance(value.get("val"), list):
            yield from _ranges_without_count(value["val"], at)
    elif isinstance(value, dict) and value.get("type") != "categorical":
        for name, item in value.items():
            yield from _ranges_without_count(item, (*at, name))


def _check_list(value: Json, at: Path, report: ProblemReport) -> None:
    """A list is one constant, also where its items look like hyperparameters; those must be legal all the same."""
    if not isinstance(value, list):
        return
    for index, item in enumerate(value):
        if isinstance(item, dict) and item.get("type") in _KINDS:
            HYPERPARAMETER.check(item, (*at, index), report)
            if item["type"] != "const":
                report.note((*at, index), "stands in a list, and a list is passed on as it is: nothing is sampled here")


def _is_level(value: Json) -> bool:
    return isinstance(value, dict) and not (isinstance(value.get("type"), str) and value["type"] in _KINDS)


def _float(value: Json) -> float:
    assert isinstance(value, (int, float))
    return float(value)


def _int(value: Json) -> int:
    assert isinstance(value, int)
    return value


def _count(value: JsonObject) -> int | None:
    count = value.get("count")
    return None if count is None else _int(count)


def _categorical(value: JsonObject) -> search.Categorical:
    vals = value["vals"]
    assert isinstance(vals, list)
    return search.Categorical(tuple(vals))


_BUILDERS: dict[str, Callable[[JsonObject], search.Hyperparameter]] = {
    "const": lambda value: search.Const(value.get("val")),
    "int": lambda value: search.Int(_int(value["minval"]), _int(value["maxval"]), _count(value)),
    "double": lambda value: search.Double(_float(value["minval"]), _float(value["maxval"]), _count(value)),
    "log": lambda value: search.Log(
        _float(value["minval"]), _float(value["maxval"]), _float(value["base"]), _count(value)
    ),
    "categorical": _categorical,
}
