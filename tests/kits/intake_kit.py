"""What whoever takes in output and spools promises over HTTP (`tenax.wire.logs`, `tenax.wire.spool`): one kit, which
the real master passes, and each double that tests put in its place.

A test class inherits `OutputKit` or `SpoolKit` and gives a fixture ``bench``.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp

from tests.kits.telemetry import metrics_line

STREAM = "aaaaaaaa-1-2"


@dataclass
class Bench:
    """A master, with one container that may speak."""

    url: str
    container_id: str
    allocation_id: str
    #: Header fields of its agent, and of its task.
    agent: dict[str, str] = field(default_factory=dict)
    task: dict[str, str] = field(default_factory=dict)

    async def put(
        self, offset: int, data: bytes, *, gone_from: int | None = None, final: bool = False, container: str = ""
    ) -> tuple[int, int]:
        """Status and ``next`` of one chunk of stdout."""
        query = {"container_id": container or self.container_id, "stream": "stdout", "offset": str(offset)}
        if gone_from is not None:
            query["gone_from"] = str(gone_from)
        if final:
            query["final"] = "true"
        url, body = f"{self.url}/agents/logs", zlib.compress(data)
        async with (
            aiohttp.ClientSession() as http,
            http.post(url, params=query, data=body, headers=self.agent) as reply,
        ):
            return reply.status, (await reply.json(content_type=None)).get("next", -1)

    async def offsets(self, container: str = "") -> tuple[int, object]:
        """Status and answer."""
        url, query = f"{self.url}/agents/logs/offsets", {"container_id": container or self.container_id}
        async with aiohttp.ClientSession() as http, http.get(url, params=query, headers=self.agent) as reply:
            return reply.status, await reply.json(content_type=None)

    async def spool(self, body: bytes, token: str | None = None) -> tuple[int, int]:
        """Status and ``acked`` of one batch."""
        url = f"{self.url}/api/v1/allocations/{self.allocation_id}/spool"
        query = {"container_id": self.container_id, "stream": STREAM}
        headers = self.task if token is None else dict.fromkeys(self.task, f"Bearer {token}")
        async with (
            aiohttp.ClientSession() as http,
            http.post(url, params=query, data=body, headers=headers) as reply,
        ):
            return reply.status, (await reply.json(content_type=None)).get("acked", -1)


class OutputBench(Protocol):
    """A bench whose master can be looked into."""

    bench: Bench

    async def stored(self) -> str:
        """The lines of stdout as they would be read, each gap as ``<bytes>``."""

    def fill(self) -> None:
        """There is no room for output from now on."""


class OutputKit:
    """Of `tenax.wire.logs`."""

    async def test_each_byte_counts_once(self, place: OutputBench) -> None:
        """A chunk again, and one that overlaps with what is there."""
        assert await place.bench.put(0, b"one\ntwo\nthr", gone_from=0) == (200, 11)
        assert await place.bench.put(0, b"one\ntwo\nthr", gone_from=0) == (200, 11)
        assert await place.bench.put(4, b"two\nthree\n", gone_from=4) == (200, 14)
        assert await place.bench.put(4, b"two\n", gone_from=4) == (200, 14)
        assert await place.bench.offsets() == (200, {"stdout": 14, "stderr": 0})
        assert await place.stored() == "one\ntwo\nthree\n"

    async def test_an_agent_that_is_ahead_goes_back(self, place: OutputBench) -> None:
        """Nothing is stored of what it sends, however often, nor counted as missing: it may still have the rest."""
        await place.bench.put(0, b"one\n", gone_from=0)
        for _ in range(3):
            assert await place.bench.put(8, b"three\n", gone_from=8) == (200, 4)
            assert await place.bench.put(9, b"hree\n", gone_from=5) == (200, 4)
        assert await place.bench.put(4, b"two\nthree\n", gone_from=4) == (200, 14)
        assert await place.stored() == "one\ntwo\nthree\n"

    async def test_what_is_gone_is_counted_once(self, place: OutputBench) -> None:
        """As much as is not here, wherever the agent lost it; sent again it is nothing new."""
        await place.bench.put(0, b"one\n", gone_from=0)
        for _ in range(2):
            assert await place.bench.put(20, b"later\n", gone_from=2) == (200, 26)
        assert await place.bench.put(30, b"last\n") == (200, 35), "an agent of before does not say what is gone"
        assert await place.stored() == "one\n<16>later\n<4>last\n"

    async def test_a_loss_needs_no_room(self, place: OutputBench) -> None:
        """Bytes are refused with 507; that some are gone is taken all the same."""
        await place.bench.put(0, b"one\n", gone_from=0)
        place.fill()
        assert (await place.bench.put(4, b"two\n", gone_from=4))[0] == 507
        assert await place.bench.put(8, b"", gone_from=4, final=True) == (200, 8)
        assert await place.stored() == "one\n<4>"

    async def test_an_unknown_container_is_not_found(self, place: OutputBench) -> None:
        """Neither its offsets nor a chunk of it."""
        assert (await place.bench.put(0, b"one\n", gone_from=0, container="none"))[0] == 404
        assert (await place.bench.offsets("none"))[0] == 404


class SpoolKit:
    """Of `tenax.wire.spool`."""

    async def test_lines_count_once(self, bench: Bench) -> None:
        """A batch again, and one that overlaps."""
        assert await bench.spool(_lines(1, 3)) == (200, 3)
        assert await bench.spool(_lines(1, 3)) == (200, 3)
        assert await bench.spool(_lines(2, 5)) == (200, 5)

    async def test_no_lines_are_a_question(self, bench: Bench) -> None:
        """Answered with the last line that is here."""
        assert await bench.spool(b"") == (200, 0)
        await bench.spool(_lines(1, 3))
        assert await bench.spool(b"") == (200, 3)

    async def test_a_gap_is_asked_for(self, bench: Bench) -> None:
        """What comes after a missing line is not stored."""
        assert await bench.spool(_lines(1, 2) + _lines(4, 5)) == (200, 2)
        assert await bench.spool(_lines(7, 9)) == (200, 2)
        assert await bench.spool(_lines(3, 5)) == (200, 5)

    async def test_a_torn_line_does_not_count(self, bench: Bench) -> None:
        """It has no newline."""
        assert await bench.spool(_lines(1, 2) + _lines(3, 3)[:-9]) == (200, 2)
        assert await bench.spool(_lines(3, 3)) == (200, 3)

    async def test_a_wrong_token_is_refused(self, bench: Bench) -> None:
        """And nothing is stored."""
        assert (await bench.spool(_lines(1, 2), token="wrong"))[0] == 401
        assert await bench.spool(b"") == (200, 0)


def _lines(first: int, last: int) -> bytes:
    return b"".join(metrics_line(n, "training", n, {"loss": 1.0}) for n in range(first, last + 1))
