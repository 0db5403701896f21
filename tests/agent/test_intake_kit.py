"""The real master and the doubles of it: all keep the same promises about output and spools."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

import pytest

from tenax.config.master import MasterSettings
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.access.task_tokens import allocation_token
from tenax.wire.agents import DesiredRun
from tests.agent.master_double import MasterDouble
from tests.kits import task_master
from tests.kits.intake_kit import Bench, OutputKit, SpoolKit
from tests.kits.master import served
from tests.kits.master.served import ServedMaster

_NAME = "9.c0ffee.1"


class RealPlace:
    """The real one."""

    def __init__(self, master: ServedMaster, trial: int, bench: Bench) -> None:
        self.master, self.trial, self.bench = master, trial, bench

    async def stored(self) -> str:
        lines = await self.master.book.output(self.trial)
        texts = [line.line.text for line in lines if line.origin.source == "task"]
        return "".join(re.sub(r"^\[(\d+) bytes.*\]$", r"<\1>", text + "\n").replace(">\n", ">") for text in texts)

    def fill(self) -> None:
        self.master.allow_logs(0)


class DoublePlace:
    """The double of the agent's tests."""

    def __init__(self, master: MasterDouble, bench: Bench) -> None:
        self.master, self.bench = master, bench

    async def stored(self) -> str:
        text = self.master.text(self.bench.container_id)
        return re.sub(r"\?+", lambda gap: f"<{len(gap[0])}>", text)

    def fill(self) -> None:
        self.master.fail_logs = 507


@pytest.fixture
async def real_place(
    postgres: EmbeddedPostgres, database_url: str, master_settings: MasterSettings
) -> AsyncIterator[RealPlace]:
    async with ServedMaster(postgres.dsn, database_url, master_settings) as master:
        trial, task = await master.running_trial()
        token = allocation_token(master.api.master.cluster.secret, task.allocation_id)
        bench = Bench(master.url, task.allocation_id, task.allocation_id)
        bench.agent = {"Authorization": f"Bearer {served.CREDENTIAL}"}
        bench.task = {"Authorization": f"Bearer {token}"}
        yield RealPlace(master, trial, bench)


@pytest.fixture
async def double_place(master: MasterDouble) -> DoublePlace:
    master.wants[_NAME] = DesiredRun(_NAME)
    master.credential = served.CREDENTIAL
    bench = Bench(master.url, _NAME, _NAME, {"Authorization": f"Bearer {served.CREDENTIAL}"})
    bench.task = {"Authorization": "Bearer task-token"}
    return DoublePlace(master, bench)


class TestOutputOfTheMaster(OutputKit):
    @pytest.fixture
    def place(self, real_place: RealPlace) -> RealPlace:
        return real_place


class TestOutputOfTheAgentsDouble(OutputKit):
    @pytest.fixture
    def place(self, double_place: DoublePlace) -> DoublePlace:
        return double_place


class TestSpoolsOfTheMaster(SpoolKit):
    @pytest.fixture
    def bench(self, real_place: RealPlace) -> Bench:
        return real_place.bench


class TestSpoolsOfTheAgentsDouble(SpoolKit):
    @pytest.fixture
    def bench(self, double_place: DoublePlace) -> Bench:
        return double_place.bench


class TestSpoolsOfTheTasksDouble(SpoolKit):
    @pytest.fixture
    def bench(self) -> Iterator[Bench]:
        with task_master.running() as master:
            token = {"Grpc-Metadata-x-allocation-token": f"Bearer {task_master.TOKEN}"}
            yield Bench(master.url, "container-1", task_master.ALLOCATION, {}, token)
