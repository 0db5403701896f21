"""Metrics: reported and read back.

Reports come in one by one as Determined's client sends them, in the older forms that some clients still use, and in
spools from tasks and agents (`tenax.wire.spool`). A report is answered once it is durable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, cast

import msgspec
from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from tenax.errors import Forbidden, InvalidInput, NotFound, NotNow
from tenax.jsonvalue import Json, JsonObject
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.http.callers import CallerDep, MasterDep, TaskDep
from tenax.master.api.http.requests import LARGE_BODY_BYTES, decode_body, decode_large
from tenax.master.api.http.routing import Routes
from tenax.master.api.http.streaming import line, ndjson
from tenax.master.context import Master
from tenax.master.reading.charts import Bounds, chart
from tenax.master.reading.log_search import timestamp
from tenax.master.store.metrics import series, summaries
from tenax.master.store.metrics.series import PackedReports, PackedSeries
from tenax.master.store.trials import lists as trial_lists
from tenax.master.telemetry.reports import MetricReport, from_values
from tenax.master.telemetry.values import SpooledReport

routes = Routes("metrics")

#: Points of a chart that are given when none are asked for.
_POINTS = 1000
_TRAINING, _VALIDATION = "training", "validation"
TrialIds = Annotated[list[int], Query()]


@routes.post(
    "/api/v1/trials/{trial_id}/metrics", "ReportTrialMetrics", allow=Allow.REPORTER, often=True, response_class=Response
)
async def report_metrics(master: MasterDep, caller: CallerDep, request: Request, trial_id: int) -> Response:
    """Store one report of one group; 200 means that it is durable. The same report again is nothing new."""
    group, values = _parts(await _decoded(master, request))
    return await take(master, caller, trial_id, group, values)


async def _decoded(master: Master, request: Request) -> object:
    body = await request.body()
    return decode_body(body) if len(body) <= LARGE_BODY_BYTES else await master.intake.threads.run(decode_large, body)


async def take(master: Master, caller: Caller, trial_id: int, group: str, values: JsonObject) -> Response:
    """Store one report: what stands under ``metrics`` in a request. Raises InvalidInput, NotNow, Forbidden."""
    run_id = await run_of(master, caller, trial_id, values)
    step, time = _either(values, "stepsCompleted"), _either(values, "reportTime")
    reported = _object(values.get("metrics"), "metrics.metrics")
    number = None if step is None else _integer(step)
    report = from_values(trial_id, run_id, group, number, time if isinstance(time, str) else None, reported)
    (refused,) = (await master.intake.metrics.submit([SpooledReport(report)])).refused
    if refused is not None:
        raise InvalidInput(refused.message)
    return Response(b"{}", media_type="application/json")


@routes.stream("/api/v1/trials/metrics/trial_metrics", "GetMetrics", allow=Allow.USER)
async def get_metrics(master: MasterDep, trial_ids: TrialIds = [], group: str = "") -> StreamingResponse:  # noqa: B006
    """All visible reports of one group (without one: of every group), by trial, group and step: a stream."""
    return await _stream(master, trial_ids, group)


@routes.stream("/api/v1/trials/metrics/training_metrics", "GetTrainingMetrics", allow=Allow.USER)
async def get_training_metrics(master: MasterDep, trial_ids: TrialIds = []) -> StreamingResponse:  # noqa: B006
    """All visible training reports, by trial and step: a stream."""
    return await _stream(master, trial_ids, _TRAINING)


@routes.stream("/api/v1/trials/metrics/validation_metrics", "GetValidationMetrics", allow=Allow.USER)
async def get_validation_metrics(master: MasterDep, trial_ids: TrialIds = []) -> StreamingResponse:  # noqa: B006
    """All visible validation reports, by trial and step: a stream."""
    return await _stream(master, trial_ids, _VALIDATION)


@routes.get("/api/v1/trials/{trial_id}/series", "GetTrialSeries", allow=Allow.USER, response_class=Response)
async def get_series(
    master: MasterDep,
    trial_id: int,
    metric: str,
    group: str = _TRAINING,
    max_points: Annotated[int, Query(ge=0)] = _POINTS,
    from_step: int | None = None,
    to_step: int | None = None,
) -> Response:
    """One metric for a chart: ``{"total", "steps", "times", "values"}``, thinned to ``max_points`` (0: all).

    ``from_step`` and ``to_step`` narrow it, and are inside; ``total`` counts what is. Its least and greatest value are
    kept. Times are microseconds since 1970; special values are the strings "NaN",
    "Infinity" and "-Infinity".
    """
    bounds = Bounds(low=from_step, high=to_step)
    packed = await _series(master, trial_id, group, metric, bounds)
    body = await master.readers.run(_chart, packed, max_points, bounds)
    return Response(body, media_type="application/json")


@routes.get(
    "/api/v1/trials/{trial_id}/metric-summaries", "GetTrialMetricSummaries", allow=Allow.USER, response_class=Response
)
async def get_summaries(master: MasterDep, trial_id: int) -> Response:
    """group -> metric -> {"type", "last", and of numbers "count", "sum", "min", "max", "mean"}."""
    await _check_trials(master, [trial_id])
    async with master.db.connection() as conn:
        by_trial = await summaries.of_trials(conn, [trial_id])
    return Response(msgspec.json.encode(by_trial[trial_id]), media_type="application/json")


@routes.get(
    "/api/v1/experiments/{experiment_id}/metric-names",
    "GetExperimentMetricNames",
    allow=Allow.USER,
    response_class=Response,
)
async def get_names(master: MasterDep, experiment_id: int) -> Response:
    """group -> names of metrics, sorted, over all trials of the experiment."""
    async with master.db.connection() as conn:
        names = await summaries.names_of_experiment(conn, experiment_id)
    return Response(msgspec.json.encode(names), media_type="application/json")


async def run_of(master: Master, caller: Caller, trial_id: int, values: JsonObject) -> int:
    """The run that reports: that of the token; without one, what the body says. Raises NotNow, Forbidden, NotFound."""
    given = _either(values, "trialRunId")
    run_id = None if given is None else _integer(given)
    if caller.task is None:
        async with master.db.connection() as conn:
            view = await trial_lists.get(conn, trial_id)
        caller.may_change(view.owner_id, f"trial {trial_id}")
        return view.run_id if run_id is None else run_id
    if caller.task.trial_id != trial_id:
        raise Forbidden(f"the token is not that of trial {trial_id}")
    if run_id is not None and run_id != caller.task.run_id:
        raise NotNow(
            f"the report is of run {run_id}, and the token is that of run {caller.task.run_id}: "
            "only that one may report"
        )
    return caller.task.run_id


async def _stream(master: Master, trial_ids: Sequence[int], group: str) -> StreamingResponse:
    if not trial_ids:
        raise InvalidInput("name at least one trial: trialIds is empty")
    await _check_trials(master, trial_ids)
    return ndjson(_reports(master, trial_ids, group))


async def reports_of(master: Master, trial_ids: Sequence[int], group: str) -> list[JsonObject]:
    """All visible reports of trials that are there, as messages; for answers that are one document."""
    messages: list[JsonObject] = []
    async for packed in _packed(master, trial_ids, group):
        reports = await master.readers.run(PackedReports.reports, packed)
        messages += [_message(len(messages) + number, report) for number, report in enumerate(reports)]
    return messages


async def _reports(master: Master, trial_ids: Sequence[int], group: str) -> AsyncIterator[bytes]:
    async for packed in _packed(master, trial_ids, group):
        yield await master.readers.run(_report_lines, packed)


async def _packed(master: Master, trial_ids: Sequence[int], group: str) -> AsyncIterator[PackedReports]:
    async with master.db.snapshot() as conn:
        groups = [
            stored for stored in await series.groups_of(conn, sorted(set(trial_ids))) if group in ("", stored.name)
        ]
    for stored in groups:
        async with master.db.snapshot() as conn:
            clusters = await series.outline(conn, stored)
        for cluster in clusters:
            async with master.db.connection() as conn:
                packed = await series.fetch(conn, stored, cluster)
            yield packed


async def _series(master: Master, trial_id: int, group: str, metric: str, steps: Bounds) -> PackedSeries:
    await _check_trials(master, [trial_id])
    async with master.db.snapshot() as conn:
        for stored in await series.groups_of(conn, [trial_id]):
            if stored.name == group:
                return await series.series(conn, stored, metric, steps.ends)
    raise NotFound(f"metrics of trial {trial_id} in group {group!r} not found: none were reported")


async def _check_trials(master: Master, trial_ids: Sequence[int]) -> None:
    async with master.db.connection() as conn:
        missing = await series.unknown_trials(conn, trial_ids)
    if missing:
        raise NotFound(f"trial {missing[0]} not found")


def _report_lines(packed: PackedReports) -> bytes:
    """In messages of some hundred reports."""
    rows = [_message(number, report) for number, report in enumerate(packed.reports())]
    return b"".join(line({"metrics": rows[start : start + 500]}) for start in range(0, len(rows), 500))


def _message(number: int, report: series.StoredReport) -> JsonObject:
    values = "validation_metrics" if report.group == _VALIDATION else "avg_metrics"
    metrics: JsonObject = {values: report.metrics}
    if report.batch is not None:
        metrics["batch_metrics"] = msgspec.json.decode(report.batch)
    return {
        "id": number,
        "trialId": report.trial_id,
        "trialRunId": report.run_id,
        "group": report.group,
        "totalBatches": report.step or 0,
        "endTime": timestamp(report.at_us),
        "archived": False,
        "metrics": metrics,
    }


def _chart(packed: PackedSeries, max_points: int, steps: Bounds) -> bytes:
    return msgspec.json.encode(chart(packed.unpack(), max_points, steps))


def _parts(document: object) -> tuple[str, JsonObject]:
    body = _object(cast(Json, document), "the body")
    group = body.get("group")
    if not isinstance(group, str):
        raise InvalidInput("group is missing: name the group of the report, such as 'training'")
    return group, _object(body.get("metrics"), "metrics")


def _either(values: JsonObject, name: str) -> Json:
    """In camel case or in snake case."""
    if name in values:
        return values[name]
    return values.get("".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name))


def _object(value: Json, name: str) -> JsonObject:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be an object")
    return value


def _integer(value: Json) -> int:
    if isinstance(value, int | str) and not isinstance(value, bool) and str(value).lstrip("-").isdecimal():
        return int(value)
    raise InvalidInput(f"{value!r} is not a whole number")


#: Which group a metric of the machine belongs to, by the beginning of its name.
_GROUPS = {"gpu": "gpu", "cpu": "cpu", "free_memory": "memory", "memory": "memory", "disk": "disk", "net": "network"}
_MAX_POINTS = 10_000


@routes.post(
    "/api/v1/trials/{trial_id}/training_metrics",
    "ReportTrialTrainingMetrics",
    allow=Allow.REPORTER,
    response_class=Response,
)
async def training_metrics(master: MasterDep, caller: CallerDep, request: Request, trial_id: int) -> Response:
    """As `report_metrics` of the group ``training``; the body is what stands there under ``metrics``."""
    return await take(master, caller, trial_id, "training", _report_object(await _decoded(master, request)))


@routes.post(
    "/api/v1/trials/{trial_id}/validation_metrics",
    "ReportTrialValidationMetrics",
    allow=Allow.REPORTER,
    response_class=Response,
)
async def validation_metrics(master: MasterDep, caller: CallerDep, request: Request, trial_id: int) -> Response:
    """As `report_metrics` of the group ``validation``; the body is what stands there under ``metrics``."""
    return await take(master, caller, trial_id, "validation", _report_object(await _decoded(master, request)))


@routes.post(
    "/api/v1/trials/profiler/metrics",
    "PostTrialProfilerMetricsBatch",
    allow=Allow.REPORTER,
    often=True,
    response_class=Response,
)
async def profiler_metrics(master: MasterDep, caller: CallerDep, request: Request) -> Response:
    """Samples of the machine: each batch is a series of one metric of one agent."""
    body = _report_object(await _decoded(master, request))
    batches = body.get("batches")
    if not isinstance(batches, list):
        raise InvalidInput("batches must be a list")
    reports: list[MetricReport] = []
    if len(batches) > _MAX_POINTS:
        raise InvalidInput(f"a request has at most {_MAX_POINTS} samples, and this one has {len(batches)} batches")
    for batch in batches:
        trial_id, points = _points(_report_object(batch), _MAX_POINTS - len(reports))
        run_id = await run_of(master, caller, trial_id, {})
        reports += [from_values(trial_id, run_id, group, None, at, values) for group, at, values in points]
    if reports:
        refused = (await master.intake.metrics.submit([SpooledReport(report) for report in reports])).refused
        first = next((refusal for refusal in refused if refusal is not None), None)
        if first is not None:
            raise InvalidInput(first.message)
    return Response(b"{}", media_type="application/json")


def _points(batch: JsonObject, most: int) -> tuple[int, list[tuple[str, str, JsonObject]]]:
    """The trial, and group, time and metrics of each sample."""
    labels = _report_object(batch.get("labels"))
    name, agent = labels.get("name"), labels.get("agentId", labels.get("agent_id")) or ""
    gpu = labels.get("gpuUuid", labels.get("gpu_uuid"))
    trial_id = labels.get("trialId", labels.get("trial_id"))
    if not isinstance(name, str) or isinstance(trial_id, bool) or not isinstance(trial_id, int):
        raise InvalidInput("labels of a batch must hold name and trialId")
    group = next((group for start, group in _GROUPS.items() if name.startswith(start)), None)
    if group is None:
        raise InvalidInput(f"{name!r} is no metric of a machine: its name begins with one of {', '.join(_GROUPS)}")
    values, times = batch.get("values"), batch.get("timestamps")
    if not isinstance(values, list) or not isinstance(times, list) or len(values) != len(times):
        raise InvalidInput("values and timestamps of a batch must be lists of one length")
    if len(values) > most:
        raise InvalidInput(f"a request has at most {_MAX_POINTS} samples, and this one has more")
    samples: list[tuple[str, str, JsonObject]] = []
    for at, value in zip(times, values, strict=True):
        own: JsonObject = {name: value}
        samples.append((group, str(at), {"avgMetrics": {str(agent): {str(gpu): own} if gpu else own}}))
    return trial_id, samples


def _report_object(value: object) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise InvalidInput("an object is missing in the body")
    return value


@routes.post(
    "/api/v1/allocations/{allocation_id}/spool", "ShipSpool", allow=Allow.TASK, often=True, response_class=Response
)
async def ship_spool(
    master: MasterDep, task: TaskDep, request: Request, allocation_id: str, container_id: str, stream: str
) -> Response:
    """Store lines of a spool; the body is the lines as they stand in the file. 200 means that it is durable."""
    if task.allocation_id != allocation_id:
        raise Forbidden(f"the token is not that of allocation {allocation_id}")
    reply = await master.intake.spool.take(task, container_id, stream, await request.body())
    return Response(msgspec.json.encode(reply), media_type="application/json")
