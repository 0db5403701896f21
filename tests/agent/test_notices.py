"""What the cloud says of a machine's end: asked of doubles of the metadata services, and told to the master."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timezone

import aiohttp
import pytest

from tenax.agent import notices
from tenax.agent.clouds.aws import AwsMetadata
from tenax.agent.clouds.gcp import GcpMetadata
from tenax.agent.clouds.port import Foretold, MetadataAway
from tenax.agent.notices import Forewarning
from tenax.backoff import Backoff
from tenax.errors import UserError
from tests.agent.host import Host
from tests.agent.master_double import MasterDouble
from tests.kits.metadata import MetadataDouble, aws_metadata, gcp_metadata
from tests.kits.ports import free_port

SPOT, ADVICE, EVENTS = AwsMetadata.questions
PREEMPTED, MAINTENANCE = GcpMetadata.questions


@asynccontextmanager
async def asking(kind: Callable[[aiohttp.ClientSession, str], AwsMetadata], url: str) -> AsyncIterator[AwsMetadata]:
    async with aiohttp.ClientSession() as client:
        yield kind(client, url)


def _event(at: float, **changes: str) -> dict[str, str]:
    when = datetime.fromtimestamp(at, timezone.utc).strftime("%d %b %Y %H:%M:%S GMT")
    return {"NotBefore": when, "Code": "system-reboot", "State": "active", "EventId": "e", **changes}


async def test_aws_says_what_becomes_of_a_machine() -> None:
    """That it is taken back, with the time; that this may come; that it is maintained, once that is near."""
    now = 1_700_000_000.0
    with aws_metadata() as service:
        async with asking(AwsMetadata, service.url) as metadata:
            assert [list(await metadata.ask(each, now)) for each in metadata.questions] == [[], [], []]
            service.say(SPOT, '{"action": "stop", "time": "2023-11-14T22:15:20Z"}')
            reason = "AWS takes this spot machine back (stop) at 2023-11-14 22:15:20 UTC"
            assert await metadata.ask(SPOT, now) == [Foretold("interruption", reason, now + 120)]
            service.say(ADVICE, '{"noticeTime": "2023-11-14T22:13:20Z"}')
            assert [each.kind for each in await metadata.ask(ADVICE, now)] == ["rebalance"]
            events = [_event(now + 60), _event(now + 60, State="completed"), _event(now + 86400)]
            service.say(EVENTS, json.dumps(events))
            [near] = await metadata.ask(EVENTS, now)
            assert (near.kind, near.at) == ("maintenance", now + 60)
            assert "system-reboot" in near.reason


async def test_aws_gives_a_new_token_where_the_old_one_is_over() -> None:
    """The question is answered all the same."""
    with aws_metadata() as service:
        async with asking(AwsMetadata, service.url) as metadata:
            assert await metadata.ask(SPOT, 0.0) == ()
            service.say("token", "2")
            assert await metadata.ask(SPOT, 0.0) == ()


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", '{"action": "stop"}', '{"action": "stop", "time": "soon"}', "x" * 70_000]
)
async def test_what_makes_no_sense_is_no_notice(text: str) -> None:
    """Whatever it is, and whoever answers there."""
    with aws_metadata() as service:
        service.say(SPOT, text)
        async with asking(AwsMetadata, service.url) as metadata:
            with pytest.raises(MetadataAway):
                await metadata.ask(SPOT, 0.0)


async def test_google_says_that_a_machine_is_taken_back_when_it_is() -> None:
    """Without being asked again; with the time that it gives, counted from then."""
    with gcp_metadata() as service:
        async with asking(GcpMetadata, service.url) as metadata:  # type: ignore[arg-type]
            assert await metadata.ask(PREEMPTED, 100.0) == ()
            waiting = asyncio.create_task(metadata.ask(PREEMPTED, 200.0))
            service.say(PREEMPTED, "TRUE")
            [foretold] = await waiting
            assert (foretold.kind, foretold.at) == ("interruption", 230.0)
            service.say(MAINTENANCE, "MIGRATE_ON_HOST_MAINTENANCE")
            assert await metadata.ask(MAINTENANCE, 300.0) == ()
            service.say(MAINTENANCE, "TERMINATE_ON_HOST_MAINTENANCE")
            assert [each.at for each in await metadata.ask(MAINTENANCE, 300.0)] == [360.0]
            service.say(MAINTENANCE, "NONE")
            assert await metadata.ask(MAINTENANCE, 400.0) == ()


async def test_who_answers_as_google_does_not_is_not_believed() -> None:
    """AWS's service, another program, a word that Google does not use."""
    with aws_metadata() as service:
        async with asking(GcpMetadata, service.url) as metadata:  # type: ignore[arg-type]
            with pytest.raises(MetadataAway):
                await metadata.ask(PREEMPTED, 0.0)
    with gcp_metadata() as service:
        service.say(PREEMPTED, "<html>")
        async with asking(GcpMetadata, service.url) as metadata:  # type: ignore[arg-type]
            with pytest.raises(MetadataAway, match="html"):
                await metadata.ask(PREEMPTED, 0.0)


