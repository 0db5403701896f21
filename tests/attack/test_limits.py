"""A user whose containers run under a uid of their own asks for the machine: its folders, devices, rights and network.

The engine that makes the container is root and would give what it is asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tenax.config.agent import AllowedSettings
from tenax.config.master import MasterSettings, container_defaults
from tenax.master.submission.machine_access import granted
from tenax.runtime.directory import Home
from tenax.runtime.docker.config import Surroundings, create_request
from tenax.runtime.limits import check_container, check_unchangeable, check_user
from tenax.runtime.port import Placement, StartFailed
from tenax.wire.agents import ContainerSpec, Grants, Mount

NOTHING = AllowedSettings()
LIST = AllowedSettings(
    bind_mounts=("/data:ro", "/scratch"),
    capabilities=("CAP_IPC_LOCK",),
    devices=("/dev/fuse",),
    host_network=True,
    root=True,
)


def spec(**changes: object) -> ContainerSpec:
    """Of a user who has no uid."""
    known = ContainerSpec("c", "1.x.1", "1.x", 0, 1, [], ["true"], {}, images={"cpu": "cpu:1"})
    return msgspec.structs.replace(known, **changes)


def mallorys(**changes: object) -> ContainerSpec:
    return spec(**{"uid": 1234, "gid": 1234, **changes})


def mount(path: str, *, read_only: bool = False, propagation: str = "rprivate") -> dict[str, object]:
    return {"mounts": [Mount(path, "/mnt", read_only, propagation)]}


def refusal(task_spec: ContainerSpec, allowed: AllowedSettings, *, host_network: bool = False) -> str:
    """Why it is not started; empty: it is."""
    try:
        check_container(task_spec, allowed, host_network=host_network)
    except StartFailed as failed:
        found = failed
    else:
        return ""
    assert not found.platform, "it would be tried for ever"
    return found.message


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (mount("/"), "the bind mount / for reading and writing"),
        (mount("/etc", read_only=True), "the bind mount /etc for reading"),
        (mount("/scratch/../etc"), "the bind mount /scratch/../etc"),
        (mount("/scratches"), "the bind mount /scratches"),
        (mount("/data"), "the bind mount /data for reading and writing"),
        (mount("/scratch", propagation="rshared"), "the propagation rshared"),
        ({"add_capabilities": ["SYS_ADMIN"]}, "the capability SYS_ADMIN"),
        ({"add_capabilities": ["ALL"]}, "the capability ALL"),
        ({"devices": ["/dev/sda:/dev/fuse:rwm"]}, "the device /dev/sda"),
        ({"devices": ["/dev/../dev/sda:/x:r"]}, "the device /dev/../dev/sda"),
    ],
)
def test_what_the_list_does_not_name_is_refused(asked: dict[str, object], named: str) -> None:
    """By name, and with what to do; the same of a user without a uid is one trust domain, as ever."""
    assert named in refusal(mallorys(**asked), LIST)
    assert "ask the operator" in refusal(mallorys(**asked), NOTHING)
    assert refusal(spec(**asked), NOTHING) == ""


def test_what_the_list_names_is_given() -> None:
    """Folders with what lies below, capabilities in either spelling, devices."""
    asked = mallorys(
        mounts=[Mount("/data/a", "/a", True), Mount("/scratch/b/", "/b")],
        add_capabilities=["ipc_lock", "CAP_IPC_LOCK"],
        devices=["/dev/fuse:/dev/fuse:rw"],
    )
    assert refusal(asked, LIST, host_network=True) == ""


def test_all_that_is_refused_is_told_at_once() -> None:
    """Nobody has to try ten times."""
    text = refusal(mallorys(**mount("/etc"), add_capabilities=["SYS_ADMIN"], devices=["/dev/sda"]), NOTHING)
    assert all(word in text for word in ("/etc", "SYS_ADMIN", "/dev/sda", "uid 1234"))


def test_the_network_of_the_machine() -> None:
    """Two members on several machines are no way to it."""
    assert "allowed.host_network" in refusal(mallorys(members=2), NOTHING, host_network=True)


def test_root_by_number() -> None:
    """A link with uid 0 takes the operator of the machine, too; and so does none, where they say so."""
    with pytest.raises(StartFailed, match=r"allowed\.root"):
        check_user(mallorys(uid=0), NOTHING)
    check_user(mallorys(uid=0), LIST)
    check_user(spec(), NOTHING)
    with pytest.raises(StartFailed, match=r"allowed\.unmapped"):
        check_user(spec(), AllowedSettings(unmapped=False))


def options(task_spec: ContainerSpec, kind: str = "cpu", allowed: AllowedSettings = NOTHING) -> object:
    place = Path("/var/lib/tenax")
    around = Surroundings(str(place), place / "lib", {}, "bridge", True, {"Type": "local"}, "0:0", allowed)
    placement = Placement({}, ("GPU-1",), kind, None, "cluster", 7)
    host = create_request(task_spec, placement, around, Home(Path("/c")), {})["HostConfig"]
    assert isinstance(host, dict)
    return host.get("SecurityOpt")


def test_programs_that_make_root_of_whoever_runs_them() -> None:
    """An image is a user's, too: setuid in it means nothing, unless they may be root anyway."""
    assert options(mallorys()) == ["no-new-privileges"]
    assert options(mallorys(), "rocm") == ["seccomp=unconfined", "no-new-privileges"]
    assert options(mallorys(), allowed=LIST) is None
    assert options(spec()) is None


