"""The random stream of a search: MT19937 as numpy's legacy ``RandomState`` uses it, number for number.

Rules:
- The same seed gives the same values as ``numpy.random.RandomState(seed)``, so hyperparameters can be reproduced.
- A position is the count of 32-bit words drawn; seed and position say the whole state, exactly.
- The standard library's generator turns the crank (same twist and tempering as numpy's); seeding and the mapping of
  words to numbers, where the two differ, are ours.

Source: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998); numpy ``_legacy_seeding``,
``random_interval`` and ``legacy_double``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tenax.errors import Impossible, InvalidInput

_STATE_WORDS = 624
_MASK32 = 0xFFFFFFFF
#: Words thrown away at a time when a position is sought: bounds the memory of the jump.
_SKIP = 1 << 16


class RandomStream:
    """A stream of random numbers at a position. Mutable, not safe between threads; one search owns it."""

    __slots__ = ("_drawn", "_engine", "position")

    def __init__(self, seed: int) -> None:
        """Start at position 0 of the stream of ``seed`` (0 <= seed < 2**32, else InvalidInput)."""
        if not 0 <= seed <= _MASK32:
            raise InvalidInput(f"A random seed lies in 0 .. {_MASK32}; {seed} does not.")
        self._engine = _engine(_key(seed), _STATE_WORDS)
        self._drawn = 0
        #: Words drawn so far. It may be set forward by ``seek``.
        self.position = 0

    @classmethod
    def from_state(cls, key: Sequence[int], index: int) -> RandomStream:
        """A stream in the state that numpy calls ``("MT19937", key, index)``; its position counts from there."""
        if len(key) != _STATE_WORDS or not 0 <= index <= _STATE_WORDS:
            raise InvalidInput(f"The state of MT19937 is {_STATE_WORDS} words and an index of at most {_STATE_WORDS}.")
        stream = cls(0)
        stream._engine = _engine(key, index)
        return stream

    def fork(self) -> RandomStream:
        """A second stream at the same place, that moves on its own."""
        other = RandomStream(0)
        other._engine.setstate(self._engine.getstate())
        other._drawn = self._drawn
        other.position = self.position
        return other

    def seek(self, position: int) -> None:
        """Move forward to ``position``; the words between are passed over at the next draw. Never backward."""
        if position < self.position:
            raise Impossible(f"The random stream stands at {self.position} and cannot go back to {position}.")
        self.position = position

    def word(self) -> int:
        """A uniform integer in [0, 2**32)."""
        self._catch_up(1)
        return self._engine.getrandbits(32)

    def bytes(self, count: int) -> bytes:
        """The next ``count`` words, each in little-endian order."""
        self._catch_up(count)
        return self._engine.getrandbits(32 * count).to_bytes(4 * count, "little")

    def integer(self, low: int, high: int) -> int:
        """A uniform integer in [``low``, ``high``), as ``randint(low, high)``; draws nothing when there is one."""
        last = high - low - 1
        if last <= 0:
            return low
        mask = (1 << last.bit_length()) - 1
        while True:
            word = self.word() if last <= _MASK32 else (self.word() << 32) | self.word()
            if word & mask <= last:
                return low + (word & mask)

    def uniform(self, low: float, high: float) -> float:
        """A uniform float in [``low``, ``high``), of 53 random bits (two words)."""
        self._catch_up(2)
        return low + (high - low) * self._engine.random()

    def _catch_up(self, count: int) -> None:
        """Pass over what lies between the engine and the position, then count ``count`` words as drawn."""
        while self._drawn < self.position:
            step = min(self.position - self._drawn, _SKIP)
            self._engine.getrandbits(32 * step)
            self._drawn += step
        self._drawn = self.position = self.position + count


def _key(seed: int) -> list[int]:
    """The initial words for ``seed``: Knuth's recurrence, as in the authors' ``init_genrand``."""
    state = [seed]
    for i in range(1, _STATE_WORDS):
        previous = state[-1]
        state.append((1812433253 * (previous ^ (previous >> 30)) + i) & _MASK32)
    return state


def _engine(key: Sequence[int], index: int) -> random.Random:
    engine = random.Random(0)
    engine.setstate((3, (*key, index), None))
    return engine
