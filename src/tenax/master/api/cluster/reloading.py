"""Reading the settings file again while the master runs: pools, and what their tasks get, are as it says from then on.

Rules: a file that is wrong changes nothing; what cannot change is named; other masters of the cluster read their own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from tenax.config.agreement import changed, fingerprints, left, merged
from tenax.errors import Unsupported
from tenax.master.context import Master
from tenax.master.observability import counters
from tenax.master.store.cluster import masters
from tenax.master.store.database.wakeups import notify

log = structlog.get_logger("tenax.master")


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What reading it again has done."""

    #: Settings that are other than before.
    changed: list[str]
    #: Settings that are other than at the start, and wait for the next one.
    left: list[str]


async def reload(master: Master) -> Reloaded:
    """Take over what may change while the master runs. Raises InvalidInput, and nothing has changed."""
    file = master.settings_file
    if file is None:
        raise Unsupported("this master was not started from settings that can be read again")
    async with master.reloading:
        read = await asyncio.to_thread(file.read)
        names, waiting = changed(master.settings, read), left(file.started, read)
        if names:
            settings = merged(master.settings, read)
            async with master.db.transaction() as conn:
                await masters.settings_changed(conn, master.master_id, fingerprints(settings, master.cluster.secret))
                for kind in ("scheduling", "deadline"):
                    await notify(conn, kind, "")
            master.apply_settings(settings)
            counters.begin_loops((), (pool.name for pool in settings.pools))
    log.info("read the settings again", changed=", ".join(names) or "nothing")
    if waiting:
        log.warning("settings that change with the next start only", settings=", ".join(waiting))
    return Reloaded(names, waiting)
