"""YAML and JSON text as values, with the line of each value.

Scalars follow YAML 1.2, as Determined's own parsers do: ``1e-3`` is a number, ``yes`` and ``2024-01-01`` are strings.
What JSON cannot carry is refused (NaN, infinities), and so are a key given twice, and documents whose aliases blow up.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field

import yaml

from tenax.config.problems import ConfigError, Path, Problem, ProblemReport
from tenax.config.yaml_nodes import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_NODES,
    Mapping,
    Node,
    Scalar,
    Sequence,
    TooMuch,
    compose,
)
from tenax.jsonvalue import Json, JsonObject

#: Characters of a complete configuration as JSON.
MAX_COMPLETE = 512 * 1024
#: What is stored and sent has room for 64 bits, with a sign or without.
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 64) - 1
#: Of a decimal number: those of 64 bits, many zeros before them.
MAX_DIGITS = 1000
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A document and where its parts stand."""

    value: Json
    lines: dict[Path, int] = field(default_factory=dict)


def read(source: str) -> SourceText:
    """The value of YAML or JSON text. Raises `ConfigError` naming the line where it breaks."""
    try:
        return _read(source)
    except TooMuch as error:
        raise ConfigError([Problem("", error.line, error.message)]) from None
    except yaml.YAMLError as error:
        as_json = _from_json(source)
        if as_json is not None:
            return as_json
        if isinstance(error, yaml.MarkedYAMLError):
            raise ConfigError([_broken(error)]) from None
        raise ConfigError([Problem("", None, f"this is not YAML: {error}")]) from None


def _read(source: str) -> SourceText:
    node = compose(source)
    if node is None:
        return SourceText({})
    reader = _Reader()
    value = reader.value(node, ())
    reader.report.raise_if_any()
    return SourceText(value, reader.lines)


def _from_json(source: str) -> SourceText | None:
    """JSON that is no YAML (indented by tabs), without lines."""
    try:
        plain = json.dumps(json.loads(source), ensure_ascii=False)
        return SourceText(_read(plain).value)
    except (ValueError, RecursionError, TooMuch, yaml.YAMLError):
        return None


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


def check_size(document: JsonObject, report: ProblemReport) -> None:
    """A complete configuration, with what aliases and layers below have put into it: lists show it again."""
    size = len(json.dumps(document))
    if size > MAX_COMPLETE:
        report.add(
            (),
            f"the complete configuration has {size} characters as JSON, and at most {MAX_COMPLETE} are taken: put "
            "what is long into a file of the code directory",
        )


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


class _Reader:
    """Turns nodes into values and keeps lines and problems."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.report = ProblemReport(self.lines)
        self._open: set[int] = set()
        self._count = 0
        self._characters = 0

    def value(self, node: Node, path: Path) -> Json:
        self.lines.setdefault(path, node.line)
        self._count += 1
        if self._count > MAX_NODES:
            raise TooMuch(f"more than {MAX_NODES} values (aliases count each time)", node.line)
        if isinstance(node, Scalar):
            self._take(node)
            return self._scalar(node, path)
        if id(node) in self._open or len(self._open) > MAX_DEPTH:
            self.report.add(path, f"nested deeper than {MAX_DEPTH} levels, or an alias inside itself")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, Mapping):
                return self._map(node, path)
            return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]
        finally:
            self._open.discard(id(node))

    def _map(self, node: Mapping, path: Path) -> JsonObject:
        own: JsonObject = {}
        merged: list[JsonObject] = []
        for key_node, value_node in node.pairs:
            if not isinstance(key_node, Scalar):
                self.report.add(path, f"line {key_node.line}: a key must be plain text")
                continue
            if key_node.kind == "merge":
                for source in value_node.items if isinstance(value_node, Sequence) else [value_node]:
                    inner = self.value(source, path)
                    if isinstance(inner, dict):
                        merged.append(inner)
                continue
            self._take(key_node)
            key = self._text(key_node.text, path)
            if key in own:
                first = self.lines.get((*path, key))
                self.report.add((*path, key), f"given twice (lines {first} and {key_node.line}): keep one")
                continue
            self.lines[(*path, key)] = key_node.line
            own[key] = self.value(value_node, (*path, key))
        united: JsonObject = {}
        for inner in reversed(merged):
            united.update(inner)
        united.update(own)
        return united

    def _take(self, node: Scalar) -> None:
        self._characters += len(node.text)
        if self._characters > MAX_CHARACTERS:
            raise TooMuch(f"more than {MAX_CHARACTERS} characters (aliases count each time)", node.line)

    def _scalar(self, node: Scalar, path: Path) -> Json:
        match node.kind:
            case "null":
                return None
            case "bool":
                return node.text.lower() == "true"
            case "int":
                return self._integer(node.text, path)
            case "float":
                return self._float(node.text, path)
            case "str":
                return self._text(node.text, path)
        self.report.add(path, f"the tag {node.kind!r} is not understood: write plain values")
        return None

    def _integer(self, text: str, path: Path) -> Json:
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        try:
            number = int(text, 0) if text.lower().startswith(("0o", "0x")) else int(text)
        except ValueError:
            if len(text) <= MAX_DIGITS:
                self.report.add(path, f"{shown!r} is not a whole number")
                return None
            number = MAX_INTEGER + 1
        if not MIN_INTEGER <= number <= MAX_INTEGER:
            message = "does not fit: whole numbers have at most 64 bits; write it with a dot, or in quotes"
            self.report.add(path, f"{shown} {message}")
            return None
        return number

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


def _broken(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    parts = [part for part in (error.context, error.problem) if part]
    line = mark.line + 1 if mark is not None else None
    column = f", column {mark.column + 1}" if mark is not None else ""
    return Problem(
        "", line, f"this is not YAML{column}: {', '.join(parts)}; check indentation, quotes and brackets there"
    )
