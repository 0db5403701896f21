"""What the machines of a request must be: its hard constraints, in order, each with a reason.

Rules:
- In this order: labels of the agent (all of them), the name of its devices, their memory; and last what the machines of
  one gang must have alike.
- Labels say which agents; names and memory say which of an agent's slots, so that a machine with two kinds of GPU
  serves both.
- A device is named by words of its name that stand together, whatever their case and what parts them: ``A10`` is no
  ``A100``, ``A100`` is ``NVIDIA A100-SXM4-40GB``, and ``RTX4090`` is ``NVIDIA GeForce RTX 4090``.
- Memory is asked for as it is sold: what drivers and error correction keep of it, up to a tenth, is not missing.
- What an agent does not say, it has not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from tenax.display.plural import counted
from tenax.ids import SlotId
from tenax.jsonvalue import JsonObject
from tenax.scheduler.devices import SlotDevice
from tenax.scheduler.snapshot import DEVICE_NAME, Constraints, PoolAgent

#: Of what is asked for, so much is enough.
_AS_SOLD = 0.9
_GIB = 1024**3
#: Names of devices, or values of a label, that a reason lists.
_LISTED = 5
_UNKNOWN = SlotDevice()


class HardConstraint(Protocol):
    """One of them."""

    def slots_of(self, agent: PoolAgent) -> tuple[SlotId, ...] | None:
        """Those of an agent's slots that meet it; None: the agent does not."""

    def described(self) -> str:
        """What is asked for."""

    def unmet(self, agents: Sequence[PoolAgent]) -> str:
        """What there is instead: the end of a sentence that begins with the pool."""


@dataclass(frozen=True, slots=True)
class WithLabel:
    """Agents with a value of a label."""

    key: str
    values: tuple[str, ...]

    def slots_of(self, agent: PoolAgent) -> tuple[SlotId, ...] | None:
        return agent.slots if agent.labels.get(self.key) in self.values else None

    def described(self) -> str:
        return f"label {self.key}: {_either(self.values)}"

    def unmet(self, agents: Sequence[PoolAgent]) -> str:
        values = Counter(agent.labels.get(self.key) for agent in agents)
        without = values.pop(None, 0)
        if not values:
            return f"has no agent with a label {self.key}"
        others = f", and {counted(without, 'agent')} without it" if without else ""
        return f"has no agent with the label {self.key}={_either(self.values)}, but {_listed(values)}{others}"


@dataclass(frozen=True, slots=True)
class WithDeviceName:
    """Devices with one of these names."""

    names: tuple[str, ...]

    def slots_of(self, agent: PoolAgent) -> tuple[SlotId, ...] | None:
        return _where(agent, lambda device: is_named(device.name, self.names))

    def described(self) -> str:
        return f"device name: {_either(self.names)}"

    def unmet(self, agents: Sequence[PoolAgent]) -> str:
        return f"has no device named {_either(self.names)}, but {_devices(agents)}"


@dataclass(frozen=True, slots=True)
class OfModel:
    """Devices with exactly this name."""

    name: str

    def slots_of(self, agent: PoolAgent) -> tuple[SlotId, ...] | None:
        return _where(agent, lambda device: device.name == self.name)

    def described(self) -> str:
        return f"device: {self.name or 'of no name'}"

    def unmet(self, agents: Sequence[PoolAgent]) -> str:
        return f"has no {self.name}, but {_devices(agents)}"


@dataclass(frozen=True, slots=True)
class WithDeviceMemory:
    """Devices with so much memory."""

    least: int

    def slots_of(self, agent: PoolAgent) -> tuple[SlotId, ...] | None:
        return _where(agent, lambda device: device.memory is not None and device.memory >= self.least * _AS_SOLD)

    def described(self) -> str:
        return f"device memory: {_gib(self.least)}"

    def unmet(self, agents: Sequence[PoolAgent]) -> str:
        known = {device.memory for device in _all(agents) if device.memory is not None}
        has = f"the largest has {_gib(max(known))}" if known else "none that says how much it has"
        return f"has no device with {_gib(self.least)} of memory: {has}"


@lru_cache(maxsize=4096)
def steps(constraints: Constraints) -> tuple[HardConstraint, ...]:
    """What each machine must meet by itself, in order; what is kept for others is no part of it."""
    listed: list[HardConstraint] = [WithLabel(key, values) for key, values in constraints.labels]
    if constraints.device_name:
        listed.append(WithDeviceName(constraints.device_name))
    if constraints.of_model is not None:
        listed.append(OfModel(constraints.of_model))
    if constraints.device_memory is not None:
        listed.append(WithDeviceMemory(constraints.device_memory))
    return tuple(listed)


def narrowed(agent: PoolAgent, constraints: Iterable[HardConstraint]) -> PoolAgent | None:
    """An agent with those of its slots that meet all; None: the agent does not."""
    for constraint in constraints:
        slots = constraint.slots_of(agent)
        if slots is None:
            return None
        if len(slots) < len(agent.slots):
            agent = replace(agent, slots=slots, in_use=agent.in_use.intersection(slots))
    return agent


@dataclass(frozen=True, slots=True)
class AlikeAgents:
    """Machines that are alike."""

    #: What is asked of each to be of it.
    within: Constraints
    agents: tuple[PoolAgent, ...]
    #: Of those that are alike.
    slots: int


