"""What becomes of a chunk of output by its place in the stream: stored, partly stored, or the agent goes back.

Rule: every byte of a stream is stored once and in order, or counted as missing once; nothing is counted while the agent
may still have it (`tenax.wire.logs`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Admitted:
    """A chunk that goes on from what is stored."""

    #: Bytes before it that are gone for good.
    missing: int
    #: Of its first bytes, how many are stored already.
    known: int
    #: The first byte of the stream that is not here, once it is stored.
    following: int


def admit(following: int, gone_from: int, offset: int, length: int) -> Admitted | None:
    """Admit ``length`` bytes from ``offset`` on where all before ``following`` is stored, and the agent has nothing
    from ``gone_from`` up to ``offset``; None: it may still have what is missing, and goes back to ``following``."""
    if gone_from > following:
        return None
    return Admitted(
        missing=max(0, offset - following),
        known=min(length, max(0, following - offset)),
        following=max(following, offset + length),
    )
