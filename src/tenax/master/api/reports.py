"""Older ways of reporting metrics, and what asks for one attempt; kept for clients that still use them."""

from __future__ import annotations

from fastapi import Request, Response

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.api import metrics
from tenax.master.api.deps import CallerDep, MasterDep
from tenax.master.api.route import decode_body
from tenax.master.api.routing import Allow, Routes
from tenax.master.ingest.reports import Report, from_values
from tenax.master.ingest.values import Item

routes = Routes("metrics")

#: Which group a metric of the machine belongs to, by the beginning of its name.
_GROUPS = {"gpu": "gpu", "cpu": "cpu", "free_memory": "memory", "memory": "memory", "disk": "disk", "net": "network"}
_MOST_POINTS = 10_000


@routes.post(
    "/api/v1/trials/{trial_id}/training_metrics",
    "ReportTrialTrainingMetrics",
    allow=Allow.REPORTER,
    response_class=Response,
)
async def training_metrics(master: MasterDep, caller: CallerDep, request: Request, trial_id: int) -> Response:
    """As `report_metrics` of the group ``training``; the body is what stands there under ``metrics``."""
    return await metrics.take(master, caller, trial_id, "training", _object(decode_body(await request.body())))


@routes.post(
    "/api/v1/trials/{trial_id}/validation_metrics",
    "ReportTrialValidationMetrics",
    allow=Allow.REPORTER,
    response_class=Response,
)
async def validation_metrics(master: MasterDep, caller: CallerDep, request: Request, trial_id: int) -> Response:
    """As `report_metrics` of the group ``validation``; the body is what stands there under ``metrics``."""
    return await metrics.take(master, caller, trial_id, "validation", _object(decode_body(await request.body())))


@routes.post(
    "/api/v1/trials/profiler/metrics", "PostTrialProfilerMetricsBatch", allow=Allow.REPORTER, response_class=Response
)
async def profiler_metrics(master: MasterDep, caller: CallerDep, request: Request) -> Response:
    """Samples of the machine: each batch is a series of one metric of one agent."""
    body = _object(decode_body(await request.body()))
    batches = body.get("batches")
    if not isinstance(batches, list):
        raise InvalidInput("batches must be a list")
    reports: list[Report] = []
    for batch in batches:
        trial_id, points = _points(_object(batch))
        run_id = await metrics.run_of(master, caller, trial_id, {})
        reports += [from_values(trial_id, run_id, group, None, at, values) for group, at, values in points]
    if len(reports) > _MOST_POINTS:
        raise InvalidInput(f"a request has at most {_MOST_POINTS} samples, and this one has {len(reports)}")
    if reports:
        refused = (await master.intake.metrics.submit([Item(report) for report in reports])).refused
        first = next((one for one in refused if one is not None), None)
        if first is not None:
            raise InvalidInput(first.message)
    return Response(b"{}", media_type="application/json")


def _points(batch: JsonObject) -> tuple[int, list[tuple[str, str, JsonObject]]]:
    """The trial, and group, time and metrics of each sample."""
    labels = _object(batch.get("labels"))
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
    found: list[tuple[str, str, JsonObject]] = []
    for at, value in zip(times, values, strict=True):
        own: JsonObject = {name: value}
        found.append((group, str(at), {"avgMetrics": {str(agent): {str(gpu): own} if gpu else own}}))
    return trial_id, found


def _object(value: object) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise InvalidInput("an object is missing in the body")
    return value
