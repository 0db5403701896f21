"""How people name things: by number, by name, or by the beginning of an id."""

from __future__ import annotations

from typing import Callable, List, Sequence, TypeVar, Union

from tenax.errors import InvalidInput, NotFound

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
