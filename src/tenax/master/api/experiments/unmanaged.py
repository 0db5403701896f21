"""What is trained elsewhere: experiments and trials that a script makes and speaks for, with a login of its own.

Rules it keeps: nothing here is scheduled or searched; only the owner of an experiment, or an administrator, speaks for
its trials; a name given by the maker means the same thing every time, so that everything may be repeated.
"""

from __future__ import annotations

from asyncpg import Connection
from fastapi import Request, Response

from tenax.errors import Forbidden, InvalidInput, Unsupported
from tenax.jsonvalue import Json
from tenax.lifecycle.unmanaged import TrialReport
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.experiments.messages import PutExperimentResponse, State
from tenax.master.api.experiments.rendering import experiment_message
from tenax.master.api.experiments.submissions import imagined
from tenax.master.api.http import callers
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.requests import UploadDep, decode_large
from tenax.master.api.http.routing import Routes
from tenax.master.api.logs import routes as logs
from tenax.master.api.models.messages import TrialSourceKind
from tenax.master.api.trials import messages
from tenax.master.api.trials.routes import whole_trial
from tenax.master.context import Master
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments import unmanaged
from tenax.master.store.experiments.unmanaged import TimesElsewhere
from tenax.master.store.workspaces import projects
from tenax.master.submission.experiments import examine
from tenax.master.submission.messages import CreateExperimentRequest

routes = Routes("Unmanaged")

_REPORTS = {
    State.UNSPECIFIED: TrialReport.ALIVE,
    State.ACTIVE: TrialReport.ALIVE,
    State.RUNNING: TrialReport.ALIVE,
    State.COMPLETED: TrialReport.COMPLETED,
    State.CANCELED: TrialReport.CANCELED,
    State.ERROR: TrialReport.ERROR,
}
_MAX_REASON = 500
#: A year: what is older is dated as of then.
_MAX_SECONDS = 366 * 24 * 3600.0
_REASONS = {
    TrialReport.COMPLETED: "the script finished",
    TrialReport.ERROR: "the script failed",
    TrialReport.CANCELED: "it was canceled",
}


@routes.put("/api/v1/experiments/by-external-id/{external_experiment_id:path}", "PutExperiment", allow=Allow.USER)
async def put_experiment(
    master: MasterDep, caller: CallerDep, external_experiment_id: str, body: CreateExperimentRequest, upload: UploadDep
) -> PutExperimentResponse:
    """The unmanaged experiment of that name, made if there is none; with ``validateOnly`` only what it would be."""
    if not body.unmanaged:
        raise InvalidInput("only an unmanaged experiment has a name of its maker's: set unmanaged")
    async with master.db.transaction() as conn:
        known = await unmanaged.find_experiment(conn, external_experiment_id)
    if known is None:
        submission = await examine(master.db, master.settings, master.examiners, caller.person.id, body, upload)
        if body.validate_only:
            experiment = imagined(submission, caller)
            return PutExperimentResponse(experiment=experiment, config=experiment.config)
        async with master.db.transaction() as conn:
            # Not archived, moved or deleted meanwhile.
            await projects.hold(conn, submission.new.project_id)
            # Somebody else may have made it meanwhile.
            known = await unmanaged.find_experiment(conn, external_experiment_id)
            if known is None:
                known = await unmanaged.create_experiment(conn, submission.new, external_experiment_id)
    async with master.db.connection() as conn:
        view = await experiment_lists.get(conn, known)
    caller.may_change(view.owner_id, f"experiment {known}, which has the name {external_experiment_id!r},")
    message = await master.readers.run(experiment_message, view, caller)
    return PutExperimentResponse(experiment=message, config=message.config)


@routes.post("/api/v1/trials", "CreateTrial", allow=Allow.USER, creates=True)
async def create_trial(
    master: MasterDep, caller: CallerDep, body: messages.CreateTrialRequest
) -> messages.CreateTrialResponse:
    """A trial of an unmanaged experiment."""
    return await _create(master, caller, body, None)


@routes.put("/api/v1/trials", "PutTrial", allow=Allow.USER)
async def put_trial(
    master: MasterDep, caller: CallerDep, body: messages.PutTrialRequest
) -> messages.CreateTrialResponse:
    """The trial of that name in an unmanaged experiment, made if there is none."""
    return await _create(master, caller, body.create_trial_request, body.external_trial_id)


@routes.get(
    "/api/v1/trials/by-external-id/{external_experiment_id}/{external_trial_id}",
    "GetTrialByExternalID",
    allow=Allow.USER,
)
async def get_trial(
    master: MasterDep, external_experiment_id: str, external_trial_id: str
) -> messages.GetTrialResponse:
    """The trial of that name."""
    async with master.db.connection() as conn:
        trial_id = await unmanaged.find_trial(conn, external_experiment_id, external_trial_id)
        return messages.GetTrialResponse(trial=await whole_trial(conn, trial_id))


