"""One sample of a hyperparameter space, and one trial's draws.

Rules:
- The order of draws is fixed: hyperparameters in sorted order of names at every level, then the request id (16 bytes),
  then the trial's seed. The same seed of the experiment thus gives the same trials.
- A constant draws nothing; neither does an integer or a category of one value.
"""

from __future__ import annotations

import sys

from tenax.ids import RequestId
from tenax.jsonvalue import Json, JsonObject
from tenax.search.config import Categorical, Const, Double, Hyperparameter, Int, Log, Map
from tenax.search.stream import RandomStream

#: Seeds of trials lie in [0, 2**31).
_SEEDS = 1 << 31


def sample(space: Map, stream: RandomStream) -> JsonObject:
    """Hyperparameters of one trial, drawn in sorted order."""
    return {name: draw(child, stream) for name, child in space.children.items()}


def draw(hyperparameter: Hyperparameter, stream: RandomStream) -> Json:
    """One value of one hyperparameter (a nested object for a ``Map``)."""
    match hyperparameter:
        case Const(value):
            return value
        case Int(minimum, maximum):
            return stream.integer(minimum, maximum + 1)
        case Double(minimum, maximum):
            return stream.uniform(minimum, maximum)
        case Log(minimum, maximum, base):
            return power(base, stream.uniform(minimum, maximum))
        case Categorical(values):
            return values[stream.integer(0, len(values))]
        case Map():
            return sample(hyperparameter, stream)


def draw_request_id(stream: RandomStream) -> RequestId:
    """A version 4 UUID from four words of the stream, each in little-endian order."""
    raw = bytearray(stream.bytes(4))
    raw[6] = (raw[6] & 0x0F) | 0x40
    raw[8] = (raw[8] & 0x3F) | 0x80
    text = raw.hex()
    return RequestId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


def draw_seed(stream: RandomStream) -> int:
    """The seed of a trial."""
    return stream.integer(0, _SEEDS)


def power(base: float, exponent: float) -> float:
    """``base ** exponent``, held at the largest float where it would overflow: a sample must be a JSON number."""
    try:
        return float(base**exponent)
    except OverflowError:
        return sys.float_info.max
