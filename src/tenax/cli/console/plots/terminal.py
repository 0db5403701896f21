"""A panel in a terminal: dots of braille, eight to a character, as wide and as high as there is room.

Rules:
- It reads without colour: where there are several curves, each has a letter that stands on it and in the legend. The
  first curve lies on top.
- The colours are middle ones of the 256: they show on a light ground and on a dark one.
- Where the terminal has no braille, the dots are ``*``, one to a character.
"""

from __future__ import annotations

import string
import textwrap
from typing import Dict, List, Optional, Sequence, Tuple

import click

from tenax.cli.console import layout
from tenax.cli.console.plots.axes import PlotAxis, axis
from tenax.cli.console.plots.curves import XY, Curve, Panel, thinned
from tenax.display.terminal import visible_line

COLORS = (33, 208, 35, 170, 203, 37, 136, 99)
#: Of the dots of one character, by column and row.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
#: A letter stands on a curve this often.
_LETTERS_EVERY = 24
#: A label of the x axis has this much room.
_LABEL_ROOM = 12
LEAST_WIDTH = 24

#: A character and its colour.
_Cell = Tuple[str, Optional[int]]


def draw(panel: Panel, width: int, height: int, *, color: bool = True, braille: bool = True) -> List[str]:
    """The lines of a picture of so many columns; ``height``: of the curves alone. Empty where there is no value."""
    points = panel.points()
    if not points:
        return [*_broken(_title(panel), width), *_notes(panel)]
    steps = [step for curve in panel.curves for step in curve.steps]
    y_axis = axis([value for _, value in points], max(2, height // 3), log=panel.log)
    left = max(layout.width(text) for text in y_axis.labels()) + 2
    room = max(LEAST_WIDTH, width) - left
    x_axis = axis(steps, max(1, room // _LABEL_ROOM), whole=True)
    canvas = _Canvas(room, height, braille)
    for number in reversed(range(len(panel.curves))):
        canvas.curve(panel.curves[number].runs(panel.log), x_axis, y_axis, number)
    if len(panel.curves) > 1:
        for number in range(len(panel.curves)):
            canvas.letters(number, len(panel.curves))
    lines = _with_values(canvas, y_axis, left, color)
    lines += _foot(panel, x_axis, left, room, braille)
    return [*_broken(_title(panel), width), *lines, *_legend(panel, width, color), *_notes(panel)]


class _Canvas:
    """Cells of a picture. Owned by one `draw`."""

    def __init__(self, width: int, height: int, braille: bool) -> None:
        self._width, self._height, self._braille = width, height, braille
        self._across, self._down = (2, 4) if braille else (1, 1)
        self._dots: Dict[Tuple[int, int], int] = {}
        self._owners: Dict[Tuple[int, int], int] = {}
        self._over: Dict[Tuple[int, int], str] = {}
        #: By curve, the rows that it takes in each column.
        self._taken: Dict[int, Dict[int, List[int]]] = {}

    def curve(self, runs: Sequence[Sequence[XY]], x_axis: PlotAxis, y_axis: PlotAxis, owner: int) -> None:
        """Draw a curve over what is there."""
        right, bottom = self._width * self._across - 1, self._height * self._down - 1
        for run in runs:
            places = thinned((x_axis.place(x) * right, (1 - y_axis.place(y)) * bottom) for x, y in run)
            dots = [(round(x), round(y)) for x, y in places]
            self._dot(*dots[0], owner)
            for start, end in zip(dots, dots[1:]):
                self._line(start, end, owner)
            if len(set(dots)) == 1:
                # A single dot is not seen.
                self._over[self._cell(*dots[0])] = "●" if self._braille else "o"

    def letters(self, owner: int, of: int) -> None:
        """Write the letter of a curve on it, each in columns of its own."""
        taken = self._taken.get(owner, {})
        every = min(_LETTERS_EVERY, max(of, self._width))
        share = every / of
        wished = [start + share * (owner + 0.5) for start in range(0, self._width, every)]
        if not taken:
            return
        near = {min(taken, key=lambda column: abs(column - place)): place for place in wished}
        chosen = [column for column, place in near.items() if abs(column - place) <= share / 2]
        for column in chosen or [max(taken)]:
            rows = taken[column]
            self._over[column, rows[len(rows) // 2]] = _letter(owner)
            self._owners[column, rows[len(rows) // 2]] = owner

    def row(self, number: int) -> List[_Cell]:
        """The cells of a row, the top one being 0."""
        cells: List[_Cell] = []
        for column in range(self._width):
            place = (column, number)
            dots = self._dots.get(place, 0)
            text = chr(0x2800 + dots) if self._braille and dots else "*" if dots else " "
            cells.append((self._over.get(place, text), self._owners.get(place)))
        return cells

    def _cell(self, x: int, y: int) -> Tuple[int, int]:
        return x // self._across, y // self._down

    def _dot(self, x: int, y: int, owner: int) -> None:
        cell = self._cell(x, y)
        self._dots[cell] = self._dots.get(cell, 0) | (_DOTS[x % 2][y % 4] if self._braille else 1)
        self._owners[cell] = owner
        rows = self._taken.setdefault(owner, {}).setdefault(cell[0], [])
        if cell[1] not in rows:
            rows.append(cell[1])

    def _line(self, start: Tuple[int, int], end: Tuple[int, int], owner: int) -> None:
        across, down = end[0] - start[0], end[1] - start[1]
        length = max(abs(across), abs(down), 1)
        for at in range(1, length + 1):
            self._dot(start[0] + round(across * at / length), start[1] + round(down * at / length), owner)


def _with_values(canvas: _Canvas, y_axis: PlotAxis, left: int, color: bool) -> List[str]:
    height = canvas._height
    texts: Dict[int, str] = {}
    for tick, label in zip(y_axis.ticks, y_axis.labels()):
        texts.setdefault(round((1 - y_axis.place(tick)) * (height - 1)), label)
    lines = []
    for number in range(height):
        text = texts.get(number, "")
        head = f"{text:>{left - 2}} " + ("┤" if text else "│")
        lines.append((_head(head, canvas._braille) + _styled(canvas.row(number), color)).rstrip())
    return lines


def _head(text: str, lines: bool) -> str:
    return text if lines else text.replace("┤", "+").replace("│", "|")


def _styled(cells: Sequence[_Cell], color: bool) -> str:
    """The text of a row; neighbours of one colour share what switches it on."""
    parts: List[str] = []
    start = 0
    for at in range(1, len(cells) + 1):
        if at == len(cells) or cells[at][1] != cells[start][1]:
            text = "".join(character for character, _ in cells[start:at])
            owner = cells[start][1]
            parts.append(text if owner is None or not color else click.style(text, fg=COLORS[owner % len(COLORS)]))
            start = at
    return "".join(parts)


def _foot(panel: Panel, x_axis: PlotAxis, left: int, room: int, lines: bool) -> List[str]:
    """The axis of steps, with a mark where a value has no place, and what stands below it."""
    line, texts = ["─" if lines else "-"] * room, [" "] * room
    end = 0
    for tick, text in zip(x_axis.ticks, x_axis.labels()):
        at = round(x_axis.place(tick) * (room - 1))
        start = min(max(0, at - len(text) // 2), room - len(text))
        if start >= end:
            line[at] = "┬" if lines else "+"
            texts[start : start + len(text)] = text
            end = start + len(text) + 2
    for curve in panel.curves:
        for step in curve.gaps(panel.log):
            line[round(x_axis.place(step) * (room - 1))] = "×" if lines else "x"
    corner = " " * (left - 1) + ("└" if lines else "+")
    return [corner + "".join(line), (" " * left + "".join(texts)).rstrip()]


def _legend(panel: Panel, width: int, color: bool) -> List[str]:
    """Letters, names and last values, several in a line."""
    if len(panel.curves) < 2:
        return []
    lines: List[str] = []
    used = 0
    for number, curve in enumerate(panel.curves):
        text = f"{_letter(number)} {visible_line(curve.name)}{_last(panel, curve)}"
        pieces = _broken(text, width)
        shown = [click.style(piece, fg=COLORS[number % len(COLORS)]) if color else piece for piece in pieces]
        if lines and used + layout.width(text) + 3 <= width:
            lines[-1] += "   " + shown[0]
            used += layout.width(text) + 3
        else:
            lines += shown
            used = layout.width(pieces[-1])
    return lines


def _broken(text: str, width: int) -> List[str]:
    """A text between its words, where it is too long for a line."""
    if layout.width(text) <= width:
        return [text]
    return textwrap.wrap(text, max(LEAST_WIDTH, width), subsequent_indent="  ") or [""]


def _title(panel: Panel) -> str:
    only = panel.curves[0] if len(panel.curves) == 1 else None
    name = f"  {only.name}{_last(panel, only)}" if only is not None else ""
    return visible_line(f"{panel.title} by {panel.by}{', log scale' if panel.log else ''}{name}")


def _last(panel: Panel, curve: Curve) -> str:
    from tenax.cli.console.output import number

    last = curve.last() if panel.with_last else None
    return f": last {number(last)}" if last is not None else ""


def _notes(panel: Panel) -> List[str]:
    return panel.notes() if any(curve.values for curve in panel.curves) else ["No values yet."]


def _letter(number: int) -> str:
    return string.ascii_letters[number % len(string.ascii_letters)]
