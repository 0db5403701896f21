"""Which lines a reader wants, and how they look. Works on unpacked chunks; for a thread.

Rules:
- Text is found without regard to case; a pattern is RE2's (no backtracking: no pattern can hang the master).
- A pattern is tried on the whole chunk first: only when it hits are lines looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone

import re2

from tenax.errors import InvalidInput
from tenax.master.ingest.log_lines import LEVELS, NO_RANK, Line, Origin
from tenax.master.store.log_packing import unpack
from tenax.master.store.logs import Span


@dataclass(frozen=True, slots=True)
class Filters:
    """Empty: no restriction. Times are microseconds since 1970, both ends included."""

    allocation_ids: frozenset[str] = frozenset()
    agent_ids: frozenset[str] = frozenset()
    container_ids: frozenset[str] = frozenset()
    ranks: frozenset[int] = frozenset()
    #: Numbers of `LEVELS`.
    levels: frozenset[int] = frozenset()
    sources: frozenset[str] = frozenset()
    stdtypes: frozenset[str] = frozenset()
    after_us: int | None = None
    before_us: int | None = None
    text: str = ""
    #: ``text`` is a pattern.
    regex: bool = False
    _pattern: object = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.regex and self.text:
            object.__setattr__(self, "_pattern", _compile(self.text))

    def may_match(self, span: Span) -> bool:
        """Whether it is worth unpacking; by what is known of the chunk as a whole."""
        chunk = span.chunk
        if self.levels and not any(chunk.levels >> level & 1 for level in self.levels):
            return False
        if self.after_us is not None and chunk.last_at_us < self.after_us:
            return False
        if self.before_us is not None and chunk.first_at_us > self.before_us:
            return False
        return any(self._wants(origin) for origin in chunk.origins)

    def _wants(self, origin: Origin) -> bool:
        return (
            (not self.allocation_ids or origin.allocation_id in self.allocation_ids)
            and (not self.agent_ids or origin.agent_id in self.agent_ids)
            and (not self.container_ids or origin.container_id in self.container_ids)
            and (not self.sources or origin.source in self.sources)
            and (not self.stdtypes or origin.stdtype in self.stdtypes)
        )

    def _matches(self, line: Line, wanted: list[bool]) -> bool:
        return (
            wanted[line.origin]
            and (not self.levels or line.level in self.levels)
            and (not self.ranks or line.rank in self.ranks)
            and (self.after_us is None or line.at_us >= self.after_us)
            and (self.before_us is None or line.at_us <= self.before_us)
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A line with its number in the task and who spoke."""

    number: int
    line: Line
    origin: Origin


def search(span: Span, filters: Filters, after: int, before: int) -> list[Found]:
    """The wanted lines of a chunk with numbers after ``after`` and before ``before``, in order."""
    if not filters.may_match(span):
        return []
    wanted = [filters._wants(origin) for origin in span.chunk.origins]
    lines = unpack(span.chunk)
    return [
        Found(number, line, span.chunk.origins[line.origin])
        for place, line in _hits(lines, filters)
        if after < (number := span.first_line + place) < before and filters._matches(line, wanted)
    ]


def rendered(found: Found) -> str:
    """``[2022-03-02T02:15:18.299569Z] 0f3c2a1b [rank=0] || INFO: text``: what Determined's client prints."""
    line = found.line
    container = found.origin.container_id[:8] or " " * 8
    rank = f" [rank={line.rank}]" if line.rank != NO_RANK else ""
    level = f"{LEVELS[line.level]}: " if line.level else ""
    return f"[{timestamp(line.at_us)}] {container}{rank} || {level}{line.text}\n"


def timestamp(at_us: int) -> str:
    """RFC 3339 with microseconds, in UTC."""
    moment = datetime.fromtimestamp(at_us // 1_000_000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_us % 1_000_000:06d}Z"


def _hits(lines: list[Line], filters: Filters) -> Iterator[tuple[int, Line]]:
    if not filters.text:
        return iter(enumerate(lines))
    if filters._pattern is not None:
        pattern = filters._pattern
        # Leaving most chunks after one look.
        whole = "\n".join(line.text for line in lines)
        if _is_line_pattern(filters.text) and re2.search(f"(?m:{filters.text})", whole, options=_options()) is None:
            return iter(())
        return ((n, line) for n, line in enumerate(lines) if pattern.search(line.text) is not None)  # type: ignore[attr-defined]
    needle = filters.text.lower()
    return ((n, line) for n, line in enumerate(lines) if needle in line.text.lower())


def _is_line_pattern(pattern: str) -> bool:
    """Whether a line that matches makes the whole chunk match: not with anchors of the whole text."""
    return "\\A" not in pattern and "\\z" not in pattern and "(?" not in pattern


def _options() -> object:
    options = re2.Options()
    options.log_errors = False
    return options


def _compile(pattern: str) -> object:
    try:
        return re2.compile(pattern, options=_options())
    except re2.error as error:
        why = error.args[0]
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise InvalidInput(f"{pattern!r} is not a regular expression of RE2: {text}") from None
