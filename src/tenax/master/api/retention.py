"""How long output is kept: said for a trial by its owner; what is kept no longer is removed when administrators ask."""

from __future__ import annotations

from tenax.errors import InvalidInput
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.routing import Allow, Routes
from tenax.master.store import listings_trials, retention
from tenax.wire.api.message import Empty
from tenax.wire.api.retention import CleanupLogsResponse, RemainingDaysResponse, TrialRetentionRequest

routes = Routes("Log retention")


@routes.post("/api/v1/cleanup_logs", "CleanupLogs", allow=Allow.ADMIN)
async def clean(master: MasterDep) -> CleanupLogsResponse:
    """Remove output that is kept no longer, now and not at the next time of the schedule."""
    lines = 0
    while not master.shutdown.is_set():
        async with master.db.transaction() as conn:
            tasks, removed = await retention.clean(conn, master.settings.log_retention_days)
        lines += removed
        if tasks < retention.BATCH:
            break
    return CleanupLogsResponse(removed_count=lines)


@routes.put("/api/v1/trials/{trial_id}/retain_logs", "PutTrialRetainLogs", allow=Allow.USER)
async def retain_trial(master: MasterDep, caller: CallerDep, trial_id: int, body: TrialRetentionRequest) -> Empty:
    """Keep the output of a trial that many days after its end, whatever its experiment says."""
    check_days(body.num_days)
    async with master.db.transaction() as conn:
        view = await listings_trials.get(conn, trial_id)
        caller.may_change(view.owner_id, f"trial {trial_id}")
        await retention.set_trial(conn, trial_id, body.num_days)
    return Empty()


@routes.get("/api/v1/trials/{id}/remaining_log_retention_days", "GetTrialRemainingLogRetentionDays", allow=Allow.USER)
async def remaining(master: MasterDep, id: int) -> RemainingDaysResponse:
    """For how many days the output of a trial is still there."""
    async with master.db.connection() as conn:
        kept = await retention.of_trial(conn, id, master.settings.log_retention_days)
    if kept.days == retention.FOR_EVER or kept.remaining is None:
        return RemainingDaysResponse(remaining_days=kept.days)
    return RemainingDaysResponse(remaining_days=max(0, kept.remaining))


def check_days(days: int) -> None:
    """Raises InvalidInput."""
    if not retention.FOR_EVER <= days <= retention.LONGEST_DAYS:
        raise InvalidInput(f"numDays is {days}: write 0 to {retention.LONGEST_DAYS} days, or -1 for ever")
