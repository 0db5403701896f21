"""The docker runtime: each container one of a Docker engine (or podman), found again by its name and labels.

Rules it keeps (beside those of the port):

- The engine says what runs; the container's directory on this machine holds its specification, its spool and its files.
- A container is made and started at most once: never again where ``started`` stands, and only in the state ``created``.
- Nothing is removed by the engine itself: exit and output stay until `remove`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import structlog

from tenax.config.agent import AgentSettings, AllowedSettings
from tenax.host.disk import is_there
from tenax.host.runtimes import DOCKER
from tenax.jsonvalue import JsonObject
from tenax.runtime import contents, library, limits, metadata_guard
from tenax.runtime.directory import VERSION, Card, Home, Homes
from tenax.runtime.docker.answers import as_object, card_of, ended, image_in, is_machines, pid_of, status_of, user_in
from tenax.runtime.docker.config import (
    LABEL,
    LABEL_AGENT,
    Surroundings,
    archive_of,
    create_request,
    image_of,
    is_in_run,
    leaves_network,
    name_of,
    network_of,
    outside_archive,
    text_in,
    workdir_of,
)
from tenax.runtime.docker.credentials import auth_header
from tenax.runtime.docker.engine import Engine, EngineRefused, usual_sockets
from tenax.runtime.docker.output import Tails
from tenax.runtime.exit_reason import SWITCHED_OFF
from tenax.runtime.metadata_guard import MetadataGuard
from tenax.runtime.port import ContainerStatus, OutputStream, Placement, RuntimeAway, StartFailed, unreadable
from tenax.runtime.processes import boot_id
from tenax.runtime.removal import delete_home
from tenax.runtime.users import files_of, group_with, passwd_with
from tenax.runtime.wakes import News
from tenax.wire.agents import ContainerSpec, Exit

log = structlog.get_logger("tenax.runtime")

_KILLED = "killed"
_SWITCHED_OFF = "switched-off"


class DockerRuntime:
    """See `tenax.runtime.port.Runtime`; made by `open_docker`."""

    name = DOCKER.name
    by_engine = True

    def __init__(
        self, directory: Path, engine: Engine, around: Surroundings, guard: MetadataGuard | None = None
    ) -> None:
        self._guard = guard
        self._engine = engine
        self._around = around
        self._homes = Homes(directory / DOCKER.folder)
        self._news = News()
        self._tails = Tails(engine, self._news.wake)
        self._listening: asyncio.Task[None] | None = None
        #: What has ended does not change any more.
        self._ended: dict[str, ContainerStatus] = {}

    async def pull(self, spec: ContainerSpec, device_kind: str) -> None:
        image = image_of(spec, device_kind)
        if not image:
            raise StartFailed(f"the specification names no image for {device_kind}", platform=False)
        if not spec.force_pull and await self._image(image) is not None:
            return
        query = {"fromImage": image, **({} if ":" in image.rpartition("/")[2] or "@" in image else {"tag": "latest"})}
        auth = await auth_header(image, spec.registry_auth, self._around.environ)
        headers = {"X-Registry-Auth": auth} if auth else {}
        try:
            async with self._engine.stream("POST", "/images/create", query=query, headers=headers) as reply:
                async for line in reply.content:
                    progress = json.loads(line)
                    if "error" in progress:
                        raise StartFailed(f"cannot pull the image {image}: {progress['error']}", platform=False)
        except EngineRefused as refused:
            platform = refused.status >= 500 and "denied" not in refused.message
            raise StartFailed(f"cannot pull the image {image}: {refused.message}", platform=platform) from None

    async def start(self, spec: ContainerSpec, placement: Placement) -> None:
        name = name_of(spec.container_id)
        home = self._homes.home(spec.container_id)
        allowed = self._around.allowed
        limits.check_container(spec, allowed, host_network=leaves_network(spec, self._around))
        await metadata_guard.check_start(self._guard, spec, allowed, network_of(spec, self._around), None)
        await asyncio.to_thread(limits.check_unchangeable, spec, allowed)
        try:
            if not is_there(home.path):
                await asyncio.to_thread(self._stage, spec, placement)
            state = await self._inspect(name)
            if state is None and not home.started:
                await self._create(name, spec, placement, home)
            elif state is None or status_of(state) != "created":
                return
            (home.path / "started").touch()
            await self._engine.post(f"/containers/{name}/start")
        except EngineRefused as refused:
            await self.remove(spec.container_id)
            raise StartFailed(f"could not start: {refused.message}", platform=is_machines(refused)) from None
        except OSError as error:
            await self.remove(spec.container_id)
            raise StartFailed(f"could not prepare its directory: {error.strerror}", platform=True) from error
        except StartFailed:
            await self.remove(spec.container_id)
            raise

    async def find(self) -> list[ContainerStatus]:
        filters = json.dumps({"label": [f"{LABEL_AGENT}={self._around.agent_directory}"]})
        listed = await self._engine.get("/containers/json", all="1", filters=filters)
        assert isinstance(listed, list)
        ids = {home.container_id for home in self._homes.all()}
        ids |= {str(as_object(as_object(entry)["Labels"])[LABEL]) for entry in listed}
        statuses = [await self._inspected(container_id) for container_id in sorted(ids)]
        return [status for status in statuses if status is not None]

    async def _inspected(self, container_id: str) -> ContainerStatus | None:
        try:
            return await self.inspect(container_id)
        except OSError as error:
            return unreadable(container_id, error)

    async def inspect(self, container_id: str) -> ContainerStatus | None:
        if container_id in self._ended:
            return self._ended[container_id]
        home = self._homes.home(container_id)
        container = await self._inspect(name_of(container_id))
        card = home.card() or (card_of(container) if container is not None else None)
        if card is None:
            return None
        status = status_of(container) if container is not None else "created"
        if container is None and home.started:
            exit: Exit | None = Exit(reason="somebody removed its container from the engine", platform=True)
        elif container is not None and status in ("exited", "dead"):
            requested = self._homes.stopping_since(home) is not None or is_there(home.path / _KILLED)
            exit = ended(as_object(container["State"]), card.boot_id, requested=requested)
            if is_there(home.path / _SWITCHED_OFF):
                exit = Exit(reason=SWITCHED_OFF, platform=True)
        else:
            exit = None
        seen = ContainerStatus(
            container_id=container_id,
            cluster_id=card.cluster_id,
            generation=card.generation,
            state="exited" if exit is not None else "starting" if status == "created" else "running",
            pid=pid_of(container) if exit is None else None,
            exit=exit,
            spec=home.spec(),
            spool_directory=str(home.spool),
            placed=card.placed,
            stopping_since=self._homes.stopping_since(home),
        )
        if exit is not None:
            self._ended[container_id] = seen
        return seen

    async def changed(self) -> AsyncIterator[str]:
        self._listening = self._listening or asyncio.create_task(self._listen())
        async for container_id in self._news.changed():
            yield container_id

    async def signal(self, container_id: str, number: int) -> None:
        home = self._homes.home(container_id)
        if is_there(home.path):
            if number == signal.SIGTERM and self._homes.stopping_since(home) is None:
                self._homes.stop_begins(home)
            elif number == signal.SIGKILL:
                with suppress(OSError):  # A full disk keeps nobody from ending what fills it.
                    (home.path / _KILLED).touch()
        # Not there, or not running (any more).
        with _passing(404, 409):
            await self._engine.post(f"/containers/{name_of(container_id)}/kill", signal=str(number))

    async def switch_off(self, container_id: str) -> None:
        home = self._homes.home(container_id)
        if is_there(home.path) and await self._inspect(name_of(container_id)) is not None:
            (home.path / _SWITCHED_OFF).touch()
            await self.signal(container_id, signal.SIGKILL)

    async def read_output(self, container_id: str, stream: OutputStream, offset: int, limit: int) -> tuple[int, bytes]:
        container = await self.inspect(container_id)
        if container is None or container.state == "starting":
            return offset, b""
        ended = container.state == "exited"
        name = name_of(container_id)
        try:
            return offset, await self._tails.read((container_id, stream), name, offset, limit, ended=ended)
        except RuntimeAway:
            if ended and await self._inspect(name) is None:
                return offset, b""
            raise

    async def output_time(self, container_id: str, stream: OutputStream, offset: int) -> tuple[float, int | None]:
        # The engine knows the time of a line, and not that of an offset.
        return 0.0, None

    async def trim_output(self, container_id: str, stream: OutputStream, offset: int) -> None:
        """Nothing: the engine keeps all until the container is removed."""

    async def remove(self, container_id: str) -> None:
        name = name_of(container_id)
        container = await self._inspect(name)
        await self._tails.forget(container_id)
        while await self._inspect(name) is not None:
            # 409: somebody else is removing it.
            with _passing(404, 409):
                await self._engine.delete(f"/containers/{name}", force="1", v="1")
        self._ended.pop(container_id, None)
        gone = self._homes.retire(container_id)
        if gone is None:
            return
        # An agent that is not root cannot remove what a container of another user wrote: its like can.
        if container is not None and os.geteuid() != 0 and not await asyncio.to_thread(delete_home, gone):
            await self._remove_as_its_user(gone, image_in(container), user_in(container))
        await asyncio.to_thread(self._homes.delete, gone)

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._tails.close()
        await self._engine.close()

    def _stage(self, spec: ContainerSpec, placement: Placement) -> None:
        staged = self._homes.stage(spec.container_id, mode=0o700)
        try:
            here = [file for file in spec.files if is_in_run(file.path)]
            archive = placement.context_archive if is_in_run(workdir_of(spec)) else None
            contents.fill(staged, archive, here, who=files_of(spec))
            staged.write("spec.json", spec)
            staged.write(
                "container.json",
                Card(
                    v=VERSION,
                    container_id=spec.container_id,
                    cluster_id=placement.cluster_id,
                    generation=placement.generation,
                    boot_id=boot_id(),
                    placed=dict(placement.env),
                    library=self._around.library.name,
                ),
            )
            if spec.uid is not None and os.geteuid() not in (0, spec.uid):
                contents.open_to(staged.run)
            self._homes.publish(staged)
        except BaseException:
            self._homes.discard(staged)
            raise

    async def _create(self, name: str, spec: ContainerSpec, placement: Placement, home: Home) -> None:
        name_of_image = image_of(spec, placement.device_kind)
        image = await self._image(name_of_image)
        if image is None:
            raise StartFailed(f"the image {name_of_image} is not here (any more)", platform=True)
        lines = as_object(image.get("Config") or {}).get("Env") or []
        assert isinstance(lines, list)
        image_env = dict(str(line).partition("=")[::2] for line in lines)
        request = create_request(spec, placement, self._around, home, image_env)
        await self._engine.post("/containers/create", request, name=name)
        await self._give_names(name, spec)
        archive = await asyncio.to_thread(outside_archive, spec)
        if archive is not None:
            await self._engine.put_archive(name, "/", archive)
        if placement.context_archive is not None and not is_in_run(workdir_of(spec)):
            context = await asyncio.to_thread(Path(placement.context_archive).read_bytes)
            await self._engine.put_archive(name, workdir_of(spec), context)

    async def _give_names(self, container: str, spec: ContainerSpec) -> None:
        """Let the uid and gid that it runs as have names in it, where its image has none for them."""
        if spec.uid is None:
            return
        gid = spec.uid if spec.gid is None else spec.gid
        there = {name: await self._text(container, name) for name in ("passwd", "group")}
        passwd, group = there["passwd"], there["group"]
        made = {
            "passwd": None if passwd is None else passwd_with(passwd, spec.uid, gid, spec.user, workdir_of(spec)),
            "group": None if group is None else group_with(group, gid, spec.group),
        }
        files = {name: text for name, text in made.items() if text is not None}
        if files:
            with _passing(404):
                await self._engine.put_archive(container, "/etc", archive_of(files))

    async def _text(self, container: str, name: str) -> str | None:
        """A file in ``/etc`` of a container that was made; "" where there is none, None where it is not plain."""
        try:
            return text_in(await self._engine.get_archive(container, f"/etc/{name}"), name)
        except EngineRefused as refused:
            if refused.status == 404:
                return ""
            raise

    async def _image(self, image: str) -> JsonObject | None:
        try:
            return as_object(await self._engine.get(f"/images/{quote(image)}/json"))
        except EngineRefused as refused:
            if refused.status == 404:
                return None
            raise

    async def _inspect(self, name: str) -> JsonObject | None:
        try:
            return as_object(await self._engine.get(f"/containers/{name}/json"))
        except EngineRefused as refused:
            if refused.status == 404:
                return None
            raise RuntimeAway(f"the engine cannot say how {name} is: {refused.message}") from None

    async def _listen(self) -> None:
        """The engine's events, as ids to look at; again after it was away."""
        label = f"{LABEL_AGENT}={self._around.agent_directory}"
        filters = json.dumps({"type": ["container"], "label": [label]})
        while True:
            try:
                async with self._engine.stream("GET", "/events", query={"filters": filters}) as reply:
                    async for line in reply.content:
                        attributes = as_object(as_object(json.loads(line).get("Actor") or {}).get("Attributes") or {})
                        if LABEL in attributes:
                            self._news.wake(str(attributes[LABEL]))
            except (RuntimeAway, EngineRefused) as error:
                log.warning("no events from the container engine", reason=str(error))
            await asyncio.sleep(1)

    async def _remove_as_its_user(self, folder: Path, image: str, user: str) -> None:
        """In the container's own image, so with no more rights than it had."""
        request: JsonObject = {
            "Image": image,
            "User": user,
            "Entrypoint": ["/bin/sh", "-c"],
            "Cmd": ["chmod -R u+rwx /gone; rm -rf /gone/* /gone/.[!.]* /gone/..?*"],
            "HostConfig": {
                "Mounts": [{"Type": "bind", "Source": str(folder / "run"), "Target": "/gone"}],
                "NetworkMode": "none",
                "SecurityOpt": ["no-new-privileges"],
            },
        }
        made = as_object(await self._engine.post("/containers/create", request))
        try:
            await self._engine.post(f"/containers/{made['Id']}/start")
            await self._engine.post(f"/containers/{made['Id']}/wait")
        finally:
            await self._engine.delete(f"/containers/{made['Id']}", force="1", v="1")