def test_a_storage_of_ones_own_is_a_mount_of_ones_own() -> None:
    """``checkpoint_storage`` of an experiment names a folder of the machine; only the cluster's is nobody's wish."""
    defaults = {"bind_mounts": [{"host_path": "/data", "container_path": "/data", "read_only": True}]}
    more = {"add_capabilities": ["IPC_LOCK"], "devices": ["/dev/fuse:/dev/fuse"]}
    settings = MasterSettings(
        checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"}, task_container_defaults=defaults
    )
    pool = settings.pools[0].model_copy(update={"task_container_defaults": more})
    given = granted(container_defaults(settings, pool), settings.checkpoint_storage)
    assert given == Grants(["/data:ro", "/checkpoints"], ["IPC_LOCK"], ["/dev/fuse"])
    asked = mallorys(
        granted=given,
        mounts=[Mount("/checkpoints", "/determined_shared_fs"), Mount("/data", "/x", True)],
        add_capabilities=["IPC_LOCK"],
        devices=["/dev/fuse:/dev/fuse:rw"],
    )
    assert refusal(asked, NOTHING) == ""
    assert "/etc" in refusal(mallorys(granted=given, **mount("/etc")), NOTHING)


@pytest.mark.skipif(os.geteuid() != 0, reason="is about what root follows")
def test_links_below_an_allowed_folder(tmp_path: Path) -> None:
    """What a user may write below it could lead anywhere by the time that the engine looks."""
    allowed = AllowedSettings(bind_mounts=(str(tmp_path),))
    (tmp_path / "fixed/data").mkdir(parents=True)
    (tmp_path / "mallorys/data").mkdir(parents=True)
    (tmp_path / "open/data").mkdir(parents=True)
    os.chown(tmp_path / "mallorys", 1234, 1234)
    (tmp_path / "open").chmod(0o1777)
    (tmp_path / "link").symlink_to("/etc")
    for name in ("", "fixed/data", "mallorys", "open"):
        check_unchangeable(mallorys(**mount(f"{tmp_path}/{name}")), allowed)
    for name, why in (("mallorys/data", "led elsewhere"), ("open/data", "led elsewhere"), ("link", "is a link")):
        with pytest.raises(StartFailed, match=why):
            check_unchangeable(mallorys(**mount(f"{tmp_path}/{name}")), allowed)
