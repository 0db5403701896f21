"""Scalars in TensorBoard's format of event files. Standard library only, Python 3.9.

A file is a row of records: length (8 bytes, little endian), its checksum, data, its checksum. The checksum is CRC-32C,
masked (https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/lib/io/record_writer.h); the data is a
protobuf message ``Event`` (tensorflow/core/util/event.proto), of which this writes the fields that scalars need.
"""

from __future__ import annotations

import math
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Field numbers with their wire types, as protobuf writes them: 1 for 8 bytes, 5 for 4, 2 for a length, 0 for a number.
_WALL_TIME, _STEP, _FILE_VERSION, _SUMMARY, _SESSION_LOG = 0x09, 0x10, 0x1A, 0x2A, 0x3A
_VALUE, _TAG, _SIMPLE_VALUE, _STATUS = 0x0A, 0x0A, 0x15, 0x08
_START = 1


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _make_table()


def header(wall_time: float) -> bytes:
    """The record that begins a file."""
    return record(_event(wall_time, None, bytes((_FILE_VERSION,)) + _counted(b"brain.Event:2")))


def restart(wall_time: float, step: int) -> bytes:
    """What was written for ``step`` and beyond, by an earlier run, is not to be shown."""
    return record(_event(wall_time, step, bytes((_SESSION_LOG,)) + _counted(bytes((_STATUS, _START)))))


def scalars(wall_time: float, step: int, values: Mapping[str, float]) -> bytes:
    """One record with all values of a step."""
    parts = b"".join(_value(tag, value) for tag, value in values.items())
    return record(_event(wall_time, step, bytes((_SUMMARY,)) + _counted(parts)))


def record(data: bytes) -> bytes:
    """``data`` between its length and its checksums."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def masked_crc(data: Iterable[int]) -> int:
    """CRC-32C of bytes, rotated and moved, so that a checksum of what holds checksums is still a good one."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _event(wall_time: float, step: int | None, rest: bytes) -> bytes:
    step_field = bytes((_STEP,)) + _number(step) if step else b""
    return struct.pack("<Bd", _WALL_TIME, wall_time) + step_field + rest


def _value(tag: str, value: float) -> bytes:
    inside = (
        bytes((_TAG,)) + _counted(tag.encode("utf-8", "replace")) + struct.pack("<B", _SIMPLE_VALUE) + _single(value)
    )
    return bytes((_VALUE,)) + _counted(inside)


def _single(value: float) -> bytes:
    """In the four bytes that the format has; what they cannot hold is infinite, as of a loss that diverges."""
    try:
        return struct.pack("<f", float(value))
    except OverflowError:
        return struct.pack("<f", math.inf if value > 0 else -math.inf)


def _counted(data: bytes) -> bytes:
    return _number(len(data)) + data


def _number(value: int) -> bytes:
    """As protobuf writes whole numbers: seven bits a byte; a negative one in 64 bits."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
