"""The port to a cloud's metadata service: questions, each answered by what is foretold of this machine.

Rules: an answer that makes no sense, no answer, and an answer that is not this cloud's are all `MetadataAway`, and what
was answered before holds on. That there is nothing is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from tenax.errors import TenaxError

#: Kinds of what is foretold, as the wire has them.
INTERRUPTION, MAINTENANCE, REBALANCE = "interruption", "maintenance", "rebalance"
#: No answer of a metadata service that matters here is longer.
_MAX_BYTES = 64 * 1024


class MetadataAway(TenaxError):
    """The metadata service does not answer as it does."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """Something that is going to happen to this machine."""

    kind: str
    #: For people; the same for as long as it is the same.
    reason: str
    #: When, in seconds since 1970; None: nobody says.
    at: float | None = None


class Metadata(Protocol):
    """Of one cloud."""

    @property
    def questions(self) -> Sequence[str]:
        """What it is asked, each by itself: what one question meets does not matter to the others."""

    async def ask(self, question: str, now: float) -> Sequence[Foretold]:
        """What is foretold; it may wait until that is another than the last time. Raises MetadataAway."""

    def pause_s(self, every_s: float) -> float:
        """Seconds between an answer and the next question, where ``every_s`` are asked for."""


async def fetched(reply: aiohttp.ClientResponse) -> str:
    """The text of an answer. Raises MetadataAway where it is longer than any."""
    body = b""
    async for chunk in reply.content.iter_chunked(_MAX_BYTES):
        body += chunk
        if len(body) > _MAX_BYTES:
            raise MetadataAway("its answer is longer than any of a metadata service")
    return body.decode(errors="replace")
