"""Experiments: listed, searched by any column, shown and edited.

Rules it keeps: everyone who is logged in sees every experiment; only its owner and administrators change it. In a list,
a configuration is sent as the text that the database holds, because decoding it and writing it again is most of the
work of a page; but only where nothing in it has to be hidden from the caller, and else as `experiment_message`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

import msgspec
from asyncpg import Connection
from fastapi import Query, Response

from tenax.config.display import may_hold_secrets, may_name_secrets
from tenax.errors import InvalidInput, NotFound
from tenax.jsonvalue import Json, JsonObject
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.checkpoints.messages import CheckpointState
from tenax.master.api.experiments import messages
from tenax.master.api.experiments.actions import check_owner
from tenax.master.api.experiments.queries import narrowed
from tenax.master.api.experiments.rendering import experiment_message, outlined
from tenax.master.api.experiments.search_messages import (
    FoundExperiment,
    SearchExperimentsRequest,
    SearchExperimentsResponse,
)
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import JSON, NONE, Rendering, WindowDep, as_json, in_parts, listed, search_page
from tenax.master.api.http.requests import check_labels, check_sizes
from tenax.master.api.http.routing import Routes
from tenax.master.api.trials.messages import GetExperimentTrialsResponse, TrialSortBy
from tenax.master.api.trials.rendering import trial_message
from tenax.master.api.trials.routes import with_summaries
from tenax.master.store.checkpoints import gc
from tenax.master.store.database.filter_text import parse, parse_sort
from tenax.master.store.experiments import columns as experiment_columns
from tenax.master.store.experiments import edits as experiment_edits
from tenax.master.store.experiments import lists as experiment_lists
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.experiments.edits import ExperimentEdit, Share
from tenax.master.store.experiments.lists import ExperimentFilter, ExperimentView
from tenax.master.store.trials import lists as trial_lists
from tenax.master.store.trials.lists import TrialView
from tenax.master.store.workspaces import projects
from tenax.scheduler.queueing import SHARED
from tenax.wire.message import Message, Pagination

routes = Routes("Experiments")
T = TypeVar("T")

_TRIAL_ORDERS = {
    TrialSortBy.UNSPECIFIED: "id",
    TrialSortBy.ID: "id",
    TrialSortBy.START_TIME: "start_time",
    TrialSortBy.END_TIME: "end_time",
    TrialSortBy.STATE: "state",
    TrialSortBy.BEST_VALIDATION_METRIC: "best_validation",
    TrialSortBy.LATEST_VALIDATION_METRIC: "latest_validation",
    TrialSortBy.BATCHES_PROCESSED: "total_batches",
    TrialSortBy.DURATION: "duration",
    TrialSortBy.RESTARTS: "restarts",
    TrialSortBy.CHECKPOINT_SIZE: "checkpoint_size",
    TrialSortBy.LOG_RETENTION_DAYS: "log_retention",
}


@routes.get("/api/v1/experiments", "GetExperiments", allow=Allow.USER, response_model=messages.GetExperimentsResponse)
async def get_experiments(
    master: MasterDep,
    caller: CallerDep,
    window: WindowDep,
    sort_by: Annotated[messages.ExperimentSortBy, Query()] = "SORT_BY_UNSPECIFIED",
    archived: Annotated[bool | None, Query()] = None,
    name: Annotated[str | None, Query()] = None,
    description: Annotated[str | None, Query()] = None,
    labels: Annotated[list[str] | None, Query()] = None,
    users: Annotated[list[str] | None, Query()] = None,
    user_ids: Annotated[list[int] | None, Query()] = None,
    states: Annotated[list[messages.State] | None, Query()] = None,
    project_id: Annotated[int | None, Query()] = None,
    gt: Annotated[int | None, Query(alias="experiment_id_filter.gt")] = None,
    gte: Annotated[int | None, Query(alias="experiment_id_filter.gte")] = None,
    lt: Annotated[int | None, Query(alias="experiment_id_filter.lt")] = None,
    lte: Annotated[int | None, Query(alias="experiment_id_filter.lte")] = None,
    incl: Annotated[list[int] | None, Query(alias="experiment_id_filter.incl")] = None,
    not_in: Annotated[list[int] | None, Query(alias="experiment_id_filter.not_in")] = None,
    show_trial_data: Annotated[bool, Query(description="What trials come to is always shown.")] = True,
) -> Response:
    """Experiments, filtered and in order. Limit 0 is 100, -1 is all, -2 is none (only the count)."""
    filters = ExperimentFilter(
        archived=archived,
        name=name,
        description=description,
        labels=_tuple(labels),
        users=_tuple(users),
        user_ids=_tuple(user_ids),
        states=None if states is None else tuple(bare(state) for state in states),
        project_id=project_id or None,
        after_id=max((bound for bound in (gt, None if gte is None else gte - 1) if bound is not None), default=None),
        before_id=min((bound for bound in (lt, None if lte is None else lte + 1) if bound is not None), default=None),
        ids=_tuple(incl),
        not_ids=_tuple(not_in),
    )

    async def load() -> tuple[list[Rendered], Pagination]:
        async with master.db.snapshot() as conn:
            total = await experiment_lists.count(conn, filters)
            page, pagination = search_page(total, window.offset, window.limit)
            ids: list[int] = []
            if window.limit != NONE:
                ids = await experiment_lists.ids(
                    conn, filters, page, total, order=messages.experiment_order(sort_by), descending=window.descending
                )

            async def views(part: Sequence[int]) -> list[ExperimentView]:
                return await experiment_lists.views(conn, part)

            entries, read = await in_parts(master, ids, views, rendered, lambda entry: len(entry.whole))
        pagination.end_index = pagination.start_index + read
        return entries, pagination

    page, pagination = await master.single_flight.share(("GetExperiments", filters, window, sort_by), load)
    return Response(await master.readers.run(experiments_json, page, caller, pagination), media_type=JSON)


@routes.get("/api/v1/experiments/{experiment_id}", "GetExperiment", allow=Allow.USER)
async def get_experiment(master: MasterDep, caller: CallerDep, experiment_id: int) -> messages.GetExperimentResponse:
    """One experiment, and its job's place in the queue."""
    async with master.db.connection() as conn:
        view = await experiment_lists.get(conn, experiment_id)
        trials = await experiment_lists.trial_ids(conn, experiment_id)
        summary = None
        # What is trained elsewhere waits in no queue.
        if view.ended_at is None and not view.unmanaged:
            ahead, placed, pool = await experiment_lists.job_standing(conn, experiment_id)
            settings = master.settings.pool(pool)
            summary = messages.JobSummary(
                state=messages.JobState.SCHEDULED if placed else messages.JobState.QUEUED,
                jobs_ahead=ahead if settings is None or settings.scheduler.in_turns else SHARED,
            )
    message = await master.readers.run(experiment_message, view, caller, trials)
    return messages.GetExperimentResponse(experiment=message, config=message.config, job_summary=summary)


