"""Columns of reports as bytes: how sealed metrics are stored, without loss.

Rules:
- Numbers are split into their bytes, byte 0 of all first, then byte 1 and so on, and compressed: neighbours look alike.
- Values that came from 32-bit floats are kept in four bytes. Whole numbers stay whole where every value is one.
- Anything else (text, null, nested, mixed) is kept as JSON text.
- The first byte says which form it is, so that a later release can add one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from tenax.errors import Impossible
from tenax.jsonvalue import SPECIAL, Json
from tenax.master.telemetry.summary import to_json

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_LEVEL = 1
_DOUBLE, _SINGLE, _WHOLE, _JSON = b"d", b"f", b"i", b"j"
#: Whole numbers up to here are the same as 64-bit floats.
_EXACT = 2**53


def pack_integers(values: Integers) -> bytes:
    """Steps or times: differences of neighbours, which hardly vary."""
    return _squeeze(np.diff(values, prepend=np.int64(0)))


def unpack_integers(data: bytes) -> Integers:
    """What `pack_integers` packed."""
    return np.cumsum(_spread(data, np.dtype("<i8")))


def pack_values(values: Sequence[Json]) -> bytes:
    """The values of one metric."""
    kinds = set(map(type, values))
    if kinds == {int}:
        whole = _whole(values)
        return _WHOLE + pack_integers(whole) if whole is not None else _json(values)
    floats = _floats(values, kinds)
    if floats is None:
        return _json(values)
    with np.errstate(over="ignore"):
        single = floats.astype(np.float32)
    if np.array_equal(single.astype(np.float64).view(np.int64), floats.view(np.int64)):
        return _SINGLE + _squeeze(single)
    return _DOUBLE + _squeeze(floats)


def unpack_values(data: bytes) -> list[Json]:
    """What `pack_values` packed: special numbers are strings."""
    if data[:1] == _JSON:
        values: list[Json] = msgspec.json.decode(zlib.decompress(data[1:]))
        return values
    if data[:1] == _WHOLE:
        return _listed(unpack_integers(data[1:]))
    numbers = unpack_numbers(data)
    if np.isfinite(numbers).all():
        return _listed(numbers)
    return [to_json(value) for value in numbers.tolist()]


def unpack_numbers(data: bytes) -> Floats:
    """What `pack_values` packed, as numbers for a chart: NaN where a value is none."""
    form, rest = data[:1], data[1:]
    if form == _DOUBLE:
        return _spread(rest, np.dtype("<f8")).astype(np.float64, copy=False)
    if form == _SINGLE:
        return _spread(rest, np.dtype("<f4")).astype(np.float64)
    if form == _WHOLE:
        return unpack_integers(rest).astype(np.float64)
    if form == _JSON:
        return np.array([as_float(value) for value in unpack_values(data)], dtype=np.float64)
    raise Impossible(f"a packed column begins with {form!r}: it was written by a newer release")


def pack_present(present: npt.NDArray[np.bool_]) -> bytes | None:
    """Which reports have a metric; None: all of them."""
    return None if present.all() else zlib.compress(np.packbits(present).tobytes(), _LEVEL)


def unpack_present(data: bytes | None, count: int) -> npt.NDArray[np.bool_]:
    """What `pack_present` packed, for ``count`` reports."""
    if data is None:
        return np.ones(count, dtype=np.bool_)
    bits = np.unpackbits(np.frombuffer(zlib.decompress(data), dtype=np.uint8), count=count)
    return bits.astype(np.bool_)


def pack_lines(lines: Sequence[bytes]) -> bytes:
    """JSON texts, none of which holds a line break."""
    return zlib.compress(b"\n".join(lines), _LEVEL)


def unpack_lines(data: bytes) -> list[bytes]:
    """What `pack_lines` packed."""
    return zlib.decompress(data).split(b"\n")


def as_float(value: Json) -> float:
    """A value on a chart: NaN for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return SPECIAL.get(value, np.nan) if isinstance(value, str) else np.nan
    return float(value)


def _listed(numbers: Integers | Floats) -> list[Json]:
    values: list[Json] = numbers.tolist()
    return values


def _whole(values: Sequence[Json]) -> Integers | None:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return None


def _floats(values: Sequence[Json], kinds: set[type]) -> Floats | None:
    """As 64-bit floats, when that loses nothing."""
    if not kinds <= {float, int, str}:
        return None
    if int in kinds and any(abs(value) > _EXACT for value in values if isinstance(value, int)):
        return None
    if str in kinds:
        if any(isinstance(value, str) and value not in SPECIAL for value in values):
            return None
        return np.array([SPECIAL[v] if isinstance(v, str) else v for v in values], dtype=np.float64)
    return np.array(values, dtype=np.float64)


def _json(values: Sequence[Json]) -> bytes:
    return _JSON + zlib.compress(msgspec.json.encode(values), _LEVEL)


def _squeeze(values: npt.NDArray[np.generic]) -> bytes:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    planes = little.view(np.uint8).reshape(len(values), values.dtype.itemsize).T
    return zlib.compress(planes.tobytes(), _LEVEL)


def _spread(data: bytes, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    planes = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(dtype).reshape(-1)
