"""The fake runtime passes the kit."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tenax.runtime.fake import Died, FakeMachine, FakeRuntime, Stage
from tenax.runtime.port import Runtime
from tenax.wire.agents import ContainerSpec
from tests.kits.runtime_kit import LONG, RAW, Bench, RuntimeKit


async def play(stage: Stage) -> int:
    """The kit's programs."""
    match stage.environment["PROGRAM"]:
        case "hello":
            stage.write("stdout", b"hello\n")
            stage.write("stderr", b"oops\n")
            return 3
        case "aborts":
            raise Died(signal.SIGABRT)
        case "waits":
            stage.write("stdout", b"ready\n")
            await stage.terminated.wait()
            raise Died(signal.SIGTERM)
        case "stubborn":
            stage.write("stdout", b"ready\n")
            await asyncio.Event().wait()
        case "raw":
            stage.write("stdout", RAW)
        case "long line":
            stage.write("stdout", b"x" * LONG + b"\n" + b"y" * 20000 + b"\nend\n")
        case "steps":
            stage.write("stdout", b"one\n")
            while not (stage.run / "go").exists():  # noqa: ASYNC110 - a file is the kit's sign
                await asyncio.sleep(0.001)
            stage.write("stdout", b"two\n")
        case "spools":
            (stage.run / "spool/a.jsonl").write_text("{}\n")
    return 0


def check(spec: ContainerSpec) -> None:
    if spec.argv[0].startswith("/no/such"):
        raise LookupError(spec.argv[0])


class FakeBench:
    def __init__(self, directory: Path) -> None:
        self.machine = FakeMachine(directory, play, check)

    async def runtime(self) -> Runtime:
        return FakeRuntime(self.machine)

    def ask(self, program: str) -> dict[str, object]:
        return {"argv": [program], "env": {"PROGRAM": program}}

    def run_directory(self, container_id: str) -> Path:
        return self.machine.directory / container_id


class TestFake(RuntimeKit):
    """All of the kit but what only processes can show."""

    @pytest.fixture
    def bench(self, tmp_path: Path) -> Bench:
        return FakeBench(tmp_path)