@routes.patch("/api/v1/experiments/{experiment_id}", "PatchExperiment", allow=Allow.USER)
async def patch_experiment(
    master: MasterDep, caller: CallerDep, experiment_id: int, body: messages.PatchExperiment
) -> messages.PatchExperimentResponse:
    """Edit name, description, notes, labels, resources and checkpoint policy, and what ranks the trials of an unmanaged
    experiment that has no value of it yet: all that is given, or nothing."""
    edit = _edit(body)
    async with master.db.transaction() as conn:
        await check_owner(conn, caller, experiment_id)
        if body.expected is not None:
            await experiments.lock(conn, experiment_id)
            present = await experiment_lists.get(conn, experiment_id)
            shown = await master.readers.run(experiment_message, present, caller)
            check_expected(body.expected, shown, f"experiment {experiment_id}")
        if body.resources is not None:
            await experiment_edits.set_share(conn, experiment_id, Share(**body.resources.model_dump(by_alias=False)))
        if body.checkpoint_storage is not None:
            await _set_policy(conn, experiment_id, body.checkpoint_storage)
        if body.searcher is not None:
            searcher = body.searcher
            if not searcher.metric.strip():
                raise InvalidInput("searcher.metric is blank: name a validation metric")
            await experiment_edits.set_searcher_metric(conn, experiment_id, searcher.metric, searcher.smaller_is_better)
        await experiment_edits.edit(conn, experiment_id, edit)
        view = await experiment_lists.get(conn, experiment_id)
    return messages.PatchExperimentResponse(experiment=await master.readers.run(experiment_message, view, caller))


