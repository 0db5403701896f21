"""Whether a trial is well, as the master says it from what is stored; and what happened to it."""

from __future__ import annotations

import zlib

import pytest

from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle.health import SILENT_S
from tenax.master.telemetry.log_lines import Origin, OutputLine
from tenax.master.telemetry.reports import from_values
from tenax.master.telemetry.values import SpooledReport
from tests.kits.api import Api
from tests.kits.telemetry import Book, spool_line


@pytest.fixture
def desk(api: Api) -> Book:
    """Trials, and what they say."""
    return Book(api.master.db, api.master.intake)


async def health(api: Api, trial: int) -> JsonObject:
    reply = await api.user.get(f"/api/v1/trials/{trial}/health")
    assert reply.status_code == 200, reply.text
    answered: JsonObject = reply.json()
    return answered


async def earlier(api: Api, trial: int, minutes: int) -> None:
    """All that was heard of a trial, so many minutes ago."""
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update metric_groups set reported_at = reported_at - make_interval(mins => $2) where trial_id = $1",
            trial,
            minutes,
        )
        await conn.execute(
            "update log_chunks l set last_at = l.last_at - make_interval(mins => $2) from trials t"
            " where t.id = $1 and l.task_id = t.task_id",
            trial,
            minutes,
        )
        await conn.execute(
            "update containers c set created_at = c.created_at - make_interval(mins => $2) from allocations a"
            " join trials t on t.task_id = a.task_id where t.id = $1 and c.allocation_id = a.allocation_id",
            trial,
            minutes,
        )


async def test_one_trial_from_its_begin_to_its_failure(api: Api, desk: Book) -> None:
    """Nothing yet, well, not a number, stalled, well again by a line of output, failed with its line."""
    trial = await desk.trial()
    attempt = await desk.run(trial, 1)
    assert str((await health(api, trial))["sentence"]).startswith("Running, and has reported no metric yet")
    for step in range(1, 13):
        await desk.report(trial, "validation", step * 10, {"loss": 1 / step})
    well = await health(api, trial)
    assert (well["kind"], well["metric"], well["slots"], well["agents"]) == ("HEALTHY", "loss", 1, ["a1"])
    assert str(well["sentence"]).startswith("Healthy: loss falling, last report ")
    assert float(str(well["silentIn"])) > 0
    await desk.report(trial, "validation", 130, {"loss": "NaN"})
    broken = await health(api, trial)
    assert (broken["kind"], broken["sentence"]) == ("NOT_FINITE", "validation loss is NaN since step 130")
    await earlier(api, trial, 700)
    await desk.report(trial, "validation", 140, {"loss": 0.07})
    await earlier(api, trial, 100)
    stalled = await health(api, trial)
    assert stalled["kind"] == "STALLED"
    assert "no line of output and no metric for 1 h 40 m" in str(stalled["sentence"])
    listed = (await api.user.get("/api/v1/trials/stalled")).json()["trials"]
    assert [(each["trialId"], each["sentence"]) for each in listed] == [(trial, stalled["sentence"])]
    assert (await api.user.get("/api/v1/trials/stalled", userId=99_999)).json()["trials"] == []
    async with api.master.db.connection() as conn:
        now_us = await conn.fetchval("select (extract(epoch from now()) * 1000000)::bigint")
    await desk.intake.logs.posted(attempt.task_id, [OutputLine(now_us, "on it")], [Origin("", "", "a1", "task")])
    assert (await health(api, trial))["kind"] == "HEALTHY"
    none = (await api.user.get("/api/v1/trials/stalled")).json()
    assert none["trials"] == []
    assert 0 < none["nextIn"] <= SILENT_S
    raised = b"Traceback (most recent call last):\n  File \"code/train.py\", line 3\nKeyError: 'x'\nbye\n"
    await desk.intake.logs.output("a1", attempt.allocation_id, "stderr", 0, zlib.compress(raised))
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update trials set state = 'ERROR', ended_at = now(), restarts = 2, reason = 'KeyError' where id = $1",
            trial,
        )
    failed = await health(api, trial)
    assert [finding["kind"] for finding in failed["findings"]] == ["FAILED", "RESTARTED"]  # type: ignore[union-attr]
    (number,) = (await api.user.get(f"/api/v1/trials/{trial}/logs/hits", searchText="KeyError")).json()["first"]
    first = failed["findings"][0]  # type: ignore[index, call-overload]
    assert (first["sentence"], first["evidence"], first["line"]) == ("Failed: KeyError", "LINE", number)


