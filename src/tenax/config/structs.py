"""Maps with known keys: a frozen dataclass is the schema, spelled once.

A field's annotation carries its shape, its default is the default of the setting, and a field without a default must be
set in the end::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Retention:
        log_retention_days: Annotated[int | None, IntShape(minimum=-1, maximum=32767)] = None

    RETENTION = Struct(Retention)

`Tagged` is one of several structs, told apart by the value of one key.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Generic, TypeVar, get_type_hints

from tenax.config.comments import comments_of
from tenax.config.problems import Path, ProblemReport, nearest
from tenax.config.shapes import Shape, ShapeRule, or_null, without_nulls
from tenax.config.text import kind
from tenax.jsonvalue import Json, JsonObject

Value = TypeVar("Value", covariant=True)


class Struct(Shape, Generic[Value]):
    """A map whose keys are the fields of a dataclass; unknown keys are refused with the nearest legal one."""

    def __init__(
        self,
        cls: type[Value],
        *,
        atomic: bool = False,
        ignored: Mapping[str, Shape] | None = None,
        rule: ShapeRule | None = None,
        complete: ShapeRule | None = None,
    ) -> None:
        """``atomic``: a higher layer replaces it whole, and it must be complete where it stands.

        ``ignored`` keys are legal and without effect; ``rule`` is checked on each layer where all keys are legal,
        ``complete`` in the end, where keys may still be missing.
        """
        self._cls = cls
        self._atomic = atomic
        self._ignored = dict(ignored or {})
        self._rule = rule
        self._complete = complete
        self.shapes = _shapes_of(cls)
        self.defaults = _defaults_of(cls, self.shapes)

    @property
    def about(self) -> str:
        """What it is, in a line."""
        return (self._cls.__doc__ or "").partition("\n")[0]

    def names(self) -> list[str]:
        """All legal keys."""
        return [*self.shapes, *self._ignored]

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if not isinstance(value, dict):
            report.add(at, f"a map is expected, and this is {kind(value)}")
            return None
        before = report.count
        checked: JsonObject = {}
        for key, item in value.items():
            self._check_key(key, item, checked, at, report)
        clean = report.count == before
        if self._atomic:
            self._report_missing(value, at, report)
        if clean and self._rule is not None:
            self._rule(checked, at, report)
        return checked

    def merge(self, high: Json, low: Json) -> Json:
        if self._atomic or not isinstance(high, dict) or not isinstance(low, dict):
            return high
        return merge_fields(self.shapes, high, low)

    def fill(self, value: Json) -> Json:
        given = value if isinstance(value, dict) else {}
        filled: JsonObject = {}
        for name, shape in self.shapes.items():
            item = given.get(name)
            if item is None and not (shape.keeps_null and name in given):
                item = copy.deepcopy(self.defaults.get(name))  # who changes a document must not change the schema
            filled[name] = item if item is None else shape.fill(item)
        return filled

    def finish(self, value: Json, at: Path, report: ProblemReport) -> None:
        if not isinstance(value, dict):
            return
        self._report_missing(value, at, report)
        for name, shape in self.shapes.items():
            if value.get(name) is not None:
                shape.finish(value[name], (*at, name), report)
        if self._complete is not None:
            self._complete(value, at, report)

    def build(self, value: Json) -> Value:
        """The dataclass; an absent value gives the one that defaults make."""
        given = self.fill(value)
        assert isinstance(given, dict)
        built = {name: _built(shape, given.get(name)) for name, shape in self.shapes.items()}
        return self._cls(**built)

    def json_schema(self) -> JsonObject:
        """Nothing that a lower layer may bring is required."""
        about = comments_of(self._cls)
        properties: JsonObject = {}
        for name, shape in self.shapes.items():
            schema = shape.json_schema()
            properties[name] = {**(schema if shape.keeps_null else or_null(schema)), **self._annotations(name, about)}
        for name, shape in self._ignored.items():
            properties[name] = {**or_null(shape.json_schema()), "deprecated": True, "description": "Has no effect."}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required: list[Json] = [name for name in self.shapes if name not in self.defaults]
        return {**schema, "required": required} if self._atomic and required else schema

    def _annotations(self, name: str, about: Mapping[str, str]) -> JsonObject:
        """What is said of a key beside its shape."""
        annotations: JsonObject = {}
        if name in about:
            annotations["description"] = about[name]
        if isinstance(self.defaults.get(name), (bool, int, float, str)):
            annotations["default"] = self.defaults[name]
        return annotations

    def _check_key(self, key: str, item: Json, checked: JsonObject, at: Path, report: ProblemReport) -> None:
        shape = self.shapes.get(key)
        if shape is not None:
            if item is not None or shape.keeps_null:
                checked[key] = shape.check(item, (*at, key), report)
        elif key in self._ignored:
            if item is not None:
                self._ignored[key].check(item, (*at, key), report)
                report.note((*at, key), "is accepted for compatibility and has no effect")
        else:
            report.unknown_key(at, key, self.names())

    def _report_missing(self, value: JsonObject, at: Path, report: ProblemReport) -> None:
        for name, shape in self.shapes.items():
            missing = name not in value if shape.keeps_null else value.get(name) is None
            if missing and name not in self.defaults:
                report.missing(at, name)


class Tagged(Shape):
    """One of several structs: the value under ``tag`` names which.

    A layer may leave the tag out and set fields of any of them: the layer that names the kind decides. When two layers
    name different kinds, the higher one stays and takes from the lower one only fields that every kind has.
    """

    def __init__(
        self,
        tag: str,
        variants: Mapping[str, Struct[object]],
        *,
        gone: Mapping[str, str] | None = None,
        past: Collection[str] = (),
    ) -> None:
        self.tag = tag
        self.variants = dict(variants)
        #: Read, and not to be written any more.
        self._past = frozenset(past)
        #: Names that once were legal, and what to use instead.
        self._gone = dict(gone or {})
        shapes = [set(variant.shapes) for variant in self.variants.values()]
        self._common = set.intersection(*shapes)

    def check(self, value: Json, at: Path, report: ProblemReport) -> Json:
        if not isinstance(value, dict):
            report.add(at, f"a map is expected, and this is {kind(value)}")
            return None
        tag = value.get(self.tag)
        rest = {key: item for key, item in value.items() if key != self.tag}
        if tag is None:
            return self._check_untagged(rest, at, report)
        if not isinstance(tag, str) or tag not in self.variants:
            self._report_tag(tag, (*at, self.tag), report)
            meant = nearest(tag, self.variants) if isinstance(tag, str) and tag not in self._gone else None
            if meant is not None:
                # What is wrong besides is told along with it.
                self.variants[meant].check(rest, at, report)
            return None
        checked = self.variants[tag].check(rest, at, report)
        return {self.tag: tag, **checked} if isinstance(checked, dict) else None

    def merge(self, high: Json, low: Json) -> Json:
        if not isinstance(high, dict) or not isinstance(low, dict):
            return high
        above, below = high.get(self.tag), low.get(self.tag)
        tag = above if above is not None else below
        if above is not None and below is not None and above != below:
            low = {key: item for key, item in low.items() if key in self._common}
        elif isinstance(above, str) and below is None:
            low = {key: item for key, item in low.items() if key in self.variants[above].shapes}
        fields = merge_fields(self._shapes(tag), _less(high, self.tag), _less(low, self.tag))
        return {self.tag: tag, **fields} if tag is not None else fields

    def fill(self, value: Json) -> Json:
        if not isinstance(value, dict) or not isinstance(value.get(self.tag), str):
            return value
        filled = self.variants[str(value[self.tag])].fill(_less(value, self.tag))
        assert isinstance(filled, dict)
        return {self.tag: value[self.tag], **filled}

    def finish(self, value: Json, at: Path, report: ProblemReport) -> None:
        if not isinstance(value, dict):
            return
        tag = value.get(self.tag)
        if not isinstance(tag, str):
            report.missing(at, self.tag, f"one of {', '.join(self.variants)}")
            return
        self.variants[tag].finish(_less(value, self.tag), at, report)

    def build(self, value: Json) -> object:
        if not isinstance(value, dict):
            return None
        return self.variants[str(value[self.tag])].build(_less(value, self.tag))

    def json_schema(self) -> JsonObject:
        """One of those that can be written; a layer without the tag has the fields of any one of them."""
        written = {name: variant for name, variant in self.variants.items() if name not in self._past}
        return {"type": "object", "anyOf": [self._variant(name, variant) for name, variant in written.items()]}

    def _variant(self, name: str, variant: Struct[object]) -> JsonObject:
        schema = variant.json_schema()
        properties = schema["properties"]
        assert isinstance(properties, dict)
        return {**schema, "properties": {self.tag: {"const": name, "description": variant.about}, **properties}}

    def _check_untagged(self, value: JsonObject, at: Path, report: ProblemReport) -> Json:
        shapes = self._shapes(None)
        checked: JsonObject = {}
        for key, item in without_nulls(value).items():
            if key in shapes:
                checked[key] = shapes[key].check(item, (*at, key), report)
            else:
                report.unknown_key(at, key, [self.tag, *shapes])
        return checked

    def _report_tag(self, tag: Json, at: Path, report: ProblemReport) -> None:
        legal = ", ".join(self.variants)
        if isinstance(tag, str) and tag in self._gone:
            report.add(at, self._gone[tag])
        elif isinstance(tag, str):
            report.unknown_choice(at, tag, self.variants)
        else:
            report.add(at, f"one of {legal} is expected, and this is {kind(tag)}")

    def _shapes(self, tag: Json) -> dict[str, Shape]:
        if isinstance(tag, str):
            return self.variants[tag].shapes
        return {name: shape for variant in self.variants.values() for name, shape in variant.shapes.items()}


def merge_fields(shapes: Mapping[str, Shape], high: JsonObject, low: JsonObject) -> JsonObject:
    """Field by field; a field that only one layer sets is taken from it."""
    merged = {**low, **high}
    for name in high.keys() & low.keys():
        shape = shapes[name]
        above, below = high[name], low[name]
        if above is None and not shape.keeps_null:
            merged[name] = below
        elif below is not None or shape.keeps_null:
            merged[name] = shape.merge(above, below)
    return merged


def _shapes_of(cls: type[object]) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for name, hint in get_type_hints(cls, include_extras=True).items():
        marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Shape)]
        assert len(marks) == 1, f"{cls.__name__}.{name} needs one shape in its annotation"
        shapes[name] = marks[0]
    return shapes


def _defaults_of(cls: type[object], shapes: Mapping[str, Shape]) -> dict[str, Json]:
    """Defaults as JSON; a field that has none is not there."""
    assert dataclasses.is_dataclass(cls)
    defaults: dict[str, Json] = {}
    for field in dataclasses.fields(cls):
        value = field.default if field.default is not dataclasses.MISSING else None
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        elif field.default is dataclasses.MISSING:
            continue
        shape = shapes[field.name]
        defaults[field.name] = shape.fill({}) if dataclasses.is_dataclass(value) else _plain(value)
    return defaults


def _plain(value: object) -> Json:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    assert value is None or isinstance(value, (bool, int, float, str)), value
    return value


def _built(shape: Shape, value: Json) -> object:
    return None if value is None and not shape.keeps_null else shape.build(value)


def _less(value: JsonObject, key: str) -> JsonObject:
    return {name: item for name, item in value.items() if name != key}
