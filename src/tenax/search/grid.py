"""The points of a grid, by number: axes, their values, and the product, none of it materialised.

Rules:
- One axis per leaf, names sorted at every level; the last axis varies fastest. An empty map is an axis of one point.
- Integer axes never have more points than integers; one point means the middle; halves round away from zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.search.config import Categorical, Const, Double, Hyperparameter, Int, Log, Map
from tenax.search.space import power


@dataclass(frozen=True, slots=True)
class Axis:
    """The values that one leaf takes, and the names that lead to it."""

    route: tuple[str, ...]
    values: tuple[Json, ...]


def axes(space: Map) -> tuple[Axis, ...]:
    """The axes of the grid, slowest first. Raises InvalidInput when a number's axis has no ``count``."""
    return tuple(_axes(space, ()))


def size(space: Map) -> int:
    """How many points the grid has."""
    return math.prod(len(axis.values) for axis in axes(space))


def point(all_axes: tuple[Axis, ...], number: int) -> JsonObject:
    """The point of that number, 0 <= number < size, counted with the last axis fastest."""
    chosen: list[Json] = []
    for axis in reversed(all_axes):
        number, index = divmod(number, len(axis.values))
        chosen.append(axis.values[index])
    hparams: JsonObject = {}
    for axis, value in zip(all_axes, reversed(chosen), strict=True):
        place = hparams
        for name in axis.route[:-1]:
            inner = place.setdefault(name, {})
            assert isinstance(inner, dict)
            place = inner
        place[axis.route[-1]] = {} if value == {} else value
    return hparams


def holds(all_axes: tuple[Axis, ...], hparams: JsonObject) -> bool:
    """Whether these hyperparameters are a point of the grid."""
    return all(_at(hparams, axis.route) in axis.values for axis in all_axes)


def axis_values(hyperparameter: Hyperparameter, name: str = "") -> tuple[Json, ...]:
    """The values of one leaf's axis."""
    match hyperparameter:
        case Const(value):
            return (value,)
        case Categorical(values):
            return values
        case Int(minimum, maximum, count):
            points = min(_count(count, name), maximum - minimum + 1)
            return tuple(_round(value) for value in _spread(minimum, maximum, points))
        case Double(minimum, maximum, count):
            return tuple(_spread(minimum, maximum, _count(count, name)))
        case Log(minimum, maximum, base, count):
            return tuple(power(base, exponent) for exponent in _spread(minimum, maximum, _count(count, name)))
        case Map():
            return ({},)


def _axes(space: Map, route: tuple[str, ...]) -> Iterator[Axis]:
    for name, child in space.children.items():
        here = (*route, name)
        if isinstance(child, Map) and child.children:
            yield from _axes(child, here)
        else:
            yield Axis(here, axis_values(child, ".".join(here)))


def _count(count: int | None, name: str) -> int:
    if count is None:
        raise InvalidInput(
            f"The grid needs to know how many values {name or 'a hyperparameter'} takes: give it a count."
        )
    return count


def _spread(low: float, high: float, count: int) -> Iterator[float]:
    """``count`` values from ``low`` to ``high`` in equal steps; the middle when there is one."""
    if count == 1:
        yield (low + high) / 2
    else:
        yield from (low + i * (high - low) / (count - 1) for i in range(count))


def _round(value: float) -> int:
    """To the nearest integer, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _at(hparams: JsonObject, route: tuple[str, ...]) -> Json:
    place: Json = hparams
    for name in route:
        if not isinstance(place, dict):
            return None
        place = place.get(name)
    return place
