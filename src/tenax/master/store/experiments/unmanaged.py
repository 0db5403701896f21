"""Rows of what is trained elsewhere: experiments without a search of ours, trials that report for themselves.

Rules: the experiment's lock comes before the trial's; a name given by its maker means the same thing every time; states
change by ``tenax.lifecycle.unmanaged`` alone. All of it runs inside the caller's transaction.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

import msgspec
from asyncpg import Connection

from tenax.display.terminal import is_name
from tenax.errors import InvalidInput, NotFound, NotNow
from tenax.ids import ExperimentId, RequestId, trial_task_id
from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle import unmanaged
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.trial import TrialState, Wish
from tenax.lifecycle.unmanaged import TrialReport
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify
from tenax.master.store.experiments import creation, progress
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.creation import NewExperiment
from tenax.master.store.experiments.rows import ExperimentRow
from tenax.master.store.trials import rows as trials
from tenax.master.store.webhooks import events as webhook_events

Q = load("experiments")

#: For how long the start of a run may be sent again, where nothing was reported of the run: longer than clients try.
REPEATED_FOR_S = 600.0

_MAX_NAME = 500
#: Hyperparameters of a trial: each is found by filters, and every list of trials has them.
_MAX_HPARAMS, _MAX_HPARAMS_BYTES = 1000, 64 * 1024


@dataclass(frozen=True, slots=True)
class UnmanagedTrialRow:
    """A trial, managed or not, as far as reporting for it needs to know."""

    id: int
    experiment_id: int
    task_id: str
    state: TrialState
    run_id: int
    owner_id: int
    unmanaged: bool
    #: It ended by silence.
    lost: bool


@dataclass(frozen=True, slots=True)
class SilentTrial:
    """A trial that has not reported for too long."""

    trial_id: int
    experiment_id: int
    #: When it reported last.
    at: datetime


@dataclass(frozen=True, slots=True)
class TimesElsewhere:
    """When a trial was trained, as its script says, in seconds before now, and for how long; None: not said."""

    began_ago_s: float | None = None
    ended_ago_s: float | None = None
    ran_s: float | None = None


async def find_experiment(conn: Connection, external_id: str) -> int | None:
    """The experiment of that name; holds the name until the transaction ends. Raises InvalidInput."""
    check_name(external_id, "externalExperimentId")
    await conn.execute(Q.reserve_name, external_id)
    experiment_id: int | None = await conn.fetchval(Q.experiment_named, external_id)
    return experiment_id


async def find_trial(conn: Connection, experiment: str, trial: str) -> int:
    """The trial of that name in the experiment of that name. Raises NotFound."""
    experiment_id = await conn.fetchval(Q.experiment_named, experiment)
    what = f"trial {trial!r} of an experiment {experiment!r}"
    trial_id: int = (await existing(conn, what, Q.trial_named, experiment_id, trial))[0]
    return trial_id


async def create_experiment(conn: Connection, new: NewExperiment, external_id: str | None = None) -> int:
    """An experiment that nobody searches or schedules: ACTIVE, and in no queue. Its id."""
    experiment_id = await creation.create(conn, new, activate=False)
    job_id = await conn.fetchval(Q.mark_experiment, experiment_id, external_id)
    await conn.execute(_END_JOB, job_id)
    return experiment_id


async def create_trial(
    conn: Connection, experiment_id: int, hparams: JsonObject, external_id: str | None = None
) -> int:
    """A trial of an unmanaged experiment, or the one of that name; its id. Raises NotFound, InvalidInput."""
    experiment = await _lock(conn, experiment_id)
    if not experiment.unmanaged:
        raise InvalidInput(
            f"experiment {experiment_id} is searched by this master, which makes its trials: "
            "add trials to an unmanaged experiment only"
        )
    if external_id is not None:
        check_name(external_id, "externalTrialId")
    check_hparams(hparams)
    if external_id is not None:
        known: int | None = await conn.fetchval(Q.trial_named, experiment_id, external_id)
        if known is not None:
            return known
    request = RequestId(str(uuid.uuid4()))
    task_id = trial_task_id(ExperimentId(experiment_id), request)
    place = await conn.fetchval(Q.next_place, experiment_id)
    trial_id: int = await conn.fetchval(_CREATE, experiment_id, [request], [place], [task_id], [hparams], [0], None)
    await conn.execute(Q.add_trial, trial_id)
    if external_id is not None:
        await conn.execute(Q.name_trial, trial_id, external_id)
    await _settle(conn, experiment_id, "")
    return trial_id


async def trial(conn: Connection, trial_id: int) -> UnmanagedTrialRow:
    """The trial as it is. Raises NotFound."""
    return await _fetch(conn, Q.trial, trial_id)


async def _fetch(conn: Connection, query: str, trial_id: int) -> UnmanagedTrialRow:
    row = await existing(conn, f"trial {trial_id}", query, trial_id)
    return row_as(UnmanagedTrialRow, row, state=TrialState)


async def trial_of_task(conn: Connection, task_id: str) -> int:
    """Raises NotFound."""
    trial_id: int = (await existing(conn, f"trial with the task {task_id}", Q.trial_of_task, task_id))[0]
    return trial_id


async def begin(conn: Connection, trial_id: int, by: int) -> int:
    """A script of the user ``by`` starts with this trial, or again; the number of its run. Raises NotFound, NotNow.

    A run of which nothing was reported since is begun once, however often its start is sent.
    """
    await _lock(conn, (await trial(conn, trial_id)).experiment_id)
    row = await _fetch(conn, Q.lock_trial, trial_id)
    # A statement of its own: it sees what was reported before the locks were had.
    if row.state is TrialState.ACTIVE and await conn.fetchval(Q.begun_before, trial_id, by, REPEATED_FOR_S):
        return row.run_id
    await say(conn, trial_id, TrialReport.START)
    run_id: int = await conn.fetchval(Q.begin_run, trial_id)
    await conn.execute(Q.note_begin, trial_id, by)
    return run_id


async def set_hparams(conn: Connection, trial_id: int, run_id: int, hparams: JsonObject) -> None:
    """What run ``run_id`` trains with; nothing where a newer one has begun. Raises InvalidInput."""
    check_hparams(hparams)
    await conn.execute(Q.set_hparams, trial_id, run_id, hparams)


def check_hparams(hparams: JsonObject) -> None:
    """Raises InvalidInput for more of them than a trial has."""
    size = len(msgspec.json.encode(hparams))
    if size > _MAX_HPARAMS_BYTES:
        raise InvalidInput(
            f"the hyperparameters have {size} bytes as JSON, and at most {_MAX_HPARAMS_BYTES} are taken: keep what is "
            "long in a file, and its name here"
        )
    waiting: list[Json] = [hparams]
    count = 0
    while waiting:
        last = waiting.pop()
        count += 1
        waiting.extend(last.values() if isinstance(last, dict) else last if isinstance(last, list) else ())
    if count > _MAX_HPARAMS:
        raise InvalidInput(f"a script declares at most {_MAX_HPARAMS} hyperparameters, and these are {count}")


async def say(
    conn: Connection, trial_id: int, report: TrialReport, reason: str = "", *, at: datetime | None = None
) -> None:
    """Apply what a script reports of a trial, or its silence since ``at``. Raises NotFound, NotNow."""
    experiment_id = (await trial(conn, trial_id)).experiment_id
    await _lock(conn, experiment_id)
    now = await _fetch(conn, Q.lock_trial, trial_id)
    after = unmanaged.step(now.state, now.lost, report)
    await conn.execute(Q.note_report, trial_id, report is TrialReport.SILENT)
    if after is not now.state:
        await conn.execute(Q.set_trial, trial_id, after.value, reason, at)
        await conn.execute(Q.set_task, now.task_id)
        await notify(conn, "logs", now.task_id)
        await _settle(conn, experiment_id, reason)


async def date(conn: Connection, trial_id: int, times: TimesElsewhere) -> None:
    """Give a trial the times that its script says, and its experiment those of its trials; after `say`."""
    if times != TimesElsewhere():
        experiment_id = await conn.fetchval(Q.date_trial, trial_id, times.began_ago_s, times.ended_ago_s)
        await conn.execute(Q.date_experiment, experiment_id)
        await conn.execute(Q.note_ran, trial_id, times.ran_s)


async def kill(conn: Connection, trial_id: int, experiment_id: int) -> None:
    """End a trial, managed or not, at once; nothing if it has ended. Raises NotFound."""
    row = await trial(conn, trial_id)
    if not row.unmanaged:
        await trials.raise_wish(conn, trial_id, experiment_id, Wish.KILL)
    elif row.state is TrialState.ACTIVE:
        await say(conn, trial_id, TrialReport.CANCELED, "it was canceled here; its script is not informed")


async def silent(conn: Connection, wait_s: float, listening_s: float) -> list[SilentTrial]:
    """Trials that did not report for ``wait_s`` while a master was up for ``listening_s``."""
    rows = await conn.fetch(Q.silent, wait_s, listening_s, None)
    return [SilentTrial(row["id"], row["experiment_id"], row["at"]) for row in rows]


async def lose(conn: Connection, trial_id: int, wait_s: float, reason: str) -> bool:
    """Give up a trial that is still silent, as of its last report; False if it has reported meanwhile."""
    experiment_id = (await trial(conn, trial_id)).experiment_id
    await _lock(conn, experiment_id)
    await conn.fetchrow(Q.lock_trial, trial_id)
    # A statement of its own: it sees what was reported before the locks were had.
    still = await conn.fetchrow(Q.silent, wait_s, wait_s, trial_id)
    if still is None:
        return False
    await say(conn, trial_id, TrialReport.SILENT, reason, at=still["at"])
    return True


async def put_source(
    conn: Connection, trial_id: int, checkpoint_uuid: str, kind: str, model: tuple[int, int] | None
) -> None:
    """What a trial was made from, or uses; ``model``: id and number of the version. Raises NotFound."""
    if not await conn.fetchval(Q.checkpoint_exists, checkpoint_uuid):
        raise NotFound(f"checkpoint {checkpoint_uuid} not found")
    model_id, version = model if model is not None else (None, None)
    if model is not None and not await conn.fetchval(Q.version_exists, model_id, version, checkpoint_uuid):
        raise NotFound(f"version {version} of model {model_id} with the checkpoint {checkpoint_uuid} not found")
    await conn.execute(Q.put_source, trial_id, checkpoint_uuid, kind, model_id, version)


def check_name(name: str, what: str) -> None:
    """Raises InvalidInput for a name that cannot be kept."""
    if not name.strip() or len(name) > _MAX_NAME or not is_name(name):
        raise InvalidInput(f"{what} must have 1 to {_MAX_NAME} characters that can be shown in a line")


async def _lock(conn: Connection, experiment_id: int) -> ExperimentRow:
    """Raises NotFound, NotNow for one that is being deleted."""
    experiment = await experiments.lock(conn, experiment_id)
    if experiment.state in (ExperimentState.DELETING, ExperimentState.DELETE_FAILED):
        raise NotNow(f"experiment {experiment_id} is being deleted: nothing can be reported to it any more")
    return experiment


async def _settle(conn: Connection, experiment_id: int, reason: str) -> None:
    """Bring the experiment to what its trials are together."""
    states = {TrialState(row["state"]) for row in await conn.fetch(Q.states, experiment_id)}
    after = unmanaged.together(states)
    if await conn.fetchval(Q.set_experiment, experiment_id, after.value, reason) is not None:
        await webhook_events.experiment_changed(conn, experiment_id, after)
    await experiments.announce(conn, experiment_id)
    await progress.stand_unmanaged(conn, experiment_id)


_CREATE = load("trials").create
_END_JOB = load("experiments").end_job
