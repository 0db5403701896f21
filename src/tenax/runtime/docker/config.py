"""From a specification to what the Docker Engine API is asked to create. Pure.

``/run/determined`` is the container's own directory on this machine, mounted, so that its spool survives it; the
image's ENTRYPOINT is kept, and any image with a Python runs our code from a read-only mount.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tenax.config.agent import AllowedSettings
from tenax.jsonvalue import JsonObject
from tenax.runtime.directory import Home
from tenax.runtime.gpus import registry as gpus
from tenax.runtime.port import USUAL_SHM_BYTES, Placement
from tenax.wire.agents import ContainerSpec, Mount
from tenax.wire.task_names import PYTHON, RUN_DIRECTORY, SEGMENTS, SPOOL_FORMATS

LABEL = "tenax.container"
LABEL_CLUSTER = "tenax.cluster"
LABEL_GENERATION = "tenax.generation"
#: The agent's directory: several agents may use one engine.
LABEL_AGENT = "tenax.agent-directory"
LIBRARY = "/opt/tenax"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "ftp_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of the machine and its engine shapes a container."""

    agent_directory: str
    #: The folder that holds only ``tenax``.
    library: Path
    #: The agent's own environment, for proxies.
    environ: Mapping[str, str]
    #: ``bridge`` or ``host``.
    network: str
    #: Give the container an init that passes signals on: the main process as pid 1 would ignore SIGTERM.
    init: bool
    log_driver: JsonObject
    #: uid:gid of tasks that name none.
    user: str
    #: Of what the machine has, for tasks that are mapped to a uid.
    allowed: AllowedSettings = field(default_factory=AllowedSettings)
    #: Tasks are kept from the machine's metadata service, which root would see on the machine's network.
    guarded: bool = False


def name_of(container_id: str) -> str:
    return f"tenax-{container_id}"


def network_of(spec: ContainerSpec, around: Surroundings) -> str:
    """Members of a gang reach one another at any port only on their hosts' network."""
    return "host" if spec.members > 1 else spec.network or around.network


def leaves_network(spec: ContainerSpec, around: Surroundings) -> bool:
    """Whether it is on its host's network for its members' sake alone."""
    return spec.members > 1 and (spec.network or around.network) != "host"


def image_of(spec: ContainerSpec, device_kind: str) -> str:
    """The image for that kind of device; "" where the specification names none."""
    return spec.images.get(device_kind) or spec.images.get("cpu") or next(iter(spec.images.values()), "")


def _user(spec: ContainerSpec, own: str) -> str:
    """``own``: of tasks that name none; a group without a user is theirs, who are root where nothing else is said."""
    if spec.uid is not None:
        return f"{spec.uid}:{spec.uid if spec.gid is None else spec.gid}"
    return own if spec.gid is None else f"{own.partition(':')[0] or 0}:{spec.gid}"


def workdir_of(spec: ContainerSpec) -> str:
    named = spec.env.get("DET_WORKDIR", "")
    return named if PurePosixPath(named).is_absolute() else f"{RUN_DIRECTORY}/workdir"


def create_request(
    spec: ContainerSpec, placement: Placement, around: Surroundings, home: Home, image_env: Mapping[str, str]
) -> JsonObject:
    """Body of ``POST /containers/create``; ``image_env``: what the image itself sets."""
    environment = task_environment(spec, placement, around, image_env)
    python = environment["DET_PYTHON_EXECUTABLE"]
    request: JsonObject = {
        "Image": image_of(spec, placement.device_kind),
        "Cmd": [python if word == PYTHON and not n else word for n, word in enumerate(spec.argv)],
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "User": _user(spec, around.user),
        "WorkingDir": workdir_of(spec),
        "Labels": {
            LABEL: spec.container_id,
            LABEL_CLUSTER: placement.cluster_id,
            LABEL_GENERATION: str(placement.generation),
            LABEL_AGENT: around.agent_directory,
        },
        "AttachStdin": False,
        "Tty": False,
        "HostConfig": host_config(spec, placement, around, home),
        "ExposedPorts": {f"{port}/tcp": {} for port in spec.ports},
    }
    return request


