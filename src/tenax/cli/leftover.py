"""Tasks that run on without their agent, and how they are ended: as if the machine had been switched off.

Their directories stay, with output and unsent reports: the next agent sends those, and says that the platform ended the
task, so that it starts again from its latest checkpoint without that counting against it.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tenax.errors import TenaxError

if TYPE_CHECKING:
    from tenax.runtime.process import ProcessRuntime

_LOOK_S = 0.02
#: How long a container that is just being started is waited for.
_STARTING_S = 10.0


def end_all(agent_directory: Path) -> int:
    """End every process that the agent of this directory started for a task; how many tasks ran."""
    if not (agent_directory / "containers").is_dir():
        return 0
    return asyncio.run(_end_all(agent_directory))


async def _end_all(directory: Path) -> int:
    from tenax.runtime.process import ProcessRuntime

    runtime = ProcessRuntime(directory)
    try:
        running = [found.container_id for found in await runtime.find() if found.state != "exited"]
        ended = await asyncio.gather(*(_end(runtime, directory, container) for container in running))
        return sum(ended)
    finally:
        await runtime.close()


async def _end(runtime: ProcessRuntime, directory: Path, container: str) -> bool:
    """Kill the supervisor of a container: what it watched is swept by whoever looks next, and that is us."""
    from tenax.runtime.directory import Homes
    from tenax.runtime.processes import Identity, send

    home = Homes(directory / "containers").home(container)
    waited = 0.0
    while True:
        found = await runtime.look(container)
        if found is None or found.state == "exited":
            return waited > 0.0
        supervision = home.supervision()
        if supervision is not None:
            send(Identity(supervision.pid, supervision.start), signal.SIGKILL)
        elif waited > _STARTING_S:
            raise TenaxError(f"The task in {home.path} neither runs nor ends: look into that directory.")
        await asyncio.sleep(_LOOK_S)
        waited += _LOOK_S
