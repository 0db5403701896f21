"""Whether trials are well: computed when somebody asks, and never for a trial that nobody looks at."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from tenax.lifecycle.health import SILENT_S, Evidence, Finding, HealthKind, TrialHealth, judge
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.logs.windows import failure_line
from tenax.master.api.trials import messages
from tenax.master.context import Master
from tenax.master.reading.health import LifeSigns, failed_at, load, unpack
from tenax.master.store.trials import lists as trial_lists
from tenax.master.store.trials.lists import TrialView, TrialVitals

routes = Routes("Trials")

#: Silent trials that are judged at once.
_MAX_SILENT = 20


@routes.get("/api/v1/trials/{trial_id}/health", "GetTrialHealth", allow=Allow.USER)
async def trial_health(master: MasterDep, trial_id: int) -> messages.GetTrialHealthResponse:
    """Whether it is well, in a sentence, with what shows it, and the facts of it that change all the time."""
    return (await _judged(master, trial_id))[1]


@routes.get("/api/v1/trials/stalled", "GetStalledTrials", allow=Allow.USER)
async def stalled_trials(
    master: MasterDep, user_id: Annotated[int | None, Query()] = None
) -> messages.GetStalledTrialsResponse:
    """Trials that run and hang, or were silent for longer than is usual for them, of one person or of all.

    The longest first.
    """
    async with master.db.connection() as conn:
        silent = await trial_lists.silent(conn, user_id, _MAX_SILENT)
    stalled: list[messages.StalledTrial] = []
    waits: list[float] = []
    for trial in silent:
        if trial.silent_s < SILENT_S:
            # Those behind it were heard of later still.
            waits.append(SILENT_S - trial.silent_s)
            break
        health, _ = await _judged(master, trial.id)
        if health.kind in (HealthKind.HUNG, HealthKind.STALLED):
            stalled.append(
                messages.StalledTrial(
                    trial_id=trial.id, experiment_id=trial.experiment_id, name=trial.name, sentence=health.sentence
                )
            )
        elif health.silent_in_s is not None:
            waits.append(health.silent_in_s)
    return messages.GetStalledTrialsResponse(trials=stalled, next_in=min(waits, default=None))


async def _judged(master: Master, trial_id: int) -> tuple[TrialHealth, messages.GetTrialHealthResponse]:
    async with master.db.snapshot() as conn:
        trial = await trial_lists.get(conn, trial_id)
        vitals = await trial_lists.vitals(conn, trial_id)
        loaded = await load(conn, trial, vitals)
    pulse = await master.readers.run(unpack, loaded)
    if trial.shown_state == "ERROR":
        pulse = failed_at(pulse, await failure_line(master, trial))
    health = judge(pulse.facts)
    return health, _message(health, pulse, trial, vitals)


def _message(
    health: TrialHealth, pulse: LifeSigns, trial: TrialView, vitals: TrialVitals
) -> messages.GetTrialHealthResponse:
    facts = pulse.facts
    running = vitals.runs_s is not None and health.kind not in (HealthKind.HUNG, HealthKind.STALLED)
    share = trial.progress or 0.0
    left = trial.ran_s * (1 - share) / share if running and 0 < share < 1 else None
    return messages.GetTrialHealthResponse(
        kind=health.kind,
        sentence=health.sentence,
        findings=[_finding(finding) for finding in health.findings],
        silent_in=health.silent_in_s,
        metric="" if facts.metric is None else facts.metric.name,
        metric_group="" if facts.metric is None else facts.metric.group,
        smaller_is_better=trial.smaller_is_better,
        best=trial.best_metric,
        progress=trial.progress,
        seconds_left=left,
        step_seconds=pulse.step_s,
        slots=vitals.slots,
        agents=vitals.agents,
        gpus=pulse.gpus,
        gpu_percent=pulse.gpu_percent,
        cpu_percent=pulse.cpu_percent,
        restarts=trial.restarts,
        max_restarts=vitals.max_restarts,
        lines=vitals.lines,
        line_seconds=facts.line_s,
        report_seconds=facts.reported_s,
        checkpoint_seconds=facts.checkpoint_s,
    )


def _finding(finding: Finding) -> messages.HealthFinding:
    return messages.HealthFinding(
        kind=finding.kind,
        sentence=finding.sentence,
        head=finding.head,
        evidence=Evidence(finding.evidence),
        line=finding.line,
        group=finding.group,
        metric=finding.metric,
    )
