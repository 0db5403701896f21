"""The type of a JSON value, for signatures that carry documents, and how numbers that JSON lacks are carried.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import math
from typing import Dict, List, Mapping, Union

#: What ``json.loads`` gives back.
Json = Union[None, bool, int, float, str, List["Json"], Dict[str, "Json"]]
JsonObject = Dict[str, Json]

#: The strings that carry numbers which JSON has no word for.
SPECIAL: Mapping[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(value: float) -> Union[float, str]:
    """A number as JSON carries it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
