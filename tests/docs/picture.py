"""The picture of the demo's end in the README: ``python -m tests.docs.picture docs/images/demo.svg``.

It is what a terminal shows of a real run, so it needs tmux, beside what ``make demo`` needs. No font is fetched.
"""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

TENAX = Path(sys.executable).with_name("tenax")
_COLUMNS, _LINES = 108, 34
_MAX_WAIT_S = 900
#: What the picture begins with, where it leaves out trials, where it goes on, and its last line.
_FIRST, _TRIALS, _END, _LAST = "Experiment 1 ", "The best 10 of", "were stopped early", "What next:"
#: Lines of the table of trials that are shown: its head, and three for each trial.
_SHOWN = 2 + 3 * 3
_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -12 SIZE" role="img"
     aria-label="The end of tenax demo in a terminal">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
<rect x="-16" y="-12" width="100%" height="100%" rx="8" fill="#16181d"/>
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</svg>
"""


def recorded() -> str:
    """What a terminal shows when the demo has ended, with its colours."""
    with tempfile.TemporaryDirectory() as place:
        ended = Path(place) / "ended"
        tmux = ["tmux", "-L", f"tenax-picture-{Path(place).name}", "-f", "/dev/null"]
        # The terminal stays until it was read.
        line = f"{shlex.quote(str(TENAX))} demo; echo $? > {shlex.quote(str(ended))}; sleep {_MAX_WAIT_S}"
        size = ["-x", str(_COLUMNS), "-y", str(_LINES)]
        subprocess.run([*tmux, "new-session", "-d", *size, line], check=True)
        try:
            until = time.monotonic() + _MAX_WAIT_S
            while not ended.exists() and time.monotonic() < until:
                time.sleep(0.2)
            pane = subprocess.run(
                [*tmux, "capture-pane", "-e", "-p", "-S", "-1000"], check=True, capture_output=True, text=True
            )
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)
        if not ended.exists() or ended.read_text().strip() != "0":
            raise SystemExit(f"The demo did not end well:\n{pane.stdout}")
    return pane.stdout


def drawn(shown: str) -> str:
    """The picture of what stands from `_FIRST` to `_LAST`."""
    lines = [line.rstrip() for line in shown.splitlines()]
    first, trials, end, last = (
        max(number for number, line in enumerate(lines) if words in line) for words in (_FIRST, _TRIALS, _END, _LAST)
    )
    parts = [*lines[first : trials + _SHOWN], "    ...", *lines[end : last + 1]]
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in parts:
        console.print(Text.from_ansi(line), soft_wrap=True)
    picture = console.export_svg(title="", code_format=_FRAME, unique_id="demo")
    # A cell is 12.2 by 24.4, as rich draws it.
    picture = picture.replace("SIZE", f"{_COLUMNS * 12.2 + 32:.0f} {len(parts) * 24.4 + 24:.0f}")
    return "\n".join(line.rstrip() for line in picture.splitlines()) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn(recorded()))
