"""Columns of reports as bytes: how sealed metrics are stored, without loss.

Rules:
- Numbers are split into planes, byte 0 of all first, then byte 1 and so on, and compressed: neighbours look alike.
- The low bytes of a measurement are noise: they stand as they are, in a stream that any zlib reads, and reading takes
  them from there as well. What is packed so is seldom longer.
- Values that came from 32-bit floats are kept in four bytes. Whole numbers stay whole where every value is one.
- Anything else (text, null, nested, mixed) is kept as JSON text.
- The first byte says which form it is, so that a later release can add one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from tenax.errors import Impossible
from tenax.jsonvalue import SPECIAL, Json, to_json

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_LEVEL = 1
_DOUBLE, _SINGLE, _WHOLE, _JSON = b"d", b"f", b"i", b"j"
#: A header of zlib that it does not write at our level: planes follow that stand as they are, an empty one, and the
#: rest deflated, which needs nothing of what is before it. The sum at the end is for other readers of zlib.
_PLANES = b"\x78\x5e"
#: A stored block of deflate that is not the last: 0, how many bytes, the same inverted.
_STORED = struct.Struct("<BHH")
_MAX_STORED_BYTES = 2**16 - 1
#: Of noise two bytes are alike in one of 256 cases; in hardly more than so many times as many among this many bytes.
_ALIKE, _SEEN = 2, 512
#: Of so many bytes of noise hardly ever fewer differ.
_GLANCE, _DIFFERENT = 64, 44
#: A plane of whose first so many bytes zlib makes fewer than such a part is no noise.
_SAMPLE, _SHRUNK = 256, 0.95
#: Whole numbers up to here are the same as 64-bit floats.
_EXACT = 2**53


def pack_integers(values: Integers) -> bytes:
    """Steps or times: differences of neighbours, which hardly vary."""
    return _squeeze(np.diff(values, prepend=np.int64(0)))


def unpack_integers(data: bytes | memoryview) -> Integers:
    """What `pack_integers` packed."""
    return np.cumsum(_spread(memoryview(data), np.dtype("<i8")))


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
    form, rest = data[:1], memoryview(data)[1:]
    if form == _DOUBLE:
        return _spread(rest, np.dtype("<f8")).astype(np.float64, copy=False)
    if form == _SINGLE:
        return _spread(rest, np.dtype("<f4")).astype(np.float64)
    if form == _WHOLE:
        return unpack_integers(rest).astype(np.float64)
    if form == _JSON:
        return np.array([as_float(value) for value in unpack_values(data)], dtype=np.float64)
    raise Impossible(f"a packed column begins with {form!r}: it was written by a newer release")


def unpack_numbers_into(data: bytes, numbers: Floats) -> None:
    """What `unpack_numbers` has, for as many ``numbers``: zeros, one after the other in memory."""
    if data[:1] == _DOUBLE:
        _join(_planes(memoryview(data)[1:], 8), numbers.view("<f8"))
    else:
        numbers[:] = unpack_numbers(data)


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
    planes = np.ascontiguousarray(little.view(np.uint8).reshape(len(values), values.dtype.itemsize).T)
    noise = _noise(planes) if _SEEN <= len(values) <= _MAX_STORED_BYTES else 0
    return _parted(planes, noise) if noise else zlib.compress(planes.tobytes(), _LEVEL)


def _noise(planes: npt.NDArray[np.uint8]) -> int:
    """How many planes, from the first on, have bytes that nothing can be made of."""
    if len(set(planes[0, :_GLANCE].tolist())) < _DIFFERENT:
        return 0
    size, count = planes.shape
    places = planes + 256 * np.arange(size)[:, np.newaxis]
    of_bytes = np.bincount(places.reshape(-1), minlength=256 * size).reshape(size, 256)
    alike = (of_bytes * (of_bytes - 1)).sum(axis=1) * 256 / (count * (count - 1))
    noise = int(np.append(alike > _ALIKE, True).argmax())
    # What repeats itself is no noise, however even its bytes are: a rate that falls by the same each time.
    sample = planes[:noise, :_SAMPLE].tobytes()
    return noise if noise > 1 and len(zlib.compress(sample, _LEVEL)) > _SHRUNK * len(sample) else 0


def _parted(planes: npt.NDArray[np.uint8], noise: int) -> bytes:
    parts = [_PLANES]
    for plane in (*planes[:noise], planes[0, :0]):
        parts += (_STORED.pack(0, len(plane), len(plane) ^ _MAX_STORED_BYTES), plane.tobytes())
    rest = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts += (rest.compress(planes[noise:].tobytes()), rest.flush())
    return b"".join((*parts, zlib.adler32(planes.tobytes()).to_bytes(4, "big")))


def _planes(data: memoryview, size: int) -> list[npt.NDArray[np.uint8]]:
    if data[:2] != _PLANES:
        return list(np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(size, -1))
    planes: list[npt.NDArray[np.uint8]] = []
    end = 2
    while True:
        _, length, _ = _STORED.unpack_from(data, end)
        start, end = end + _STORED.size, end + _STORED.size + length
        if not length:
            break
        planes.append(np.frombuffer(data[start:end], dtype=np.uint8))
    left = size - len(planes)
    rest = zlib.decompress(data[end:-4], -zlib.MAX_WBITS, left * len(planes[0]) or 1)
    return planes + (list(np.frombuffer(rest, dtype=np.uint8).reshape(left, -1)) if left else [])


def _spread(data: memoryview, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    planes = _planes(data, dtype.itemsize)
    numbers = np.zeros(len(planes[0]), dtype)
    _join(planes, numbers)
    return numbers


def _join(planes: Sequence[npt.NDArray[np.uint8]], numbers: npt.NDArray[np.generic]) -> None:
    together = numbers.view(np.uint8).reshape(len(numbers), len(planes))
    for number, plane in enumerate(planes):
        # Differences of neighbours are small, but for the first.
        first, rest = plane[:1], plane[1:]
        together[:1, number] = first
        if rest.size and (rest[0] or rest[-1] or rest.max()):
            together[1:, number] = rest
