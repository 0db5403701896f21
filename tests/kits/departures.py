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
    #: The point of the architecture's list of deliberate differences ("6.5"), or the section behind it ("5").
    point: str
    #: Why, in a sentence.
    why: str
    #: What is expected here, in the shape of the case's own expectation.
    expect: object


#: The schema has no nulls here: no description and no labels are the empty text and the empty list.
_EMPTY = "what has no description, or no labels, lacks every text"

DEPARTURES: tuple[Departure, ...] = (
    Departure("search_filters", "description notContains excludes null", "5", _EMPTY, [3, 4]),
    Departure("search_filters", "description != excludes null", "5", _EMPTY, [2, 3, 4, 6, 7]),
    Departure("search_filters", "tags notContains val", "5", _EMPTY, [2, 4, 6, 7]),
)


def departure(file: str, case: str) -> Departure | None:
    """The departure listed for a case, if it is one."""
    return next((entry for entry in DEPARTURES if entry.file == file and entry.case == case), None)
