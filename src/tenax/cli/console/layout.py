"""How a table gets into a terminal: values in, lines out.

The rules, in this order, each only as far as it is needed:

1. A text that may be broken goes below its row, where it has the whole width: a reason is never cut.
2. What can be spared goes, from the right; the caller tells the reader what went.
3. Names are cut, the widest first. Numbers, states and ids are never cut: half an id is none.
"""

from __future__ import annotations

import textwrap
import unicodedata
from dataclasses import dataclass, replace
from typing import List, Sequence, Tuple

import click

#: A broken text stays in its column if it has at least so much room there.
_LEAST_ROOM = 28
#: A name is not cut to less.
_LEAST_NAME = 10
_GAP = 2
_INDENT = 4


@dataclass(frozen=True)
class TableColumn:
    """A column of a table."""

    title: str
    #: Numbers stand to the right.
    right: bool = False
    #: What it holds decides its colour.
    state: bool = False
    #: Its text may be broken into lines.
    wraps: bool = False
    #: A narrow terminal may do without it.
    spare: bool = False
    #: Its text may be cut.
    cuts: bool = False


@dataclass(frozen=True)
class FittedTable:
    """A table that fits, as far as one can."""

    #: The indices of the columns that stand side by side.
    shown: Tuple[int, ...]
    widths: Tuple[int, ...]
    #: Of the columns whose text goes below its row.
    below: Tuple[int, ...]
    #: The titles of what was left out.
    left_out: Tuple[str, ...]


def fit(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], room: int) -> FittedTable:
    """Lay a table out for a terminal that is ``room`` characters wide."""
    natural = [
        max(width(line[i]) for line in ([column.title for column in columns], *rows)) for i in range(len(columns))
    ]
    whole = FittedTable(tuple(range(len(columns))), tuple(natural), (), ())
    if _total(whole) <= room:
        return whole
    last = len(columns) - 1
    rest = room - _total(replace(whole, widths=tuple(natural[:-1]))) - _GAP
    if columns[last].wraps and rest >= _LEAST_ROOM and not any(column.wraps for column in columns[:-1]):
        return replace(whole, widths=(*natural[:-1], rest))
    below = tuple(i for i, column in enumerate(columns) if column.wraps and i)
    shown = [i for i in whole.shown if i not in below]
    left_out: List[str] = []
    while _total(_beside(shown, natural)) > room and any(columns[i].spare for i in shown):
        gone = max(i for i in shown if columns[i].spare)
        shown.remove(gone)
        if any(row[gone] for row in rows):
            left_out.insert(0, columns[gone].title)
    return replace(_beside(shown, _cut(columns, shown, natural, room)), below=below, left_out=tuple(left_out))


def below(row: Sequence[str], fitted: FittedTable, room: int) -> List[str]:
    """The lines under a row."""
    margin = " " * _INDENT
    return [
        line
        for index in fitted.below
        if row[index]
        for line in textwrap.wrap(row[index], room, initial_indent=margin, subsequent_indent=margin)
    ]


def broken(text: str, room: int) -> List[str]:
    """A text in lines of at most ``room`` characters; at least one."""
    return (textwrap.wrap(text, room) if width(text) > room else [text]) or [""]


def between_words(text: str, room: int) -> List[str]:
    """As `broken`, but no word is: a path or a link stays whole for who copies it, and so does a colour."""
    if room < _LEAST_ROOM or width(click.unstyle(text)) <= room:
        return [text]
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]


def cut(text: str, room: int) -> str:
    """A text of at most ``room`` columns; what was cut off is marked."""
    if width(text) <= room:
        return text
    while width(text) > room - 1:
        text = text[:-1]
    return text + "…"


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
               for character in text)  # fmt: skip


def padded(text: str, room: int, right: bool) -> str:
    """A text with blanks before or behind it."""
    gap = " " * (room - width(text))
    return gap + text if right else text + gap


def _cut(columns: Sequence[TableColumn], shown: Sequence[int], natural: Sequence[int], room: int) -> List[int]:
    widths = list(natural)
    may = [i for i in shown if columns[i].cuts]
    while _total(_beside(shown, widths)) > room and any(widths[i] > _LEAST_NAME for i in may):
        widest = max(may, key=lambda i: widths[i])
        widths[widest] -= 1
    return widths


def _beside(shown: Sequence[int], widths: Sequence[int]) -> FittedTable:
    return FittedTable(tuple(shown), tuple(widths[i] for i in shown), (), ())


def _total(fitted: FittedTable) -> int:
    return sum(fitted.widths) + _GAP * max(0, len(fitted.widths) - 1)
