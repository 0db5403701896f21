"""Draws the golden files anew: ``python -m tests.cli.plots.draw_golden``. Whoever does looks at them."""

from __future__ import annotations

from pathlib import Path

from tenax.cli.console.plots.curves import Panel
from tenax.cli.console.plots.picture import lay_out
from tenax.cli.console.plots.png import png
from tenax.cli.console.plots.svg import svg
from tenax.cli.console.plots.terminal import draw
from tests.cli.plots.shapes import SHAPES

GOLDEN = Path(__file__).with_name("golden")
WIDTHS = {"80": (80, 14), "200": (200, 18)}


def on_terminal(panel: Panel, width: str) -> str:
    return "\n".join(draw(panel, *WIDTHS[width], color=False)) + "\n"


def as_svg(name: str) -> str:
    return svg(lay_out(f"Experiment 12  {name}", [SHAPES[name]]))


def as_png(name: str) -> bytes:
    return png(lay_out(f"Experiment 12  {name}", [SHAPES[name]]))


if __name__ == "__main__":
    for name, panel in SHAPES.items():
        for width in WIDTHS:
            (GOLDEN / f"{name}-{width}.txt").write_text(on_terminal(panel, width))
        (GOLDEN / f"{name}.svg").write_text(as_svg(name))
        (GOLDEN / f"{name}.png").write_bytes(as_png(name))
