"""Two masters of one database, real processes; the one that has the leases fails while a search runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tenax.jsonvalue import JsonObject
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.connection import Database
from tenax.wire.agents import ContainerSpec
from tests.kits.master.cluster import ASHA, Cluster, report, running, submit
from tests.kits.master.process import MasterProcess
from tests.kits.pretend_agent import Script
from tests.kits.proxy import Proxy, proxied

#: Of a master.
LOOPS = 13
_SEARCH: JsonObject = {**ASHA, "max_trials": 20}
_HOLDERS = "select count(distinct holder) = 1 and count(*) = $1 and min(expires_at) > now() from leases"
#: Entries of its journal by which a search is in the middle.
_UNDER_WAY = 8
_ENTRIES = "select count(*) from search_journal where experiment_id = $1"
_MOVED = "select count(*) = $2 from leases where holder <> $1"
_NEXT_DECISION = "select extract(epoch from min(at) - $2) from search_journal where experiment_id = $1 and at > $2"


@dataclass(frozen=True)
class TwoMasters:
    """``first`` has the leases, and reaches the database through ``proxy``."""

    place: Cluster
    first: MasterProcess
    second: MasterProcess
    proxy: Proxy

    async def survive(self, fault: str) -> float:
        """Run a search, in the middle of which ``fault`` befalls the first master; what must be so afterwards, is.

        Returns the seconds from the end of its leases to the next decision. Raises AssertionError.
        """
        number = await submit(self.place.db, _SEARCH)

        async def is_under_way() -> bool:
            return int(str(await self.place.value(_ENTRIES, number))) >= _UNDER_WAY

        await self.place.until(is_under_way)
        holder = await self.place.value("select min(holder) from leases")
        ended_at = await self._break(fault)

        async def have_moved() -> bool:
            return await self.place.value(_MOVED, holder, LOOPS) is True

        await self.place.until(have_moved)
        # Whoever was cut off gives its connections up, and is known to be gone before its leases run out.
        ended_at = await self.place.value("select least(clock_timestamp(), $1::timestamptz)", ended_at)
        if fault == "stopped":
            # It wakes up in the middle of whatever it was doing, and finds that it has lost.
            self.first.popen.send_signal(signal.SIGCONT)
        elif fault == "cut off":
            self.proxy.restore()
        assert await self.place.ended(number) == "COMPLETED"
        await self._check(number)
        seconds = await self.place.value(_NEXT_DECISION, number, ended_at)
        # The last one may have been made before the look that found the leases moved.
        return 0.0 if seconds is None else float(str(seconds))

    async def _break(self, fault: str) -> object:
        """When the leases of the first master end: at its death, or when the one that it renewed last runs out."""
        if fault == "killed":
            self.first.popen.kill()
            return await self.place.value("select clock_timestamp()")
        if fault == "stopped":
            self.first.popen.send_signal(signal.SIGSTOP)
        else:
            self.proxy.stall()
        return await self.place.value("select max(expires_at) from leases")

    async def _check(self, number: int) -> None:
        """Nothing is missing, and nothing was done twice."""
        value = self.place.value
        gapless = "select count(*) = max(seq) and min(seq) = 1 from search_journal where experiment_id = $1"
        assert await value(gapless, number) is True
        assert await value("select count(*) from trials where experiment_id = $1", number) == _SEARCH["max_trials"]
        # No trial failed, so none was tried again.
        assert await value("select count(*) = count(distinct task_id) from allocations") is True
        names = [spec.container_id for spec in self.place.agent.started]
        assert len(names) == len(set(names)) == _SEARCH["max_trials"]


@asynccontextmanager
async def two_masters(database: Database, url: str, directory: Path) -> AsyncIterator[TwoMasters]:
    """Both serve, and an agent is connected to neither: a third one, without loops, is in this process."""
    masters: list[MasterProcess] = []
    async with proxied(url) as proxy, running(database, _training, 4, with_loops=False) as place:
        try:
            for name, reached_by in (("first", proxy.url), ("second", url)):
                master = MasterProcess(directory / name, reached_by, "--port", "0")
                masters.append(master)
                await asyncio.to_thread(master.wait_for, "serving")

                async def has_all() -> bool:
                    return await place.value(_HOLDERS, LOOPS) is True

                await place.until(has_all)
            yield TwoMasters(place, *masters, proxy)
        finally:
            for master in masters:
                master.popen.kill()
                master.result()
                master.close()


def _training(place: Cluster) -> Script:
    """Trains 16 epochs; leaves when asked."""

    async def script(spec: ContainerSpec) -> int:
        lr = float(str(spec.env["DET_HPARAMS"].split(":")[1].rstrip("}")))
        for epoch in range(1, 17):
            await report(place, spec, epoch, lr / epoch)
            await asyncio.sleep(0.05)
            name = spec.allocation_id
            asked = "select preemption <> 'NONE' from allocations where allocation_id = $1"
            if await place.value(asked, name) is True:
                async with place.db.transaction() as conn:
                    await allocations.acknowledge(conn, name)
                return 0
        return 0

    return script
