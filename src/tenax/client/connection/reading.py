"""How answers of the master become values, and how the names that people write become numbers and ids.

Answers are read leniently: what is absent, null or of another kind is the empty value. 64-bit integers arrive as
strings or numbers, NaN and infinities as strings. A class of values says at each field where that stands in the answer:

    @dataclass(frozen=True)
    class Pool(Answer):
        name: str = part(text, "name")
        queued_jobs: int = part(integer, "stats", "queuedCount")

Standard library only.
"""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Sequence, Type, TypeVar, Union, cast

from tenax.errors import InvalidInput, NotFound
from tenax.jsonvalue import Json, JsonObject

if TYPE_CHECKING:
    from tenax.client.connection.session import Session


def parsed(body: bytes) -> Json:
    """The body of an answer; None where it is empty or no JSON."""
    try:
        value: Json = json.loads(body) if body else None
    except ValueError:
        return None
    return value


def error_message(value: JsonObject) -> str:
    """The message of an error body, of either kind of route."""
    error = value.get("error")
    inner = error if isinstance(error, dict) else value
    return text(inner, "error") or text(inner, "message")


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


def measure(value: JsonObject, key: str) -> Optional[float]:
    """A number as `real` reads it; None when it is not there."""
    return real(value.get(key))


def span_s(begin: Optional[datetime.datetime], end: Optional[datetime.datetime]) -> Optional[float]:
    """Seconds from ``begin`` to ``end``, or until now; None where it has not begun."""
    if begin is None:
        return None
    return ((end or datetime.datetime.now(datetime.timezone.utc)) - begin).total_seconds()


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


def without_nulls(value: JsonObject) -> JsonObject:
    """Without what is None: in a request, what is absent stays as it is."""
    return {name: item for name, item in value.items() if item is not None}


def numbers(value: JsonObject) -> Dict[str, float]:
    """The numbers of a flat object, by name."""
    by_name: Dict[str, float] = {}
    for name, item in value.items():
        number = real(item)
        if number is not None:
            by_name[name] = number
    return by_name


Value = TypeVar("Value")
#: Where a field keeps how it is read.
_FIND = "find"


def part(read: Callable[[JsonObject, str], Value], *path: str, shown: bool = True) -> Value:
    """A field of a class of values: what ``read`` finds at ``path``. Unless ``shown``, neither printed nor compared."""

    def find(value: JsonObject, _: Optional[Session]) -> Value:
        for name in path[:-1]:
            value = record(value, name)
        return read(value, path[-1])

    return cast(Value, field(repr=shown, compare=shown, metadata={_FIND: find}))


def made(make: Callable[[JsonObject], Value]) -> Value:
    """A field of a class of values: what ``make`` makes of the answer."""
    return cast(Value, field(metadata={_FIND: lambda value, _: make(value)}))


def made_live(make: Callable[[JsonObject, Session], Value]) -> Value:
    """A field of a class of values: what ``make`` makes of the answer and the session that it came by."""
    return cast(Value, field(metadata={_FIND: make}))


@dataclass(frozen=True)
class Answer:
    """A value that was read from an answer of the master; a snapshot."""

    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False, metadata={_FIND: lambda value, _: value})

    @classmethod
    def read(cls: Type[Value], value: JsonObject) -> Value:
        """From an answer of the master."""
        return _read(cls, value, None)


@dataclass(frozen=True)
class LiveAnswer:
    """A value that was read from an answer of the master, with the session in which it can be asked for again."""

    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False, metadata={_FIND: lambda value, _: value})
    session: Session = field(repr=False, compare=False, metadata={_FIND: lambda _, session: session})

    @classmethod
    def read(cls: Type[Value], value: JsonObject, session: Session) -> Value:
        """From an answer of the master."""
        return _read(cls, value, session)


def _read(kind: Type[Value], value: JsonObject, session: Optional[Session]) -> Value:
    make: Callable[..., Value] = kind
    parts = [part for part in fields(cast("type[Answer]", kind)) if _FIND in part.metadata]
    return make(**{part.name: part.metadata[_FIND](value, session) for part in parts})


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
