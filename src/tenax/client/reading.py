"""Reading answers leniently: what is absent, null or of another kind is the empty value. Standard library only.

64-bit integers arrive as strings or numbers, NaN and infinities as strings.

How people name things: by number, by name, or by the beginning of an id.
"""

from __future__ import annotations

import datetime
import re
from typing import Callable, Dict, List, Optional, Sequence, TypeVar, Union

from tenax.errors import InvalidInput, NotFound
from tenax.jsonvalue import Json, JsonObject


def text(value: JsonObject, key: str) -> str:
    """A string; empty when it is not there."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def integer(value: JsonObject, key: str) -> int:
    """An integer; 0 when it is not there."""
    found = value.get(key)
    if isinstance(found, str):
        try:
            return int(found)
        except ValueError:
            return 0
    return int(found) if isinstance(found, (int, float)) else 0


def real(value: Json) -> Optional[float]:
    """A number, also in the form in which NaN and infinities travel; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    if value in ("NaN", "Nan", "Infinity", "-Infinity"):
        return float(str(value))
    return None


def flag(value: JsonObject, key: str) -> bool:
    """A boolean; False when it is not there."""
    return value.get(key) is True


def record(value: JsonObject, key: str) -> JsonObject:
    """An object; empty when it is not there."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def records(value: JsonObject, key: str) -> List[JsonObject]:
    """The objects of a list; empty when it is not there."""
    found = value.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def texts(value: JsonObject, key: str) -> List[str]:
    """The strings of a list; empty when it is not there."""
    found = value.get(key)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def moment(value: JsonObject, key: str) -> Optional[datetime.datetime]:
    """A time with its zone; None when it is not there."""
    found = text(value, key)
    if not found:
        return None
    # Python 3.9 reads at most six digits, and no Z.
    plain = re.sub(r"(\.\d{1,6})\d*", lambda match: match[1].ljust(7, "0"), found.replace("Z", "+00:00"))
    try:
        parsed = datetime.datetime.fromisoformat(plain)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=datetime.timezone.utc)


def state(value: JsonObject, key: str = "state") -> str:
    """``STATE_STOPPING_KILLED`` as ``STOPPING_KILLED``."""
    found = text(value, key)
    return found[len("STATE_") :] if found.startswith("STATE_") else found


def numbers(value: JsonObject) -> Dict[str, float]:
    """The numbers of a flat object, by name."""
    found: Dict[str, float] = {}
    for name, item in value.items():
        number = real(item)
        if number is not None:
            found[name] = number
    return found


Thing = TypeVar("Thing")
#: Of those that a word may mean, so many are told.
_TOLD = 5


def is_number(word: str) -> bool:
    """Whether it can be the number of something."""
    return word.isascii() and word.isdigit()


def number_or_name(word: str) -> Union[int, str]:
    """What a word of a command line names a thing by: digits are a number."""
    return int(word) if is_number(word) else word


def only(word: str, things: Sequence[Thing], id_of: Callable[[Thing], str], noun: str, otherwise: str) -> Thing:
    """The one thing that ``word`` can mean. Raises NotFound with the hint ``otherwise``, InvalidInput for several."""
    if not word or not things:
        raise NotFound(f"There is no {noun} {word!r}{otherwise}")
    if len(things) > 1:
        ids: List[str] = [id_of(thing) for thing in things[:_TOLD]]
        raise InvalidInput(f"{word!r} may be any of {len(things)} {noun}s ({', '.join(ids)}): say its id.")
    return things[0]
