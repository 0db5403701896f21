"""Running attempts of trials, each with a caller that has its token."""

from __future__ import annotations

from dataclasses import dataclass

from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tests.kits.api import Api, Client
from tests.kits.master.experiments import CONFIG, create
from tests.kits.rows import Attempt, add_agent, add_trial, run_attempt


@dataclass
class Running:
    """An experiment with one trial, whose attempt runs on as many agents as asked."""

    api: Api
    trial: int
    attempt: Attempt
    task: Client

    @property
    def path(self) -> str:
        return f"/api/v1/allocations/{self.attempt.allocation_id}"


async def running(api: Api, members: int = 1) -> Running:
    names = tuple(f"a{number}" for number in range(1, members + 1))
    async with api.master.db.transaction() as conn:
        for name in names:
            await add_agent(conn, name, 4)
    experiment = (await create(api, CONFIG.replace("slots_per_trial: 1", f"slots_per_trial: {members}")))["experiment"]
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, experiment["id"])
        attempt = await run_attempt(conn, trial, names)
    return Running(api, trial, attempt, await api.task(attempt.allocation_id))


async def ended(run: Running) -> None:
    """Its only member was lost with its agent."""
    async with run.api.master.db.transaction() as conn:
        ending = Ending(platform=True, reason="node lost")
        await allocation_events.members_reported(
            conn, [MemberReport(run.attempt.containers[0], ContainerState.TERMINATED, ending)]
        )
    await run.api.heard()
