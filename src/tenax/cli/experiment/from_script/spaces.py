"""The values of a hyperparameter as they are written on a command line: text in, a hyperparameter out.

| written | what it is |
|---|---|
| ``1e-4..1e-1`` | any number between them |
| ``16..128`` | any whole number from 16 to 128: both ends are written without a point and an exponent |
| ``1e-4..1e-1:log`` | any number between them, each power of ten as likely as another |
| ``32,64,128`` | one of these; a comma inside quotes or brackets divides nothing |
| ``true,false:switch`` | the flag alone, or no flag |
| ``0.1``, ``7``, ``true``, ``adam`` | this value: a number, a boolean (spelled ``true`` or ``false``), or text |
| ``"0.9,0.999"`` | what is in double quotes is text |

What begins like one of these and is none is refused, with what to write. Paths (``../data``) are text. Pure.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import List, Optional, Union

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?\d+")
#: Whole numbers of a configuration have 64 bits.
_INT64, _MAX_DIGITS = 1 << 63, 20
_SWITCH = ":switch"
_LOG = "log"
_OPENING, _CLOSING = "([{", ")]}"
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Space:
    """What a hyperparameter may be."""

    #: As a configuration has it.
    config: Json
    #: How many values there are to try; None: a range.
    points: Optional[int] = 1
    #: It is true or false, and where it is true its flag stands alone.
    switch: bool = False

    @property
    def is_constant(self) -> bool:
        return self.points == 1


#: A flag without a value.
ALONE = Space(True, switch=True)


def space_of(text: str, name: str) -> Space:
    """What ``text`` says of the hyperparameter ``name``. Raises InvalidInput."""
    if text.endswith(_SWITCH):
        return _switch(text, name)
    choices = _split(text, name)
    if len(choices) > 1:
        return _choice(text, choices, name)
    return _range(text, name) or Space(_constant(text, name))


def constant_of(text: str, name: str) -> Space:
    """The same where nothing is searched: commas are text. Raises InvalidInput for a range, which nobody means here."""
    if text.endswith(_SWITCH) or _range(text, name) is not None:
        raise InvalidInput(
            f"{name}: {text} is a space to search, and this is one trial. Write one value, or search: tenax search. "
            f"{_as_text(text)}"
        )
    return Space(_constant(text, name))


def _switch(text: str, name: str) -> Space:
    values = text[: -len(_SWITCH)].split(",")
    booleans: List[Json] = [_BOOLEANS[value] for value in values if value in _BOOLEANS]
    if len(booleans) != len(values) or len(booleans) > 2 or (len(booleans) == 2 and booleans[0] == booleans[1]):
        raise InvalidInput(f"{name}: {text}: write true,false{_SWITCH}, or true or false alone. {_as_text(text)}")
    if len(booleans) == 1:
        return Space(booleans[0], switch=True)
    return Space({"type": "categorical", "vals": booleans}, points=2, switch=True)


def _choice(text: str, choices: List[str], name: str) -> Space:
    values: List[Json] = []
    for choice in choices:
        if not choice:
            raise InvalidInput(f"{name}: {text} has nothing before or after a comma: write a,b,c. {_as_text(text)}")
        if _range(choice, name) is not None:
            raise InvalidInput(
                f"{name}: {choice} is a range, and cannot be one of several values: write one or the other."
            )
        value = _constant(choice, name)
        # Of JSON, true is no 1.
        if any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values):
            raise InvalidInput(f"{name}: {text} has {choice} twice: leave one of them out.")
        values.append(value)
    return Space({"type": "categorical", "vals": values}, points=len(values))


def _range(text: str, name: str) -> Optional[Space]:
    """None for what is no range and does not begin like one. Raises InvalidInput for one that is wrong."""
    if text.startswith('"'):
        return None
    low, dots, rest = text.partition("..")
    if not dots:
        number, colon, scale = text.partition(":")
        if colon and scale == _LOG and _NUMBER.fullmatch(number):
            raise InvalidInput(f"{name}: {text} has a scale and no range: write LOW..HIGH:log, as in 1e-4..1e-1:log.")
        return None
    high, colon, scale = rest.partition(":")
    numbers = [side for side in (low, high) if _NUMBER.fullmatch(side)]
    if not numbers:
        return None
    if len(numbers) < 2:
        raise InvalidInput(
            f"{name}: {text} is a range without two numbers: write LOW..HIGH, as in 16..128 or 1e-4..1e-1:log. "
            f"{_as_text(text)}"
        )
    if colon and scale != _LOG:
        raise InvalidInput(f"{name}: {text} has an unknown scale {scale!r}: there is :log, or none. {_as_text(text)}")
    least, greatest = _bound(low), _bound(high)
    if not (math.isfinite(least) and math.isfinite(greatest)):
        raise InvalidInput(f"{name}: {text} has a number that is too large: at most 1e308, and whole ones of 64 bits.")
    if not least < greatest:
        raise InvalidInput(f"{name}: {text} is empty: the number before .. must be below the one behind it.")
    if colon:
        return _log(text, least, greatest, name)
    if isinstance(least, int) and isinstance(greatest, int):
        return Space({"type": "int", "minval": least, "maxval": greatest}, points=None)
    return Space({"type": "double", "minval": float(least), "maxval": float(greatest)}, points=None)


def _bound(text: str) -> Union[int, float]:
    """An end of a range, as it is written; infinite: more than is taken."""
    if not _WHOLE.fullmatch(text):
        return float(text)
    whole = _int64(text)
    return math.inf if whole is None else whole


def _int64(text: str) -> Optional[int]:
    """A whole number, if it has 64 bits at most."""
    number = int(text) if len(text) <= _MAX_DIGITS else _INT64
    return number if -_INT64 <= number < _INT64 else None


def _log(text: str, low: Union[int, float], high: Union[int, float], name: str) -> Space:
    if low <= 0:
        raise InvalidInput(
            f"{name}: {text} begins at {low:g}, and a logarithmic range is above 0: raise it, or drop :log."
        )
    if isinstance(low, int) and isinstance(high, int):
        raise InvalidInput(
            f"{name}: {text}: a logarithmic range gives numbers with decimals, and its ends are whole. If the script "
            f"takes decimals, write {low:.1f}..{high:.1f}:log; if not, name the values, as in "
            f"{','.join(map(str, _powers(low, high)))}."
        )
    return Space({"type": "log", "base": 10, "minval": _exponent(low), "maxval": _exponent(high)}, points=None)


def _powers(low: int, high: int) -> List[int]:
    """Both ends and what lies between them, for an example."""
    middle = round(math.sqrt(low) * math.sqrt(high))
    return sorted({low, middle, high})


def _exponent(value: float) -> float:
    """A whole number where it is one."""
    exponent = math.log10(value)
    return round(exponent) if float(f"1e{round(exponent)}") == value else exponent


def _constant(text: str, name: str) -> Json:
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            raise InvalidInput(f"{name}: {text} has a quotation mark at its beginning and none at its end: add it.")
        return text[1:-1]
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    whole = _int64(text) if _WHOLE.fullmatch(text) else None
    # 007 is text: as a number it would reach the script as 7.
    if whole is not None and str(whole) == text:
        return whole
    if _NUMBER.fullmatch(text) and not _WHOLE.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def _split(text: str, name: str) -> List[str]:
    """At commas that are in no quotes and no brackets."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth <= 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    if quoted and len(parts) > 1:
        raise InvalidInput(f"{name}: {text} has a quotation mark without its other half: add it.")
    return parts


def _as_text(text: str) -> str:
    """What to do where text was meant; the quotes are for the shell."""
    return f"If it is meant as text, write '\"{text}\"'."
