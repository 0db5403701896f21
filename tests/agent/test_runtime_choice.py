"""Which runtime an agent takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tenax.agent.app import make_runtime
from tenax.config.agent import AgentSettings
from tenax.errors import UserError
from tenax.host.runtimes import AUTO, DOCKER, PROCESS, RUNTIMES
from tenax.runtime.port import Runtime

Choose = Callable[..., Awaitable[Runtime]]


@pytest.fixture
async def choose(tmp_path: Path) -> AsyncIterator[Choose]:
    """The choice on a machine whose container engine does not answer."""
    made: list[Runtime] = []

    async def chosen(runtime: str) -> Runtime:
        engine = f"unix://{tmp_path}/no-engine.sock"
        made.append(await make_runtime(AgentSettings(dir=tmp_path / "agent", runtime=runtime, docker_host=engine)))
        return made[-1]

    yield chosen
    for runtime in made:
        await runtime.close()


async def test_every_machine_has_the_last_of_the_table(choose: Choose) -> None:
    """``auto`` passes over an engine that does not answer."""
    assert list(RUNTIMES)[-1] == PROCESS.name
    assert (await choose(AUTO)).name == PROCESS.name


async def test_one_that_is_named_must_be_there(choose: Choose) -> None:
    """Else the agent says what to do."""
    with pytest.raises(UserError, match=r"no container engine answers \(unix://.*start it, or use --runtime process"):
        await choose(DOCKER.name)


async def test_one_that_holds_containers_is_kept(choose: Choose, tmp_path: Path) -> None:
    """``auto`` stays with it, and another is refused: its containers would be taken for lost."""
    (tmp_path / "agent" / DOCKER.folder / "some-container").mkdir(parents=True)
    with pytest.raises(UserError, match="no container engine answers"):
        await choose(AUTO)
    with pytest.raises(UserError, match="holds containers of the docker runtime"):
        await choose(PROCESS.name)
