"""YAML text as nodes: what stands where, before it is a value.

The nodes are built here from the parser's events, because PyYAML's own composers go as deep as the text does: one ends
in a RecursionError, the one in C in a crash. Plain scalars get their kind by the core schema of YAML 1.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol, Union

import yaml

#: Limits that no honest configuration meets; they keep a hostile one from filling memory or the stack.
MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_CHARACTERS = 4 << 20


class TooMuch(Exception):
    """The text is nested too deep or holds too much; says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text and the kind of value that it writes: ``str``, ``int``, ``float``, ``bool``, ``null``, ``merge``, tags."""

    line: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """Items in order."""

    line: int
    items: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    """Keys and values in order, repeated ones too."""

    line: int
    pairs: list[tuple[Node, Node]] = field(default_factory=list)


Node = Union[Scalar, Sequence, Mapping]


def compose(source: str) -> Node | None:
    """The one document of a text; None where it holds none. Raises `yaml.YAMLError` and `TooMuch`."""
    if yaml.__with_libyaml__:
        try:
            return _Composer(yaml.cyaml.CParser(source)).document()  # type: ignore[attr-defined]  # not in its stubs
        except yaml.YAMLError:
            pass  # libyaml is fast, the other tells better what is wrong, and reads JSON's surrogate pairs
    return _Composer(_PythonParser(source)).document()


class _Parser(Protocol):
    """What both parsers of PyYAML have."""

    def check_event(self, *choices: type[yaml.Event]) -> bool: ...

    def get_event(self) -> yaml.Event | None: ...

    def peek_event(self) -> yaml.Event | None: ...


class _PythonParser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
    def __init__(self, stream: str) -> None:
        yaml.reader.Reader.__init__(self, stream)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)


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


class _Composer:
    """One document's nodes, from one parser."""

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser
        self._resolver = _Resolver()
        self._anchors: dict[str, Node] = {}
        self._count = 0

    def document(self) -> Node | None:
        """The one document of the stream."""
        self._parser.get_event()  # the stream's start
        if self._parser.check_event(yaml.StreamEndEvent):
            return None
        self._parser.get_event()  # the document's start
        node = self._node(0)
        self._parser.get_event()  # the document's end
        if not self._parser.check_event(yaml.StreamEndEvent):
            event = self._parser.peek_event()
            mark = event.start_mark if event is not None else None
            raise yaml.MarkedYAMLError("one document is expected", None, "and another begins here", mark)  # type: ignore[arg-type]  # either parser's mark
        return node

    def _node(self, depth: int) -> Node:
        event = self._parser.get_event()
        assert event is not None
        assert event.start_mark is not None
        line = event.start_mark.line + 1
        self._count += 1
        if depth > MAX_DEPTH:
            raise TooMuch(f"nested deeper than {MAX_DEPTH} levels", line)
        if self._count > MAX_NODES:
            raise TooMuch(f"more than {MAX_NODES} values", line)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                problem = f"the alias {event.anchor!r} stands for nothing"
                raise yaml.MarkedYAMLError(None, None, problem, event.start_mark)  # type: ignore[arg-type]  # either parser's mark
            return self._anchors[event.anchor]
        if isinstance(event, yaml.ScalarEvent):
            return self._anchored(event.anchor, Scalar(line, self._kind(event), str(event.value)))
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event.anchor, Sequence(line), depth)
        assert isinstance(event, yaml.MappingStartEvent)
        return self._mapping(event.anchor, Mapping(line), depth)

    def _sequence(self, anchor: str | None, node: Sequence, depth: int) -> Node:
        self._anchored(anchor, node)
        while not self._parser.check_event(yaml.SequenceEndEvent):
            node.items.append(self._node(depth + 1))
        self._parser.get_event()
        return node

    def _mapping(self, anchor: str | None, node: Mapping, depth: int) -> Node:
        self._anchored(anchor, node)
        while not self._parser.check_event(yaml.MappingEndEvent):
            key = self._node(depth + 1)
            node.pairs.append((key, self._node(depth + 1)))
        self._parser.get_event()
        return node

    def _anchored(self, anchor: str | None, node: Node) -> Node:
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _kind(self, event: yaml.ScalarEvent) -> str:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        return str(tag).removeprefix("tag:yaml.org,2002:")
