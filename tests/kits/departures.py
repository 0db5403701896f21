"""The cases that do not hold here on purpose, each with the rule that departs and what is expected instead.

A test that runs a case file asks ``departure`` first: None means that the case holds as it stands. Everything that is
not listed holds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Departure:
    """One case of a case file that is answered differently."""

    #: The case file, without ``.json``.
    file: str
    #: The ``id`` of the case.
    case: str
    #: The point of the architecture's list of deliberate differences ("6.5"), or the section behind it; or MANUAL.
    point: str
    #: Why, in a sentence; of the manual the one that is in it.
    why: str
    #: What is expected here, in the shape of the case's own expectation.
    expect: object


#: Where users read of a difference that is no point of the architecture.
MANUAL = "docs/migrate-from-determined.md"

#: The schema has no nulls here: no description and no labels are the empty text and the empty list.
_EMPTY = "Descriptions and labels are empty, never null, so `notContains` and `!=` match them."

DEPARTURES: tuple[Departure, ...] = (
    Departure("search_filters", "description notContains excludes null", MANUAL, _EMPTY, [3, 4]),
    Departure("search_filters", "description != excludes null", MANUAL, _EMPTY, [2, 3, 4, 6, 7]),
    Departure(
        "task_container_defaults",
        "TestConfigValidate/invalid (no entrypoint)",
        MANUAL,
        "A command needs no entrypoint.",
        True,
    ),
    Departure("search_filters", "tags notContains val", MANUAL, _EMPTY, [2, 4, 6, 7]),
    Departure(
        "priority",
        "TestPrioritySchedulingPreemptionDisabledHigherPriorityBlocksLowerPriority",
        MANUAL,
        "What would not fit with nothing running holds up nobody.",
        [{"op": "schedule", "expect": {"allocate": ["task1", "task2"]}}],
    ),
    Departure(
        "fair_share",
        "TestFairShareBlocklistMultiple",
        MANUAL,
        "What a plan starts fits all at once: of two that fit alone, the first.",
        {"allocate": ["task0.1"], "release": []},
    ),
)


def departure(file: str, case: str) -> Departure | None:
    """The departure listed for a case, if it is one."""
    return next((entry for entry in DEPARTURES if entry.file == file and entry.case == case), None)
