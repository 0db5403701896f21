"""Learning curves as they are drawn: five shapes against golden files, and what no picture may get wrong."""

from __future__ import annotations

import math
import re
import struct
import zlib
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.cli.console import layout
from tenax.cli.console.plots.axes import axis
from tenax.cli.console.plots.curves import Curve, Panel
from tenax.cli.console.plots.picture import FONT_WIDTH, lay_out
from tenax.cli.console.plots.png import png
from tenax.cli.console.plots.sparkline import sparkline
from tenax.cli.console.plots.svg import svg
from tenax.cli.console.plots.terminal import draw
from tests.cli.plots.draw_golden import GOLDEN, WIDTHS, as_png, as_svg, on_terminal
from tests.cli.plots.shapes import SHAPES

ANY = st.floats(allow_nan=True, allow_infinity=True)
STEPS = st.integers(0, 10**12)


def pixels(data: bytes) -> tuple[int, int, bytes]:
    """Width, height and rows of a PNG of ours: how well they are packed is the business of this machine's zlib."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    return width, height, zlib.decompress(chunks[b"IDAT"])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SHAPES)
def test_terminal(name: str, width: str) -> None:
    """Each shape is drawn in a terminal as it was when somebody looked at it."""
    shown = on_terminal(SHAPES[name], width)
    assert shown == (GOLDEN / f"{name}-{width}.txt").read_text()
    assert max(layout.width(line) for line in shown.splitlines()) <= int(width)


@pytest.mark.parametrize("name", SHAPES)
def test_saved(name: str) -> None:
    """Each shape is saved as it was when somebody looked at it."""
    assert as_svg(name) == (GOLDEN / f"{name}.svg").read_text()
    assert pixels(as_png(name)) == pixels((GOLDEN / f"{name}.png").read_bytes())


def test_gaps_are_counted_and_marked() -> None:
    """What has no place in the picture is said: NaN anywhere, and what is not above 0 on a logarithmic scale."""
    panel = Panel("loss", [Curve("trial 1", [0, 1, 2, 3, 4], [1.0, math.nan, None, 0.0, 2.0])], log=True)
    shown = "\n".join(draw(panel, 80, 8, color=False))
    assert "2 of 5 values are no finite number" in shown
    assert "1 of 5 values is not above 0" in shown
    # Three on the axis, and one in each of the two remarks.
    assert shown.count("×") == 5


def test_notes_leave_room_for_the_word_of_the_axis() -> None:
    """Both stand in one line of a picture; a panel of many curves is narrow."""
    curves = [Curve(f"trial {number} of the search", [1, 2, 3], [math.nan, -1.0, 2.0]) for number in range(8)]
    picture = lay_out("Experiment 1", [Panel("loss", curves, log=True)])
    (word,) = [caption for caption in picture.captions if caption.text == "steps"]
    (notes,) = [caption for caption in picture.captions if "no finite number" in caption.text]
    assert notes.at[1] == word.at[1]
    assert notes.at[0] + FONT_WIDTH * len(notes.text) < word.at[0] - FONT_WIDTH * len(word.text)


def test_several_curves_without_colour() -> None:
    """Each curve has its letter on it and in the legend; with colour the same, in its colour."""
    plain = draw(SHAPES["two-series"], 80, 14, color=False)
    assert plain[-1].startswith("a trial 12: last 0.14")
    assert "b trial 7: last 0.11" in plain[-1]
    picture = "".join(plain[1:-3])
    assert picture.count("a") >= 2
    assert picture.count("b") >= 2
    colored = draw(SHAPES["two-series"], 80, 14, color=True)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in colored] == plain
    assert len(set(re.findall(r"\x1b\[38;5;(\d+)m", "".join(colored)))) == 2


def test_a_terminal_without_braille() -> None:
    """Stars and plain lines do, where nothing but ASCII can be shown."""
    for panel in SHAPES.values():
        lines = draw(panel, 80, 10, color=False, braille=False)
        assert all(line.isascii() for line in lines[:-1]) or panel.notes()
        assert any("*" in line or "o" in line for line in lines)


@pytest.mark.parametrize(
    ("low", "high", "count", "labels"),
    [
        (0.077889, 0.949868, 3, ["0.2", "0.4", "0.6", "0.8"]),
        (19.2, 20.9, 2, ["19.5", "20.0", "20.5"]),
        (0.1, 0.95, 1, ["0.2", "0.4", "0.6", "0.8"]),
        (3.0, 47.0, 1, ["20", "40"]),
    ],
)
def test_ticks_are_round(low: float, high: float, count: int, labels: list[str]) -> None:
    """Also where a range has a single multiple of the step that there is room for."""
    assert axis([low, high], count).labels() == labels


def test_nothing_reported() -> None:
    """A metric without values is no picture, and says so."""
    assert draw(Panel("loss", []), 80, 10) == ["loss by step", "No values yet."]
    assert "No values yet." in svg(lay_out("Experiment 1", [Panel("loss", [])]))


def test_names_are_text() -> None:
    """Names of others neither end the SVG's text nor steer a terminal."""
    panel = Panel("<loss>\x1b]0;x\x07", [Curve('a"b<&\x1b[2J', [1, 2], [1.0, 2.0]), Curve("é…字", [1], [1.0])])
    saved = svg(lay_out('"quoted" & <tagged>', [panel]))
    texts = "".join(ElementTree.fromstring(saved).itertext())
    assert '"quoted" & <tagged>' in texts
    assert "\x1b" not in saved
    assert "\x1b" not in "".join(draw(panel, 80, 8, color=False))
    assert png(lay_out("字", [panel]))


@given(st.lists(st.tuples(STEPS, ANY), max_size=30), st.booleans(), st.integers(20, 120), st.integers(5, 12))
def test_any_values_are_drawn(points: list[tuple[int, float]], log: bool, width: int, height: int) -> None:
    """Whatever was reported is drawn within the width that there is: the largest numbers, the smallest, equal ones."""
    points = sorted(points, key=lambda point: point[0])
    curve = Curve("trial 1", [step for step, _ in points], [value for _, value in points])
    for curves in ([curve], [curve, Curve("trial 2", [1], [1.0])]):
        panel = Panel("loss", curves, log)
        lines = draw(panel, width, height, color=False)
        rows = [line for line in lines if re.match(r" *\S* *[│┤└]", line)]
        assert len(rows) == (height + 1 if panel.points() else 0)
        assert all(len(row) <= max(width, 24 + 12) for row in rows)
        picture = lay_out("Experiment 1", [panel])
        places = [number for path in picture.paths for point in path.points for number in point]
        assert all(math.isfinite(place) and -1 <= place <= 1001 for place in places)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=5), st.integers(2, 9))
def test_ticks_are_told_apart(values: list[float], count: int) -> None:
    """Labels beside an axis differ from one another, and lie on it."""
    made = axis(values, count)
    assert len(set(made.labels())) == len(made.ticks) or made.low == made.high
    assert all(-0.001 <= made.place(tick) <= 1.001 for tick in made.ticks)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], ""),
        ([1.0], "▄"),
        ([3.0, 3.0], "▄▄"),
        ([0.0, 0.5, 1.0], "▁▅█"),
        ([1.0, math.nan, None, 0.0], "█××▁"),
        ([-1e308, 1e308], "▁█"),
        ([float(number) for number in range(100)], "▁▁▂▃▄▅▆▇██"),
    ],
)
def test_sparkline(values: list[float | None], shown: str) -> None:
    """A curve in ten characters at most."""
    line = sparkline(values)
    assert line == shown or len(values) == 100
    assert len(line) == min(10, len(values))