def task_environment(
    spec: ContainerSpec, placement: Placement, around: Surroundings, image_env: Mapping[str, str]
) -> dict[str, str]:
    """What is set beside the image's own variables."""
    given = {**spec.env, **placement.env}
    proxies = {name: around.environ[name] for name in _PROXIES if name in around.environ and name not in given}
    pythonpath = given.get("PYTHONPATH") or image_env.get("PYTHONPATH")
    environment = {
        "PYTHONUNBUFFERED": "1",
        # Where ``pip install --user`` can write, whoever the task runs as.
        "PYTHONUSERBASE": f"{RUN_DIRECTORY}/pythonuserbase",
        **proxies,
        **given,
        "PYTHONPATH": ":".join(filter(None, (pythonpath, LIBRARY))),
        "DET_CONTAINER_ID": spec.container_id,
        "DET_RUN_DIR": RUN_DIRECTORY,
        SPOOL_FORMATS: SEGMENTS,
        "DET_WORKDIR": workdir_of(spec),
        "DET_PYTHON_EXECUTABLE": given.get("DET_PYTHON_EXECUTABLE") or "python3",
    }
    return {**environment, **gpus.engine_request(placement.device_kind, placement.device_uuids).environment}


def host_config(spec: ContainerSpec, placement: Placement, around: Surroundings, home: Home) -> JsonObject:
    own = [Mount(str(home.run), RUN_DIRECTORY), Mount(str(around.library), LIBRARY, read_only=True)]
    config: JsonObject = {
        "Mounts": [_mount(mount, workdir_of(spec)) for mount in (*own, *spec.mounts)],
        "ShmSize": spec.shm_bytes or USUAL_SHM_BYTES,
        "CapAdd": list(spec.add_capabilities),
        "CapDrop": list(spec.drop_capabilities),
        "NetworkMode": network_of(spec, around),
        "LogConfig": around.log_driver,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
    }
    if around.init:
        config["Init"] = True
    if network_of(spec, around) == "bridge":
        config["PortBindings"] = {f"{port}/tcp": [{"HostPort": str(port)}] for port in spec.ports}
    request = gpus.engine_request(placement.device_kind, placement.device_uuids)
    whole: JsonObject = {
        **config,
        "Devices": [_device(text) for text in (*spec.devices, *request.devices)],
        **request.host_config,
    }
    if spec.uid and (around.guarded or not around.allowed.root):
        # Else a program of the image that is setuid would make root of whoever runs it.
        options = whole.get("SecurityOpt")
        whole["SecurityOpt"] = [*(options if isinstance(options, list) else []), "no-new-privileges"]
    return whole


def _mount(mount: Mount, workdir: str) -> JsonObject:
    return {
        "Type": "bind",
        "Source": mount.host_path,
        "Target": str(PurePosixPath(workdir) / mount.container_path),
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": mount.propagation},
    }


def _device(text: str) -> JsonObject:
    host, _, rest = text.partition(":")
    inside, _, mode = rest.partition(":")
    return {"PathOnHost": host, "PathInContainer": inside or host, "CgroupPermissions": mode or "mrw"}


def outside_archive(spec: ContainerSpec) -> bytes | None:
    """A tar of the files that lie outside of the run directory; None for none."""
    files = [file for file in spec.files if not is_in_run(file.path)]
    if not files:
        return None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for file in files:
            info = tarfile.TarInfo(file.path.lstrip("/"))
            info.size, info.mode = len(file.content.encode()), file.mode
            tar.addfile(info, io.BytesIO(file.content.encode()))
    return buffer.getvalue()


def text_in(archive: bytes, name: str) -> str | None:
    """The one plain file of an archive from the engine, as text; None where it is something else, or too large."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            file = tar.extractfile(name) if tar.getmember(name).isreg() else None
            return None if file is None else file.read().decode(errors="surrogateescape")
    except (tarfile.TarError, KeyError, EOFError):
        return None


def archive_of(files: Mapping[str, str]) -> bytes:
    """A tar of text files that everybody may read."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            content = text.encode(errors="surrogateescape")
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o644
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def is_in_run(path: str) -> bool:
    return not path.startswith("/") or path == RUN_DIRECTORY or path.startswith(RUN_DIRECTORY + "/")
