"""What is wrong with a configuration: every problem found, each with its path, its line and what to do.

Checks add to a `ProblemReport` and go on, so that a person mends a file in one round. Nothing here reads files.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tenax.errors import InvalidInput

#: Where a value stands: keys and list positions from the root.
Path = tuple["str | int", ...]

#: How many problems of one document are told, and how many notices: nobody mends more in one round.
MAX_PROBLEMS, MAX_NOTICES = 100, 100
#: No name is meant by a longer word.
MAX_WORD = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    #: As a person writes it: ``searcher.max_trials``, ``bind_mounts[1].host_path``; empty for the whole document.
    path: str
    #: Line of the value in the text (1, 2, ...), None where there was no text.
    line: int | None
    #: What is wrong and what to do.
    message: str

    def __str__(self) -> str:
        return self.within("configuration")

    def within(self, what: str) -> str:
        """In a sentence; ``what`` as a whole, where it is of no part of it."""
        where = self.path or what
        return f"{where} (line {self.line}): {self.message}" if self.line is not None else f"{where}: {self.message}"


class ConfigError(InvalidInput):
    """The configuration is not valid. ``more``: not all that is wrong is among ``problems``."""

    def __init__(self, problems: Iterable[Problem], *, what: str = "configuration", more: bool = False) -> None:
        given = tuple(problems)
        more = more or len(given) > MAX_PROBLEMS
        #: Whether there was more than is told.
        self.more = more
        #: What was found, the first `MAX_PROBLEMS`, in the order of the text where lines are known.
        self.problems = given[:MAX_PROBLEMS]
        count = f"more than {len(self.problems)}" if more else str(len(self.problems))
        head = f"The {what} has a problem:" if count == "1" else f"The {what} has {count} problems:"
        last = ["  and more: mend these first"] if more else []
        super().__init__("\n".join([head, *(f"  {problem.within(what)}" for problem in self.problems), *last]))


@dataclass(slots=True)
class ProblemReport:
    """Collects problems of one document; owned by one check, not shared between threads."""

    #: Line of each known path.
    lines: Mapping[Path, int] = field(default_factory=dict)
    #: How often something wrong was found, whether or not it is told: has it grown, what was checked is not legal.
    count: int = 0
    #: Whether there was more than is told.
    more: bool = False
    #: What was accepted and yet should be mentioned: old spellings, settings without effect. The first
    #: `MAX_NOTICES`, each once, in order; the values mean nothing.
    notices: dict[str, None] = field(default_factory=dict)
    #: Where the document comes from when it is not the user's own text ("the template"); named with each problem.
    origin: str | None = None
    #: Paths at or below which something is wrong: what stands there does not count as missing as well.
    refused: set[Path] = field(default_factory=set)
    #: The first `MAX_PROBLEMS`, each once, in order; the values mean nothing.
    _problems: dict[Problem, None] = field(default_factory=dict)

    @property
    def problems(self) -> list[Problem]:
        """What was found, in order, the first `MAX_PROBLEMS`."""
        return list(self._problems)

    def add(self, path: Path, message: str) -> None:
        """Note a problem at ``path``. The same problem twice is one."""
        if self._is_full():
            return
        for length in range(len(path), -1, -1):
            if path[:length] in self.refused:
                break
            self.refused.add(path[:length])
        text = f"{message} (in {self.origin})" if self.origin is not None else message
        problem = Problem(spell(path), self.line_of(path), text)
        self.count += problem not in self._problems
        self._problems[problem] = None

    def note(self, path: Path, message: str) -> None:
        """Tell the user about ``path`` without refusing it."""
        notice = f"{spell(path)}: {message}" if path else message
        if len(self.notices) < MAX_NOTICES:
            self.notices[notice] = None
        elif notice not in self.notices:
            self.notices["and more of this kind"] = None

    def line_of(self, path: Path) -> int | None:
        """The line of ``path``, or of the nearest thing around it that the text holds."""
        for length in range(len(path), -1, -1):
            line = self.lines.get(path[:length])
            if line is not None and (length > 0 or not path):
                return line
        return None

    def missing(self, path: Path, name: str, hint: str = "") -> None:
        """Note that ``name`` under ``path`` must be set, unless something that is wrong stands there."""
        place = (*path, name)
        if place not in self.refused:
            self.add(path, f"{name!r} must be set{': ' + hint if hint else ''}")

    def unknown_key(self, path: Path, key: str, legal: Iterable[str]) -> None:
        """Note that ``key`` under ``path`` is none of ``legal``, with the legal name nearest to it."""
        if not self._is_full():
            self.add((*path, key), f"unknown key {key!r}; {suggestion(key, legal)}")

    def unknown_choice(self, path: Path, word: str, legal: Iterable[str]) -> None:
        """Note that ``word`` at ``path`` is none of ``legal``."""
        if not self._is_full():
            self.add(path, unknown_choice(word, legal))

    def raise_if_any(self, *, what: str = "configuration") -> None:
        """Raises `ConfigError` with what was found, if anything was."""
        raise_problems([self], what=what)

    def _is_full(self) -> bool:
        """Whether no more is told; then what was found now is counted, and nothing else is spent on it."""
        if len(self._problems) < MAX_PROBLEMS:
            return False
        self.more = True
        self.count += 1
        return True


def raise_problems(reports: Iterable[ProblemReport], *, what: str = "configuration") -> None:
    """Raises `ConfigError` with what was found in all of them, if anything was."""
    reports = list(reports)
    problems = [problem for report in reports for problem in report.problems]
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        raise ConfigError(problems, what=what, more=any(report.more for report in reports))


def spell(path: Path) -> str:
    """``("bind_mounts", 1, "host_path")`` as ``bind_mounts[1].host_path``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def nearest(word: str, legal: Iterable[str]) -> str | None:
    """The legal name that ``word`` was probably meant to be, if one is near."""
    if len(word) > MAX_WORD:
        return None
    cutoff = 0.6 if len(word) > 3 else 0.5
    matches = difflib.get_close_matches(word.lower(), list(legal), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def suggestion(word: str, legal: Iterable[str]) -> str:
    """What to write instead of ``word``: the nearest legal name, or all of them."""
    names = sorted(legal)
    near = nearest(word, names)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"legal here: {', '.join(names)}" if names else "nothing can be set here"


def unknown_choice(word: str, legal: Iterable[str]) -> str:
    """What to say of a value that is none of ``legal`` (in their own order)."""
    names = list(legal)
    near = nearest(word, names)
    hint = f"; did you mean {near!r}?" if near is not None else ""
    return f"{word!r} is not one of {', '.join(names)}{hint}"
