"""What looks at a provider prove of a machine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tenax.lifecycle.machine import Sighting
from tenax.master.provision.sightings import TIMES, Sightings


def test_looks_before_an_answer_say_nothing_of_what_was_made() -> None:
    """It was missing as long as it was not made: ended for coming late, it would be taken for gone, and run on."""
    asked: Any = SimpleNamespace(machine_id="m-1", provider_id="")
    made: Any = SimpleNamespace(machine_id="m-1", provider_id="i-1")
    sightings = Sightings()
    for _ in range(TIMES):
        sightings.note([], [asked])
    assert sightings.sighting(asked) is Sighting.MISSING
    assert sightings.sighting(made) is Sighting.UNKNOWN
    for _ in range(TIMES):
        assert sightings.sighting(made) is Sighting.UNKNOWN
        sightings.note([], [made])
    assert sightings.sighting(made) is Sighting.MISSING
