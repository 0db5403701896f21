"""Text that others wrote, as a terminal may show it: colours stay, and nothing else that a terminal would obey.

A terminal obeys what it is sent: it sets its title, fills its clipboard, moves the cursor over what stands there, hides
what follows. So whatever is printed goes through `visible`, or through a `VisibleStream`, which does it for all that a
program prints. Rules:

- line feeds and tabs stay; a carriage return before a line feed goes;
- a colour sequence (SGR, ``ESC [ ... m``) stays where it is asked for, and goes elsewhere; what it changed ends with
  its line;
- any other control character (C0, DEL, C1), and what turns the direction of text around, is shown as JSON would write
  it (``\\u001b``): inside a JSON text it means the same as before;
- a name is one line of what can be shown: `is_name`.
"""

from __future__ import annotations

import os
import re
from typing import Iterable, NoReturn, TextIO

_COLOR = re.compile(r"\x1b\[[0-9;:]*m")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_RESET = "\x1b[0m"
_RESETS = ("\x1b[0m", "\x1b[m")
#: What TERM says of a terminal that only writes on.
_DUMB = ("dumb", "unknown")


def visible(text: str, *, colors: bool = False) -> str:
    """``text`` without what a terminal would obey; colours stay if ``colors``."""
    if not _UNSEEN.search(text):
        return text
    text = text.replace("\r\n", "\n")
    if not colors:
        return _UNSEEN.sub(_shown, _COLOR.sub("", text))
    return "\n".join(_line(line) for line in text.split("\n"))


def visible_line(text: str) -> str:
    """``text`` as a cell of a table: one line, without colours."""
    return " ".join(visible(text).split("\n")).replace("\t", " ")


def is_name(text: str) -> bool:
    """Whether it can name something: a name is typed, and shown in a line."""
    return not _UNSEEN.search(text) and "\n" not in text and "\t" not in text


def moves_cursor(stream: TextIO) -> bool:
    """Whether what a stream has shown can be written over: it is a terminal, and no dumb one."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in _DUMB


class VisibleStream:
    """A stream that shows what is written to it; all else is the stream's below."""

    def __init__(self, below: TextIO) -> None:
        self.below = below

    def write(self, text: str) -> int:
        self.below.write(visible(text, colors=self.below.isatty()))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> NoReturn:
        """Nothing goes around this."""
        raise AttributeError("buffer")

    def __getattr__(self, name: str) -> object:
        below: object = getattr(self.below, name)
        return below


def _line(line: str) -> str:
    """One line, with its colours; what is not ended by itself ends here."""
    last = ""
    parts = []
    place = 0
    for color in _COLOR.finditer(line):
        parts += [_UNSEEN.sub(_shown, line[place : color.start()]), color[0]]
        place, last = color.end(), color[0]
    parts.append(_UNSEEN.sub(_shown, line[place:]))
    return "".join(parts) + (_RESET if last and last not in _RESETS else "")


def _shown(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"
