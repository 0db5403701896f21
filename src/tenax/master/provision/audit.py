"""What carries this cluster's mark at its providers, beside the rows that there are: nothing is changed by looking.

Rules: rows are read after the look, since a row comes before its machine; what has no row is what the loop that rents
takes for it, too; a place that does not answer is named, and keeps no other from being shown. A part of a machine was
left where it is marked as that of a machine that is gone, whatever place its row names, and nothing at the provider has
it or is under way for it. Addresses are people's: none is made for a machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tenax.lifecycle.machine import Sighting
from tenax.master.provision.orders import is_machine_id
from tenax.master.provision.port import (
    MachinePart,
    PartKind,
    PartsAnswer,
    Provider,
    ProviderAway,
    ProviderPlace,
    SeenMachine,
    shown,
)
from tenax.master.provision.sightings import place_of, seen_of, strays_of
from tenax.master.store.machines.rows import MachineRow

_NO_PARTS = PartsAnswer()


@dataclass(frozen=True, slots=True)
class PlaceLook:
    """What a place has answered."""

    place: ProviderPlace
    seen: Sequence[SeenMachine] = ()
    parts: PartsAnswer = _NO_PARTS
    #: Why it has not; empty: it has.
    away: str = ""


@dataclass(frozen=True, slots=True)
class AuditedMachine:
    """A machine at its provider, its row, or both."""

    place: ProviderPlace
    #: None: the provider does not list what the row is of.
    seen: SeenMachine | None
    #: None: there is none, or it was one of the oldest that have ended.
    row: MachineRow | None
    #: It runs, and belongs to no row.
    stray: bool
    #: Of its row, or why there is none.
    why: str

    @property
    def sighting(self) -> Sighting:
        """What the provider says."""
        if self.seen is None:
            return Sighting.MISSING
        return Sighting.ENDED if self.seen.ended else Sighting.RUNNING


@dataclass(frozen=True, slots=True)
class AuditedPart:
    """What is there beside machines."""

    place: ProviderPlace
    part: MachinePart
    #: Of the machine that it is marked as; None: there is none.
    row: MachineRow | None
    #: No machine has it, nor will.
    stray: bool
    why: str


async def look_at(places: Iterable[ProviderPlace], opened: Callable[[ProviderPlace], Provider]) -> Sequence[PlaceLook]:
    """Ask all places at once."""

    async def look(place: ProviderPlace) -> PlaceLook:
        try:
            provider = opened(place)
            seen, parts = await asyncio.gather(provider.look(), provider.parts())
            return PlaceLook(place, seen, parts)
        except ProviderAway as away:
            return PlaceLook(place, away=shown(str(away)) or ProviderAway().message)

    return await asyncio.gather(*(look(place) for place in places))


def audited(look: PlaceLook, rows: Sequence[MachineRow]) -> list[AuditedMachine]:
    """What a place has, where it has answered: strays first. ``rows``: read after the look, also those that ended."""
    if look.away:
        return []
    here = [row for row in rows if place_of(row) == look.place]
    there = {each.provider_id: each for each in look.seen}
    still = [row for row in here if row.ended_at is None]
    owner = {each.provider_id: row for row in still if (each := seen_of(row, there)) is not None}
    before = {row.provider_id: row for row in here if row.ended_at is not None and row.provider_id}
    strays = {each.provider_id for each in strays_of(look.seen, still)}
    result = []
    for each in look.seen:
        row, is_stray = owner.get(each.provider_id) or before.get(each.provider_id), each.provider_id in strays
        result.append(AuditedMachine(look.place, each, row, is_stray, _why(each, row, is_stray=is_stray)))
    result += [
        AuditedMachine(look.place, None, row, stray=False, why=row.story)
        for row in still
        if row.provider_id and row.provider_id not in there
    ]
    return sorted(result, key=lambda it: (not it.stray, it.seen is None, it.sighting.value != "RUNNING"))


def audited_parts(look: PlaceLook, rows: Sequence[MachineRow]) -> list[AuditedPart]:
    """What a place has beside machines, what was left first. ``rows``: as for `audited`."""
    by_id = {row.machine_id: row for row in rows}
    there = {each.machine_id for each in look.seen if not each.ended}
    there |= {part.machine_id for part in look.parts.parts if part.kind is PartKind.OPERATION}
    there |= {row.machine_id for row in rows if row.ended_at is None}
    result = []
    for part in look.parts.parts:
        row = by_id.get(part.machine_id)
        # An operation without a row is another cluster's, or nobody's.
        if part.kind is not PartKind.OPERATION or row is not None:
            is_free = part.idle and is_machine_id(part.machine_id) and part.machine_id not in there
            # What was not listed may be an operation for it.
            is_stray = is_free and not look.parts.unknown
            why = _why_part(part, row, is_stray=is_stray)
            result.append(AuditedPart(look.place, part, row, is_stray, why))
    return sorted(result, key=lambda it: (not it.stray, it.part.kind.value, it.part.provider_id))


def _why_part(part: MachinePart, row: MachineRow | None, *, is_stray: bool) -> str:
    if is_stray:
        if row is not None:
            return f"left of a machine that has ended: {row.story}"
        return f"no row of {part.machine_id}, which it is marked as: as after the database was restored, or copied"
    if part.kind is PartKind.OPERATION:
        return f"under way for {part.holder}"
    if part.holder:
        return f"{part.holder} has it"
    if part.kind is PartKind.ADDRESS:
        return "somebody has reserved it: Tenax makes none"
    if not is_machine_id(part.machine_id):
        return "no mark of a machine: somebody else has made it, or marked it anew"
    return "its machine is there, or something may be under way for it" if part.idle else "it is in use, or ends"


def _why(seen: SeenMachine, row: MachineRow | None, *, is_stray: bool) -> str:
    if is_stray and row is not None:
        return f"its row says that it has ended ({row.state.value}): {row.story}"
    if row is not None:
        return row.story
    if seen.ended:
        return seen.story or "it has ended, and its row is not among the newest"
    if not is_stray:
        return "its row waits for the provider's answer, which another machine has given as well"
    if seen.machine_id:
        return f"no row of {seen.machine_id}, which it is marked as: as after the database was restored, or copied"
    return "no row, and no mark of the machine that it was"
