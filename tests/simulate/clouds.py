"""A cloud in virtual time: it rents out machines, loses answers, has no capacity now and then, and takes machines back.

What happens to it is drawn before it begins: the same seed makes the same month, whatever is rented.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tenax.lifecycle.offer import RestCause
from tenax.master.provision.port import ProviderAway, SeenMachine, refused

#: Seconds by which a list lags behind, that a machine takes to end, and between a notice and the end.
LIST_LAG_S, ENDING_S, NOTICE_S = 10.0, 40.0, 120.0
HOUR_S, DAY_S = 3600.0, 86400.0


class Spans:
    """Times during which something is so."""

    def __init__(self, chance: random.Random, until: float, every_s: float, last_s: float) -> None:
        """One about every ``every_s``, of ``last_s`` on average."""
        self._edges: list[float] = []
        now = 0.0
        while now < until:
            now += chance.expovariate(1 / every_s)
            self._edges.append(now)
            now += chance.expovariate(1 / last_s)
            self._edges.append(now)

    def at(self, now: float) -> bool:
        """Whether it is so then."""
        return bisect_right(self._edges, now) % 2 == 1


class Price:
    """Of a machine per hour, which moves every six hours."""

    def __init__(self, chance: random.Random, until: float, base: float, moves: float) -> None:
        steps = [chance.uniform(1 - moves, 1 + moves) for _ in range(int(until / (6 * HOUR_S)) + 2)]
        moved = accumulate(steps, lambda old, new: (old + new) / 2)
        self._prices = [round(base * (0.5 + step / 2), 4) for step in moved]

    def at(self, now: float) -> float:
        """In whole hundredths of a cent."""
        return self._prices[min(int(now / (6 * HOUR_S)), len(self._prices) - 1)]

    @property
    def least(self) -> float:
        return min(self._prices)


@dataclass
class CloudOffer:
    """What a cloud rents out under one name."""

    name: str
    slots: int
    price: Price
    #: When there is none.
    empty: Spans
    #: Seconds after which a machine is taken back, on average; None: never.
    lasts_s: float | None = None


@dataclass
class CloudMachine:
    """One that was made."""

    id: str
    machine_id: str
    offer: CloudOffer
    began: float
    price: float
    #: None: it never comes up.
    up_at: float | None
    #: None: nobody takes it back.
    taken_at: float | None
    has_notice: bool
    ended: float | None = None


class Cloud:
    """One account of one cloud. It tells whoever simulates what it has made."""

    def __init__(
        self, name: str, seed: int, until: float, clock: Callable[[], float], made: Callable[[CloudMachine], None]
    ) -> None:
        self._name, self._clock, self._made = name, clock, made
        self._chance = random.Random(f"{name} {seed}")
        self._away = Spans(self._chance, until, 3 * DAY_S, 1200.0)
        self.machines: dict[str, CloudMachine] = {}

    def launch(self, machine_id: str, offer: CloudOffer) -> SeenMachine:
        """Not made once by its key: whoever sends twice what was made has two. Raises OrderRefused, ProviderAway."""
        now, fate = self._clock(), self._chance.random()
        if self._away.at(now) or fate < 0.01:
            raise ProviderAway("the request was lost")
        if offer.empty.at(now):
            raise refused(RestCause.NO_CAPACITY, "there is no capacity")
        up_at = None if self._chance.random() < 0.06 else now + self._chance.uniform(40, 180)
        lasts = None if offer.lasts_s is None else self._chance.expovariate(1 / offer.lasts_s)
        taken_at = None if lasts is None else now + max(300.0, lasts)
        name = f"{self._name}-{len(self.machines)}"
        machine = CloudMachine(
            name, machine_id, offer, now, offer.price.at(now), up_at, taken_at, self._chance.random() < 0.8
        )
        self.machines[name] = machine
        self._made(machine)
        if fate < 0.04:
            raise ProviderAway("the answer was lost")
        return self._seen(machine, now)

    def look(self) -> Sequence[SeenMachine]:
        """What was a moment ago; what has ended is told for an hour. Raises ProviderAway."""
        if self._away.at(self._clock()):
            raise ProviderAway("it does not answer")
        then = self._clock() - LIST_LAG_S
        return [
            self._seen(each, then)
            for each in self.machines.values()
            if each.began <= then and (each.ended is None or each.ended > then - HOUR_S)
        ]

    def end(self, name: str) -> None:
        """Raises ProviderAway."""
        if self._away.at(self._clock()) or self._chance.random() < 0.02:
            raise ProviderAway("the request was lost")
        machine = self.machines[name]
        machine.ended = min(machine.ended or float("inf"), self._clock() + ENDING_S)

    def _seen(self, machine: CloudMachine, then: float) -> SeenMachine:
        return SeenMachine(
            machine.id, machine.machine_id, "default", ended=machine.ended is not None and machine.ended <= then
        )
