"""The words behind the name of a script, as ``tenax submit`` and ``tenax search`` take them: which are ours, which are
hyperparameters, and how the script is given each. Pure.

Rules it keeps:

- The script gets its words in the order and the form in which they stand: ``--lr 0.1``, ``--lr=0.1`` and ``lr=0.1``
  (as Hydra takes them) alike. Only values differ from trial to trial.
- What is called like an option of ours is ours, wherever it stands before a lone ``--``.
- What stands after a lone ``--`` is the script's, untouched. So is what stands before its first flag (a subcommand).
- A flag that is followed by another one, or by nothing, stands alone: it is a hyperparameter that is true.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Sequence, Tuple

from tenax.cli.experiment.from_script.spaces import ALONE, Space
from tenax.core.hparams_in_words import escaped
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject

_NAME = r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*"
_FLAG = re.compile(rf"(--?)({_NAME})(?:=(.*))?", re.DOTALL)
_ASSIGNMENT = re.compile(rf"(\+{{0,2}})({_NAME})=(.*)", re.DOTALL)
#: A value that begins with a minus: -0.5, -1..1.
_NEGATIVE = re.compile(r"-(?:\d|\.\d)")
END = "--"


@dataclass(frozen=True)
class Divided:
    """A command line, by whose its words are."""

    #: For the parser of our options; the script is among them.
    ours: Tuple[str, ...]
    #: Behind the script, before a lone ``--``.
    flags: Tuple[str, ...]
    #: Behind it.
    rest: Tuple[str, ...]


def divided(line: Sequence[str], options: Mapping[str, bool]) -> Divided:
    """By whose they are. ``options``: ours, and whether each takes a value."""
    at = line.index(END) if END in line else len(line)
    before, rest = list(line[:at]), tuple(line[at + 1 :])
    ours: List[str] = []
    flags: List[str] = []
    has_script = False
    while before:
        word = before.pop(0)
        name = word.partition("=")[0] if word.startswith("--") else word
        if name in options:
            ours.append(word)
            if options[name] and name == word and before:
                ours.append(before.pop(0))
        elif has_script:
            flags.append(word)
        else:
            ours.append(word)
            has_script = not word.startswith("-")
    return Divided(tuple(ours), tuple(flags), rest)


@dataclass(frozen=True)
class ScriptCall:
    """How a script is called, and what its hyperparameters may be."""

    #: Behind the script: words as they are, and places for hyperparameters (`tenax.launch.with_hparams`).
    command: Tuple[str, ...]
    #: By the names that configurations give them; a dot leads into a map.
    spaces: Mapping[str, Space]
    #: The flags as they were written.
    flags: Tuple[str, ...]

    def hyperparameters(self) -> JsonObject:
        """The section of the configuration. Raises InvalidInput where a name is a value and a map at once."""
        tree: JsonObject = {}
        for name, space in self.spaces.items():
            *levels, last = name.split(".")
            level = tree
            for number, key in enumerate(levels, 1):
                above = ".".join(levels[:number])
                if above in self.spaces:
                    raise InvalidInput(f"{above} has a value, and {name} makes it a map of values: rename one of them.")
                inner = level.setdefault(key, {})
                assert isinstance(inner, dict)
                level = inner
            level[last] = space.config
        return tree


class _Call:
    """A call while its words are read."""

    def __init__(self, read: Callable[[str, str], Space]) -> None:
        self._read = read
        self.command: List[str] = []
        self.spaces: Dict[str, Space] = {}
        self.flags: List[str] = []

    def add_text(self, word: str) -> None:
        if self.spaces:
            raise InvalidInput(
                f"{word!r} belongs to no flag: what is no flag, and a flag with several values, stand after --, as in "
                f"-- --layers 64 32."
            )
        self.command.append(escaped(word))

    def add(self, before: str, name: str, joint: str, text: str) -> None:
        """``before``: what stands before the name; ``joint``: between name and value; a blank: two words."""
        key = self._key(name)
        space = self._read(text, before + name)
        self._keep(key, space, before + name)
        flag, place = before + name, f"{{{key}}}"
        if space.switch and not before.startswith("-"):
            raise InvalidInput(f"{flag}={text}: only a flag with a dash can stand alone: write {flag}=true,false.")
        if space.switch:
            self.command.append(f"{{{key}:+{flag}}}")
        elif joint:
            self.command.append(flag + joint + place)
        else:
            self.command += [flag, place]

    def add_alone(self, before: str, name: str) -> None:
        key = self._key(name)
        self._keep(key, ALONE, before + name)
        self.command.append(f"{{{key}:+{before}{name}}}")

    def _key(self, name: str) -> str:
        return name.replace("-", "_")

    def _keep(self, key: str, space: Space, flag: str) -> None:
        if key in self.spaces:
            raise InvalidInput(
                f"{flag} is there twice: give it once. A flag that the script takes several times stands after --."
            )
        self.spaces[key] = space
        self.flags.append(flag)


def script_call(
    flags: Sequence[str], rest: Sequence[str], more: Sequence[str], read: Callable[[str, str], Space]
) -> ScriptCall:
    """What the words behind a script say.

    ``more``: NAME=VALUE each, for flags that are called like our options. ``read``: text and name -> what it may be.
    Raises InvalidInput.
    """
    call = _Call(read)
    left = list(flags)
    while left:
        word = left.pop(0)
        flag, assignment = _FLAG.fullmatch(word), _ASSIGNMENT.fullmatch(word)
        if flag and flag[3] is not None:
            call.add(flag[1], flag[2], "=", flag[3])
        elif flag and left and (not left[0].startswith("-") or left[0] == "-" or _NEGATIVE.match(left[0])):
            call.add(flag[1], flag[2], "", left.pop(0))
        elif flag:
            call.add_alone(flag[1], flag[2])
        elif assignment:
            call.add(assignment[1], assignment[2], "=", assignment[3])
        elif word.startswith("-") and word != "-":
            raise InvalidInput(f"{word!r} is no flag with a name, such as --lr: what is none stands after --.")
        else:
            call.add_text(word)
    for word in more:
        assignment = _ASSIGNMENT.fullmatch(word)
        if not assignment or assignment[1]:
            raise InvalidInput(f"--hparam {word!r}: write NAME=VALUE, for example lr=0.1: it is passed on as --lr 0.1.")
        call.add("--", assignment[2], "", assignment[3])
    call.command += map(escaped, rest)
    return ScriptCall(tuple(call.command), call.spaces, tuple(call.flags))
