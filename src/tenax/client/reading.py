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
    field = value.get(key)
    return field if isinstance(field, str) else ""


def integer(value: JsonObject, key: str) -> int:
    """An integer; 0 when it is not there."""
    field = value.get(key)
    if isinstance(field, str):
        try:
            return int(field)
        except ValueError:
            return 0
    return int(field) if isinstance(field, (int, float)) else 0


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
    field = value.get(key)
    return field if isinstance(field, dict) else {}


def records(value: JsonObject, key: str) -> List[JsonObject]:
    """The objects of a list; empty when it is not there."""
    field = value.get(key)
    return [item for item in field if isinstance(item, dict)] if isinstance(field, list) else []


def texts(value: JsonObject, key: str) -> List[str]:
    """The strings of a list; empty when it is not there."""
    field = value.get(key)
    return [item for item in field if isinstance(item, str)] if isinstance(field, list) else []


def moment(value: JsonObject, key: str) -> Optional[datetime.datetime]:
    """A time with its zone; None when it is not there."""
    written = text(value, key)
    if not written:
        return None
    # Python 3.9 reads at most six digits, and no Z.
    plain = re.sub(r"(\.\d{1,6})\d*", lambda match: match[1].ljust(7, "0"), written.replace("Z", "+00:00"))
    try:
        parsed = datetime.datetime.fromisoformat(plain)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=datetime.timezone.utc)


def state(value: JsonObject, key: str = "state") -> str:
    """``STATE_STOPPING_KILLED`` as ``STOPPING_KILLED``."""
    name = text(value, key)
    return name[len("STATE_") :] if name.startswith("STATE_") else name


def numbers(value: JsonObject) -> Dict[str, float]:
    """The numbers of a flat object, by name."""
    by_name: Dict[str, float] = {}
    for name, item in value.items():
        number = real(item)
        if number is not None:
            by_name[name] = number
    return by_name


Value = TypeVar("Value")
#: How many of several matches an error names.
_NAMED = 5


def is_number(name: str) -> bool:
    """Whether it can be the number of something."""
    return name.isascii() and name.isdigit()


def number_or_name(argument: str) -> Union[int, str]:
    """An argument of a command line: a number where it is digits, else a name."""
    return int(argument) if is_number(argument) else argument


def only(name: str, matches: Sequence[Value], id_of: Callable[[Value], str], noun: str, otherwise: str) -> Value:
    """The only match of ``name``. Raises NotFound with the hint ``otherwise``, InvalidInput for several."""
    if not name or not matches:
        raise NotFound(f"There is no {noun} {name!r}{otherwise}")
    if len(matches) > 1:
        ids: List[str] = [id_of(match) for match in matches[:_NAMED]]
        raise InvalidInput(f"{name!r} may be any of {len(matches)} {noun}s ({', '.join(ids)}): give its id.")
    return matches[0]
