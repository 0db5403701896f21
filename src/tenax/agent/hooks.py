"""What the operator wants run on this machine when something happens to the agent.

A hook is a program of the agent's configuration, run as the agent's own user, without a shell. One that does not end
in time is killed; what it says, and that it failed, is in the agent's log, and nothing else comes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

log = structlog.get_logger("tenax.agent")

#: Seconds that a hook may take.
TIMEOUT_S = 60.0
#: Bytes of its output that are logged.
_SHOWN = 2000


async def run_hook(name: str, command: Sequence[str], within_s: float = TIMEOUT_S) -> None:
    """Run a hook to its end; nothing where none is configured."""
    if not command:
        return
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        log.error("a hook cannot be run", hook=name, program=command[0], reason=error.strerror)
        return
    try:
        async with asyncio.timeout(within_s):
            output, _ = await process.communicate()
    except TimeoutError:
        log.error("a hook was killed: it took too long", hook=name, seconds=within_s)
    else:
        tail = output[-_SHOWN:].decode(errors="replace").strip()
        say = log.info if process.returncode == 0 else log.error
        say("a hook has ended", hook=name, code=process.returncode, output=tail)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
