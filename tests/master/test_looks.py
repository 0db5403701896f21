"""One look for many who ask at once."""

from __future__ import annotations

import asyncio

import pytest

from tenax.errors import NotFound
from tenax.master.concurrency.single_flight import Looks


class Slow:
    """A look that ends when it is let, and tells how many began."""

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


async def test_those_who_ask_meanwhile_share_the_next_look() -> None:
    """Not the one that is under way, which began before they asked."""
    looks, slow = Looks(), Slow()
    first = asyncio.create_task(looks.share("a", slow))
    await turns()
    later = [asyncio.create_task(looks.share("a", slow)) for _ in range(20)]
    await turns()
    assert slow.began == 1
    slow.gate.set()
    assert await first == 1
    assert set(await asyncio.gather(*later)) == {2}
    assert slow.began == 2


async def test_other_questions_are_looked_at_for_themselves() -> None:
    """At the same time, and nothing is kept of what is over."""
    looks, slow = Looks(), Slow()
    asked = [asyncio.create_task(looks.share(key, slow)) for key in ("a", ("a", 1), ("a", 2))]
    await turns()
    assert slow.began == 3
    slow.gate.set()
    assert sorted(await asyncio.gather(*asked)) == [1, 2, 3]
    assert looks._kinds == {}


async def test_what_goes_wrong_is_told_to_all_and_forgotten() -> None:
    """Who asks again gets a look of their own."""
    looks = Looks()

    async def fail() -> int:
        raise NotFound("there is nothing")

    asked = [asyncio.create_task(looks.share("a", fail)) for _ in range(3)]
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in told] == [NotFound] * 3

    async def look() -> int:
        return 7

    assert await looks.share("a", look) == 7
    assert looks._kinds == {}


async def test_who_goes_away_takes_nothing_from_the_others() -> None:
    """Also the one who asked first."""
    looks, slow = Looks(), Slow()
    first = asyncio.create_task(looks.share("a", slow))
    second = asyncio.create_task(looks.share("a", slow))
    await turns()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    slow.gate.set()
    assert await second == 1
    assert looks._kinds == {}