def _edit(body: messages.PatchExperiment) -> ExperimentEdit:
    if body.name is not None and not body.name.strip():
        raise InvalidInput("a name cannot be blank")
    check_sizes(name=body.name, description=body.description, notes=body.notes)
    labels = None if body.labels is None else check_labels(body.labels)
    return ExperimentEdit(body.name, body.description, body.notes, labels)


async def _set_policy(conn: Connection, experiment_id: int, patch: messages.PatchCheckpointStorage) -> None:
    """Values that are not given stay."""
    await experiments.lock(conn, experiment_id)
    policy = gc.policy_of((await experiments.plan(conn, experiment_id)).config)
    changes = {
        "experiment_best": patch.save_experiment_best,
        "trial_best": patch.save_trial_best,
        "trial_latest": patch.save_trial_latest,
    }
    changed = replace(policy, **{name: value for name, value in changes.items() if value is not None})
    await gc.set_policy(conn, experiment_id, changed)


@routes.get(
    "/api/v1/experiments/{experiment_id}/trials",
    "GetExperimentTrials",
    allow=Allow.USER,
    response_model=GetExperimentTrialsResponse,
)
async def get_experiment_trials(
    master: MasterDep,
    experiment_id: int,
    window: WindowDep,
    sort_by: Annotated[TrialSortBy, Query()] = TrialSortBy.UNSPECIFIED,
    states: Annotated[list[messages.State] | None, Query()] = None,
    metrics: Annotated[list[str] | None, Query()] = None,
) -> Response:
    """Its trials. ``metrics``: of their summaries only those of these columns, and with an empty one none;
    their validations are left out then."""
    state_names = None if states is None else [bare(state) for state in states]
    async with master.db.connection() as conn:
        await experiment_lists.owner(conn, experiment_id)
        page, pagination = window.of(await trial_lists.count(conn, experiment_id, state_names))
        ids = await trial_lists.ids(
            conn, experiment_id, state_names, page, order=_TRIAL_ORDERS[sort_by], descending=window.descending
        )

        async def load(part: Sequence[int]) -> list[tuple[TrialView, JsonObject]]:
            return await with_summaries(conn, await trial_lists.views(conn, part), metrics)

        def render(entry: tuple[TrialView, JsonObject]) -> bytes:
            return as_json(trial_message(*entry, validations=metrics is None))

        return await listed(master, ids, Rendering("trials", load, render), pagination)


@routes.get(
    "/api/v1/experiments/{experiment_id}/searcher/best_searcher_validation_metric",
    "GetBestSearcherValidationMetric",
    allow=Allow.USER,
)
async def best_metric(master: MasterDep, experiment_id: int) -> messages.BestMetricResponse:
    """The best value of the searcher's metric so far; 404 before there is one."""
    async with master.db.connection() as conn:
        view = await experiment_lists.get(conn, experiment_id)
    if view.best_metric is None:
        raise NotFound(f"validation not found: experiment {experiment_id} has none with the searcher's metric yet")
    return messages.BestMetricResponse(metric=view.best_metric)


def bare(state: messages.State | CheckpointState) -> str:
    """A state without the prefix that it travels with."""
    return str(state.value).removeprefix("STATE_")


