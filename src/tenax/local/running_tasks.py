"""Tasks that run on without their agent, and how they are ended: as if the machine had been switched off.

Their directories stay, with output and unsent reports: the next agent sends those, and says that the platform ended the
task, so that it starts again from its latest checkpoint without that counting against it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, AsyncIterator

if TYPE_CHECKING:
    from tenax.runtime.port import Runtime


def end_all(agent_directory: Path, *, remove: bool = False) -> int:
    """End every process that the agent of this directory started for a task; how many tasks ran. Raises RuntimeAway.

    ``remove``: leave no file either, for a cluster that will never be up again.
    """
    return asyncio.run(_end_all(agent_directory, remove))


async def _end_all(directory: Path, remove: bool) -> int:
    count = 0
    async for runtime in _runtimes(directory):
        try:
            held = await runtime.find()
            running = [container.container_id for container in held if container.state != "exited"]
            await asyncio.gather(*(runtime.switch_off(container) for container in running))
            count += len(running)
            if remove:
                await asyncio.gather(*(runtime.remove(container.container_id) for container in held))
        finally:
            await runtime.close()
    return count


async def _runtimes(directory: Path) -> AsyncIterator[Runtime]:
    """Those that have containers in this directory."""
    from tenax.config.agent import AgentSettings
    from tenax.host.runtimes import held
    from tenax.runtime.opening import open_kind
    from tenax.runtime.port import RuntimeAway

    for kind in held(directory):
        try:
            runtime = await open_kind(kind, AgentSettings(dir=directory))
        except RuntimeAway as away:
            message = f"There are containers of {directory}, and {away.message}: start it to end them."
            raise RuntimeAway(message) from None
        yield runtime
