"""``resources.constraints``: what the machines of a task must be, beside having slots for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.sizes import SIZE
from tenax.config.shapes import ListOf, MapOf, Respelled, Shape, TextShape
from tenax.config.structs import Struct
from tenax.jsonvalue import Json, as_list, as_object
from tenax.scheduler.snapshot import DEVICE_NAME

#: Names and values in each of the lists.
MAX_ENTRIES = 32
LABEL_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
#: Names that mean something else beside labels, and what is easily written for them.
NO_LABELS = frozenset(
    {DEVICE_NAME, "device_memory", "device-name", "device-memory", "device", "devices", "device_names"}
)
#: Characters of the name of a device.
MAX_NAME = 255
#: Bytes: whoever writes less has left out the unit.
_LEAST_MEMORY = 1 << 20
LABEL_VALUE = re.compile(r"[A-Za-z0-9._:/-]{0,255}")


def _as_list(value: Json, at: Path, report: ProblemReport) -> Json:
    """One as a list of it; a whole number or a truth as YAML writes a text without quotes."""
    entries = value if isinstance(value, list) else [value]
    return [_as_text(entry, at, report) for entry in entries]


def _as_text(value: Json, at: Path, report: ProblemReport) -> Json:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # 1.10 is 1.1 by now.
        report.add(at, f"{value} is a number to YAML, which changes how it is written: put it in quotes")
        return str(value)
    return str(value) if isinstance(value, int) else value


def _few(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, list)
    if not value or len(value) > MAX_ENTRIES:
        report.add(at, f"names {len(value)}: give 1 to {MAX_ENTRIES}, or leave it out")


def _is_value(value: Json, at: Path, report: ProblemReport) -> None:
    if not LABEL_VALUE.fullmatch(str(value)):
        report.add(at, f"{value!r} is no value of a label: letters, digits and . _ : / - make one")


def _has_words(value: Json, at: Path, report: ProblemReport) -> None:
    if not re.search(r"[A-Za-z0-9]", str(value)) or len(str(value)) > MAX_NAME:
        report.add(at, f"{str(value)[:40]!r} names no device: write what tenax slot list shows of it, such as A100")


def _are_keys(value: Json, at: Path, report: ProblemReport) -> None:
    assert isinstance(value, list)
    for number, name in enumerate(value):
        if isinstance(name, str) and name != DEVICE_NAME and (not LABEL_KEY.fullmatch(name) or name in NO_LABELS):
            report.add((*at, number), f"{name!r} is no label: write the name of one, or {DEVICE_NAME}")
    _few(value, at, report)


def _consistent(value: Json, at: Path, report: ProblemReport) -> None:
    labels = as_object(value).get("labels")
    if isinstance(labels, dict):
        if len(labels) > MAX_ENTRIES:
            report.add((*at, "labels"), f"names {len(labels)} labels: at most {MAX_ENTRIES}")
        for key in labels:
            if not LABEL_KEY.fullmatch(key):
                report.add((*at, "labels"), f"{key!r} is no label: letters, digits and . _ / - make one")
            elif key in NO_LABELS:
                report.add((*at, "labels"), f"{key!r} is no label: {DEVICE_NAME} and device_memory stand beside labels")
    memory = as_object(value).get("device_memory")
    if isinstance(memory, int) and 0 < memory < _LEAST_MEMORY:
        report.add((*at, "device_memory"), f"{memory} bytes are less than any device has: write a unit, as in '80 GB'")


def one_or_more(item: Shape) -> Respelled:
    """A list, or the one that it would hold."""
    return Respelled(ListOf(item, rule=_few), _as_list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsConfig:
    """All of it must hold."""

    #: Agents with one of these values of each label.
    labels: Annotated[Mapping[str, tuple[str, ...]], MapOf(one_or_more(TextShape(rule=_is_value)))] = field(
        default_factory=dict
    )
    #: Devices with one of these in their name: words of it that stand together.
    device_name: Annotated[tuple[str, ...] | None, one_or_more(TextShape(filled=True, rule=_has_words))] = None
    #: Bytes of each device, at least, as it is sold.
    device_memory: Annotated[int | None, SIZE] = None
    #: Labels, or ``device_name``, that must be alike for all machines of one task.
    same: Annotated[tuple[str, ...] | None, Respelled(ListOf(TextShape(filled=True), rule=_are_keys), _as_list)] = None


CONSTRAINTS = Struct(ConstraintsConfig, rule=_consistent)


def fits_slots(resources: Json, slots_key: str, at: Path, report: ProblemReport) -> None:
    """Report constraints on devices where none is asked for."""
    given = as_object(resources)
    constraints = as_object(given.get("constraints"))
    named = [key for key in ("device_name", "device_memory") if constraints.get(key) is not None]
    named += ["same"] if DEVICE_NAME in as_list(constraints.get("same")) else []
    if given.get(slots_key) == 0 and named:
        report.add(
            (*at, "constraints", named[0]),
            f"says which devices, and with {slots_key}: 0 there is none: leave it out, or ask for slots",
        )