async def test_a_trial_that_hangs(api: Api, desk: Book) -> None:
    """As what watches its ranks says, until it says that they go on; of an earlier run it means nothing."""
    trial = await desk.trial()
    task = await desk.run(trial, 1)
    await desk.report(trial, "training", 1, {"loss": 1.0})
    where = "rank 1 stands at data.py:88 at step 41. No step for 60 s"
    for n, (sentence, kind) in enumerate([(where, "HUNG"), ("", "HEALTHY"), (f"{where}\0", "HUNG")], 1):
        line = spool_line(n, "hang", {"sentence": sentence, "ends": False})
        reply = await desk.intake.spool.take(task, task.allocation_id, "aaaaaaaa-1-2", line)
        assert reply == {"acked": n, "refused": []}
        known = await health(api, trial)
        assert known["kind"] == kind
    assert known["sentence"] == f"Hangs: {where}"
    await desk.run(trial, 2)
    assert (await health(api, trial))["kind"] == "HEALTHY"


async def test_what_was_measured_of_machines_is_judged_and_drawn(api: Api, desk: Book) -> None:
    """GPUs that do nothing are named; all series come at once, each with agent and device."""
    trial = await desk.trial()
    await desk.report(trial, "training", 1, {"loss": 1.0})
    for minute in range(12):
        at = f"2026-01-02T03:{minute:02d}:00Z"
        gpus: dict[str, Json] = {"g0": {"gpu_util": 2.0, "gpu_free_memory": 5e9}, "g1": {"gpu_util": 90.0 + minute}}
        machine: dict[str, Json] = {"cpu_util_simple": 40.0}
        reports = [
            from_values(trial, 1, group, None, at, {"avgMetrics": {"a1": measured}})
            for group, measured in (("gpu", gpus), ("cpu", machine))
        ]
        stored = await desk.intake.metrics.submit([SpooledReport(report) for report in reports])
        assert not any(stored.refused)
    async with api.master.db.transaction() as conn:
        await conn.execute("update containers set created_at = created_at - interval '1 hour'")
    judged = await health(api, trial)
    assert judged["sentence"] == "1 of 2 GPUs is used less than 10 % for 10 m"
    assert (judged["gpus"], judged["gpuPercent"], judged["cpuPercent"]) == (2, 51.5, 40.0)
    drawn = (await api.user.get(f"/api/v1/trials/{trial}/profiler/series", maxPoints=8)).json()["series"]
    keys = [(line["name"], line["agentId"], line["device"], line["total"]) for line in drawn]
    assert keys == [
        ("cpu_util_simple", "a1", "", 12),
        ("gpu_free_memory", "a1", "g0", 12),
        ("gpu_util", "a1", "g0", 12),
        ("gpu_util", "a1", "g1", 12),
    ]
    busiest = drawn[3]
    assert len(busiest["values"]) <= 8
    assert (min(busiest["values"]), max(busiest["values"])) == (90.0, 101.0)


async def test_what_happened_is_told_in_order_with_its_reasons(api: Api, desk: Book) -> None:
    """Two attempts: the first was asked to leave, the second went on from an earlier step."""
    trial = await desk.trial()
    for step in (1, 2, 3):
        await desk.report(trial, "training", step, {"loss": 1.0})
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update allocations set state = 'TERMINATED', ended_at = now() + interval '1 s', "
            " preemption = 'ACKNOWLEDGED',"
            " preemption_reason = 'others have their turn'"
            " where task_id = (select task_id from trials where id = $1)",
            trial,
        )
    await desk.run(trial, 2)
    await desk.report(trial, "training", 2, {"loss": 0.9}, run=2)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update containers c set started_at = now() + interval '2 s' from allocations a"
            " join trials t on t.task_id = a.task_id"
            " where t.id = $1 and c.allocation_id = a.allocation_id and a.run_id = 2",
            trial,
        )
    events = (await api.user.get(f"/api/v1/trials/{trial}/events")).json()["events"]
    told = [(each["runId"], each["sentence"]) for each in events]
    assert told[:3] == [
        (2, "Went on from a checkpoint: reports from step 2 on count anew"),
        (2, "Began to run on a1"),
        (1, "Was asked to leave, and ended: others have their turn"),
    ]
    assert told[-1] == (0, "Created")
