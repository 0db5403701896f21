"""Since when somebody could listen. Pure.

Rule it keeps: silence counts only while someone could listen. Whoever was away (just started, without a database, held
up, asleep with the machine) begins to count anew: an outage of ours never looks like the death of all agents.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Observations are seconds apart; when as much as this lies between two, nobody listened meanwhile.
GAP_S = 15.0
#: Two heartbeats of an agent: whoever is silent for longer may be gone.
UNHEARD_S = 10.0


@dataclass(frozen=True, slots=True)
class Listening:
    """Seconds on the database's clock."""

    since: float
    #: The newest observation.
    last: float

    @property
    def seconds(self) -> float:
        """How long somebody has listened without a break."""
        return self.last - self.since


def observe(watch: Listening | None, now: float, *, anew: bool = False) -> Listening:
    """Since when somebody listens, observed at ``now``; ``anew``: messages before may have been missed."""
    if watch is None or anew or not 0.0 <= now - watch.last <= GAP_S:
        return Listening(now, now)
    return Listening(watch.since, now)
