"""The hyperparameters of a trial in the words of a command line. Pure; standard library only, Python 3.9.

``{name}`` is the value of a hyperparameter, wherever it stands; ``{a.b}`` is ``b`` of the map ``a``. ``{name:+--flag}``
is ``--flag`` where that hyperparameter is true, and nothing where it is false: no word, if it is one of its own.
``{{name}}`` is ``{name}`` as it stands. Everything else is left as it is: braces around anything but a name are text.
"""

from __future__ import annotations

import re

from tenax.client.connection import fast_json
from tenax.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenax.jsonvalue import Json, JsonObject

_PLACE = re.compile(r"(\{+)([A-Za-z_][\w.-]*)(:\+[^{}]*)?(\}+)")
_NAMED = 10


def filled(command: Sequence[str], hparams: JsonObject) -> list[str]:
    """The command with the values of ``hparams`` in it. Raises InvalidInput for a name that they do not have."""
    result = []
    for word in command:
        value = _PLACE.sub(lambda place: _put(place, hparams), word)
        whole = _PLACE.fullmatch(word)
        if value or whole is None or whole[3] is None:
            result.append(value)
    return result


def command_line(command: Sequence[str], hparams: JsonObject, python: str) -> list[str]:
    """All words of the program that COMMAND becomes, under the interpreter ``python`` where it is a script.

    Raises InvalidInput.
    """
    argv = filled(command, hparams)
    return [python, *argv] if argv and (argv[0] == "-m" or argv[0].endswith(".py")) else argv


def escaped(text: str) -> str:
    """What `filled` makes ``text`` of again."""
    return _PLACE.sub(lambda place: f"{{{place[0]}}}" if _is_place(place) else place[0], text)


def rendered(value: Json) -> str:
    """A hyperparameter as a word of a command line: numbers and text as Python prints them, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value < 0 and "e" in repr(value):
        # argparse takes -1e-05 for an option, and -0.00001 for a number.
        from decimal import Decimal

        return format(Decimal(repr(value)), "f")
    return fast_json.dumps(value)


def _is_place(place: re.Match[str]) -> bool:
    return len(place[1]) == len(place[4])


def _put(place: re.Match[str], hparams: JsonObject) -> str:
    if not _is_place(place):
        return place[0]
    if len(place[1]) > 1:
        return place[0][1:-1]
    name, flag = place[2], place[3]
    value = _value(name, hparams)
    if flag is None:
        return rendered(value)
    if not isinstance(value, bool):
        raise InvalidInput(
            f"{place[0]} in the entrypoint is for a hyperparameter that is true or false, and {name} is "
            f"{rendered(value)}: write {{{name}}} for its value"
        )
    return flag[2:] if value else ""


def _value(name: str, hparams: JsonObject) -> Json:
    if name in hparams:
        return hparams[name]
    level: Json = hparams
    for key in name.split("."):
        if not isinstance(level, dict) or key not in level:
            there = ", ".join(sorted(hparams)[:_NAMED]) or "none"
            raise InvalidInput(
                f"the entrypoint names a hyperparameter {name!r} that this trial does not have (there is {there}): add "
                f"it to hyperparameters, or write {{{{{name}}}}} where {{{name}}} is meant as text"
            )
        level = level[key]
    return level
