"""What a configuration value may be: one object per kind of value, which checks, merges, defaults and builds it.

Every shape works on plain JSON values and knows six things about them:

- ``check``: is this legal as far as it goes? Gives the value in its present spelling; problems go to the report.
- ``merge``: two layers of the same setting, the higher one winning as the rules of this shape say.
- ``fill``: defaults where nothing was set. Filling twice is filling once.
- ``finish``: is it complete, after all layers and defaults?
- ``build``: the frozen value that our code reads.
- ``json_schema``: what editors are told of it. It takes all that ``check`` takes, and rules are left to the master.

Null means "not set" everywhere but inside hyperparameters and free documents. Checks never stop at a first problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum

from tenax.config.problems import Path, ProblemReport
from tenax.config.text import kind
from tenax.display.terminal import is_name, visible_line
from tenax.jsonvalue import Json, JsonObject

#: ``(higher list, lower list) -> merged list``.
ListMerge = Callable[[list[Json], list[Json]], list[Json]]
#: Says more about a legal value, with the whole value at hand.
ShapeRule = Callable[[Json, Path, ProblemReport], None]
#: An older spelling to the present one; what it does not know it gives back untouched.
Respell = Callable[[Json, Path, ProblemReport], Json]


class Shape:
    """A value about which nothing is known: any JSON. The other shapes override what differs."""

    #: Whether null is a value here, and not the absence of one.
    keeps_null = False

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        """The value as it is spelled today; None where it is not legal (a problem was reported then)."""
        return value

    def merge(self, high: Json, low: Json) -> Json:
        """Both are checked and not null."""
        return high

    def fill(self, value: Json) -> Json:
        """``value`` with defaults where nothing is set; ``value`` may be None."""
        return value

    def finish(self, value: Json, at: Path, report: ProblemReport) -> None:
        """Report what is missing or contradictory in a checked, filled value that is not null."""

    def build(self, value: Json) -> object:
        """What our code reads, from a checked, filled, finished value; null gives None."""
        return frozen(value)

    def json_schema(self) -> JsonObject:
        """JSON Schema, draft 2020-12; made anew, so that the caller may add to it."""
        return {}


class Free(Shape):
    """Any JSON document; maps unite recursively."""

    def merge(self, high: Json, low: Json) -> Json:
        if isinstance(high, dict) and isinstance(low, dict):
            united = dict(low)
            for key, value in high.items():
                below = low.get(key)
                united[key] = value if value is None or below is None else self.merge(value, below)
            return united
        return high


class FreeMap(Free):
    """Any map."""

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        return _expect(isinstance(value, dict), value, "a map", at, report)

    def json_schema(self) -> JsonObject:
        return {"type": "object"}


class Flag(Shape):
    """true or false."""

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        return _expect(isinstance(value, bool), value, "true or false", at, report)

    def json_schema(self) -> JsonObject:
        return {"type": "boolean"}


class Number(Shape):
    """A finite number in a range; the bounds are included but for ``above``."""

    def __init__(
        self, *, minimum: float | None = None, above: float | None = None, maximum: float | None = None
    ) -> None:
        self._minimum = minimum
        self._above = above
        self._maximum = maximum

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return _expect(False, value, "a number", at, report)
        if not _is_finite(value):
            report.add(at, f"{value} cannot be stored: use a finite number")
            return None
        if self._maximum is not None and value > self._maximum:
            report.add(at, f"{value} is too large: at most {self._maximum:g}")
            return None
        if self._minimum is not None and value < self._minimum:
            report.add(at, f"{value} is too small: at least {self._minimum:g}")
            return None
        if self._above is not None and value <= self._above:
            report.add(at, f"{value} is too small: more than {self._above:g}")
            return None
        return value

    def build(self, value: Json) -> object:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def json_schema(self) -> JsonObject:
        bounds = {"minimum": self._minimum, "exclusiveMinimum": self._above, "maximum": self._maximum}
        return {"type": "number", **without_nulls(bounds)}


#: Whole numbers have 32 bits unless it says otherwise: what is stored and sent has room for that.
INT32 = (1 << 31) - 1
INT64 = (1 << 63) - 1


class IntShape(Shape):
    """A whole number in a range, bounds included. ``3.0`` is 3, as JSON means it."""

    def __init__(self, *, minimum: int = -INT32 - 1, maximum: int = INT32) -> None:
        self._minimum = minimum
        self._maximum = maximum

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if isinstance(value, float) and value.is_integer():  # novm: a method of floats from the start
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return _expect(False, value, "a whole number", at, report)
        if value < self._minimum:
            report.add(at, f"{value} is too small: at least {self._minimum}")
            return None
        if value > self._maximum:
            report.add(at, f"{value} is too large: at most {self._maximum}")
            return None
        return value

    def json_schema(self) -> JsonObject:
        return {"type": "integer", "minimum": self._minimum, "maximum": self._maximum}


class TextShape(Shape):
    """A string; never empty when ``filled`` is asked for, and one line that can be shown when it is a ``name``."""

    def __init__(self, *, filled: bool = False, name: bool = False, rule: ShapeRule | None = None) -> None:
        self._filled = filled
        self._name = name
        self._rule = rule

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if not isinstance(value, str):
            return _expect(False, value, "a string", at, report)
        if "\0" in value:
            report.add(at, "holds a NUL character, which nothing can carry: remove it")
            return None
        if self._filled and not value:
            report.add(at, "must not be empty")
            return None
        if self._name and not is_name(value):
            report.add(at, f"{visible_line(value[:80])!r} is no name: write one line without control characters")
            return None
        if self._rule is not None:
            self._rule(value, at, report)
        return value

    def json_schema(self) -> JsonObject:
        return {"type": "string", **({"minLength": 1} if self._filled else {})}


class OneOf(Shape):
    """One of the values of an enum, built as its member."""

    def __init__(self, choices: type[Enum]) -> None:
        self._choices = choices

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        legal = [str(choice.value) for choice in self._choices]
        if not isinstance(value, str):
            return _expect(False, value, f"one of {', '.join(legal)}", at, report)
        if value not in legal:
            report.unknown_choice(at, value, legal)
            return None
        return value

    def build(self, value: Json) -> object:
        return None if value is None else self._choices(value)

    def json_schema(self) -> JsonObject:
        return {"enum": [str(choice.value) for choice in self._choices]}


class ListOf(Shape):
    """A list of one kind of thing, built as a tuple. ``merge`` says how two layers unite; a higher list replaces."""

    def __init__(self, item: Shape, *, merge: ListMerge | None = None, rule: ShapeRule | None = None) -> None:
        self._item = item
        self._merge = merge
        self._rule = rule

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if not isinstance(value, list):
            return _expect(False, value, "a list", at, report)
        before = report.count
        checked = [self._item.check(item, (*at, index), report) for index, item in enumerate(value)]
        if report.count > before:
            return None
        if self._rule is not None:
            self._rule(checked, at, report)
        return checked

    def merge(self, high: Json, low: Json) -> Json:
        if self._merge is None or not isinstance(high, list) or not isinstance(low, list):
            return high
        return self._merge(high, low)

    def fill(self, value: Json) -> Json:
        return [self._item.fill(item) for item in value] if isinstance(value, list) else value

    def finish(self, value: Json, at: Path, report: ProblemReport) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                self._item.finish(item, (*at, index), report)

    def build(self, value: Json) -> object:
        return tuple(self._item.build(item) for item in value) if isinstance(value, list) else None

    def json_schema(self) -> JsonObject:
        return {"type": "array", "items": self._item.json_schema()}


class MapOf(Shape):
    """Names chosen by the user, each with one kind of value; layers unite name by name."""

    def __init__(self, item: Shape) -> None:
        self._item = item

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if not isinstance(value, dict):
            return _expect(False, value, "a map", at, report)
        present = {key: item for key, item in value.items() if item is not None}
        return {key: self._item.check(item, (*at, key), report) for key, item in present.items()}

    def merge(self, high: Json, low: Json) -> Json:
        if not isinstance(high, dict) or not isinstance(low, dict):
            return high
        both = {key: self._item.merge(high[key], low[key]) for key in high.keys() & low.keys()}
        return {**low, **high, **both}

    def build(self, value: Json) -> object:
        return {key: self._item.build(item) for key, item in value.items()} if isinstance(value, dict) else {}

    def json_schema(self) -> JsonObject:
        return {"type": "object", "additionalProperties": or_null(self._item.json_schema())}


class AnyOf(Shape):
    """The first of several shapes whose JSON type fits."""

    def __init__(self, **choices: Shape) -> None:
        #: By JSON type: string, list, map, number.
        self._choices = choices

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        shape = self._choices.get(_json_type(value))
        if shape is None:
            return _expect(False, value, " or ".join(f"a {name}" for name in self._choices), at, report)
        return shape.check(value, at, report)

    def build(self, value: Json) -> object:
        shape = self._choices.get(_json_type(value))
        return None if shape is None else shape.build(value)

    def json_schema(self) -> JsonObject:
        return {"anyOf": [shape.json_schema() for shape in self._choices.values()]}


class Respelled(Shape):
    """A shape that also accepts older or shorter spellings: they are rewritten before the check."""

    def __init__(self, shape: Shape, respell: Respell, *, older: JsonObject | None = None) -> None:
        """``older``: the other spellings as JSON Schema; without it all that is of another type."""
        self._shape = shape
        self._respell = respell
        self._older = older

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        before = report.count
        spelled = self._respell(value, at, report)
        return None if report.count > before else self._shape.check(spelled, at, report)

    def merge(self, high: Json, low: Json) -> Json:
        return self._shape.merge(high, low)

    def fill(self, value: Json) -> Json:
        return self._shape.fill(value)

    def finish(self, value: Json, at: Path, report: ProblemReport) -> None:
        self._shape.finish(value, at, report)

    def build(self, value: Json) -> object:
        return self._shape.build(value)

    def json_schema(self) -> JsonObject:
        schema = self._shape.json_schema()
        return {"anyOf": [schema, self._older or {"not": {"type": schema.get("type", "string")}}]}


def low_then_high(high: list[Json], low: list[Json]) -> list[Json]:
    """One after the other, so that what reads them in order lets the higher layer win."""
    return [*low, *high]


def high_then_low(high: list[Json], low: list[Json]) -> list[Json]:
    """One after the other, the higher layer first."""
    return [*high, *low]


def united_by(identity: Callable[[Json], object]) -> ListMerge:
    """The higher list, then whatever of the lower one it does not name."""

    def merge(high: list[Json], low: list[Json]) -> list[Json]:
        named = {identity(item) for item in high}
        return [*high, *(item for item in low if identity(item) not in named)]

    return merge


def overridden_by(identity: Callable[[Json], object]) -> ListMerge:
    """The lower list with what the higher one names replaced in place, then what is new."""

    def merge(high: list[Json], low: list[Json]) -> list[Json]:
        latest = {identity(item): item for item in [*low, *high]}
        return list(latest.values())

    return merge


def key(name: str) -> Callable[[Json], object]:
    """The identity of a map in a list: its value under ``name``."""
    return lambda item: item.get(name) if isinstance(item, dict) else item


def frozen(value: Json) -> object:
    """A JSON value as our code carries it: lists as tuples, maps as they are (never changed)."""
    if isinstance(value, list):
        return tuple(frozen(item) for item in value)
    return value


def or_null(schema: JsonObject) -> JsonObject:
    """Null is taken as "not set" in its place."""
    if isinstance(schema.get("type"), str) and "anyOf" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema or not schema:
        choices = schema.get("enum")
        return {**schema, "enum": [*choices, None]} if isinstance(choices, list) else schema
    return {"anyOf": [schema, {"type": "null"}]}


def without_nulls(value: Mapping[str, Json]) -> dict[str, Json]:
    """The entries that are set."""
    return {key: item for key, item in value.items() if item is not None}


def _is_finite(value: int | float) -> bool:
    """An integer beyond all floats is as good as infinite."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _json_type(value: Json) -> str:
    if isinstance(value, bool) or value is None:
        return "flag"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "list" if isinstance(value, list) else "map"


def _expect(fits: bool, value: Json, expected: str, at: Path, report: ProblemReport) -> Json:
    if fits:
        return value
    report.add(at, f"{expected} is expected, and this is {kind(value)}")
    return None
