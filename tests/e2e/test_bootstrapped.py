"""A machine that has no tenax becomes an agent by its script: one at hand, and one that is rented."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tenax.errors import NotFound
from tests.kits.machine import Machine, home, machine, wait_for
from tests.kits.rented import ACCOUNT, IMAGE, REGION, MachineDoubles, moto


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    """A cluster without an agent."""
    with machine(options=("--no-agent",)) as made:
        yield made


@dataclass
class Bare:
    """A machine that has a shell, and a Python with all that tenax needs."""

    directory: Path

    @property
    def agent(self) -> psutil.Process | None:
        """The agent that runs there."""
        with contextlib.suppress(OSError, ValueError, psutil.NoSuchProcess):
            process = psutil.Process(int((self.directory / "agent.pid").read_text()))
            if str(self.directory) in " ".join(process.cmdline()):
                return process
        return None

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """As ``ssh machine sh`` does: from standard input."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.directory.parent),
            # From where it is run.
            "TENAX_MACHINE_DIR": str(self.directory.relative_to("/")),
        }
        environment |= {"TENAX_AGENT_RUNTIME": "process", "TENAX_AGENT_SLOTS": "2", "TENAX_AGENT_SLOT_TYPE": "cpu"}
        environment |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        return subprocess.run(
            ["sh"], input=script, env=environment, cwd="/", capture_output=True, text=True, timeout=240, check=False
        )


@pytest.fixture
def bare() -> Iterator[Bare]:
    with home() as directory:
        made = Bare(directory / "it is here")
        try:
            yield made
        finally:
            if (agent := made.agent) is not None:
                agent.send_signal(signal.SIGTERM)
                agent.wait(60)


def printed(place: Machine, *options: str) -> str:
    """The script for a machine."""
    done = place.tenax("agent", "bootstrap", "--same-machine", "--python", sys.executable, *options)
    assert "This script holds a secret: until " in done.stderr
    assert "tnxj_" not in done.stderr
    return done.stdout


def test_a_machine_becomes_an_agent(place: Machine, bare: Bare) -> None:
    """By the printed script alone, without an index; it runs what is placed there, and is no agent a second time."""
    script = printed(place, "--agent", "box4")
    half = script[: script.index('tenax_say "start the agent" begun')]
    assert bare.run(half).returncode != 0
    assert not bare.directory.exists()
    done = bare.run(script)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if ": done" in line]
    steps = ("fetch tenax", "make an environment", "install tenax", "install what tenax needs", "start the agent")
    assert [line.split(": ")[1] for line in said] == list(steps)
    assert f"after a restart of this machine: sh {bare.directory}/start.sh" in done.stderr
    assert not (bare.directory / "join-token").exists()
    assert script.splitlines().count("cat > \"$dir/join-token\" <<'TENAX_END'") == 1
    with place.client() as client:
        wait_for(lambda: [agent.id for agent in client.agents() if agent.slots] == ["box4"] or None, "the agent")
        code = "import sys, tenax; print(sys.prefix, tenax.__file__)"
        command = client.run_command(["python3", "-c", code], slots=2)
        wait_for(lambda: client.command(command.id).has_ended, "the end of the command")
        lines = "".join(line.log for line in client.command(command.id).logs())
    assert f"{bare.directory}/venv {bare.directory}/venv/lib/" in lines
    again = bare.run(script)
    assert again.returncode == 1
    assert "tenax: make an agent: failed: there is one in " in again.stderr
    # It is started again as after a restart of its machine, with neither a token nor what the first start was given.
    agent = bare.agent
    assert agent is not None
    agent.send_signal(signal.SIGTERM)
    wait_for(lambda: bare.agent is None or None, "its end")
    with subprocess.Popen(["sh", str(bare.directory / "start.sh")], env={"PATH": "/usr/bin:/bin"}) as start:
        wait_for(lambda: bare.agent, "the agent again")
        with place.client() as client:
            wait_for(lambda: client.agents()[0].connected or None, "its connection")
        bare.agent.send_signal(signal.SIGTERM)  # type: ignore[union-attr]
        assert start.wait(60) == 0


def test_a_token_that_was_used_makes_no_second_machine(place: Machine, bare: Bare) -> None:
    """The step is named; nothing of the secret is left there, and what was there is as it was."""
    script = printed(place)
    number = place.json("agent", "join-token", "list")[-1]["id"]  # type: ignore[index,call-overload]
    place.tenax("agent", "join-token", "revoke", str(number))
    done = bare.run(script)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("tenax: fetch tenax: failed: the join token is wrong, used up, over")
    assert sorted(path.name for path in bare.directory.iterdir() if not path.name.startswith("step.")) == [
        "agent",
        "bootstrapped",
        "fetch.py",
    ]
    shutil.rmtree(bare.directory)
    with place.client() as client, pytest.raises(NotFound):
        client.session.get("/api/v1/agents/box5")


def test_an_address_that_is_each_machines_own_is_refused(place: Machine) -> None:
    """Which is that of a cluster on this machine, unless it is told otherwise."""
    done = place.tenax("agent", "bootstrap", check=False)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "means, on each machine, that machine itself" in done.stderr
    assert "--same-machine" in done.stderr


@pytest.mark.long
def test_a_rented_machine_of_an_image_without_tenax_gets_the_masters(tmp_path: Path) -> None:
    """With its own token, while it starts; it says so step by step, and runs what it was rented for."""
    with moto() as rented, home() as directory:
        file = directory / "master.yaml"
        place = Machine(directory / "cluster", options=("--no-agent", "--config", str(file)), environment=ACCOUNT)
        provider = {
            "type": "aws", "endpoint_url": rented.url, "master_url": place.url, "region": REGION, "image_id": IMAGE,
            "instance_type": "m5.large", "instance_slots": 2, "cpu_slots_allowed": True, "max_instances": 1,
            "agent_install": {"python": sys.executable},
        }  # fmt: skip
        file.write_text(json.dumps({"pools": [{"name": "default", "provider": provider}]}))
        programs = directory / "machines" / "bin"
        bare = {"PATH": f"{programs}:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        with MachineDoubles(rented, directory / "machines", lambda _: bare).running():
            try:
                place.up()
                with place.client() as client:
                    command = client.run_command(["python3", "-c", "import tenax; print(tenax.__file__)"], slots=2)
                    wait_for(lambda: client.command(command.id).has_ended, "the end of the command", 240)
                    lines = "".join(line.log for line in client.command(command.id).logs())
                assert f"{directory}/machines/" in lines
                [its] = place.json("machine", "list")  # type: ignore[misc]
                logs = place.tenax("machine", "logs", str(its["id"])).stdout  # type: ignore[index,call-overload]
                assert "install what tenax needs" in logs
            finally:
                place.down()
