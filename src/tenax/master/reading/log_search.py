"""Which lines match a filter, and how they are printed. Works on unpacked chunks; for a thread.

Rules:
- Text is found without regard to case; a pattern is RE2's (no backtracking: no pattern can hang the master).
- A pattern is tried on the whole chunk at once; lines are looked at one by one only where that could differ.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import re2

from tenax.errors import InvalidInput
from tenax.master.store.logs.packing import columns_of
from tenax.master.store.logs.rows import LogSpan
from tenax.master.telemetry.log_lines import LEVELS, NO_RANK, Origin, OutputLine
from tenax.master.telemetry.reports import MAX_US, MIN_US

Places: TypeAlias = npt.NDArray[np.int64]
_LINE_FEED = 10
_NO_PLACES: Places = np.empty(0, np.int64)
_ERROR = LEVELS.index("ERROR")
MAX_PATTERN = 1000
#: Anchors of the whole text, and flags that are switched off.
_WHOLE_TEXT = re.compile(r"\\[Az]|\(\?[a-zA-Z]*-")


@dataclass(frozen=True, slots=True)
class LogFilters:
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
    #: Lines that tell of an error: of that level, or what names an exception.
    errors: bool = False
    #: The task that they are of, as lines name it (`Place.name_of`); None: any in the log.
    task: str | None = None
    pattern: Pattern | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.regex and self.text:
            object.__setattr__(self, "pattern", Pattern(self.text))

    @property
    def of_text(self) -> bool:
        """Whether it takes what the lines say."""
        return bool(self.text) or self.errors

    def may_match(self, span: LogSpan) -> bool:
        """Whether it is worth unpacking; by what is known of the chunk as a whole."""
        chunk = span.chunk
        if self.levels and not any(chunk.levels >> level & 1 for level in self.levels):
            return False
        if self.after_us is not None and chunk.last_at_us < self.after_us:
            return False
        if self.before_us is not None and chunk.first_at_us > self.before_us:
            return False
        return any(self.wants(origin) for origin in chunk.origins)

    def wants(self, origin: Origin) -> bool:
        """Whether lines of that origin may match."""
        return (
            (not self.allocation_ids or origin.allocation_id in self.allocation_ids)
            and (not self.agent_ids or origin.agent_id in self.agent_ids)
            and (not self.container_ids or origin.container_id in self.container_ids)
            and (not self.sources or origin.source in self.sources)
            and (not self.stdtypes or origin.stdtype in self.stdtypes)
            and (self.task is None or origin.task_id == self.task)
        )


@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line with its number in the task and its origin."""

    number: int
    line: OutputLine
    origin: Origin


def search(
    span: LogSpan, filters: LogFilters, after: int, before: int, most: int | None = None, *, descending: bool = False
) -> list[FoundLine]:
    """At most ``most`` matching lines of a chunk with numbers after ``after`` and before ``before``, in order."""
    places, data = _matching(span, filters, after, before)
    if not places.size:
        return []
    return lines_at(span, (places[::-1] if descending else places)[:most], data)


def matching(span: LogSpan, filters: LogFilters, after: int, before: int) -> Places:
    """The places in a chunk of the matching lines with numbers after ``after`` and before ``before``, in order."""
    return _matching(span, filters, after, before)[0]


def _matching(span: LogSpan, filters: LogFilters, after: int, before: int) -> tuple[Places, bytes | None]:
    """With the lines, where they had to be unpacked."""
    if not filters.may_match(span):
        return _NO_PLACES, None
    first = span.first_line
    places = _by_columns(span, filters, np.arange(max(0, after + 1 - first), min(span.chunk.lines, before - first)))
    if not places.size or not filters.of_text:
        return places, None
    data = zlib.decompress(span.chunk.body)
    if filters.text:
        places = places[np.isin(places, _by_text(data, filters), assume_unique=True)]
    if filters.errors and places.size:
        errors = np.union1d(np.flatnonzero(columns_of(span.chunk).level >= _ERROR), ERROR_LINE.lines(data))
        places = places[np.isin(places, errors, assume_unique=True)]
    return places, data


