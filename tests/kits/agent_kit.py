"""What an agent promises over its connection (`tenax.wire.agents`): one kit, which the real agent passes, and the one
that tests of the master put in its place.

A test class inherits `AgentKit` and gives a fixture ``agent``; ``master`` is the small master that it talks to.
"""

from __future__ import annotations

from typing import Protocol

import pytest

from tenax.wire.agents import PROTOCOL, ContainerSpec, DesiredRun, DesiredStates, DesiredStop, Exit
from tests.agent.master_double import CLUSTER, MasterDouble


class AgentBench(Protocol):
    """An agent that can be started, and programs for it to run."""

    async def start(self) -> None:
        """It connects, and connects again."""

    def exits(self) -> ContainerSpec:
        """A container that ends with code 3 at once."""

    def waits(self) -> ContainerSpec:
        """A container that runs until it is ended."""

    def starts(self, spec: ContainerSpec) -> int:
        """How often this container was started."""


class AgentKit:
    """Of `tenax.wire.agents`."""

    async def test_its_first_frame_is_its_whole_state(self, master: MasterDouble, agent: AgentBench) -> None:
        """Also after a connection broke: what runs, what has ended, and what was obeyed last."""
        await agent.start()
        await master.until(lambda: master.hellos)
        assert (master.hellos[0].protocol, master.hellos[0].containers) == (PROTOCOL, [])
        assert (master.hellos[0].generation, master.hellos[0].revision) == (-1, -1), "nothing was obeyed yet"
        ended, runs = agent.exits(), agent.waits()
        await master.run(ended)
        await master.run(runs)
        await master.until(lambda: master.exited(ended.container_id))
        await master.until(lambda: master.state(runs.container_id) == "running")
        await master.cut()
        await master.until(lambda: len(master.hellos) > 1 and master.exited(ended.container_id))
        hello = master.hellos[1]
        assert {each.container_id for each in hello.containers} == {ended.container_id, runs.container_id}
        assert (hello.generation, hello.revision) == (1, master.revision)
        assert master.state(runs.container_id) == "running"

    async def test_a_container_runs_once_from_want_to_gone(self, master: MasterDouble, agent: AgentBench) -> None:
        """However often it is wanted, also once it has ended; its exit stands until it is wanted gone."""
        await agent.start()
        await master.until(lambda: master.hellos)
        spec = agent.exits()
        name = spec.container_id
        for _ in range(2):
            await master.run(spec)
        await master.until(lambda: master.exited(name))
        report = master.reports[name]
        assert report.exit is not None
        assert (report.exit.code, report.exit.signal, report.exit.platform) == (3, None, False)
        assert (report.cluster_id, report.generation) == (CLUSTER, 1)
        assert bool(report.address)
        master.held.clear()
        await master.run(spec)
        await self._obeyed(master, agent)
        assert (master.states[name][-1], agent.starts(spec)) == ("exited", 1)
        await master.remove(name)
        await master.until(lambda: name in master.gone)

    @pytest.mark.parametrize(("within_s", "number"), [(60.0, 15), (0.0, 9)])
    async def test_what_is_stopped_ends_by_a_signal(
        self, master: MasterDouble, agent: AgentBench, within_s: float, number: int
    ) -> None:
        """SIGTERM where it has time, SIGKILL at once where it has none; nobody's failure."""
        await agent.start()
        spec = agent.waits()
        await master.until(lambda: master.hellos)
        await master.run(spec)
        await master.until(lambda: master.state(spec.container_id) == "running")
        await master.stop(spec.container_id, within_s)
        await master.until(lambda: master.exited(spec.container_id))
        ended = master.reports[spec.container_id].exit
        assert ended is not None
        assert (ended.code, ended.signal, ended.platform) == (None, number, False)
        assert ended.reason.endswith("as asked")

    async def test_what_never_ran_is_said_to_be_so(self, master: MasterDouble, agent: AgentBench) -> None:
        """Stopped before its start; wanted to go on where nothing is left; wanted gone where nothing was."""
        await agent.start()
        await master.until(lambda: master.hellos)
        await master.stop("never-seen", 10)
        await master.want(DesiredRun("vanished"))
        await master.remove("unheard-of")
        await master.until(lambda: master.exited("never-seen") and master.exited("vanished"))
        assert master.reports["never-seen"].exit == Exit(reason="stopped before it was started")
        lost = master.reports["vanished"].exit
        assert lost is not None
        assert lost.platform, "the platform lost it, not the user"
        await master.until(lambda: "unheard-of" in master.gone)
        for name in ("never-seen", "vanished"):
            await master.remove(name)
            await master.until(lambda name=name: name in master.gone)

    async def test_what_runs_and_is_to_be_gone_is_ended(self, master: MasterDouble, agent: AgentBench) -> None:
        """Nothing of it is in the next full state."""
        await agent.start()
        spec = agent.waits()
        await master.until(lambda: master.hellos)
        await master.run(spec)
        await master.until(lambda: master.state(spec.container_id) == "running")
        await master.remove(spec.container_id)
        await master.until(lambda: spec.container_id in master.gone)
        await master.cut()
        await master.until(lambda: len(master.hellos) == 2)
        assert master.hellos[1].containers == []

    async def test_absence_does_not_kill(self, master: MasterDouble, agent: AgentBench) -> None:
        """Desired states that do not name a running container leave it running."""
        await agent.start()
        kept = agent.waits()
        await master.until(lambda: master.hellos)
        await master.run(kept)
        await master.until(lambda: master.state(kept.container_id) == "running")
        del master.wants[kept.container_id]
        await self._obeyed(master, agent)
        assert master.state(kept.container_id) == "running"

    @pytest.mark.parametrize("change", [{"cluster_id": "another"}, {"generation": 9}, {"revision": 0}])
    async def test_what_is_not_for_it_is_not_obeyed(
        self, master: MasterDouble, agent: AgentBench, change: dict[str, object]
    ) -> None:
        """Another cluster's, another generation's and older desired states change nothing."""
        await agent.start()
        spec = agent.waits()
        await master.until(lambda: master.hellos)
        await master.run(spec)
        await master.until(lambda: master.state(spec.container_id) == "running")
        values = {"cluster_id": CLUSTER, "generation": 1, "revision": master.revision, **change}
        stop = DesiredStop(spec.container_id, 0)
        await master.say(DesiredStates(containers=[stop], **values))  # type: ignore[arg-type]
        await self._obeyed(master, agent)
        assert master.state(spec.container_id) == "running"

    async def test_another_generation_is_obeyed_from_its_welcome_on(
        self, master: MasterDouble, agent: AgentBench
    ) -> None:
        """The database was restored: lower revisions count again, and what ran before is of the generation before."""
        await agent.start()
        old = agent.waits()
        await master.until(lambda: master.hellos)
        await master.run(old)
        await master.until(lambda: master.state(old.container_id) == "running")
        master.generation, master.revision = 2, 0
        master.wants.clear()
        await master.cut()
        await master.until(lambda: len(master.hellos) == 2)
        await self._obeyed(master, agent)
        assert (master.reports[old.container_id].generation, master.state(old.container_id)) == (1, "running")
        await master.remove(old.container_id)
        await master.until(lambda: old.container_id in master.gone)

    async def test_it_is_heard_while_nothing_happens(self, master: MasterDouble, agent: AgentBench) -> None:
        """At least once in each heartbeat that the welcome names, by a frame that says nothing else."""
        await agent.start()
        await master.until(lambda: master.pings >= 3)

    async def _obeyed(self, master: MasterDouble, agent: AgentBench) -> None:
        """Until what the master said so far is obeyed: what it wants now comes after it."""
        barrier = agent.exits()
        await master.run(barrier)
        await master.until(lambda: master.exited(barrier.container_id))
