"""What the engine is asked for, and what its answers mean: values in, values out."""

from __future__ import annotations

import dataclasses
import json
import signal
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from tenax.config.agent import AllowedSettings
from tenax.jsonvalue import JsonObject
from tenax.runtime.directory import Home
from tenax.runtime.docker.answers import ended
from tenax.runtime.docker.config import Surroundings, create_request, image_of
from tenax.runtime.docker.credentials import auth_header, registry_of
from tenax.runtime.port import Placement
from tenax.runtime.processes import boot_id
from tenax.wire.agents import ContainerSpec, Exit, Mount

HOME = Home(Path("/var/lib/tenax/docker/c"))
AROUND = Surroundings(
    agent_directory="/var/lib/tenax",
    library=Path("/var/lib/tenax/lib/1"),
    environ={"HTTPS_PROXY": "http://proxy", "SECRET": "hush", "HOME": "/root"},
    network="bridge",
    init=True,
    log_driver={"Type": "local"},
    user="0:0",
)


def spec(**changes: object) -> ContainerSpec:
    values: dict[str, object] = {
        "container_id": "c",
        "allocation_id": "1.x.1",
        "task_id": "1.x",
        "rank": 0,
        "members": 1,
        "slots": [],
        "argv": ["{python}", "-m", "train", "{python}"],
        "env": {"A": "b"},
        "images": {"cpu": "cpu:1", "cuda": "cuda:1"},
        **changes,
    }
    return ContainerSpec(**values)  # type: ignore[arg-type]


def placement(kind: str = "cpu", *uuids: str) -> Placement:
    return Placement({"DET_MASTER": "http://m"}, uuids, kind, None, "cluster", 7)


def request_for(
    task_spec: ContainerSpec, where: Placement, around: Surroundings = AROUND, **image_env: str
) -> JsonObject:
    return create_request(task_spec, where, around, HOME, image_env)


def test_who_is_kept_from_the_metadata_service_gains_no_rights() -> None:
    """Not by a program of the image, whatever the operator lets others be: root sees the service."""
    free = dataclasses.replace(AROUND, allowed=AllowedSettings(root=True))
    for around, options in ((free, None), (dataclasses.replace(free, guarded=True), ["no-new-privileges"])):
        config = request_for(spec(uid=1000), placement(), around)["HostConfig"]
        assert isinstance(config, dict)
        assert config.get("SecurityOpt") == options


def env_of(request: JsonObject) -> dict[str, str]:
    lines = request["Env"]
    assert isinstance(lines, list)
    return dict(str(line).partition("=")[::2] for line in lines)


def host_of(request: JsonObject) -> JsonObject:
    host = request["HostConfig"]
    assert isinstance(host, dict)
    return host


def test_what_is_created() -> None:
    """The image's entry point is kept, our code and the run directory are mounted, labels say whose it is."""
    request = request_for(spec(), placement())
    assert "Entrypoint" not in request
    assert request["Cmd"] == ["python3", "-m", "train", "{python}"]
    assert (request["User"], request["WorkingDir"]) == ("0:0", "/run/determined/workdir")
    assert request["Labels"] == {
        "tenax.container": "c",
        "tenax.cluster": "cluster",
        "tenax.generation": "7",
        "tenax.agent-directory": "/var/lib/tenax",
    }
    host = host_of(request)
    mounts = host["Mounts"]
    assert isinstance(mounts, list)
    assert [(m["Source"], m["Target"], m["ReadOnly"]) for m in mounts if isinstance(m, dict)] == [
        ("/var/lib/tenax/docker/c/run", "/run/determined", False),
        ("/var/lib/tenax/lib/1", "/opt/tenax", True),
    ]
    assert (host["AutoRemove"], host["Init"], host["ShmSize"]) == (False, True, 4 * 1024**3)


def test_the_environment() -> None:
    """Specification over image, of the agent only proxies; tenax comes after the image's own PYTHONPATH."""
    env = env_of(request_for(spec(), placement(), PYTHONPATH="/image"))
    assert env["PYTHONPATH"] == "/image:/opt/tenax"
    assert (env["A"], env["DET_MASTER"], env["HTTPS_PROXY"]) == ("b", "http://m", "http://proxy")
    assert "hush" not in env.values()
    assert env_of(request_for(spec(env={"PYTHONPATH": "/own"}), placement(), PYTHONPATH="/image"))["PYTHONPATH"] == (
        "/own:/opt/tenax"
    )


def test_users() -> None:
    """uid:gid of the specification; a group of the same number where it names none."""
    assert request_for(spec(uid=5, gid=6), placement())["User"] == "5:6"
    assert request_for(spec(uid=5), placement())["User"] == "5:5"
    assert request_for(spec(gid=6), placement())["User"] == "0:6"


