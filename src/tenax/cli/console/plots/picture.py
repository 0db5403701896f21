"""Panels as a picture that is saved: where each line, dot and word of it stands. Pixels, from the upper left corner.

SVG and PNG are two ways of writing the same `Picture`: nothing is laid out twice. Each curve has its name at its end:
the picture reads without colour, and with more curves than there are colours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Sequence, Tuple

from tenax.cli.console import layout
from tenax.cli.console.plots.axes import PlotAxis, axis
from tenax.cli.console.plots.curves import XY, Panel, thinned
from tenax.display.terminal import visible_line

WIDTH = 1000
#: Of one panel.
_HEIGHT = 460
#: Of a character of the font of PNG; that of SVG is about as wide.
FONT_WIDTH, FONT_HEIGHT = 9, 18
#: Distinct for the colour-blind, too (Okabe and Ito), without their yellow, which white paper swallows.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31")
INK, GRID = "#333333", "#e3e3e3"
_HEAD, _FOOT, _NAME = 64, 54, 22


@dataclass(frozen=True)
class Path:
    """A line through points."""

    points: Sequence[XY]
    color: str
    width: float


@dataclass(frozen=True)
class Dot:
    """A filled circle."""

    at: XY
    color: str
    radius: float = 4.0


@dataclass(frozen=True)
class Caption:
    """Text; ``anchor``: ``start``, ``middle`` or ``end``; ``at`` is on its baseline."""

    at: XY
    text: str
    color: str = INK
    anchor: str = "start"
    bold: bool = False


@dataclass
class Picture:
    """What is drawn, the lowest first; built by one `lay_out`."""

    width: int
    height: int
    title: str
    paths: List[Path] = field(default_factory=list)
    dots: List[Dot] = field(default_factory=list)
    captions: List[Caption] = field(default_factory=list)


def lay_out(title: str, panels: Sequence[Panel]) -> Picture:
    """Panels below one another."""
    picture = Picture(WIDTH, _HEAD // 2 + _HEIGHT * max(1, len(panels)), visible_line(title))
    picture.captions.append(Caption((16, 24), layout.cut(picture.title, (WIDTH - 32) // FONT_WIDTH), bold=True))
    for number, panel in enumerate(panels):
        _panel(picture, panel, _HEAD // 2 + _HEIGHT * number)
    return picture


@dataclass(frozen=True)
class _Frame:
    """Where the curves of a panel lie."""

    left: int
    right: int
    top: int
    bottom: int
    x_axis: PlotAxis
    y_axis: PlotAxis

    def place(self, point: XY) -> XY:
        across, up = self.x_axis.place(point[0]), self.y_axis.place(point[1])
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)


def _panel(picture: Picture, panel: Panel, top: int) -> None:
    frame = _frame(panel, top)
    only = panel.curves[0] if len(panel.curves) == 1 else None
    name = f"{panel.title}{', log scale' if panel.log else ''}" + (f"  {only.name}" if only is not None else "")
    picture.captions.append(Caption((frame.left, frame.top - 12), layout.cut(visible_line(name), 90)))
    _grid(picture, frame)
    ends: List[Tuple[float, str, str]] = []
    for number in reversed(range(len(panel.curves))):
        color = COLORS[number % len(COLORS)]
        runs = panel.curves[number].runs(panel.log)
        for run in runs:
            places = thinned(frame.place(point) for point in run)
            if len(places) > 1:
                picture.paths.append(Path(places, color, 2.0))
            else:
                picture.dots.append(Dot(places[0], color))
        if runs and only is None:
            ends.append(
                (frame.place(runs[-1][-1])[1], layout.cut(visible_line(panel.curves[number].name), _NAME), color)
            )
        for step in panel.curves[number].gaps(panel.log):
            _cross(picture, (frame.place((step, frame.y_axis.low))[0], frame.bottom), color)
    _names(picture, ends, frame)
    notes = panel.notes() if any(curve.values for curve in panel.curves) else ["No values yet."]
    # Beside the word for the axis.
    room = int(frame.right - frame.left) // FONT_WIDTH - len("steps") - 2
    picture.captions += [Caption((frame.left, frame.bottom + 44), layout.cut("; ".join(notes), room))] if notes else []


def _frame(panel: Panel, top: int) -> _Frame:
    points = panel.points()
    steps = [step for curve in panel.curves for step in curve.steps]
    y_axis = axis([value for _, value in points], 7, log=panel.log)
    left = 24 + FONT_WIDTH * max(len(text) for text in y_axis.labels())
    longest = max((min(_NAME, layout.width(curve.name)) for curve in panel.curves), default=0)
    right = WIDTH - (24 + FONT_WIDTH * longest if len(panel.curves) > 1 else 28)
    return _Frame(left, right, top + 36, top + _HEIGHT - _FOOT, axis(steps, 7, whole=True), y_axis)


def _grid(picture: Picture, frame: _Frame) -> None:
    for tick, text in zip(frame.y_axis.ticks, frame.y_axis.labels()):
        y = frame.place((frame.x_axis.low, tick))[1]
        picture.paths.append(Path([(frame.left, y), (frame.right, y)], GRID, 1.0))
        picture.captions.append(Caption((frame.left - 8, y + 5), text, anchor="end"))
    for tick, text in zip(frame.x_axis.ticks, frame.x_axis.labels()):
        x = frame.place((tick, frame.y_axis.low))[0]
        picture.paths.append(Path([(x, frame.bottom), (x, frame.bottom + 5)], INK, 1.0))
        picture.captions.append(Caption((x, frame.bottom + 22), text, anchor="middle"))
    corner = [(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)]
    picture.paths.append(Path(corner, INK, 1.0))
    picture.captions.append(Caption((frame.right, frame.bottom + 44), "steps", anchor="end"))


def _names(picture: Picture, ends: Sequence[Tuple[float, str, str]], frame: _Frame) -> None:
    """Beside the ends of the curves; what would lie on another is moved down, and up again at the lower edge."""
    rows: List[float] = []
    for y, _, _ in sorted(ends):
        rows.append(max(y, rows[-1] + FONT_HEIGHT) if rows else y)
    for at in reversed(range(len(rows))):
        limit = frame.bottom if at == len(rows) - 1 else rows[at + 1] - FONT_HEIGHT
        rows[at] = min(rows[at], limit)
    for row, (_, name, color) in zip(rows, sorted(ends)):
        picture.captions.append(Caption((frame.right + 10, row + 5), name, color))


def _cross(picture: Picture, at: XY, color: str) -> None:
    x, y = at
    for slope in (1, -1):
        picture.paths.append(Path([(x - 4, y - 4 * slope), (x + 4, y + 4 * slope)], color, 2.0))
