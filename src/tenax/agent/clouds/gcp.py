"""Google's metadata service: each question is answered when the answer has changed.

Google says no time. A machine that it takes back has 30 seconds from then on, and one that it stops for its host's
maintenance 60 at least. One that moves to another host without being stopped needs nobody to leave.
"""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp

from tenax.agent.clouds.port import INTERRUPTION, MAINTENANCE, Foretold, MetadataAway, fetched

ADDRESS = "http://169.254.169.254"
_FLAVOR = "Metadata-Flavor"
_PREEMPTED, _MAINTENANCE = "instance/preempted", "instance/maintenance-event"
_PREEMPTED_IN_S, _STOPPED_IN_S = 30.0, 60.0
#: After so long without a change the service answers what it answered before.
_WAIT_S = 20
#: What the answers may be, and whether something follows from each.
_ANSWERS = {
    _PREEMPTED: {"FALSE": False, "TRUE": True},
    _MAINTENANCE: {"NONE": False, "MIGRATE_ON_HOST_MAINTENANCE": False, "TERMINATE_ON_HOST_MAINTENANCE": True},
}


class GcpMetadata:
    """One machine's."""

    questions = (_PREEMPTED, _MAINTENANCE)

    def __init__(self, client: aiohttp.ClientSession, url: str = "") -> None:
        self._client = client
        self._url = (url or ADDRESS).rstrip("/")
        #: Of each question which answer was the last, and what followed from it.
        self._tags: dict[str, str] = {}
        self._foretold: dict[str, tuple[Foretold, ...]] = {}

    def pause_s(self, every_s: float) -> float:
        """The service itself waits; this keeps one that does not from being asked without end."""
        return min(every_s, 1.0)

    async def ask(self, question: str, now: float) -> Sequence[Foretold]:
        """What is foretold once that has changed, or after a while. Raises MetadataAway."""
        query = {"wait_for_change": "true", "timeout_sec": str(_WAIT_S), "last_etag": self._tags.get(question, "")}
        query = query if query["last_etag"] else {}
        limit = aiohttp.ClientTimeout(total=_WAIT_S + 10)
        url, headers = f"{self._url}/computeMetadata/v1/{question}", {_FLAVOR: "Google"}
        try:
            async with self._client.get(url, params=query, headers=headers, timeout=limit) as reply:
                if reply.status == 404:
                    # Not every machine can be taken back.
                    return ()
                if reply.status != 200 or reply.headers.get(_FLAVOR) != "Google":
                    raise MetadataAway(f"it answers {reply.status} to {question}, and not as Google does")
                text, tag = (await fetched(reply)).strip(), reply.headers.get("ETag", "")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MetadataAway(f"it does not answer: {str(error) or type(error).__name__}") from None
        if text not in _ANSWERS[question]:
            raise MetadataAway(f"its answer to {question} makes no sense: {text[:80]!r}")
        self._tags[question] = tag
        if not _ANSWERS[question][text]:
            self._foretold[question] = ()
        elif not self._foretold.get(question):
            self._foretold[question] = (_what(question, now),)
        return self._foretold[question]


def _what(question: str, now: float) -> Foretold:
    if question == _PREEMPTED:
        return Foretold(INTERRUPTION, "Google takes this machine back", now + _PREEMPTED_IN_S)
    return Foretold(MAINTENANCE, "Google stops this machine for the maintenance of its host", now + _STOPPED_IN_S)
