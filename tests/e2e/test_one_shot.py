"""Commands on a whole cluster: run from the command line, in every runtime, through the death of an agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenax.client.commands import Command
from tenax.client.connect import Client
from tenax.jsonvalue import JsonObject
from tests.kits.machine import Machine, machine, wait_for


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and what a command needs there."""

    machine: Machine
    #: Laid over the configuration.
    also: JsonObject


@pytest.fixture(scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A cluster whose tasks run in plain processes, or in containers."""
    if request.param == "process":
        yield Place(request.getfixturevalue("shared"), {})
    else:
        host, image = request.getfixturevalue("docker_host"), request.getfixturevalue("docker_image")
        with machine(runtime="docker", environment={"DOCKER_HOST": host}) as up:
            yield Place(up, {"environment": {"image": image}})


SCRIPT = """\
echo to standard output; read note < note.txt; echo $note
echo to standard error >&2
python3 -c 'from tenax.core import get_cluster_info as info; print(info().task_type, len(info().slot_ids))'
exit 3
"""


def test_a_command_is_run_as_if_it_ran_here(place: Place, tmp_path: Path) -> None:
    """Its streams, its exit code; it has the files and the slots that it was given, and leaves nothing behind."""
    note = tmp_path / "note.txt"
    note.write_text("sent with it\n")
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(place.also))
    options = ("--slots", "2", "-f", str(note), "--config-file", str(config))
    done = place.machine.tenax("command", "run", *options, "--", "sh", "-c", SCRIPT, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["to standard output", "sent with it", "COMMAND 2"]
    assert "to standard error" in done.stderr
    wait_for(
        lambda: not place.machine.containers() and not place.machine.task_processes(),
        "an agent without containers, and no process of any",
    )


#: Waits for a file; a shell alone could not do that everywhere.
WAITING = "import os, sys, time\nprint('begun', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\n"


def begun(place: Place, client: Client, go: Path) -> Command:
    """A command that ends with exit code 4 once ``go`` is there."""
    go.parent.chmod(0o777)
    config: JsonObject = {
        "bind_mounts": [{"host_path": str(go.parent), "container_path": str(go.parent)}],
        **place.also,
    }
    code = WAITING + "print('ended')\nsys.exit(4)"
    return client.run_command(["python3", "-c", code, str(go)], config=config, slots=0)


def test_a_command_outlives_its_agent(place: Place, tmp_path: Path) -> None:
    """The agent is killed while it runs: the next one finds it, its output and its exit."""
    go = tmp_path / "go"
    with place.machine.client() as client:
        command = begun(place, client, go)
        wait_for(lambda: any(line.log == "begun" for line in command.logs()), "its first line")
        before = place.machine.pid("agent")
        place.machine.kill("agent")
        wait_for(lambda: place.machine.pid("agent") not in (None, before), "another agent")
        go.touch()
        ended = command.wait(interval=0.05)
        assert (ended.exit_code, ended.state) == (4, "TERMINATED")
        assert [line.log for line in command.logs() if line.source == "task"] == ["begun", "ended"]


def test_a_command_outlives_the_master(shared: Machine, tmp_path: Path) -> None:
    """Whoever follows it sees its end all the same."""
    place, go = Place(shared, {}), tmp_path / "go"
    with place.machine.client() as client:
        command = begun(place, client, go)
        lines = (line.log for line in command.logs(follow=True) if line.source == "task")
        assert next(lines) == "begun"
        place.machine.kill("master")
        go.touch()
        assert list(lines) == ["ended"]
        assert command.wait(interval=0.05).exit_code == 4
