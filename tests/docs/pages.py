"""What the pages have a reader type: their commands, in order, and the settings files that stand between them.

A command is a line that is indented by four, or stands in a block of `sh`. A block whose first line is a comment with a
file's name (``# master.yaml``) is that file. A line that ends with ``\\`` goes on in the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The generated ones say what the command line says of itself, and have nothing to type.
GENERATED = ("cli.md", "det-and-tenax.md", "state-machines.md")
PAGES = {
    path.name: path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
}
_SHELLS = ("sh", "bash", "console")
_INDENT = "    "


@dataclass(frozen=True)
class Typed:
    """A command."""

    page: str
    line: int
    text: str

    @property
    def bare(self) -> str:
        """Without the comment behind it."""
        return re.split(r"\s+#", self.text, maxsplit=1)[0].strip()


@dataclass(frozen=True)
class ShownFile:
    """A file that a page shows."""

    page: str
    name: str
    text: str


def parts(page: str) -> list[Typed | ShownFile]:
    """The commands and files of a page, in its order."""
    found: list[Typed | ShownFile] = []
    for line, kind, lines in _blocks(PAGES[page].read_text()):
        named = re.fullmatch(r"#\s*([\w.-]+\.(?:yaml|py|sh))(?::.*)?", lines[0])
        if named:
            found.append(ShownFile(page, named[1], "\n".join(lines) + "\n"))
        elif kind in ("indented", *_SHELLS):
            found += [Typed(page, line + number, text) for number, text in enumerate(lines) if text.strip()]
    return found


def commands() -> list[Typed]:
    """Of all pages that people write."""
    return [part for page in PAGES if page not in GENERATED for part in parts(page) if isinstance(part, Typed)]


def scripts(page: str) -> list[str]:
    """Its blocks of Python."""
    return ["\n".join(lines) + "\n" for _, kind, lines in _blocks(PAGES[page].read_text()) if kind == "python"]


def inline() -> list[tuple[str, str]]:
    """(page, words) of every command that a sentence names."""
    found = []
    for page, path in PAGES.items():
        if page not in GENERATED:
            sentences = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
            found += [(page, " ".join(words.split())) for words in re.findall(r"`(tenax\s[^`]+)`", sentences)]
    return found


def _blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """(line of its beginning, language or ``indented``, lines) of each block."""
    fence: str | None = None
    block: list[str] = []
    begun = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            if fence is not None and block:
                yield begun, fence, block
            fence = line[3:].strip() if fence is None else None
            block, begun = [], number + 1
        elif fence is not None:
            block.append(line)
        elif line.startswith(_INDENT) and line.strip():
            begun = begun if block else number
            block.append(line.removeprefix(_INDENT))
        elif block:
            yield begun, "indented", block
            block = []
