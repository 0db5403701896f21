"""What rented machines cost, and for whom: the hours of each are divided among what ran on it.

Rules it keeps:

- At each moment a machine's cost belongs to what runs there, by its slots out of those that the machine has; what is
  left is nobody's: starting, ending, waiting, and slots that stand free are *idle*.
- Where more slots are in use than were rented, they share the machine; on one without slots all that runs there does.
- Nothing is counted twice, nothing is lost, and the order of machines and uses changes nothing: sums are exact.
- A machine without a price has hours and no cost: what it costs is unknown, and never nought.
- Rounded to cents, parts make the rounded sum: those that lose most by rounding get the cents that are left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

#: Moments are microseconds since 1970: sums of them are exact.
Microseconds = int
HOUR: Microseconds = 3_600_000_000
DAY: Microseconds = 24 * HOUR
#: What stands for what is nobody's.
IDLE = None


@dataclass(frozen=True, slots=True)
class PaidMachine:
    """A rented machine while it is paid for, as far as that lies in the time that is asked about."""

    pool: str
    slots: int
    #: Per hour; None: nobody knows.
    price: float | None
    begins: Microseconds
    ends: Microseconds


@dataclass(frozen=True, slots=True)
class MachineUse:
    """Something that ran on a machine."""

    #: Whose it is: the name of a user, of an experiment...
    name: str
    slots: int
    begins: Microseconds
    ends: Microseconds


@dataclass(frozen=True, slots=True)
class CostPart:
    """What belongs to one name; exact."""

    #: Microseconds of whole machines, and those of them without a price.
    held: Fraction = Fraction()
    unpriced: Fraction = Fraction()
    cost: Fraction = Fraction()

    @property
    def is_known(self) -> bool:
        """Whether anything of it has a price; nothing at all costs nought."""
        return not self.unpriced or self.unpriced < self.held

    def __add__(self, other: CostPart) -> CostPart:
        return CostPart(self.held + other.held, self.unpriced + other.unpriced, self.cost + other.cost)


class CostSums:
    """Parts by name, of machines that come one after the other. Mutable; one call owns it."""

    def __init__(self) -> None:
        self.parts: dict[str | None, CostPart] = defaultdict(CostPart)

    def add(self, machine: PaidMachine, shares: Mapping[str | None, Fraction]) -> None:
        """``shares``: microseconds of the machine by name."""
        price = None if machine.price is None else Fraction(Decimal(repr(machine.price))) / HOUR
        for name, held in shares.items():
            self.parts[name] += CostPart(held, unpriced=held) if price is None else CostPart(held, cost=held * price)

    def total(self) -> CostPart:
        """Of all names."""
        return sum(self.parts.values(), CostPart())


def by_use(machine: PaidMachine, uses: Iterable[MachineUse]) -> dict[str | None, Fraction]:
    """The microseconds of a machine by whose they are; what is nobody's is `IDLE`'s."""
    changes: dict[Microseconds, list[tuple[str, int]]] = defaultdict(list)
    for use in uses:
        # On a machine without slots each weighs the same.
        weight = use.slots if machine.slots else 1
        begins, ends = max(use.begins, machine.begins), min(use.ends, machine.ends)
        if weight and begins < ends:
            changes[begins].append((use.name, weight))
            changes[ends].append((use.name, -weight))
    # By name and by how many shares there were: whole numbers are quicker than fractions.
    held: dict[tuple[str | None, int], int] = defaultdict(int)
    active: dict[str, int] = {}
    since, in_use = machine.begins, 0
    for moment in [*sorted(changes), machine.ends]:
        shares = max(machine.slots, in_use, 1)
        for name, weight in active.items():
            held[name, shares] += weight * (moment - since)
        held[IDLE, shares] += (shares - in_use) * (moment - since)
        since = moment
        for name, change in changes.get(moment, ()):
            in_use += change
            active[name] = active.get(name, 0) + change
            if not active[name]:
                del active[name]
    parts: dict[str | None, Fraction] = defaultdict(Fraction)
    for (its_name, shares), amount in held.items():
        if amount:
            parts[its_name] += Fraction(amount, shares)
    return dict(parts)


def by_pool(machine: PaidMachine) -> dict[str | None, Fraction]:
    """All of a machine is its pool's."""
    return {machine.pool: Fraction(machine.ends - machine.begins)}


def by_day(machine: PaidMachine) -> dict[str | None, Fraction]:
    """A machine's microseconds by the day, in UTC, named by its number since 1970."""
    return {str(number): Fraction(ends - begins) for number, begins, ends in _days(machine)}


def to_cents(amounts: Mapping[str | None, Fraction]) -> dict[str | None, Decimal]:
    """Each amount rounded up or down, so that they make the rounded sum."""
    cents = {name: amount * 100 // 1 for name, amount in amounts.items()}
    left = _rounded(sum(amounts.values(), Fraction())) - sum(cents.values())
    losses: Sequence[str | None] = sorted(
        amounts, key=lambda name: (cents[name] - amounts[name] * 100, name is IDLE, name or "")
    )
    for name in losses[:left]:
        cents[name] += 1
    return {name: Decimal(amount) / 100 for name, amount in cents.items()}


def _rounded(amount: Fraction) -> int:
    """In cents; half a cent is one."""
    return (amount * 100 + Fraction(1, 2)) // 1


def _days(machine: PaidMachine) -> Iterator[tuple[int, Microseconds, Microseconds]]:
    begins = machine.begins
    while begins < machine.ends:
        number = begins // DAY
        ends = min(machine.ends, (number + 1) * DAY)
        yield number, begins, ends
        begins = ends
