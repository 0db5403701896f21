"""The type of a JSON value, for signatures and fields that carry documents; how numbers that JSON lacks are carried.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Union

#: What ``json.loads`` gives back.
Json = Union[None, bool, int, float, str, List["Json"], Dict[str, "Json"]]
JsonObject = Dict[str, Json]

#: A `JsonObject` as the field of a message or of settings. What reads annotations at run time (pydantic) sees an object
#: with anything in it: documents pass as deep and as large as they come, and nobody looks at what is in them.
if TYPE_CHECKING:
    Document = JsonObject
else:
    Document = Dict[str, object]

#: The strings that carry numbers which JSON has no word for.
SPECIAL: Mapping[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def as_object(value: Union[Json, Mapping[str, Json]]) -> JsonObject:
    """The value, an empty object for what is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> List[Json]:
    """The value, an empty list for what is none."""
    return value if isinstance(value, list) else []


def is_deeper(value: Json, most: int) -> bool:
    """Whether lists and objects stand more than ``most`` deep in one another."""
    level: List[Json] = [value]
    for _ in range(most + 1):
        inner: List[Json] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return False
        level = inner
    return True


def cut_deeper(value: Json, most: int) -> Json:
    """The value, with a text in the place of every list and object that stands ``most`` deep in others."""
    if not isinstance(value, (dict, list)):
        return value
    if most == 0:
        return "(nested too deeply to be shown)"
    if isinstance(value, dict):
        return {key: cut_deeper(child, most - 1) for key, child in value.items()}
    return [cut_deeper(child, most - 1) for child in value]


def to_json(value: float) -> Union[float, str]:
    """A number as JSON carries it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def to_number(value: Json) -> Optional[float]:
    """The value as a number, special ones too; None for what is none. One beyond all floats is infinite."""
    if isinstance(value, str):
        return SPECIAL.get(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
