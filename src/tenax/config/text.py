"""YAML and JSON text as values, with the line of each value.

Scalars follow YAML 1.2, as Determined's own parsers do: ``1e-3`` is a number, ``yes`` and ``2024-01-01`` are strings.
What JSON cannot carry is refused (NaN, infinities), and so are a key given twice, and documents whose aliases blow up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from tenax.config.problems import ConfigError, Path, Problem, Report
from tenax.jsonvalue import Json, JsonObject

#: Limits that no honest configuration meets; they keep a hostile one from filling memory or the stack.
MAX_DEPTH = 64
MAX_VALUES = 200_000
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Text:
    """A document and where its parts stand."""

    value: Json
    lines: dict[Path, int] = field(default_factory=dict)


def read(source: str) -> Text:
    """The value of YAML or JSON text. Raises `ConfigError` naming the line where it breaks."""
    try:
        node = _Loader(source).get_single_node()
    except RecursionError:
        raise ConfigError([Problem("", None, f"nested deeper than {MAX_DEPTH} levels")]) from None
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_broken(error)]) from None
    except yaml.YAMLError as error:
        raise ConfigError([Problem("", None, f"this is not YAML: {error}")]) from None
    if node is None:
        return Text({})
    reader = _Reader()
    value = reader.value(node, ())
    reader.report.raise_if_any()
    return Text(value, reader.lines)


def read_object(source: str) -> tuple[JsonObject, dict[Path, int]]:
    """The same for text whose outermost value must be a map; empty text is an empty map."""
    text = read(source)
    if text.value is None:
        return {}, text.lines
    if not isinstance(text.value, dict):
        message = f"a map of keys and values is expected, and this is {kind(text.value)}"
        raise ConfigError([Problem("", text.lines.get((), 1), message)])
    return text.value, text.lines


def read_scalar(source: str) -> Json:
    """The value of a short text such as ``8080``, ``true`` or ``[a, b]``; what is no YAML is the string itself."""
    try:
        return read(source).value
    except ConfigError:
        return source


def kind(value: Json) -> str:
    """What a value is, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        shown = value if len(value) <= 40 else value[:37] + "..."
        return f"the string {shown!r}"
    return "a list" if isinstance(value, list) else "a map"


class _Resolver(yaml.resolver.BaseResolver):
    """The core schema of YAML 1.2, and merge keys (``<<``), which real configurations use."""


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    _Resolver.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


class _Loader(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer, _Resolver):
    """Composes nodes only: values are made below, where lines are known."""

    def __init__(self, stream: str) -> None:
        yaml.reader.Reader.__init__(self, stream)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        yaml.composer.Composer.__init__(self)
        _Resolver.__init__(self)


class _Reader:
    """Turns nodes into values and keeps lines and problems."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.report = Report(self.lines)
        self._open: set[int] = set()
        self._count = 0

    def value(self, node: Node, path: Path) -> Json:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._count += 1
        if self._count > MAX_VALUES:
            raise ConfigError(
                [Problem("", self.lines[path], f"more than {MAX_VALUES} values (aliases count each time)")]
            )
        if id(node) in self._open or len(path) > MAX_DEPTH:
            self.report.add(path, f"nested deeper than {MAX_DEPTH} levels, or an alias inside itself")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._map(node, path)
            if isinstance(node, SequenceNode):
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._scalar(str(node.value), node.tag, path)
        finally:
            self._open.discard(id(node))

    def _map(self, node: MappingNode, path: Path) -> JsonObject:
        own: JsonObject = {}
        merged: JsonObject = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                for source in _merge_sources(value_node):
                    inner = self.value(source, path)
                    merged = {**inner, **merged} if isinstance(inner, dict) else merged
                continue
            if not isinstance(key_node, ScalarNode):
                self.report.add(path, f"line {key_node.start_mark.line + 1}: a key must be plain text")
                continue
            key = self._text(str(key_node.value), path)
            if key in own:
                first = self.lines.get((*path, key))
                self.report.add(
                    (*path, key), f"given twice (lines {first} and {key_node.start_mark.line + 1}): keep one"
                )
                continue
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            own[key] = self.value(value_node, (*path, key))
        return {**merged, **own}

    def _scalar(self, text: str, full_tag: str, path: Path) -> Json:
        tag = full_tag.rpartition(":")[2]
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() == "true"
        if tag == "int":
            return _integer(text)
        if tag == "float":
            return self._float(text, path)
        if tag in ("str", "!"):
            return self._text(text, path)
        self.report.add(path, f"the tag {full_tag!r} is not understood: write plain values")
        return None

    def _text(self, text: str, path: Path) -> str:
        """JSON writes what lies beyond 16 bits as two escapes, which YAML reads as two halves of a character."""
        if text.isascii() or not _SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.report.add(path, "holds half of a character (a lone surrogate), which nothing can carry: remove it")
            return ""

    def _float(self, text: str, path: Path) -> Json:
        plain = text.lower().replace(".inf", "inf").replace(".nan", "nan")
        try:
            number = float(plain)
        except ValueError:
            self.report.add(path, f"{text!r} is not a number")
            return None
        if not math.isfinite(number):
            self.report.add(path, f"{text} cannot be stored: use a finite number")
            return None
        return number


def _integer(text: str) -> int:
    plain = text.replace("_", "")
    if plain.lower().startswith(("0o", "0x")):
        return int(plain, 0)
    return int(plain)


def _merge_sources(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    else:
        yield node


def _broken(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    parts = [part for part in (error.context, error.problem) if part]
    line = mark.line + 1 if mark is not None else None
    column = f", column {mark.column + 1}" if mark is not None else ""
    return Problem(
        "", line, f"this is not YAML{column}: {', '.join(parts)}; check indentation, quotes and brackets there"
    )
