"""What a task reports, or a script that runs elsewhere: small to send, and dear to take in."""

from __future__ import annotations

import msgspec
import pytest

from tenax.master.api.http.requests import MAX_VALUES
from tenax.master.reading.log_search import timestamp
from tenax.master.telemetry import reports
from tenax.master.telemetry.reports import MAX_NAMES, METRICS_BYTES
from tests.kits.api import Api
from tests.kits.master.attempts import Running, running

#: Many more than the smallest bound below, and little enough to be sent in a moment.
MANY = MAX_VALUES + 1
ROUTES = ("metrics", "training_metrics", "validation_metrics")


def metrics_body(run: Running, route: str, metrics: bytes, batch: bytes = b"null", step: int = 1) -> bytes:
    values = b'{"trialRunId":1,"stepsCompleted":%d,"metrics":{"avgMetrics":%s,"batchMetrics":%s}}' % (
        step,
        metrics,
        batch,
    )
    return b'{"group":"training","metrics":%s}' % values if route == "metrics" else values


async def send(run: Running, route: str, metrics: bytes, **more: object) -> tuple[int, str]:
    body = metrics_body(run, route, metrics, **more)  # type: ignore[arg-type]
    reply = await run.task.ask("POST", f"/api/v1/trials/{run.trial}/{route}", body)
    return reply.status_code, reply.text


def named(count: int, first: int = 0) -> bytes:
    return msgspec.json.encode({f"m{number}": number for number in range(first, first + count)})


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "metrics",
    [
        named(MAX_NAMES + 1),
        b'{"a":[' + b",".join([b"1"] * MANY) + b"]}",
        b'{"a":[' + b",".join([b"{}"] * MANY) + b"]}",
        b'{"a":"' + b"x" * METRICS_BYTES + b'"}',
    ],
    ids=["names", "numbers", "objects", "text"],
)
async def test_a_report_without_end(api: Api, route: str, metrics: bytes) -> None:
    """It is refused before it is gone through, by whichever route it comes."""
    status, _ = await send(await running(api), route, metrics)
    assert status in (400, 413)


async def test_names_without_end(api: Api) -> None:
    """Few in each report, and another few in the next: they are summed up, so all of them are read each time."""
    run = await running(api)
    assert (await send(run, "metrics", named(MAX_NAMES - 1)))[0] == 200
    assert (await send(run, "metrics", named(4, first=MAX_NAMES - 3), step=2))[0] == 400
    assert (await send(run, "metrics", named(2, first=MAX_NAMES - 2), step=3))[0] == 200
    assert (await send(run, "metrics", named(MAX_NAMES), step=4))[0] == 200
    assert (await send(run, "metrics", b'{"one more":1}', step=5))[0] == 400
    assert (await send(run, "metrics", b'{"m1":1}', step=6))[0] == 200


@pytest.mark.parametrize("lists", [(MANY, MANY), (10_001, 10_001)])
async def test_samples_without_end(api: Api, lists: tuple[int, int]) -> None:
    """Counted before any of them is made a report."""
    run = await running(api)
    values, times = (b",".join([item] * count) for item, count in zip((b"1", b'"x"'), lists, strict=True))
    labels = b'{"name":"cpu","trialId":%d}' % run.trial
    body = b'{"batches":[{"labels":%s,"values":[%s],"timestamps":[%s]}]}' % (labels, values, times)
    reply = await run.task.ask("POST", "/api/v1/trials/profiler/metrics", body)
    assert (reply.status_code, "at most" in reply.text or "more than" in reply.text) in ((400, True), (413, True))


@pytest.mark.parametrize("log", [b"\\n" * 20_000, b"a\\n" * 10_001])
async def test_one_line_that_is_a_million(api: Api, log: bytes) -> None:
    """Lines are counted where they end, not where they are sent."""
    run = await running(api)
    task = await task_id_of(api, run)
    reply = await run.task.ask("POST", "/api/v1/task/logs", b'{"logs":[{"taskId":"%s","log":"%s"}]}' % (task, log))
    assert (reply.status_code, "at most" in reply.text) == (400, True)


async def test_a_line_without_end(api: Api) -> None:
    """It is stored in pieces, as one that a container prints."""
    run = await running(api)
    task = await task_id_of(api, run)
    body = b'{"logs":[{"taskId":"%s","log":"%s"}]}' % (task, b"x" * 1_000_000)
    assert (await run.task.ask("POST", "/api/v1/task/logs", body)).status_code == 200
    shown = (await api.user.get(f"/api/v1/tasks/{task.decode()}/logs")).text.splitlines()
    assert len(shown) > 1
    assert sum(msgspec.json.decode(line)["result"]["log"].count("x") for line in shown) == 1_000_000


#: Each is a time of the calendar where it was written, and none in UTC.
BEYOND = ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59"]


@pytest.mark.parametrize("moment", BEYOND)
async def test_times_beyond_all_years(api: Api, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused wherever a task or a person says one; what was stored before they were can be read."""
    run = await running(api)
    task = (await task_id_of(api, run)).decode()
    reported = {"trialRunId": 1, "stepsCompleted": 1, "reportTime": moment, "metrics": {"avgMetrics": {"a": 1}}}
    report = msgspec.json.encode({"group": "g", "metrics": reported})
    line = msgspec.json.encode({"logs": [{"taskId": task, "log": "a", "timestamp": moment}]})
    condition = {"kind": "field", "columnName": "startTime", "type": "COLUMN_TYPE_DATE", "operator": ">"}
    group = {"kind": "group", "conjunction": "and", "children": [{**condition, "value": moment}]}
    asked = {"filter": msgspec.json.encode({"filterGroup": group, "showArchived": True}).decode()}
    sent = [("metrics", f"/api/v1/trials/{run.trial}/metrics", report), ("lines", "/api/v1/task/logs", line)]
    for what, path, body in sent:
        reply = await run.task.ask("POST", path, body)
        assert (reply.status_code, "years 1 to 9999" in reply.text) == (400, True), (what, reply.text)
    reply = await api.user.post("/api/v1/experiments-search", asked)
    assert reply.status_code == 400, reply.text
    reply = await api.user.get(f"/api/v1/tasks/{task}/logs", timestampAfter=moment)
    assert reply.status_code == 400, reply.text

    monkeypatch.setattr(reports, "MIN_US", -(2**62))
    monkeypatch.setattr(reports, "MAX_US", 2**62)
    assert (await run.task.ask("POST", sent[0][1], report)).status_code == 200
    monkeypatch.undo()
    for path, query in (
        ("trials/metrics/trial_metrics", {"group": "g"}),
        ("trials/time-series", {"metricIds": "g.a"}),
        ("trials/metrics/trial_metrics", {}),
    ):
        reply = await api.user.get(f"/api/v1/{path}", trialIds=run.trial, **query)
        assert (reply.status_code, '"error"' in reply.text) == (200, False), (path, reply.text)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999"]
)
def test_the_first_and_the_last_time(moment: str) -> None:
    """Just inside of what is taken, to the microsecond."""
    assert timestamp(reports.microseconds(moment)).startswith(moment[:19])


async def task_id_of(api: Api, run: Running) -> bytes:
    async with api.master.db.connection() as conn:
        task: str = await conn.fetchval("select task_id from trials where id = $1", run.trial)
    return task.encode()
