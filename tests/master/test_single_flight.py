"""One call for many who ask at once."""

from __future__ import annotations

import asyncio

import pytest

from tenax.errors import NotFound
from tenax.master.concurrency.single_flight import SingleFlight


class Slow:
    """A call that ends when it is let, and counts how many began."""

    def __init__(self) -> None:
        self.began = 0
        self.gate = asyncio.Event()

    async def __call__(self) -> int:
        self.began += 1
        number = self.began
        await self.gate.wait()
        return number


async def turns(times: int = 10) -> None:
    """Let everything run that can."""
    for _ in range(times):
        await asyncio.sleep(0)


async def test_those_who_ask_meanwhile_share_the_next_call() -> None:
    """Not the one that is under way, which began before they asked."""
    flight, slow = SingleFlight(), Slow()
    first = asyncio.create_task(flight.share("a", slow))
    await turns()
    later = [asyncio.create_task(flight.share("a", slow)) for _ in range(20)]
    await turns()
    assert slow.began == 1
    slow.gate.set()
    assert await first == 1
    assert set(await asyncio.gather(*later)) == {2}
    assert slow.began == 2


async def test_other_keys_are_fetched_for_themselves() -> None:
    """At the same time, and nothing is kept of what is over."""
    flight, slow = SingleFlight(), Slow()
    callers = [asyncio.create_task(flight.share(key, slow)) for key in ("a", ("a", 1), ("a", 2))]
    await turns()
    assert slow.began == 3
    slow.gate.set()
    assert sorted(await asyncio.gather(*callers)) == [1, 2, 3]
    assert flight._flights == {}


async def test_what_goes_wrong_is_told_to_all_and_forgotten() -> None:
    """Whoever asks again gets a call of their own."""
    flight = SingleFlight()

    async def fail() -> int:
        raise NotFound("there is nothing")

    callers = [asyncio.create_task(flight.share("a", fail)) for _ in range(3)]
    errors = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(error) for error in errors] == [NotFound] * 3

    async def fetch() -> int:
        return 7

    assert await flight.share("a", fetch) == 7
    assert flight._flights == {}


async def test_who_goes_away_takes_nothing_from_the_others() -> None:
    """Also the one who asked first."""
    flight, slow = SingleFlight(), Slow()
    first = asyncio.create_task(flight.share("a", slow))
    second = asyncio.create_task(flight.share("a", slow))
    await turns()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    slow.gate.set()
    assert await second == 1
    assert flight._flights == {}
