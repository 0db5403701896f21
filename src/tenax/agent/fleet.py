"""All containers of this agent: one keeper each, made by a desired state or by what the runtime still holds."""

from __future__ import annotations

import asyncio

import structlog

from tenax.agent.keeper import Keeper, Tools
from tenax.wire.agents import DesiredStates

log = structlog.get_logger("tenax.agent")


class Fleet:
    """Gives desired states and news to keepers. ``close`` leaves all containers as they are."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._keepers: dict[str, Keeper] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def adopt(self) -> None:
        """Take over what an earlier agent started here."""
        containers = await self._tools.runtime.find()
        for container in containers:
            # Noted here and now: the first hello must name it.
            self._keeper(container.container_id).note(container)
        if containers:
            log.info("found containers", count=len(containers))

    def obey(self, desired: DesiredStates) -> None:
        """Desired states of our own cluster and generation; what they do not name is left alone."""
        for container in desired.containers:
            self._keeper(container.container_id).set_desired(container)

    def connecting(self) -> None:
        """A connection is open, and nothing said over it: what was delivered over an earlier one may be gone."""
        self._tools.connections += 1
        for keeper in self._keepers.values():
            keeper.deliver_again()

    def generation(self, generation: int) -> None:
        """The cluster's generation, as the master just sent it."""
        if self._tools.generation != generation:
            self._tools.generation = generation
            for keeper in self._keepers.values():
                keeper.poke()

    async def listen(self) -> None:
        """Pass the runtime's news on, for ever."""
        async for container_id in self._tools.runtime.changed():
            keeper = self._keepers.get(container_id)
            if keeper is not None:
                keeper.poke()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _keeper(self, container_id: str) -> Keeper:
        keeper = self._keepers.get(container_id)
        if keeper is None:
            keeper = self._keepers[container_id] = Keeper(self._tools, container_id)
            task = self._tasks[container_id] = asyncio.create_task(keeper.run())
            task.add_done_callback(lambda done: self._ended(container_id, done))
        return keeper

    def _ended(self, container_id: str, task: asyncio.Task[None]) -> None:
        self._keepers.pop(container_id, None)
        self._tasks.pop(container_id, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("a keeper failed", container=container_id, exc_info=task.exception())
