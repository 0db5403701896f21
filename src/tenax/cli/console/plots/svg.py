"""A picture as SVG: text, which scales, and can be searched and edited."""

from __future__ import annotations

from typing import Iterable
from xml.sax.saxutils import escape, quoteattr

from tenax.cli.console.plots.curves import XY
from tenax.cli.console.plots.picture import Caption, Dot, Path, Picture


def svg(picture: Picture) -> str:
    """The document."""
    size = f'width="{picture.width}" height="{picture.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {picture.width} {picture.height}" role="img"'
        f" aria-label={quoteattr(picture.title)}>",
        f"<title>{escape(picture.title)}</title>",
        f'<rect {size} fill="#ffffff"/>',
        '<g fill="none" stroke-linejoin="round" stroke-linecap="round">',
        *map(_path, picture.paths),
        "</g>",
        *map(_dot, picture.dots),
        '<g font-family="system-ui, sans-serif" font-size="15">',
        *map(_caption, picture.captions),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _path(path: Path) -> str:
    return f'<polyline points="{_points(path.points)}" stroke="{path.color}" stroke-width="{path.width:g}"/>'


def _dot(dot: Dot) -> str:
    return f'<circle cx="{dot.at[0]:.1f}" cy="{dot.at[1]:.1f}" r="{dot.radius:g}" fill="{dot.color}"/>'


def _caption(caption: Caption) -> str:
    weight = ' font-weight="bold"' if caption.bold else ""
    place = f'x="{caption.at[0]:.1f}" y="{caption.at[1]:.1f}" text-anchor="{caption.anchor}"'
    return f'<text {place} fill="{caption.color}"{weight}>{escape(caption.text)}</text>'


def _points(points: Iterable[XY]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
