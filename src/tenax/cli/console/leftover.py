"""Tasks that run on without their agent, and how they are ended: as if the machine had been switched off.

Their directories stay, with output and unsent reports: the next agent sends those, and says that the platform ended the
task, so that it starts again from its latest checkpoint without that counting against it.
"""

from __future__ import annotations

import asyncio
import contextlib
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
            running = [found.container_id for found in held if found.state != "exited"]
            await asyncio.gather(*(runtime.switch_off(container) for container in running))
            count += len(running)
            if remove:
                await asyncio.gather(*(runtime.remove(found.container_id) for found in held))
        finally:
            await runtime.close()
    return count


async def _runtimes(directory: Path) -> AsyncIterator[Runtime]:
    """Those that have containers in this directory."""
    if _any(directory / "containers"):
        from tenax.runtime.process import ProcessRuntime

        yield ProcessRuntime(directory)
    if _any(directory / "docker"):
        yield await _docker(directory)


async def _docker(directory: Path) -> Runtime:
    """By the first engine that answers, as the agent finds it."""
    from tenax.runtime.docker import open_docker
    from tenax.runtime.engine import usual_sockets
    from tenax.runtime.port import RuntimeAway

    for host in usual_sockets():
        with contextlib.suppress(RuntimeAway):
            return await open_docker(directory, host, "bridge")
    raise RuntimeAway(f"There are containers of {directory}, and no container engine answers: start it to end them.")


def _any(folder: Path) -> bool:
    return folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir())