def alike(constraints: Constraints, agents: Iterable[PoolAgent]) -> tuple[AlikeAgents, ...]:
    """The ways in which these, which meet the rest, can be alike; those without one of the labels are so in none."""
    keys = tuple(key for key in constraints.same if key != DEVICE_NAME)
    by_model = DEVICE_NAME in constraints.same
    groups: dict[tuple[tuple[str, ...], str], list[PoolAgent]] = {}
    slots: Counter[tuple[tuple[str, ...], str]] = Counter()
    for agent in agents:
        if not all(key in agent.labels for key in keys):
            continue
        values = tuple(agent.labels[key] for key in keys)
        names = Counter(agent.devices.get(slot, _UNKNOWN).name if by_model else "" for slot in agent.slots)
        for name, count in (names or {"": 0}).items():
            groups.setdefault((values, name), []).append(agent)
            slots[values, name] += count
    return tuple(
        AlikeAgents(
            replace(
                constraints,
                labels=(*constraints.labels, *((key, (value,)) for key, value in zip(keys, way[0]))),
                same=(),
                of_model=way[1] if by_model else None,
            ),
            tuple(groups[way]),
            slots[way],
        )
        for way in sorted(groups)
    )


def more_than(way: Constraints, constraints: Constraints) -> Constraints:
    """What one of the ways of `alike` asks for more than they do."""
    return Constraints(way.labels[len(constraints.labels) :], of_model=way.of_model)


@lru_cache(maxsize=4096)
def is_named(name: str, names: tuple[str, ...]) -> bool:
    """Whether words of a device's name that stand together are one of these, written with or without what parts them.

    A part of a GPU (a MIG instance) is that GPU for nobody who does not name it.
    """
    parts = _parts(name)
    return any(_stand_in(_parts(each), parts) for each in names if "mig" in _parts(each) or "mig" not in parts)


def _stand_in(name: list[str], parts: list[str]) -> bool:
    text = "".join(name)
    return any(
        "".join(parts[first:last]) == text for first in range(len(parts)) for last in range(first + 1, len(parts) + 1)
    )


def described(constraints: Constraints) -> str:
    """For people, in one line."""
    return "; ".join([*(step.described() for step in steps(constraints)), *map(_alike, constraints.same)])


def constraints_of(document: object) -> Constraints | None:
    """``resources.constraints`` of a complete configuration; None: nothing is asked for."""
    if not isinstance(document, Mapping):
        return None
    labels = document.get("labels") or {}
    constraints = Constraints(
        tuple((key, tuple(sorted(set(labels[key])))) for key in sorted(labels)),
        tuple(sorted(set(document.get("device_name") or ()))),
        document.get("device_memory"),
        tuple(sorted(set(document.get("same") or ()))),
    )
    return None if constraints == Constraints() else constraints


def constraints_in(config: JsonObject) -> Constraints | None:
    """Of a complete configuration."""
    resources = config.get("resources")
    return constraints_of(resources.get("constraints")) if isinstance(resources, dict) else None


def as_document(constraints: Constraints | None) -> JsonObject | None:
    """What `constraints_of` reads again."""
    if constraints is None:
        return None
    return {
        "labels": {key: list(values) for key, values in constraints.labels},
        "device_name": list(constraints.device_name),
        "device_memory": constraints.device_memory,
        "same": list(constraints.same),
    }


def without_each(constraints: Constraints) -> Iterable[tuple[str, Constraints | None]]:
    """What would be asked for without one of them, in their order, beside which that is."""
    ways: list[tuple[str, Constraints]] = []
    for step in constraints.labels:
        rest = tuple(each for each in constraints.labels if each != step)
        ways.append((WithLabel(*step).described(), replace(constraints, labels=rest)))
    if constraints.device_name:
        ways.append((WithDeviceName(constraints.device_name).described(), replace(constraints, device_name=())))
    if constraints.device_memory is not None:
        ways.append((WithDeviceMemory(constraints.device_memory).described(), replace(constraints, device_memory=None)))
    for name in constraints.same:
        rest_of_same = tuple(each for each in constraints.same if each != name)
        ways.append((_alike(name), replace(constraints, same=rest_of_same)))
    return [(text, None if left == Constraints() else left) for text, left in ways]


def _where(agent: PoolAgent, meets: Callable[[SlotDevice], bool]) -> tuple[SlotId, ...] | None:
    return tuple(slot for slot in agent.slots if meets(agent.devices.get(slot, _UNKNOWN))) or None


def _parts(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _all(agents: Iterable[PoolAgent]) -> Iterable[SlotDevice]:
    return (agent.devices.get(slot, _UNKNOWN) for agent in agents for slot in agent.slots)


def _devices(agents: Sequence[PoolAgent]) -> str:
    names = Counter(device.name for device in _all(agents))
    unnamed = names.pop("", 0)
    has = [_listed(names)] if names else []
    return (
        " and ".join([*has, *([f"{counted(unnamed, 'device')} of no name"] if unnamed else [])]) or "no device at all"
    )


def _listed(counts: Mapping[str | None, int] | Mapping[str, int]) -> str:
    """The most frequent first, with how many there are of each."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    text = ", ".join(f"{name} ({count})" for name, count in ordered[:_LISTED])
    return f"{text} and {len(ordered) - _LISTED} others" if len(ordered) > _LISTED else text


def _alike(name: str) -> str:
    return "all devices of one name" if name == DEVICE_NAME else f"all machines of one {name}"


def _either(values: Sequence[str]) -> str:
    return " or ".join(values)


def _gib(size: int) -> str:
    return f"{size / _GIB:.3g} GiB"