@routes.post("/api/v1/trials/{trial_id}/start", "StartTrial", allow=Allow.USER)
async def start_trial(
    master: MasterDep, caller: CallerDep, trial_id: int, body: messages.StartTrialRequest
) -> messages.StartTrialResponse:
    """A script begins to train it, or goes on: a new run, and where from. Sent again, it is the same run."""
    async with master.db.transaction() as conn:
        await _check_own(conn, caller, trial_id)
        run_id = await unmanaged.begin(conn, trial_id, caller.person.id)
        latest = await checkpoints.latest(conn, trial_id) if body.resume else None
    return messages.StartTrialResponse(
        trial_run_id=run_id,
        latest_checkpoint=latest.uuid if latest else None,
        steps_completed=latest.steps_completed if latest else 0,
    )


@routes.patch("/api/v1/trials/{trial_id}", "PatchTrial", allow=Allow.USER)
async def patch_trial(
    master: MasterDep, caller: CallerDep, trial_id: int, body: messages.PatchTrialRequest
) -> messages.CreateTrialResponse:
    """What became of it; without a state a sign of life."""
    report = _REPORTS.get(body.state)
    if report is None:
        raise InvalidInput(
            f"a script cannot report {body.state.value}: STATE_RUNNING, _COMPLETED, _CANCELED, _ERROR are"
        )
    async with master.db.transaction() as conn:
        await _check_own(conn, caller, trial_id)
        reason = body.reason[:_MAX_REASON] or _REASONS.get(report, "")
        await unmanaged.say(conn, trial_id, report, reason)
        times = TimesElsewhere(
            _seconds(body.began_seconds_ago), _seconds(body.ended_seconds_ago), _seconds(body.ran_seconds)
        )
        await unmanaged.date(conn, trial_id, times)
        return messages.CreateTrialResponse(trial=await whole_trial(conn, trial_id))


@routes.post("/task-logs", "PostUnmanagedLogs", allow=Allow.USER, response_class=Response)
async def post_logs(master: MasterDep, caller: CallerDep, request: Request) -> Response:
    """Store lines that the script of an unmanaged trial printed: a list of one task's."""
    body = await request.body()
    task_id, lines, origins = await master.intake.threads.run(_posted, body)
    async with master.db.connection() as conn:
        run = await callers.for_task(conn, caller, task_id)
    if run.task_id != task_id:
        raise Forbidden(f"the token is not that of task {task_id}")
    await logs.keep(master, task_id, lines, origins)
    return Response(b'""', media_type="application/json")


@routes.post("/api/v1/trial-source-info", "ReportTrialSourceInfo", allow=Allow.REPORTER)
async def report_source(
    master: MasterDep, caller: CallerDep, body: messages.ReportTrialSourceInfoRequest
) -> messages.ReportTrialSourceInfoResponse:
    """Which checkpoint a trial uses, or goes on from."""
    source = body.trial_source_info
    if source.trial_source_info_type is TrialSourceKind.UNSPECIFIED:
        raise InvalidInput("trialSourceInfoType is missing: say INFERENCE or FINE_TUNING")
    model = None
    if source.model_id is not None and source.model_version is not None:
        model = source.model_id, source.model_version
    kind = source.trial_source_info_type.value.removeprefix("TRIAL_SOURCE_INFO_TYPE_")
    async with master.db.transaction() as conn:
        await callers.for_trial(conn, caller, source.trial_id)
        await unmanaged.put_source(conn, source.trial_id, source.checkpoint_uuid, kind, model)
    return messages.ReportTrialSourceInfoResponse(trial_id=source.trial_id, checkpoint_uuid=source.checkpoint_uuid)


async def _create(
    master: Master, caller: Caller, request: messages.CreateTrialRequest, external_id: str | None
) -> messages.CreateTrialResponse:
    if not request.unmanaged:
        raise Unsupported("trials of a managed experiment are made by its search: set unmanaged for others")
    async with master.db.transaction() as conn:
        experiment = await experiments.get(conn, request.experiment_id)
        caller.may_change(experiment.owner_id, f"experiment {experiment.id}")
        hparams = request.hparams
        trial_id = await unmanaged.create_trial(conn, experiment.id, hparams, external_id)
        return messages.CreateTrialResponse(trial=await whole_trial(conn, trial_id))


async def _check_own(conn: Connection, caller: Caller, trial_id: int) -> None:
    trial = await unmanaged.trial(conn, trial_id)
    caller.may_change(trial.owner_id, f"trial {trial_id}")
    if not trial.unmanaged:
        raise InvalidInput(f"trial {trial_id} is run by this cluster, which knows by itself what becomes of it")


def _seconds(reported: float | None) -> float | None:
    return None if reported is None else min(reported, _MAX_SECONDS)


def _posted(body: bytes) -> logs.Posted:
    rows = decode_large(body, keeps_nul=True)
    if not isinstance(rows, list):
        raise InvalidInput("the body must be a list of lines")
    lines: list[Json] = [{**row, "rank_id": _rank(row)} if isinstance(row, dict) else row for row in rows]
    return logs.posted(lines)


def _rank(row: dict[str, Json]) -> Json:
    rank = row.get("rank_id", row.get("rank"))
    return int(rank) if isinstance(rank, str) and rank.isdecimal() and len(rank) < 10 else rank
