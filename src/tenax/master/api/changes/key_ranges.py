"""Ids as clients write them, ``1-4,7``: ranges in rising order that do not touch. Pure; none is ever counted out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenax.errors import InvalidInput

#: First and last id of each.
Ranges = list[tuple[int, int]]
#: More than anybody knows.
_MAX_RANGES = 100_000
#: Two ids of 64 bits.
_MAX_PART = 40


def parse(text: str) -> Ranges:
    """The ranges of a text; empty for none. Raises InvalidInput."""
    ranges: Ranges = []
    parts = text.split(",") if text else []
    if len(parts) > _MAX_RANGES:
        raise InvalidInput(f"known has {len(parts)} ranges: at most {_MAX_RANGES} are taken")
    for part in parts:
        first, dash, last = part.partition("-")
        if (
            len(part) > _MAX_PART
            or not (first.isdecimal() and (last if dash else first).isdecimal())
            or int(last or first) < int(first)
        ):
            raise InvalidInput(f"known: {part[:40]!r} is not an id, nor a range of ids such as 1-4")
        if ranges and int(first) <= ranges[-1][1]:
            raise InvalidInput(f"known: {part[:40]!r} does not come after what stands before it")
        ranges.append((int(first), int(last or first)))
    return ranges


def holds(ranges: Ranges, ids: Iterable[int]) -> set[int]:
    """Those of some ids that are in the ranges."""
    held, place = set(), 0
    for number in sorted(ids):
        while place < len(ranges) and ranges[place][1] < number:
            place += 1
        if place < len(ranges) and ranges[place][0] <= number:
            held.add(number)
    return held


def without(ranges: Ranges, ids: Iterable[int]) -> Ranges:
    """What is left of the ranges without some ids."""
    left: Ranges = []
    gone = sorted(ids)
    place = 0
    for first, last in ranges:
        while place < len(gone) and gone[place] < first:
            place += 1
        while place < len(gone) and gone[place] <= last:
            if first < gone[place]:
                left.append((first, gone[place] - 1))
            first = gone[place] + 1
            place += 1
        if first <= last:
            left.append((first, last))
    return left


def of(ids: Iterable[int]) -> Ranges:
    """Some ids as ranges."""
    ranges: Ranges = []
    for number in sorted(set(ids)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


def text(ranges: Sequence[tuple[int, int]]) -> str:
    """As they are written."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
