"""All containers of this agent: one keeper each, made by a desired state or by what the runtime still holds.

A keeper whose task ends before its container is gone is told in the log, and begins again: nobody else would report,
stop or remove what it keeps.
"""

from __future__ import annotations

import asyncio

import structlog

from tenax.agent.keeper import Keeper, Tools
from tenax.agent.link import retry
from tenax.backoff import Retry
from tenax.wire.agents import DesiredStates

log = structlog.get_logger("tenax.agent")


class Fleet:
    """Gives desired states and news to keepers. ``close`` leaves all containers as they are."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._keepers: dict[str, Keeper] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: Of keepers that ended unasked.
        self._retries: dict[str, Retry] = {}
        self._closed = False

    async def adopt(self, *, patient: bool = False) -> None:
        """Take over what an earlier agent started here.

        Raises OSError where that cannot be seen; ``patient``: also where a single container cannot be looked at. Else
        that one counts as running until it can, and holds up no other.
        """
        containers = await self._tools.runtime.find()
        blind = [container for container in containers if container.unreadable]
        if blind and patient:
            raise OSError(f"cannot look at the container {blind[0].container_id}: {blind[0].unreadable}")
        for container in blind:
            log.error("a container is taken to run", container=container.container_id, reason=container.unreadable)
        for container in containers:
            # Noted here and now: the first hello must name it.
            keeper = self._keeper(container.container_id)
            if container.unreadable:
                keeper.note_unreadable()
            else:
                keeper.note(container)
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
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _keeper(self, container_id: str) -> Keeper:
        keeper = self._keepers.get(container_id)
        if keeper is None:
            keeper = self._keepers[container_id] = Keeper(self._tools, container_id)
            self._begin(keeper)
        return keeper

    def _begin(self, keeper: Keeper) -> None:
        if self._closed:
            return
        task = self._tasks[keeper.container_id] = asyncio.create_task(keeper.run())
        task.add_done_callback(lambda done: self._ended(keeper, done))

    def _ended(self, keeper: Keeper, task: asyncio.Task[None]) -> None:
        container_id = keeper.container_id
        self._tasks.pop(container_id, None)
        if keeper.gone:
            self._keepers.pop(container_id, None)
            self._retries.pop(container_id, None)
            return
        if self._closed:
            return
        error = None if task.cancelled() else task.exception()
        log.error("a keeper ended unasked; it begins again", container=container_id, exc_info=error)
        pausing = self._retries.setdefault(container_id, retry()).pause()
        asyncio.get_running_loop().call_later(pausing, self._begin, keeper)
