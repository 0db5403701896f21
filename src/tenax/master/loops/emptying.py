"""Workspaces and projects that are to go, once the experiments in them have gone; part of the deleting loop."""

from __future__ import annotations

import structlog

from tenax.master.loops.loop import Desk
from tenax.master.store import removal

log = structlog.get_logger("tenax.deleting")


async def empty_folders(desk: Desk) -> None:
    """Delete those that are empty by now; one with an experiment that stays is DELETE_FAILED, with that reason."""
    async with desk.looking() as conn:
        going = await removal.going(conn)
    for folder in going:
        async with desk.transaction() as conn:
            if await removal.settle(conn, folder):
                log.info("folder deleted", workspace=folder.workspace_id, project=folder.project_id)
