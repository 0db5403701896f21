"""The trials of an experiment, by every state that they are shown in."""

from __future__ import annotations

from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.experiments import create
from tests.kits.rows import add_agent, add_trial, request_attempt, run_attempt

_STATES = (
    "ACTIVE", "PAUSED", "STOPPING_CANCELED", "STOPPING_KILLED", "STOPPING_COMPLETED", "CANCELED", "COMPLETED", "ERROR",
    "QUEUED", "PULLING", "STARTING", "RUNNING",
)  # fmt: skip


async def test_each_trial_is_found_by_the_state_that_it_is_shown_in(api: Api) -> None:
    """And by no other; ACTIVE stands for all that have not ended."""
    experiment = (await create(api))["experiment"]["id"]
    path = f"/api/v1/experiments/{experiment}/trials"
    async with api.master.db.transaction() as conn:
        await add_agent(conn, slots=4)
        trials = [await add_trial(conn, experiment, seq) for seq in range(1, 9)]
        await request_attempt(conn, trials[1])
        for trial, state in ((trials[2], "RUNNING"), (trials[3], "PULLING"), (trials[4], "RUNNING")):
            attempt = await run_attempt(conn, trial)
            await conn.execute(
                "update allocations set state = $2 where allocation_id = $1", attempt.allocation_id, state
            )
        await conn.execute("update trials set wish = 'STOP' where id = $1", trials[4])
        await conn.execute("update trials set wish = 'KILL' where id = $1", trials[5])
        await conn.execute("update trials set state = 'ERROR', ended_at = now() where id = $1", trials[6])

    async def check() -> set[str]:
        listed = (await api.user.get(path)).json()["trials"]
        shown = {row["id"]: row["state"] for row in listed}
        assert list(shown) == trials
        for state in _STATES:
            matching = [row["id"] for row in (await api.user.get(path, states=[f"STATE_{state}"])).json()["trials"]]
            expected = [trial for trial, label in shown.items() if label == f"STATE_{state}"]
            if state == "ACTIVE":
                expected = [trial for trial in trials if trial != trials[6]]
            assert matching == expected, state
        return {label.removeprefix("STATE_") for label in shown.values()}

    assert await check() == {"QUEUED", "RUNNING", "PULLING", "STOPPING_COMPLETED", "STOPPING_KILLED", "ERROR"}
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'PAUSED' where id = $1", experiment)
    assert "PAUSED" in await check()
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'STOPPING_CANCELED' where id = $1", experiment)
    assert await check() == {"STOPPING_CANCELED", "STOPPING_KILLED", "ERROR"}
    both = await api.user.get(path, states=["STATE_ERROR", "STATE_STOPPING_KILLED"], sortBy="SORT_BY_ID", limit=1)
    assert both.json()["pagination"]["total"] == 2


async def test_trials_without_a_number_come_last_in_both_directions(api: Api) -> None:
    """By their best, or their latest, validation: NaN and the infinities are no better than none."""
    experiment = (await create(api))["experiment"]["id"]
    async with api.master.db.transaction() as conn:
        trials = [await add_trial(conn, experiment, seq) for seq in range(1, 6)]
        for trial, value in zip(trials, (2.0, "NaN", 1.0, "-Infinity")):
            latest = {"step": 1, "metrics": {"accuracy": value}}
            await conn.execute(
                "insert into trial_telemetry (trial_id, best_metric, latest_validation) values ($1, $2, $3)",
                trial, float(value), latest,
            )  # fmt: skip
    for sort_by in ("SORT_BY_BEST_VALIDATION_METRIC", "SORT_BY_LATEST_VALIDATION_METRIC"):
        for order, first in (("ORDER_BY_ASC", [trials[2], trials[0]]), ("ORDER_BY_DESC", [trials[0], trials[2]])):
            listed = await api.user.get(f"/api/v1/experiments/{experiment}/trials", sortBy=sort_by, orderBy=order)
            assert [row["id"] for row in listed.json()["trials"]][:2] == first, (sort_by, order)


async def test_every_answer_with_a_trial_says_what_its_metrics_come_to(api: Api) -> None:
    """Listed or alone, of a managed experiment or of one that is trained elsewhere."""
    run = await running(api)
    metrics = {"trialId": run.trial, "trialRunId": 1, "stepsCompleted": 3, "metrics": {"avgMetrics": {"loss": 0.5}}}
    body = {"group": "training", "metrics": metrics}
    assert (await run.task.post(f"/api/v1/trials/{run.trial}/metrics", body)).status_code == 200
    alone = (await api.user.get(f"/api/v1/trials/{run.trial}")).json()["trial"]
    (listed,) = (await api.user.get("/api/v1/experiments/1/trials")).json()["trials"]
    assert listed["summaryMetrics"] == alone["summaryMetrics"]
    assert listed["summaryMetrics"]["avg_metrics"]["loss"]["last"] == 0.5

    named = {"unmanaged": True, "config": "name: elsewhere\nsearcher: {name: single, metric: loss}"}
    experiment = (await api.user.ask("PUT", "/api/v1/experiments/by-external-id/e", named)).json()["experiment"]["id"]
    request = {"createTrialRequest": {"experimentId": experiment, "unmanaged": True}, "externalTrialId": "t"}
    trial = (await api.user.ask("PUT", "/api/v1/trials", request)).json()["trial"]["id"]
    await api.user.post(f"/api/v1/trials/{trial}/start", {"trialId": trial})
    metrics = {"trialId": trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 2}}}
    body = {"group": "training", "metrics": metrics}
    assert (await api.user.post(f"/api/v1/trials/{trial}/metrics", body)).status_code == 200
    for reply in (
        await api.user.ask("PUT", "/api/v1/trials", request),
        await api.user.patch(f"/api/v1/trials/{trial}", {"trialId": trial}),
        await api.user.get("/api/v1/trials/by-external-id/e/t"),
    ):
        assert reply.json()["trial"]["summaryMetrics"]["avg_metrics"]["loss"]["last"] == 2
    body["group"] = "validation"
    assert (await api.user.post(f"/api/v1/trials/{trial}/metrics", body)).status_code == 200
    shown = (await api.user.get(f"/api/v1/experiments/{experiment}")).json()["experiment"]
    assert (shown["externalExperimentId"], shown["externalTrialId"]) == ("e", "t")