def _by_columns(span: LogSpan, filters: LogFilters, places: Places) -> Places:
    """Those of ``places`` that match by everything but their text."""
    columns = columns_of(span.chunk)
    numbers = [number for number, origin in enumerate(span.chunk.origins) if filters.wants(origin)]
    if len(numbers) < len(span.chunk.origins):
        places = places[np.isin(columns.origin[places], numbers)]
    if filters.levels:
        places = places[np.isin(columns.level[places], list(filters.levels))]
    if filters.ranks:
        places = places[np.isin(columns.rank[places], list(filters.ranks))]
    if filters.after_us is not None:
        places = places[columns.at_us[places] >= filters.after_us]
    if filters.before_us is not None:
        places = places[columns.at_us[places] <= filters.before_us]
    return places


def _by_text(data: bytes, filters: LogFilters) -> list[int]:
    """Places of lines whose text matches."""
    if filters.pattern is not None:
        return filters.pattern.lines(data)
    needle, text = filters.text.lower(), data.decode().lower()
    if needle not in text:
        return []
    return [place for place, line in enumerate(text.split("\n")) if needle in line]


def lines_at(span: LogSpan, places: Places, data: bytes | None = None) -> list[FoundLine]:
    """The lines at these places of a chunk; ``data``: its lines, where they are unpacked already."""
    columns = columns_of(span.chunk)
    texts = (zlib.decompress(span.chunk.body) if data is None else data).decode().split("\n")
    return [
        FoundLine(
            span.first_line + place, OutputLine(at_us, texts[place], level, rank, origin), span.chunk.origins[origin]
        )
        for place, at_us, rank, level, origin in zip(
            places.tolist(),
            columns.at_us[places].tolist(),
            columns.rank[places].tolist(),
            columns.level[places].tolist(),
            columns.origin[places].tolist(),
        )
    ]


def rendered(found_line: FoundLine) -> str:
    """``[2022-03-02T02:15:18.299569Z] 0f3c2a1b [rank=0] || INFO: text``: what Determined's client prints."""
    line = found_line.line
    container = found_line.origin.container_id[:8] or " " * 8
    rank = f" [rank={line.rank}]" if line.rank != NO_RANK else ""
    level = f"{LEVELS[line.level]}: " if line.level else ""
    return f"[{timestamp(line.at_us)}] {container}{rank} || {level}{line.text}\n"


def timestamp(at_us: int) -> str:
    """RFC 3339 with microseconds, in UTC; of what no year has, as was stored once, the nearest that one has."""
    at_us = min(max(at_us, MIN_US), MAX_US)
    return f"{_second(at_us // 1_000_000)}.{at_us % 1_000_000:06d}Z"


def timestamps(at_us: npt.NDArray[np.int64]) -> list[str]:
    """`timestamp` of each."""
    moments = np.clip(at_us, MIN_US, MAX_US).astype("datetime64[us]")
    return [f"{moment}Z" for moment in np.datetime_as_string(moments, unit="us").tolist()]


@lru_cache(maxsize=1024)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, timezone.utc).replace(tzinfo=None).isoformat()


class Pattern:
    """A regular expression of RE2, for many lines at once. Raises InvalidInput."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise InvalidInput(f"a pattern has at most {MAX_PATTERN} characters, and this one has {len(text)}")
        options = re2.Options()
        options.log_errors = False
        try:
            self._line = re2.compile(text, options=options)
            # On the whole chunk ^ and $ stand at every line.
            self._chunk = re2.compile(f"(?m){text}", options=options)
        except re2.error as error:
            why = error.args[0]
            reason = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
            raise InvalidInput(f"{text!r} is not a regular expression of RE2: {reason}") from None
        # Anchors of the whole text mean a line's ends; what matches nothing at all matches everywhere.
        self._apart = bool(_WHOLE_TEXT.search(text)) or self._line.search("") is not None

    def lines(self, data: bytes) -> list[int]:
        """Places of the lines that match."""
        if not self._apart:
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LINE_FEED)
            starts = []
            for match in self._chunk.finditer(data):
                if b"\n" in data[match.start() : match.end()]:
                    break
                starts.append(match.start())
            else:
                return np.unique(np.searchsorted(ends, starts)).tolist() if starts else []
        # A match over several lines may hide others: look at each line.
        return [place for place, line in enumerate(data.split(b"\n")) if self._line.search(line) is not None]


#: How a line begins that names what a script died of: ``package.SomeError: text``, of one of several ranks, too.
ERROR_LINE = Pattern(
    r"^(?:\x1b\[[0-9;]*m)*(?:\[rank\d+\]: ?)?"
    r"(?:(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?:: |$)"
    r"|Fatal Python error|Segmentation fault\b|Killed$)"
)