def test_nvidia_gpus_by_uuid() -> None:
    """Only the container's own; a container without GPUs gets none, whatever its image asks for."""
    request = request_for(spec(), placement("cuda", "GPU-1", "MIG-2"))
    devices = host_of(request)["DeviceRequests"]
    assert isinstance(devices, list)
    assert isinstance(devices[0], dict)
    assert devices[0]["DeviceIDs"] == ["GPU-1", "MIG-2"]
    assert request["Image"] == "cuda:1"
    assert "NVIDIA_VISIBLE_DEVICES" not in env_of(request)
    without = request_for(spec(), placement())
    assert "DeviceRequests" not in host_of(without)
    assert env_of(without)["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_amd_gpus() -> None:
    """Device files of the driver, narrowed by the vendor's variable."""
    request = request_for(spec(devices=["/dev/fuse"]), placement("rocm", "GPU-7"))
    devices = host_of(request)["Devices"]
    assert isinstance(devices, list)
    assert [device["PathOnHost"] for device in devices if isinstance(device, dict)] == [
        "/dev/fuse",
        "/dev/kfd",
        "/dev/dri",
    ]
    assert env_of(request)["ROCR_VISIBLE_DEVICES"] == "GPU-7"
    assert host_of(request)["SecurityOpt"] == ["seccomp=unconfined"]


def test_networks_and_ports() -> None:
    """Served ports are published at their own numbers; a gang shares its hosts' network."""
    alone = host_of(request_for(spec(ports=[2900]), placement()))
    assert alone["NetworkMode"] == "bridge"
    assert alone["PortBindings"] == {"2900/tcp": [{"HostPort": "2900"}]}
    gang = host_of(request_for(spec(ports=[2900], members=2), placement()))
    assert gang["NetworkMode"] == "host"
    assert "PortBindings" not in gang
    assert (
        host_of(request_for(spec(), placement(), dataclasses.replace(AROUND, network="host")))["NetworkMode"] == "host"
    )
    assert host_of(request_for(spec(network="host"), placement()))["NetworkMode"] == "host"
    assert host_of(request_for(spec(network="none", members=2), placement()))["NetworkMode"] == "host"


def test_packages_of_a_user_go_into_the_container() -> None:
    """``pip install --user`` has a place that its user can write, unless the task names another."""
    assert env_of(request_for(spec(), placement()))["PYTHONUSERBASE"] == "/run/determined/pythonuserbase"
    named = request_for(spec(env={"PYTHONUSERBASE": "/mine"}), placement())
    assert env_of(named)["PYTHONUSERBASE"] == "/mine"


def test_mounts_and_limits() -> None:
    """Relative targets lie below the work directory; memory, capabilities and devices as asked."""
    task_spec = spec(
        mounts=[Mount("/data", "data", True, "rslave"), Mount("/ckpt", "/determined_shared_fs")],
        shm_bytes=7,
        add_capabilities=["SYS_PTRACE"],
        drop_capabilities=["NET_RAW"],
        devices=["/dev/a:/dev/b:r"],
        env={"DET_WORKDIR": "/work"},
    )
    host = host_of(request_for(task_spec, placement()))
    mounts = host["Mounts"]
    assert isinstance(mounts, list)
    assert mounts[2:] == [
        {
            "Type": "bind",
            "Source": "/data",
            "Target": "/work/data",
            "ReadOnly": True,
            "BindOptions": {"Propagation": "rslave"},
        },
        {
            "Type": "bind",
            "Source": "/ckpt",
            "Target": "/determined_shared_fs",
            "ReadOnly": False,
            "BindOptions": {"Propagation": "rprivate"},
        },
    ]
    assert (host["ShmSize"], host["CapAdd"], host["CapDrop"]) == (7, ["SYS_PTRACE"], ["NET_RAW"])
    assert host["Devices"] == [{"PathOnHost": "/dev/a", "PathInContainer": "/dev/b", "CgroupPermissions": "r"}]


def test_an_image_by_kind_of_device() -> None:
    """The kind's own, else the CPU's, else the only one."""
    assert image_of(spec(), "rocm") == "cpu:1"
    assert image_of(spec(images={"cuda": "x"}), "cpu") == "x"
    assert image_of(spec(images={}), "cpu") == ""


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"ExitCode": 0}, Exit(code=0)),
        ({"ExitCode": 3}, Exit(code=3, reason="exited with code 3")),
        ({"ExitCode": 0, "OOMKilled": True}, Exit(code=0)),
        (
            {"ExitCode": 137, "OOMKilled": True},
            Exit(signal=signal.SIGKILL, reason="out of memory: the kernel killed it", out_of_memory=True),
        ),
        ({"ExitCode": 143}, Exit(signal=15, reason="killed by SIGTERM (15), not by the platform")),
        ({"ExitCode": 255}, Exit(code=255, reason="exited with code 255")),
    ],
)
def test_exits(state: JsonObject, expected: Exit) -> None:
    """Codes, signals and memory in words; a process that survived the memory killer ended well."""
    assert ended(state, boot_id(), requested=False) == expected


def test_an_engine_that_found_it_dead_after_a_restart() -> None:
    """What ended before the machine went down has its own exit; what ran is lost by the platform's fault."""
    lost = ended({"ExitCode": 255, "FinishedAt": "2999-01-01T00:00:00.5Z"}, "another boot", requested=False)
    assert lost.platform
    early = ended({"ExitCode": 4, "FinishedAt": "2001-01-01T00:00:00Z"}, "another boot", requested=False)
    assert early == Exit(code=4, reason="exited with code 4")


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("python:3.11", "https://index.docker.io/v1/"),
        ("team/train", "https://index.docker.io/v1/"),
        ("ghcr.io/team/train:1", "ghcr.io"),
        ("localhost/x", "localhost"),
        ("box:5000/x", "box:5000"),
    ],
)
def test_registries(image: str, registry: str) -> None:
    """The key under which Docker keeps a login."""
    assert registry_of(image) == registry


async def test_a_login_of_this_machine_is_used(tmp_path: Path) -> None:
    """Docker's own file; credentials of the specification come first; no file is no login."""
    environ = {"DOCKER_CONFIG": str(tmp_path)}
    assert await auth_header("ghcr.io/x", {}, environ) == ""
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"ghcr.io": {"auth": "bWU6c2VjcmV0"}}}))
    login = json.loads(urlsafe_b64decode(await auth_header("ghcr.io/x", {}, environ)))
    assert login == {"serveraddress": "ghcr.io", "username": "me", "password": "secret"}
    assert await auth_header("python:3", {}, environ) == ""
    own = json.loads(urlsafe_b64decode(await auth_header("ghcr.io/x", {"username": "u", "password": "p"}, environ)))
    assert own["username"] == "u"
