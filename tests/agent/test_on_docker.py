"""An agent on a container engine: the same life, through a restart of the agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.errors import UserError
from tenax.host.runtimes import AUTO, DOCKER, PROCESS
from tenax.wire.agents import Exit
from tests.agent.host import SPOOLING, Host, spec
from tests.agent.master_double import MasterDouble

pytestmark = pytest.mark.docker

STEPS = """
import os, time
print('one', flush=True)
while not os.path.exists(os.environ['DET_RUN_DIR'] + '/go'): time.sleep(0.005)
print('two', os.environ['DET_AGENT_ID'])
raise SystemExit(4)
"""


async def test_a_container_outlives_its_agent(
    master: MasterDouble, host: Host, docker_host: str, docker_image: str
) -> None:
    """Started by one agent, ended under the next: code, output, spool and exit are whole, and nothing is left."""
    host.docker_host = docker_host
    digest = master.add_context({"steps.py": SPOOLING + STEPS})
    task_spec = spec("", argv=["{python}", "steps.py"], images={"cpu": docker_image}, context_hash=digest)
    name = task_spec.container_id
    host.start(runtime=DOCKER.name, docker_host=docker_host)
    await master.until(lambda: master.hellos)
    assert master.hellos[0].runtime == "docker"
    await master.run(task_spec)
    await master.until(lambda: master.text(name) == "one\n")
    await host.stop()
    host.start(runtime=AUTO, docker_host=docker_host)
    await master.until(lambda: len(master.hellos) == 2)
    assert [(report.container_id, report.state) for report in master.hellos[1].containers] == [(name, "running")]
    _run_directory(host, name).joinpath("go").touch()
    await master.until(lambda: master.exited(name))
    assert master.reports[name].exit == Exit(code=4, reason="exited with code 4")
    assert master.text(name) == "one\ntwo box\n"
    assert [record["n"] for record in master.spool[name, "boot-1-2"]] == [1, 2]
    await master.remove(name)
    await master.until(lambda: name in master.gone)
    assert not _run_directory(host, name).exists()


async def test_a_runtime_is_not_changed_while_it_holds_containers(
    master: MasterDouble, host: Host, docker_host: str, docker_image: str
) -> None:
    """They would be taken for lost: the agent says what to do instead."""
    host.docker_host = docker_host
    task_spec = spec("print('done')", images={"cpu": docker_image})
    host.start(runtime=DOCKER.name, docker_host=docker_host)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    await host.stop()
    with pytest.raises(UserError, match="holds containers of the docker runtime"):
        await host.start(runtime=PROCESS.name)


def _run_directory(host: Host, container_id: str) -> Path:
    return host.directory / "docker" / container_id / "run"
