"""A picture as PNG: pixels, drawn here, so that saving a curve needs no library.

Lines are smoothed: a pixel is covered as far as it lies within half a width of the line. Text is in a bitmap font that
has the Latin letters; what it has not is shown as ``?``.
"""

from __future__ import annotations

import functools
import math
import struct
import unicodedata
import zlib
from importlib.resources import files
from typing import Dict, List, Sequence, Tuple

from tenax.cli.console.plots.curves import XY
from tenax.cli.console.plots.picture import FONT_HEIGHT, FONT_WIDTH, Caption, Picture

#: Rows of a character above its baseline.
_ASCENT = 14


def png(picture: Picture) -> bytes:
    """The file."""
    raster = _Raster(picture.width, picture.height)
    for path in picture.paths:
        raster.path(path.points, path.color, path.width)
    for dot in picture.dots:
        raster.path([dot.at, dot.at], dot.color, 2 * dot.radius)
    for caption in picture.captions:
        raster.caption(caption)
    return raster.encoded()


class _Raster:
    """Pixels, white at first. Owned by one `png`."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._pixels = bytearray(b"\xff") * (width * height * 3)

    def path(self, points: Sequence[XY], color: str, width: float) -> None:
        """A line through points: where it meets itself it is no darker."""
        covered: Dict[int, float] = {}
        for start, end in zip(points, points[1:]):
            self._cover(covered, start, end, width / 2 + 0.5)
        for place, share in covered.items():
            self._blend(place, _rgb(color), share)

    def caption(self, caption: Caption) -> None:
        """Text on one line."""
        text = "".join(map(_known, caption.text))
        room = FONT_WIDTH * len(text)
        left = round(caption.at[0] - {"start": 0, "middle": room / 2, "end": room}[caption.anchor])
        top = round(caption.at[1]) - _ASCENT
        for number, character in enumerate(text):
            for row, bits in enumerate(_font()[character]):
                # Drawn twice, one pixel apart, it is bold.
                bits = bits << 1 | (bits if caption.bold else 0)
                for column in range(FONT_WIDTH + 1):
                    if bits >> (FONT_WIDTH - column) & 1:
                        self._set(left + number * FONT_WIDTH + column, top + row, _rgb(caption.color))

    def encoded(self) -> bytes:
        """As PNG: 8 bits of red, green and blue, rows as they are."""
        size = self._width * 3
        rows = b"".join(b"\0" + self._pixels[at : at + size] for at in range(0, len(self._pixels), size))
        head = struct.pack(">IIBBBBB", self._width, self._height, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)

    def _cover(self, covered: Dict[int, float], start: XY, end: XY, reach: float) -> None:
        """How far each pixel lies within ``reach`` of the line between two points, row by row."""
        (x1, y1), (x2, y2) = start, end
        across, down = x2 - x1, y2 - y1
        square = across * across + down * down
        first, last = math.floor(min(y1, y2) - reach), math.ceil(max(y1, y2) + reach)
        for row in range(max(0, first), min(self._height, last + 1)):
            y = row + 0.5
            low, high = min(x1, x2) - reach, max(x1, x2) + reach
            if abs(down) > 1e-9:
                middle, half = x1 + (y - y1) * across / down, reach * math.sqrt(square) / abs(down)
                low, high = max(low, middle - half), min(high, middle + half)
            for column in range(max(0, math.floor(low)), min(self._width, math.ceil(high) + 1)):
                x = column + 0.5
                along = ((x - x1) * across + (y - y1) * down) / square if square else 0.0
                along = min(1.0, max(0.0, along))
                share = reach - math.hypot(x - x1 - along * across, y - y1 - along * down)
                place = row * self._width + column
                if share > covered.get(place, 0.0):
                    covered[place] = min(1.0, share)

    def _blend(self, place: int, color: Tuple[int, int, int], share: float) -> None:
        for part, value in enumerate(color):
            before = self._pixels[place * 3 + part]
            self._pixels[place * 3 + part] = round(before + (value - before) * share)

    def _set(self, x: int, y: int, color: Tuple[int, int, int]) -> None:
        if 0 <= x < self._width and 0 <= y < self._height:
            place = (y * self._width + x) * 3
            self._pixels[place : place + 3] = bytes(color)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _rgb(color: str) -> Tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


@functools.lru_cache(maxsize=1)
def _font() -> Dict[str, List[int]]:
    """The rows of each character: nine bits, the highest being the left-most pixel."""
    text = files("tenax.cli.console.plots").joinpath("font.txt").read_text("ascii")
    font = {}
    for line in text.splitlines():
        if line[0] != "#":
            code, rows = line.split()
            font[chr(int(code, 16))] = [int(rows[at : at + 3], 16) for at in range(0, 3 * FONT_HEIGHT, 3)]
    return font


def _known(character: str) -> str:
    """A character that the font has: itself, or itself without its accent."""
    if character in _font():
        return character
    if character == "…":
        return "."
    plain = unicodedata.normalize("NFKD", character)[0]
    return plain if plain in _font() else "?"
