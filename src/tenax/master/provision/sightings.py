"""What looks at one place of a provider show of the machines that have rows there, and which have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tenax.config.master import PoolSettings
from tenax.lifecycle.machine import ASK_S, MachineFacts, MachineState, Sighting
from tenax.master.provision.offers import offer_named
from tenax.master.provision.port import ProviderPlace, SeenMachine
from tenax.master.store.machines.rows import MachineRow, MachineStanding
from tenax.master.store.machines.silences import SilentProvider

#: Between looks where all is quiet, in seconds.
LOOK_S = 300.0
#: Looks in a row after which something is taken for missing, or for one of ours without a row.
TIMES = 2


@dataclass(slots=True)
class Sightings:
    """What looks at one place have shown. Cache: without it, some more looks are made."""

    seen: Mapping[str, SeenMachine] = field(default_factory=dict)
    #: How often in a row a row's machine was missing, by its id and what its provider calls it: looks before that was
    #: known say nothing of what has been made since.
    missing: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: How often in a row something without a row was there.
    strays: Counter[str] = field(default_factory=Counter)
    at: float = -LOOK_S
    #: Whether this pass has looked, and was answered.
    fresh: bool = False

    def note(self, seen: Sequence[SeenMachine], rows: Sequence[MachineRow]) -> None:
        """What a look has shown, of a place whose open rows these are, read before it."""
        self.fresh, self.seen = True, {each.provider_id: each for each in seen}
        self.missing = Counter({_key(row): self.missing[_key(row)] + 1 for row in rows if not self.of(row)})
        strays = strays_of(seen, rows)
        self.strays = Counter({each.provider_id: self.strays[each.provider_id] + 1 for each in strays})

    def of(self, row: MachineRow) -> SeenMachine | None:
        """What was seen of a row."""
        return seen_of(row, self.seen)

    def sighting(self, row: MachineRow) -> Sighting:
        """What is known of a row's machine now."""
        if not self.fresh:
            return Sighting.UNKNOWN
        seen = self.of(row)
        if seen is not None:
            return Sighting.ENDED if seen.ended else Sighting.RUNNING
        return Sighting.MISSING if self.missing[_key(row)] >= TIMES else Sighting.UNKNOWN


def _key(row: MachineRow) -> tuple[str, str]:
    return row.machine_id, row.provider_id


def seen_of(row: MachineRow, seen: Mapping[str, SeenMachine]) -> SeenMachine | None:
    """What was seen of a row, by its provider's name for it, else by its mark."""
    if row.provider_id:
        return seen.get(row.provider_id)
    marked = [each for each in seen.values() if each.machine_id == row.machine_id]
    return min(marked, key=lambda each: (each.ended, each.provider_id), default=None)


def strays_of(seen: Iterable[SeenMachine], rows: Iterable[MachineRow]) -> list[SeenMachine]:
    """What has not ended and belongs to none of a place's open rows."""
    rows = list(rows)
    known = {row.provider_id for row in rows}
    awaited = {row.machine_id for row in rows if not row.provider_id}
    return [
        each for each in seen if not each.ended and each.provider_id not in known and each.machine_id not in awaited
    ]


def rows_by_place(pools: Iterable[PoolSettings], rows: Iterable[MachineRow]) -> dict[ProviderPlace, list[MachineRow]]:
    """The open rows of each place where there may be machines: where pools rent, and where there are rows."""
    by_place: dict[ProviderPlace, list[MachineRow]] = {
        place_of_pool(pool): [] for pool in pools if pool.provider is not None
    }
    for row in rows:
        by_place.setdefault(place_of(row), []).append(row)
    return by_place


def place_of_pool(pool: PoolSettings) -> ProviderPlace:
    """Where the machines of a pool are rented."""
    assert pool.provider is not None
    return ProviderPlace(pool.provider.type, pool.provider.region, pool.provider.endpoint_url)


def place_of(row: MachineRow | SilentProvider) -> ProviderPlace:
    """Where a machine is, or what does not answer."""
    return ProviderPlace(row.provider, row.region, row.endpoint)


def facts_of(
    row: MachineRow, standing: MachineStanding, pool: PoolSettings | None, sighting: Sighting, *, is_spent: bool
) -> MachineFacts:
    """What is known of a machine where it is decided what comes next.

    ``pool``: as settings have it now, None where it rents nothing; ``is_spent``: a budget of its is used up, so that
    what was not answered is not sent any more.
    """
    provider = pool.provider if pool is not None else None
    is_unanswered = row.state in (MachineState.PLANNED, MachineState.ASKED)
    stays = provider is not None and provider.advises and not is_unanswered
    return MachineFacts(
        row.state,
        sighting,
        row.age_s,
        row.since_planned_s,
        ASK_S if row.sent == 0 else provider.max_agent_starting_period if provider is not None else 0.0,
        standing.away_s or 0.0,
        standing.connected,
        standing.idle,
        renting=stays
        or (
            pool is not None
            and place_of_pool(pool) == place_of(row)
            and not (is_unanswered and (is_spent or offer_named(pool, row.offer) is None))
        ),
        sent=row.sent,
        new=row.end_sent == 0,
        lacks=standing.lacks,
        noticed=bool(standing.notice),
        takes_work=standing.takes_work,
        dismissal=row.dismissal,
    )