def _tuple(values: list[T] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(values)


_NOTHING = msgspec.Raw(b"{}")


class _Sections(msgspec.Struct):
    """What a list looks at in a configuration; the rest is stepped over."""

    searcher: msgspec.Raw = _NOTHING
    integrations: msgspec.Raw = _NOTHING
    hyperparameters: msgspec.Raw = _NOTHING


_sections = msgspec.json.Decoder(_Sections)


@dataclass(frozen=True, slots=True)
class Rendered:
    """An experiment with all of its configuration, and what says to whom it may be shown so."""

    view: ExperimentView
    whole: bytes
    may_hold_secrets: bool


def rendered(view: ExperimentView) -> Rendered:
    """An experiment that is about to be shown, to whomever."""
    secret = may_hold_secrets(view.config_text) or may_name_secrets(view.original_config)
    return Rendered(view, _whole(view), secret)


def experiments_json(page: Sequence[Rendered], caller: Caller, pagination: Pagination) -> bytes:
    """A `GetExperimentsResponse` as ``caller`` may see it."""
    experiments = b",".join(_for(caller, experiment) for experiment in page)
    return b'{"experiments":[' + experiments + b'],"pagination":' + _json(pagination) + b"}"


def _for(caller: Caller, experiment: Rendered) -> bytes:
    if experiment.may_hold_secrets and not caller.is_admin:
        return _json(experiment_message(experiment.view, caller))
    return experiment.whole


def _whole(view: ExperimentView) -> bytes:
    config = view.config_text.encode()
    sections = _sections.decode(config)
    message = outlined(view, _object(sections.searcher), _object(sections.integrations))
    message.original_config = view.original_config
    hyperparameters = bytes(sections.hyperparameters)
    if not hyperparameters.startswith(b"{"):
        hyperparameters = b"{}"
    encoded = _json(message, leaving_out={"config", "hyperparameters"})
    return encoded[:-1] + b',"config":' + config + b',"hyperparameters":' + hyperparameters + b"}"


def _json(message: Message, leaving_out: set[str] | None = None) -> bytes:
    return message.__pydantic_serializer__.to_json(message, by_alias=True, exclude=leaving_out)


def _object(raw: msgspec.Raw) -> JsonObject:
    value: Json = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}


@routes.post(
    "/api/v1/experiments-search", "SearchExperiments", allow=Allow.USER, response_model=SearchExperimentsResponse
)
async def search(master: MasterDep, caller: CallerDep, body: SearchExperimentsRequest) -> Response:
    """Experiments that a filter finds, in order. Limit 0 is 100, -1 is all, -2 is none (only the count)."""
    filters, sorts = parse(body.filter), parse_sort(body.sort)
    project_id = body.project_id or None
    async with master.db.snapshot() as conn:
        if project_id is not None:
            await projects.get(conn, project_id)
        filters = await narrowed(conn, caller, project_id, filters, body.query)
        total = await experiment_columns.count(conn, project_id, filters)
        page, pagination = search_page(total, body.offset, body.limit)
        numbers: list[int] = []
        if body.limit != NONE:
            numbers = await experiment_columns.search(conn, project_id, filters, sorts, page)

        async def load(part: Sequence[int]) -> list[tuple[ExperimentView, tuple[TrialView, JsonObject] | None]]:
            views = await experiment_lists.views(conn, part)
            best = [view.best_trial_id for view in views if view.best_trial_id is not None]
            whole = await with_summaries(conn, await trial_lists.views(conn, best), body.metrics)
            trials = {entry[0].id: entry for entry in whole}
            return [(view, trials.get(view.best_trial_id or 0)) for view in views]

        def render(entry: tuple[ExperimentView, tuple[TrialView, JsonObject] | None]) -> bytes:
            view, trial = entry
            best = None if trial is None else trial_message(*trial, validations=body.metrics is None)
            message = experiment_message(view, caller)
            if body.omit_config:
                message.config, message.original_config = {}, ""
            return as_json(FoundExperiment(experiment=message, best_trial=best))

        return await listed(master, numbers, Rendering("experiments", load, render), pagination)