async def test_a_service_that_is_away_takes_nothing_back(
    host: Host, master: MasterDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent lives, and what was said before holds; what comes after the service is back is told."""
    monkeypatch.setattr(notices, "_AWAY", Backoff(first=0.01, ceiling=0.01))
    with aws_metadata() as service:
        service.interrupt(100)
        _start(host, service)
        await master.until(lambda: _said(master) == ["interruption"])
        service.fails = 500
        await asyncio.to_thread(service.until_asked, "token", service.asked["token"] + 6)
        assert host.task is not None
        assert not host.task.done()
        assert _said(master) == ["interruption"]
        service.fails = 0
        service.say(SPOT, None)
        await master.until(lambda: _said(master) == [])


async def test_a_notice_is_said_with_what_is_left_of_it(host: Host, master: MasterDouble) -> None:
    """At once, and again with each connection: a master that was away hears of it when it is back."""
    with aws_metadata() as service:
        _start(host, service)
        await master.until(lambda: master.notices)
        assert _said(master) == []
        await master.away()
        service.interrupt(1000)
        await asyncio.to_thread(service.until_asked, SPOT, service.asked.get(SPOT, 0) + 2)
        heard = len(master.notices)
        await master.back()
        await master.until(lambda: _said(master) == ["interruption"])
        [notice] = master.notices[-1].notices
        assert notice.within_s is not None
        assert 0 < notice.within_s <= 1000
        assert len(master.notices) > heard
        # Another one beside it, and then none.
        service.say(ADVICE, '{"noticeTime": "2023-11-14T22:13:20Z"}')
        await master.until(lambda: _said(master) == ["interruption", "rebalance"])
        service.say(SPOT, None)
        service.say(ADVICE, None)
        await master.until(lambda: _said(master) == [])


async def test_an_older_master_hears_nothing_of_it(host: Host, master: MasterDouble) -> None:
    """It would end the connection over a message that it does not know."""
    master.takes_notices = False
    with aws_metadata() as service:
        service.interrupt(100)
        _start(host, service)
        await master.until(lambda: service.asked.get(EVENTS, 0) > 2 and master.pings > 2)
        assert master.notices == []
        assert len(master.hellos) == 1


async def test_an_agent_without_a_metadata_service_works(host: Host, master: MasterDouble) -> None:
    """Nothing is known then, and nothing said."""
    host.start(cloud="aws", metadata_url=f"http://127.0.0.1:{free_port()}", metadata_every_s=0.02)
    await master.until(lambda: master.pings > 2)
    assert master.notices == []


async def test_a_cloud_that_is_not_known_is_refused_at_the_start(host: Host) -> None:
    """With those that are."""
    with pytest.raises(UserError, match="aws or gcp"):
        await host.start(cloud="azure")


async def test_what_is_known_is_told_before_all_is() -> None:
    """A question that is never answered holds up no other that has something to say."""
    forewarning = Forewarning()
    assert forewarning.message() is None

    class Half:
        questions: Sequence[str] = ("good", "bad")

        async def ask(self, question: str, now: float) -> Sequence[Foretold]:
            if question == "bad":
                raise MetadataAway("never")
            return [Foretold("interruption", "it ends", now + 5)]

        def pause_s(self, every_s: float) -> float:
            return every_s

    asking = asyncio.create_task(notices._ask_everything(Half(), 0.01, forewarning))
    await forewarning.news.wait()
    message = forewarning.message()
    assert message is not None
    assert [each.reason for each in message.notices] == ["it ends"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


def _start(host: Host, service: MetadataDouble) -> None:
    host.start(cloud="aws", metadata_url=service.url, metadata_every_s=0.02)


def _said(master: MasterDouble) -> list[str] | None:
    return [each.kind for each in master.notices[-1].notices] if master.notices else None
