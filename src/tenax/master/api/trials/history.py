"""What happened to a trial, in order: its attempts, what became of them and why, checkpoints, restores."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.trials import messages
from tenax.master.api.trials.messages import TrialEventKind
from tenax.master.store.trials import lists as trial_lists
from tenax.master.store.trials.lists import PastEvent

routes = Routes("Trials")

_MAX_EVENTS = 1000


@routes.get("/api/v1/trials/{trial_id}/events", "GetTrialEvents", allow=Allow.USER)
async def trial_events(
    master: MasterDep, trial_id: int, limit: Annotated[int, Query(ge=1, le=_MAX_EVENTS)] = 200
) -> messages.GetTrialEventsResponse:
    """The newest first, as far as the cluster remembers: each with its reason."""
    async with master.db.snapshot() as conn:
        await trial_lists.owner(conn, trial_id)
        events = await trial_lists.history(conn, trial_id, limit)
    return messages.GetTrialEventsResponse(events=[_event(event) for event in events])


def _event(event: PastEvent) -> messages.TrialEvent:
    kind = TrialEventKind(event.kind)
    return messages.TrialEvent(
        time=event.at,
        kind=kind,
        run_id=event.run_id,
        sentence=_sentence(kind, event),
        checkpoint_uuid=event.text if kind is TrialEventKind.CHECKPOINT else "",
    )


def _sentence(kind: TrialEventKind, event: PastEvent) -> str:
    slots = "1 slot" if event.number == 1 else f"{event.number} slots"
    sentence = {
        TrialEventKind.CREATED: "Created",
        TrialEventKind.REQUESTED: f"Asked for {slots}",
        TrialEventKind.ASSIGNED: f"Got {slots} on {event.text or 'a machine'}",
        TrialEventKind.STARTED: f"Began to run on {event.text or 'a machine'}",
        TrialEventKind.RESTORED: f"Went on from a checkpoint: reports from step {event.number} on count anew",
        TrialEventKind.CHECKPOINT: f"Saved a checkpoint at step {event.number}",
        TrialEventKind.LOG_POLICY: f"A line of its output matched a policy, {event.text}",
    }.get(kind)
    if sentence is not None:
        return sentence
    what = {
        TrialEventKind.PREEMPTED: "Was asked to leave, and ended",
        TrialEventKind.ENDED: "Ended",
        TrialEventKind.COMPLETED: "The trial completed",
        TrialEventKind.CANCELED: "The trial was canceled",
        TrialEventKind.ERROR: "The trial failed",
    }[kind]
    return f"{what}: {event.text}" if event.text else what
