"""The docker runtime passes the kit on a real engine, and keeps what only it promises."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.runtime.docker.config import name_of
from tenax.runtime.docker.engine import Engine, EngineRefused
from tenax.runtime.docker.runtime import DockerRuntime, open_docker
from tenax.runtime.metadata_guard import MetadataGuard
from tenax.runtime.port import Runtime, RuntimeAway, StartFailed
from tenax.wire.agents import Mount, TaskFile
from tests.kits.runtime_kit import PROGRAMS, RealRuntimeKit, output, placement, spec, until_exited

pytestmark = pytest.mark.docker


class DockerBench:
    def __init__(self, directory: Path, host: str, image: str) -> None:
        self.directory = directory
        self.host = host
        self.image = image
        self._runtimes: list[DockerRuntime] = []

    async def runtime(self) -> Runtime:
        self._runtimes.append(await open_docker(self.directory, self.host, "host"))
        return self._runtimes[-1]

    def ask(self, program: str) -> dict[str, object]:
        return {"argv": ["{python}", "-c", PROGRAMS[program]], "images": {"cpu": self.image}}

    def run_directory(self, container_id: str) -> Path:
        return self.directory / "docker" / container_id / "run"

    async def clean(self) -> None:
        """Leave nothing, whatever happened."""
        for runtime in self._runtimes:
            await runtime.close()
        last = await open_docker(self.directory, self.host, "host")
        for status in await last.find():
            await last.remove(status.container_id)
        await last.close()


@pytest.fixture
async def bench(tmp_path: Path, docker_host: str, docker_image: str) -> AsyncIterator[DockerBench]:
    machine = DockerBench(tmp_path / "agent", docker_host, docker_image)
    yield machine
    await machine.clean()


class TestDocker(RealRuntimeKit):
    """All of the kit, and what is the docker runtime's own."""

    async def test_an_image_that_is_not_there(self, bench: DockerBench) -> None:
        """The message names it; an image that is here is not asked for again."""
        runtime = await bench.runtime()
        await runtime.pull(spec(bench, "hello"), "cpu")
        with pytest.raises(StartFailed, match=r"localhost:1/no/such:image"):
            await runtime.pull(spec(bench, "hello", images={"cpu": "localhost:1/no/such:image"}), "cpu")
        with pytest.raises(StartFailed, match="no image"):
            await runtime.pull(spec(bench, "hello", images={}), "cpu")

    async def test_it_runs_as_the_user_of_the_specification(self, bench: DockerBench) -> None:
        """uid and gid inside, and files of its own outside."""
        runtime = await bench.runtime()
        code = "import os; print(os.getuid(), os.getgid()); open('mine', 'w').close()"
        task_spec = spec(bench, "hello", argv=["{python}", "-c", code], uid=65534, gid=65534)
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        assert await output(runtime, task_spec.container_id) == b"65534 65534\n"
        assert (bench.run_directory(task_spec.container_id) / "workdir/mine").stat().st_uid == 65534

    async def test_the_user_has_a_name(self, bench: DockerBench) -> None:
        """As the administrator wrote it, in an image that has never heard of them."""
        runtime = await bench.runtime()
        code = "import os, pwd, grp; print(pwd.getpwuid(os.getuid())[:1], grp.getgrgid(os.getgid())[:1], os.getpid())"
        named = spec(bench, "hello", argv=["{python}", "-c", code], uid=4711, gid=4712, user="mallory", group="readers")
        await runtime.start(named, placement())
        await until_exited(runtime, named.container_id)
        printed = await output(runtime, named.container_id)
        assert printed.startswith(b"('mallory',) ('readers',)"), await output(runtime, named.container_id, "stderr")

    async def test_what_the_operator_does_not_allow_is_not_made(self, bench: DockerBench) -> None:
        """Nothing of it is left, and it is not tried for ever."""
        runtime = await bench.runtime()
        for asked in ({"mounts": [Mount("/etc", "/host")]}, {"add_capabilities": ["SYS_ADMIN"]}, {"uid": 0, "gid": 0}):
            task_spec = spec(bench, "hello", **{"uid": 4711, "gid": 4711, **asked})
            with pytest.raises(StartFailed, match="operator of this machine does not allow") as failed:
                await runtime.start(task_spec, placement())
            assert not failed.value.platform
            assert await runtime.inspect(task_spec.container_id) is None

    async def test_our_library_is_there_in_any_image(self, bench: DockerBench) -> None:
        """An image that knows nothing of tenax imports it, from a mount that it cannot change."""
        runtime = await bench.runtime()
        code = "import os, tenax; print(tenax.__file__, os.access(os.path.dirname(tenax.__file__), os.W_OK))"
        task_spec = spec(bench, "hello", argv=["{python}", "-c", code])
        await runtime.start(task_spec, placement())
        await until_exited(runtime, task_spec.container_id)
        assert await output(runtime, task_spec.container_id) == b"/opt/tenax/tenax/__init__.py False\n"

    async def test_files_and_code_outside_of_the_run_directory(self, bench: DockerBench, tmp_path: Path) -> None:
        """Both are put into the container itself."""
        archive = tmp_path / "code.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            info = tarfile.TarInfo("code.txt")
            info.size = 4
            tar.addfile(info, io.BytesIO(b"code"))
        runtime = await bench.runtime()
        code = "print(open('code.txt').read(), open('/etc/our/note').read())"
        task_spec = spec(
            bench,
            "hello",
            argv=["{python}", "-c", code],
            env={"DET_WORKDIR": "/somewhere"},
            files=[TaskFile("/etc/our/note", "noted")],
        )
        await runtime.start(task_spec, placement(archive))
        await until_exited(runtime, task_spec.container_id)
        assert await output(runtime, task_spec.container_id) == b"code noted\n"

    async def test_a_container_that_somebody_removed(self, bench: DockerBench) -> None:
        """It is lost by the platform's fault, and is not started again."""
        runtime = await bench.runtime()
        task_spec = spec(bench, "waits")
        await runtime.start(task_spec, placement())
        engine = Engine(bench.host)
        await engine.open()
        await engine.delete(f"/containers/{name_of(task_spec.container_id)}", force="1")
        status = await until_exited(runtime, task_spec.container_id)
        assert status.exit is not None
        assert status.exit.platform
        await runtime.start(task_spec, placement())
        with pytest.raises(EngineRefused, match="No such container"):
            await engine.get(f"/containers/{name_of(task_spec.container_id)}/json")
        await engine.close()

    async def test_two_agents_on_one_engine(self, bench: DockerBench, tmp_path: Path) -> None:
        """Each finds its own."""
        other = DockerBench(tmp_path / "other", bench.host, bench.image)
        first, second = await bench.runtime(), await other.runtime()
        task_spec = spec(bench, "hello")
        await first.start(task_spec, placement())
        assert await second.find() == []
        assert [status.container_id for status in await first.find()] == [task_spec.container_id]
        await other.clean()

    async def test_root_on_the_machines_network_is_not_started_where_tasks_are_guarded(
        self, bench: DockerBench
    ) -> None:
        """Nothing would keep it from the metadata service: it is refused before anything is made of it."""
        guarded = await open_docker(bench.directory, bench.host, "host", guard=MetadataGuard())
        task_spec = spec(bench, "hello")
        with pytest.raises(StartFailed, match="root on the machine's own network") as failed:
            await guarded.start(task_spec, placement())
        assert not failed.value.platform
        assert await guarded.find() == []
        await guarded.close()

    async def test_an_engine_that_is_away(self, tmp_path: Path) -> None:
        """It is said in words, with its address."""
        with pytest.raises(RuntimeAway, match=r"absent\.sock"):
            await open_docker(tmp_path, f"unix://{tmp_path}/absent.sock", "host")
