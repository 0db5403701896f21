"""A machine for tests: an agent within the test or as a process of its own, and specifications for it to run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import uuid
from pathlib import Path

from pydantic import SecretStr

from tenax.agent.app import run
from tenax.config.agent import AgentSettings
from tenax.host.runtimes import PROCESS
from tenax.runtime.docker.runtime import open_docker
from tenax.runtime.port import Runtime
from tenax.runtime.process import ProcessRuntime
from tenax.wire.agents import ContainerSpec
from tests.agent.master_double import TOKEN


class Host:
    """``directory`` is the agent's; `start` within this process (fast), `spawn` as one that can be killed."""

    def __init__(self, directory: Path, master_url: str) -> None:
        self.directory = directory
        self.master_url = master_url
        self.task: asyncio.Task[None] | None = None
        self.process: asyncio.subprocess.Process | None = None
        #: Of the engine that a test uses; "" for none.
        self.docker_host = ""

    def settings(self, **changes: object) -> AgentSettings:
        values: dict[str, object] = {
            "master_url": self.master_url,
            "agent_id": "box",
            "dir": self.directory,
            "runtime": PROCESS.name,
            "slot_type": "cpu",
            "slots": 2,
            "join_token": SecretStr(TOKEN),
            "address": "10.0.0.1",
            **changes,
        }
        return AgentSettings.model_validate(values)

    def start(self, **changes: object) -> asyncio.Task[None]:
        """An agent on this event loop."""
        self.task = asyncio.create_task(run(self.settings(**changes)))
        return self.task

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
            self.task = None

    async def spawn(self) -> asyncio.subprocess.Process:
        """An agent as a process of its own."""
        token = self.directory.parent / "join-token"
        token.write_text(TOKEN)
        flags = ["--master-url", self.master_url, "--agent-id", "box", "--dir", str(self.directory), "--slots", "2"]
        flags += ["--slot-type", "cpu", "--runtime", "process", "--join-token-file", str(token)]
        log = (self.directory.parent / "agent.log").open("ab")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tenax.agent", *flags, stdout=log, stderr=log, env={**os.environ, "SECRET": "agents"}
        )
        log.close()
        return self.process

    async def kill(self) -> None:
        """kill -9 of the spawned agent."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
            await self.process.wait()
            self.process = None

    async def clean(self) -> None:
        await self.stop()
        await self.kill()
        runtimes: list[Runtime] = [ProcessRuntime(self.directory)]
        if self.docker_host:
            runtimes.append(await open_docker(self.directory, self.docker_host, "host"))
        for runtime in runtimes:
            for found in await runtime.find():
                await runtime.remove(found.container_id)
            await runtime.close()


def spec(code: str, **changes: object) -> ContainerSpec:
    """A container that runs Python code in the agent's interpreter."""
    container_id = str(uuid.uuid4())
    values: dict[str, object] = {
        "container_id": container_id,
        "allocation_id": f"1.{container_id}.1",
        "task_id": f"1.{container_id}",
        "rank": 0,
        "members": 1,
        "slots": [],
        "argv": ["{python}", "-c", code],
        "env": {"DET_SESSION_TOKEN": "task-token"},
        **changes,
    }
    return ContainerSpec(**values)  # type: ignore[arg-type]


#: Runs until it is told to stop, and says that it runs.
WAIT = "import signal; print('ready', flush=True); signal.pause()"
#: The same, and SIGTERM does not impress it.
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
    "while True: signal.pause()"
)
#: Leaves two records in the spool, and a line torn by a crash.
SPOOLING = """
import os
with open(os.environ['DET_RUN_DIR'] + '/spool/boot-1-2.jsonl', 'w') as file:
    file.write('{"n":1,"kind":"metrics","at":1,"body":{}}\\n{"n":2,"kind":"progress","at":1,"body":{}}\\n{"n":3,')
"""
