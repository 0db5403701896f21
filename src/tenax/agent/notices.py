"""What the cloud says of this machine's end, for the master: asked of its metadata service, and told when it changes.

Rules: a service that does not answer, or not as it does, costs a line in the log and nothing else, and what it said
before holds on; nothing is told before it has answered everything once, unless something is foretold by then; what is
told are the seconds that are left when it is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import aiohttp
import structlog

from tenax.agent.clouds import METADATA
from tenax.agent.clouds.port import Foretold, Metadata, MetadataAway
from tenax.agent.link import pause
from tenax.backoff import Backoff, Retry
from tenax.config.agent import AgentSettings
from tenax.errors import UserError
from tenax.wire.agents import MachineNotice, MachineNotices

log = structlog.get_logger("tenax.agent")

#: A metadata service is on the machine's own host.
_ANSWER_S = 5.0
_AWAY = Backoff(first=1.0, ceiling=10.0)


class Forewarning:
    """What is foretold now. `news` is set whenever that has changed."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        #: None: it is not known.
        self._foretold: tuple[Foretold, ...] | None = None

    def tell(self, foretold: Sequence[Foretold]) -> None:
        """All that is foretold from now on."""
        if self._foretold == tuple(foretold):
            return
        for each in foretold:
            if each not in (self._foretold or ()):
                log.warning("the cloud says that this machine is going to end", kind=each.kind, reason=each.reason)
        if self._foretold and not foretold:
            log.info("the cloud has taken back what it said of this machine")
        self._foretold = tuple(foretold)
        self.news.set()

    def message(self) -> MachineNotices | None:
        """What to say now; None: nothing is known."""
        if self._foretold is None:
            return None
        now = time.time()
        notices = [
            MachineNotice(each.kind, each.reason, None if each.at is None else max(0.0, each.at - now))
            for each in self._foretold
        ]
        return MachineNotices(notices)


def check(settings: AgentSettings) -> None:
    """Raises UserError for a cloud that nobody here can ask."""
    if settings.cloud and settings.cloud not in METADATA:
        raise UserError(f"cloud is {settings.cloud!r}: it can be {' or '.join(METADATA)}, or is left out")


async def watch(settings: AgentSettings, forewarning: Forewarning) -> None:
    """Ask this machine's cloud for ever; nobody where the settings name none."""
    if not settings.cloud:
        await asyncio.Event().wait()
    # Nobody's proxy leads to the service of this machine.
    timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as client:
        metadata = METADATA[settings.cloud](client, settings.metadata_url)
        await _ask_everything(metadata, settings.metadata_every_s, forewarning)


async def _ask_everything(metadata: Metadata, every_s: float, forewarning: Forewarning) -> None:
    answers: dict[str, Sequence[Foretold]] = {}

    def answered(question: str, foretold: Sequence[Foretold]) -> None:
        answers[question] = foretold
        known = [each for question in metadata.questions for each in answers.get(question, ())]
        if known or len(answers) == len(metadata.questions):
            forewarning.tell(known)

    async def keep_asking(question: str) -> None:
        away = Retry(_AWAY)
        while True:
            try:
                answered(question, await metadata.ask(question, time.time()))
            except MetadataAway as error:
                if not away.failures:
                    log.warning("the metadata service of this machine is not understood", reason=error.message)
                await pause(away.pause())
                continue
            away.reset()
            await pause(metadata.pause_s(every_s))

    async with asyncio.TaskGroup() as together:
        for question in metadata.questions:
            together.create_task(keep_asking(question))
