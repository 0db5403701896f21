"""``tenax up`` as root with users mapped to uids: their tasks run as they, save, are cleaned up and are apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.client.connection.session import Session
from tests.e2e.trials import config, ran, script
from tests.kits.machine import Machine, machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs tasks as others")

UID, OTHER = 41_234, 41_235


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    with machine() as up:
        link(up, "admin", UID)
        yield up


def link(place: Machine, name: str, uid: int) -> None:
    flags = ("--agent-uid", str(uid), "--agent-user", f"u{uid}", "--agent-gid", str(uid), "--agent-group", f"g{uid}")
    place.tenax("user", "link-with-agent-user", name, *flags)


def test_who_shares_a_uid_is_said_at_the_start(place: Machine) -> None:
    """By the banner, with names: of users with one uid, and of those who run as root for want of one."""
    link(place, "determined", UID)
    place.tenax("user", "create", "eve", "--remote")
    place.tenax("down", "--dir", str(place.directory))
    banner = place.tenax("up", "--dir", str(place.directory)).stderr
    assert f"tasks of admin and determined all run as uid {UID}: each of them" in banner
    assert "tasks of eve are processes of root" in banner


CODE = """
    import getpass, grp, os, pwd
    from tenax import core

    with core.init() as context:
        names = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name, getpass.getuser()
        print("I AM", *names, os.getuid(), flush=True)
        context.train.report_validation_metrics(1, {"loss": 0.5})
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "state").write_text("saved")
"""


def test_a_trial_of_a_mapped_user(place: Machine, tmp_path: Path) -> None:
    """It runs as that user, who has a name, saves where the cluster keeps checkpoints, and writes for TensorBoard."""
    experiment, (trial,) = ran(place, config(), script(tmp_path / "code", CODE))
    log = place.tenax("trial", "logs", str(trial.id)).stdout
    assert experiment.state == "COMPLETED", log
    assert f"I AM u{UID} g{UID} u{UID} {UID}" in log
    assert "TensorBoard files are not kept" not in log
    (saved,) = (place.directory / "checkpoints").glob("*-*-*-*-*/state")
    assert saved.stat().st_uid == UID


def test_another_user_beside_them(place: Machine, tmp_path: Path) -> None:
    """Both have places for their checkpoints and for TensorBoard's files, and neither may change the other's."""
    link(place, "admin", UID)
    ran(place, config(), script(tmp_path / "code", CODE))
    link(place, "admin", OTHER)
    code = (
        CODE
        + f"""
    import glob
    for found in glob.glob({str(place.directory)!r} + "/checkpoints/*-*-*-*-*/state"):
        if os.stat(found).st_uid == {UID}:
            folder = os.path.dirname(found)
            for change in ([os.unlink, found], [os.rename, folder, folder + ".mine"]):
                try:
                    change[0](*change[1:])
                except PermissionError:
                    print("KEPT OUT", flush=True)
"""
    )
    experiment, (trial,) = ran(place, config(), script(tmp_path / "other", code))
    log = place.tenax("trial", "logs", str(trial.id)).stdout
    assert experiment.state == "COMPLETED", log
    assert f"I AM u{OTHER}" in log
    assert "TensorBoard files are not kept" not in log
    assert log.count("KEPT OUT") >= 2
    owners = {path.stat().st_uid for path in (place.directory / "checkpoints").glob("*/tensorboard/experiment/*")}
    assert owners == {UID, OTHER}
    place.tenax("experiment", "delete", str(experiment.id), "--yes")


def test_the_group_of_a_workspace_without_a_user(place: Machine, tmp_path: Path) -> None:
    """The group is the workspace's, and all else is of who is not linked: the agent's own user."""
    place.tenax("workspace", "create", "shared", "--agent-gid", "41236", "--agent-group", "crew")
    place.tenax("project", "create", "shared", "work")
    with Session(place.url, token=place.token()) as session:
        session.call("PATCH", "/api/v1/users/1", body={"agentUserGroup": {}})
    try:
        settings = {**config(), "workspace": "shared", "project": "work"}
        experiment, (trial,) = ran(place, settings, script(tmp_path / "group", CODE))
    finally:
        link(place, "admin", UID)
    log = place.tenax("trial", "logs", str(trial.id)).stdout
    assert experiment.state == "COMPLETED", log
    assert "I AM root crew root 0" in log
