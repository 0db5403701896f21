"""Which files a pattern means: ``*`` and ``?`` stay inside a directory, ``**`` and ``**/`` do not, ``[a-z]`` is a set.

Patterns are a user's, and the master tries them, too. So nothing is tried twice: all places of a pattern at which a
path may be by now are the bits of one number, and a path is gone through once. A regular expression could take years,
and holds up every other thread meanwhile. Standard library only, Python 3.9.
"""

from __future__ import annotations

from tenax.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Union

    #: A character, a set of characters, or one of the words below.
    Part = Union[str, "_Letters"]

#: Characters of one pattern, and of all that are asked for at once.
MAX_PATTERN, MAX_TOGETHER = 1000, 10_000
_IN_FOLDER, _ANYWHERE, _FOLDERS, _LETTER = "*", "**", "**/", "?"


class Glob:
    """One pattern."""

    def __init__(self, text: str) -> None:
        self._parts = _parts(text)
        #: Bits of the parts that take any number of characters: within a directory, and anywhere.
        self._in_folder = self._bits((_IN_FOLDER,))
        self._anywhere = self._bits((_ANYWHERE,))
        #: Those that may take none: the next part, or the one after that, may begin at once.
        self._skipped = self._in_folder | self._anywhere
        self._folders = self._bits((_FOLDERS,))
        self._taking: dict[str, int] = {}

    def matches(self, path: str) -> bool:
        """Whether it means all of ``path``."""
        at = self._settled(1)
        for letter in path:
            taking = self._taking.get(letter)
            if taking is None:
                taking = self._taking[letter] = self._bits_for(letter)
            stays = self._anywhere if letter == "/" else self._anywhere | self._in_folder
            at = self._settled((at & taking) << 1 | at & stays)
            if not at:
                return False
        return bool(at >> len(self._parts) & 1)

    def _settled(self, at: int) -> int:
        """With the places that are reached without another character."""
        while True:
            further = at | (at & self._skipped) << 1 | (at & self._folders) << 1 | (at & self._folders) << 3
            if further == at:
                return at
            at = further

    def _bits(self, parts: Iterable[Part]) -> int:
        return sum(1 << place for place, part in enumerate(self._parts) if part in parts)

    def _bits_for(self, letter: str) -> int:
        bits = 0
        for place, part in enumerate(self._parts):
            takes = letter in part if isinstance(part, _Letters) else part == letter and letter not in "*?"
            if takes or (part == _LETTER and letter != "/"):
                bits |= 1 << place
        return bits


class _Letters:
    """A set: single characters and ranges, or all others; never what separates directories."""

    def __init__(self, inside: str) -> None:
        self._others = inside[0] in "!^"
        letters = inside[1:] if self._others else inside
        self._ranges: list[tuple[str, str]] = []
        while letters:
            wide = letters[1:2] == "-" and len(letters) > 2
            self._ranges.append((letters[0], letters[2] if wide else letters[0]))
            letters = letters[3 if wide else 1 :]

    def __contains__(self, letter: str) -> bool:
        return letter != "/" and any(low <= letter <= high for low, high in self._ranges) != self._others


def matching(paths: Iterable[str], globs: Iterable[str]) -> set[str]:
    """The paths that one of the globs means, and what lies under a directory that one means (``name/``)."""
    patterns = [Glob(glob) for glob in dict.fromkeys(globs)]
    known = set(paths)
    hit = {path for path in known if any(pattern.matches(path.rstrip("/")) for pattern in patterns)}
    return {path for path in known if path in hit or any(parent in hit for parent in parents(path))}


def parents(path: str) -> list[str]:
    """``a/b/c`` -> ``a/``, ``a/b/``."""
    return [path[: at + 1] for at, letter in enumerate(path[:-1]) if letter == "/"]


def check_globs(globs: Iterable[str]) -> None:
    """Raises InvalidInput for patterns that are blank, or more than anybody means."""
    lengths = [len(glob) if glob.strip() else 0 for glob in globs]
    if not all(lengths):
        raise InvalidInput("a pattern is blank: name the files to delete, for example **/optimizer.pt")
    if lengths and (max(lengths) > MAX_PATTERN or sum(lengths) > MAX_TOGETHER):
        raise InvalidInput(
            f"a pattern has at most {MAX_PATTERN} characters, and all of them {MAX_TOGETHER}: name fewer files at once"
        )


def _parts(text: str) -> list[Part]:
    parts: list[Part] = []
    at = 0
    while at < len(text):
        part, taken = _part(text, at)
        at += taken
        if part == _FOLDERS:
            if parts[-3:] != [_FOLDERS, _ANYWHERE, "/"]:
                parts += [_FOLDERS, _ANYWHERE, "/"]
        elif part in (_IN_FOLDER, _ANYWHERE) and parts and parts[-1] in (_IN_FOLDER, _ANYWHERE):
            # Two in a row mean what the wider one does.
            parts[-1] = max(parts[-1], part, key=lambda each: each == _ANYWHERE)
        else:
            parts.append(part)
    return parts


def _part(text: str, at: int) -> tuple[Part, int]:
    """What stands at a place of a pattern, and how many characters that takes."""
    for word in (_FOLDERS, _ANYWHERE):
        if text.startswith(word, at):
            return word, len(word)
    end = text.find("]", at + 2)
    if text[at] == "[" and end > 0:
        inside = text[at + 1 : end]
        return (inside if inside in ("!", "^") else _Letters(inside)), end + 1 - at
    return text[at], 1
