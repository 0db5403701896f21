"""AWS's metadata service, version 2: a token first, then questions with it.

The service is asked again and again, every five seconds as AWS advises; where there is nothing to say it answers 404.
A maintenance is told once it is near: of one in ten days nothing follows today.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import aiohttp
import msgspec

from tenax.agent.clouds.port import INTERRUPTION, MAINTENANCE, REBALANCE, Foretold, MetadataAway, fetched

ADDRESS = "http://169.254.169.254"
_TOKEN_S = 21_600
_SPOT, _ADVICE, _EVENTS = "spot/instance-action", "events/recommendations/rebalance", "events/maintenance/scheduled"
#: Seconds before a maintenance from which on it is told.
_NEAR_S = 3600.0
#: As AWS writes the times of events: ``21 Jan 2019 09:00:43 GMT``.
_EVENT_TIME = "%d %b %Y %H:%M:%S GMT"


class _SpotAction(msgspec.Struct):
    action: str
    time: str


class _Advice(msgspec.Struct):
    notice_time: str = msgspec.field(name="noticeTime")


class _Event(msgspec.Struct):
    not_before: str = msgspec.field(name="NotBefore")
    code: str = msgspec.field(name="Code")
    state: str = msgspec.field(name="State", default="active")


class AwsMetadata:
    """One machine's."""

    questions = (_SPOT, _ADVICE, _EVENTS)

    def __init__(self, client: aiohttp.ClientSession, url: str = "") -> None:
        self._client = client
        self._url = (url or ADDRESS).rstrip("/")
        self._token = ""

    def pause_s(self, every_s: float) -> float:
        """It answers at once."""
        return every_s

    async def ask(self, question: str, now: float) -> Sequence[Foretold]:
        """What is foretold now. Raises MetadataAway."""
        text = await self._text(question)
        if text is None:
            return ()
        try:
            if question == _SPOT:
                return [_interruption(msgspec.json.decode(text, type=_SpotAction))]
            if question == _ADVICE:
                given = _instant(msgspec.json.decode(text, type=_Advice).notice_time)
                reason = f"AWS expects to take this machine back, and says so since {_clock(given)}"
                return [Foretold(REBALANCE, reason)]
            return _maintenances(msgspec.json.decode(text, type=list[_Event]), now)
        except (msgspec.MsgspecError, ValueError) as error:
            raise MetadataAway(f"its answer to {question} makes no sense: {error}") from None

    async def _text(self, question: str) -> str | None:
        """None: there is nothing. Raises MetadataAway."""
        status = 0
        try:
            for _ in range(2):
                self._token = self._token or await self._new_token()
                headers = {"X-aws-ec2-metadata-token": self._token}
                async with self._client.get(f"{self._url}/latest/meta-data/{question}", headers=headers) as reply:
                    status = reply.status
                    if status in (200, 404):
                        return await fetched(reply) if status == 200 else None
                # It is over, or the machine was copied with it.
                self._token = ""
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MetadataAway(f"it does not answer: {str(error) or type(error).__name__}") from None
        raise MetadataAway(f"it answers {status} to {question}")

    async def _new_token(self) -> str:
        headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_S)}
        async with self._client.put(f"{self._url}/latest/api/token", headers=headers) as reply:
            token = (await fetched(reply)).strip()
            if reply.status != 200 or not token.isascii() or not token.isprintable():
                raise MetadataAway(f"it answers {reply.status} where a token is asked for")
            return token


def _interruption(action: _SpotAction) -> Foretold:
    at = _instant(action.time)
    return Foretold(INTERRUPTION, f"AWS takes this spot machine back ({action.action}) at {_clock(at)}", at)


def _maintenances(events: Sequence[_Event], now: float) -> list[Foretold]:
    near = []
    for event in events:
        at = datetime.strptime(event.not_before, _EVENT_TIME).replace(tzinfo=timezone.utc).timestamp()
        if event.state == "active" and at - now <= _NEAR_S:
            near.append(Foretold(MAINTENANCE, f"AWS has a maintenance for {_clock(at)} ({event.code})", at))
    return near


def _instant(text: str) -> float:
    """Raises ValueError."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
