"""Asks providers what is not written of offers: what a machine costs now, and how many slots it has.

Rules it keeps: an offer is asked about once an hour, be it that there was no answer; what was not answered costs one
line of the log for each reason, and what was known before, or is listed, holds. Where all is written nobody is asked.
With new settings, and at the start, what is not so at the provider is in the log, once; nothing else follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog

from tenax.config.master import PoolSettings
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.lifecycle.offer_facts import OfferFacts, due, due_in_s
from tenax.master.loops.loop import LONG_STEP_S, PassContext, each
from tenax.master.provision.checks import checked
from tenax.master.provision.port import Provider, ProviderPlace
from tenax.master.provision.registry import open_provider
from tenax.master.provision.sightings import place_of_pool
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.machines import offer_facts

log = structlog.get_logger("tenax.offer_news")


class OfferNews:
    """Keeps what providers say of offers."""

    name = "offer_news"
    #: Nobody says so: the time alone makes it due.
    kind = "offer_news"
    #: All that is asked of a provider at the start is one call after the other.
    step_s = LONG_STEP_S

    def __init__(
        self,
        pools: Sequence[PoolSettings],
        cluster_id: str,
        opened: Callable[[ProviderPlace, str], Provider] = open_provider,
    ) -> None:
        self._cluster_id = cluster_id
        self._open = opened
        self._providers: dict[ProviderPlace, Provider] = {}
        self.use_pools(pools)

    def use_pools(self, pools: Sequence[PoolSettings]) -> None:
        """From the next pass on these are the pools."""
        self._renting = {pool.name: pool for pool in pools if pool.provider is not None}
        #: Those whose settings were not held against their providers yet.
        self._unchecked = dict(self._renting)

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Ask about what is due, pool by pool; seconds until the next is."""
        if not self._renting:
            return None
        async with context.reading() as conn:
            facts = await offer_facts.all_of(conn)

        async def handle(name: str) -> None:
            await self._ask(context, self._renting[name], facts.get(name, {}))

        await each(list(self._renting), handle, loop=self.name, noun="pool")
        await self._check()
        async with context.reading() as conn:
            facts = await offer_facts.all_of(conn)
        waits = (
            due_in_s([offer.offer_name for offer in asks_of(pool)], facts.get(name, {}))
            for name, pool in self._renting.items()
        )
        return min((wait_s for wait_s in waits if wait_s is not None), default=None)

    async def _ask(self, context: PassContext, pool: PoolSettings, facts: Mapping[str, OfferFacts]) -> None:
        offers = {offer.offer_name: offer for offer in asks_of(pool)}
        names = due(offers, facts)
        if not names:
            return
        answers = await self._provider(pool).ask([offers[name] for name in names])
        async with context.transaction() as conn:
            await offer_facts.store(conn, pool.name, answers.news)
        for why, of_these in answers.problems.items():
            log.warning(
                "a provider does not say what is not written of offers: write price, or what the reason names",
                pool=pool.name,
                offers=", ".join(of_these),
                reason=why,
            )

    async def _check(self) -> None:
        """Hold settings against their providers, those of each pool once."""
        unchecked, self._unchecked = self._unchecked, {}

        async def handle(name: str) -> None:
            pool = unchecked[name]
            assert pool.provider is not None
            for finding in await checked(pool.provider, self._provider(pool)):
                log.warning(
                    "what a pool's provider is to rent is not there as it is written (tenax machine check)",
                    pool=name,
                    setting=finding.path,
                    reason=finding.problem,
                    instead=finding.instead,
                )

        await each(list(unchecked), handle, loop=self.name, noun="provider")

    def _provider(self, pool: PoolSettings) -> Provider:
        place = place_of_pool(pool)
        if place not in self._providers:
            self._providers[place] = self._open(place, self._cluster_id)
        return self._providers[place]


def asks_of(pool: PoolSettings) -> list[AnyProviderSettings]:
    """The offers of a pool of which something is not written that its provider may say."""
    offers = pool.provider.each_offer() if pool.provider is not None else ()
    return [offer for offer in offers if offer.may_be_asked and (offer.price is None or offer.instance_slots < 0)]
