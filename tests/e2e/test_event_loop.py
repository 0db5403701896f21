"""The asynchronous SDK on a real cluster, whose master is killed meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenax.client import AsyncClient
from tenax.errors import InvalidInput, NotFound
from tests.e2e.trials import config, script
from tests.kits.machine import Machine, wait_for


async def test_a_hundred_waits_and_a_followed_log_outlast_a_killed_master(place: Machine, tmp_path: Path) -> None:
    """All of them see the end, and every line is there once; other calls go on meanwhile."""
    marker = tmp_path / "go"
    code = script(
        tmp_path / "code",
        f"""
        import pathlib, time
        print("line before")
        while not pathlib.Path({str(marker)!r}).exists():
            time.sleep(0.02)
        print("line after")
        """,
    )
    async with AsyncClient(place.url, token=place.token()) as client:
        experiment = await client.create_experiment(config(), code)
        waits = [asyncio.create_task(experiment.wait(interval=0.5)) for _ in range(100)]
        while not await experiment.trials():  # noqa: ASYNC110 - the master says it
            await asyncio.sleep(0.05)
        before = asyncio.Event()
        lines: list[str] = []

        async def follow() -> None:
            async for line in experiment.logs(follow=True):
                lines.extend(word for word in ("line before", "line after") if word in line.log)
                if lines:
                    before.set()

        following = asyncio.create_task(follow())
        await before.wait()
        await asyncio.to_thread(place.kill, "master")
        await asyncio.to_thread(wait_for, place.answers, "a master again")
        assert not any(wait.done() for wait in waits)
        assert not (await experiment.reload()).has_ended
        marker.touch()
        assert {ended.state for ended in await asyncio.gather(*waits)} == {"COMPLETED"}
        await following
        assert lines == ["line before", "line after"]


async def test_values_and_errors_are_those_of_the_master(place: Machine, tmp_path: Path) -> None:
    """From the submission to the files of a checkpoint; refusals as the master words them."""
    code = script(
        tmp_path / "code",
        """
        from tenax import core
        with core.init() as context:
            for step in (1, 2, 3):
                context.train.report_validation_metrics(step, {"loss": 1.0 / step})
            with context.checkpoint.store_path({"steps_completed": 3}) as (path, uuid):
                (path / "weights").write_text("3")
        """,
    )
    async with AsyncClient(place.url, token=place.token()) as client:
        experiment = await (await client.create_experiment(config(), code)).wait(interval=0.2)
        [trial] = await asyncio.gather(*(each.reload() for each in await experiment.trials()))
        assert [report.steps async for report in trial.iter_metrics("validation")] == [1, 2, 3]
        best = await experiment.best_checkpoint()
        assert (await best.download(tmp_path / "best") / "weights").read_text() == "3"
        workspace = await client.create_workspace("for a loop")
        shown: list[str] = []
        await workspace.delete(seen=lambda now: shown.append(now.name))
        results = await asyncio.gather(workspace.reload(), client.trial(4711), return_exceptions=True)
        assert [type(error) for error in results] == [NotFound, NotFound]
        with pytest.raises(InvalidInput):
            await client.create_experiment({"name": "nothing to run"})