async def open_runtime(settings: AgentSettings) -> DockerRuntime:
    """By the first engine that answers. Raises RuntimeAway."""
    hosts = [settings.docker_host] if settings.docker_host else usual_sockets()
    for host in hosts:
        try:
            guard = metadata_guard.guard_of(settings)
            runtime = await open_docker(settings.dir, host, _network(settings), settings.allowed, guard)
        except RuntimeAway as away:
            log.info("no container engine", host=host, reason=away.message)
            continue
        log.info("container engine", host=host)
        return runtime
    raise RuntimeAway(f"no container engine answers ({', '.join(hosts) or 'none of the usual places has a socket'})")


def _network(settings: AgentSettings) -> str:
    """A container with a network of its own does not reach a master on this machine's loopback."""
    if settings.docker_network != "auto":
        return settings.docker_network
    return "host" if settings.is_of_this_machine else "bridge"


async def open_docker(
    directory: Path,
    host: str,
    network: str,
    allowed: AllowedSettings | None = None,
    guard: MetadataGuard | None = None,
) -> DockerRuntime:
    """Connect to an engine; ``network``: ``bridge`` or ``host``. Raises RuntimeAway."""
    resolved = await asyncio.to_thread(_make_directory, directory)
    engine = Engine(host)
    try:
        await engine.open()
        info = as_object(await engine.get("/info"))
    except BaseException:
        await engine.close()
        raise
    # Neither drops anything while the container exists, and both keep bytes as they are (json-file does not).
    keep_all: JsonObject = {"Type": "local", "Config": {"max-size": "1000g", "max-file": "1", "compress": "false"}}
    rootless = "name=rootless" in str(info.get("SecurityOptions"))
    around = Surroundings(
        agent_directory=str(resolved),
        library=await asyncio.to_thread(_install_library, resolved),
        environ=dict(os.environ),
        network=network,
        init=bool(info.get("InitBinary")) and not engine.is_podman,
        log_driver={"Type": "k8s-file", "Config": {}} if engine.is_podman else keep_all,
        # Without privileges an engine's uid 0 is its own user.
        user="0:0" if rootless else f"{os.geteuid()}:{os.getegid()}",
        allowed=allowed or AllowedSettings(),
        guarded=guard is not None,
    )
    return DockerRuntime(directory, engine, around, guard)


@contextlib.contextmanager
def _passing(*statuses: int) -> Iterator[None]:
    """Those refusals are fine."""
    try:
        yield
    except EngineRefused as refused:
        if refused.status not in statuses:
            raise


def _install_library(directory: Path) -> Path:
    installed = library.install(directory / "lib")
    library.prune(directory, installed)
    return installed


def _make_directory(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()
