"""A machine is lost under a gang: all that it runs is gone at once, and the survivor fails before anybody knows why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.trials import config, output, script
from tests.kits.machine import Machine, machine, outlast, wait_for
from tests.kits.ports import free_port
from tests.kits.second_machine import SecondMachine, second_machine

#: Both wait on a connection, as ranks do in a collective operation.
RANKS = """
    import pathlib
    import socket
    import sys
    import time

    import tenax

    info = tenax.get_cluster_info()
    hparams = info.trial.hparams
    place = pathlib.Path(hparams["place"])
    if (place / "again").exists():
        sys.exit(0)
    address = ("127.0.0.1", hparams["port"])
    if info.container_rank == 1:
        with socket.create_server(address) as server:
            connection, _ = server.accept()
    while info.container_rank == 0:
        try:
            connection = socket.create_connection(address)
            (place / "connected").touch()
            break
        except OSError:
            time.sleep(0.01)
    assert connection.recv(1) == b"go on", "NCCL error: remote process exited or there was a network error"
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Machine]:
    """One slot on its own machine; agents are given up soon, but for a busy machine's pauses."""
    settings = tmp_path / "master.yaml"
    settings.write_text(yaml.safe_dump({"pools": [{"name": "default", "agent_reconnect_wait": 20}]}))
    with machine(slots=1, options=("--config", str(settings))) as up:
        yield up


@pytest.fixture
def second(place: Machine) -> Iterator[SecondMachine]:
    with second_machine(place, slots=1) as made:
        yield made


@pytest.mark.timeout(240)
def test_the_survivors_error_is_not_charged_to_the_user(place: Machine, second: SecondMachine, tmp_path: Path) -> None:
    """No restart is allowed, and the trial is tried again all the same: a machine was lost, and its log says so."""
    document = config(
        hyperparameters={"place": str(tmp_path), "port": free_port()},
        resources={"slots_per_trial": 2},
        max_restarts=0,
    )
    with place.client() as client:
        number = client.create_experiment(document, script(tmp_path / "code", RANKS)).id
    wait_for((tmp_path / "connected").exists, "the gang")
    # Whichever rank is there: it is the other one that goes on, and fails.
    second.lose()
    with place.client() as client:
        [trial] = client.experiment(number).trials()
        wait_for(lambda: "no sign of life from agent second" in output(place, trial), "the verdict")
    (tmp_path / "again").touch()
    second.start()
    ended = outlast(place, number)
    with place.client() as client:
        [trial] = client.experiment(number).trials()
        told = output(place, trial)
    assert (ended.state, trial.state, trial.restarts) == ("COMPLETED", "COMPLETED", 0), (
        f"{trial}\n{told}\n{place.logs()}"
    )
    assert "NCCL error" in told, "it was no survivor that failed"
