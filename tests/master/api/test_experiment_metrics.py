"""Metrics of an experiment's trials side by side, and experiments found by them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from asyncpg import Connection

from tenax.master.api.metrics import experiments
from tenax.master.store.metrics import series, summaries
from tests.kits.api import Api
from tests.kits.master.metrics import lines
from tests.kits.telemetry import Book


@pytest.fixture
async def desk(api: Api) -> Book:
    """Trials of the master that answers."""
    return Book(api.master.db, api.master.intake)


async def searched(desk: Book, *, ended: bool = True) -> tuple[int, list[int]]:
    """An experiment with three trials: the second is the best, the third has no validation."""
    experiment = await desk.experiment()
    trials = [await desk.trial(experiment=experiment) for _ in range(3)]
    for place, trial in enumerate(trials):
        for step in (1, 2, 4):
            await desk.report(trial, "training", step, {"loss": step + place, "epoch": step / 2})
    await desk.report(trials[0], "validation", 2, {"loss": 0.5})
    await desk.report(trials[1], "validation", 2, {"loss": 0.7})
    await desk.report(trials[1], "validation", 4, {"loss": 0.25})
    await desk.report(trials[0], "validation", 4, {"loss": "NaN"})
    await desk.report(trials[2], "custom", 1, {"x": 1})
    if ended:
        async with desk.database.transaction() as conn:
            await conn.execute("update experiments set state = 'COMPLETED', ended_at = now() where id = $1", experiment)
    return experiment, trials


async def test_the_history_has_the_validations_that_were_best(api: Api, desk: Book) -> None:
    """In the order in which they came; what is no number improves nothing."""
    experiment, trials = await searched(desk)
    reply = await api.user.get(f"/api/v1/experiments/{experiment}/validation-history")
    history = [(row["trialId"], row["searcherMetric"]) for row in reply.json()["validationHistory"]]
    assert history == [(trials[0], 0.5), (trials[1], 0.25)]
    assert (await api.user.get("/api/v1/experiments/77/validation-history")).status_code == 404


async def test_names_of_metrics_are_streamed(api: Api, desk: Book) -> None:
    """Of every group; the stream of what has ended ends."""
    experiment, _ = await searched(desk)
    (message,) = lines(await api.user.get("/api/v1/experiments/metrics-stream/metric-names", ids=[experiment]))
    assert message["result"] == {
        "searcherMetrics": ["loss"],
        "trainingMetrics": ["epoch", "loss"],
        "validationMetrics": ["loss"],
        "metricNames": [
            {"group": "custom", "name": "x"},
            {"group": "training", "name": "epoch"},
            {"group": "training", "name": "loss"},
            {"group": "validation", "name": "loss"},
        ],
    }
    assert (await api.user.get("/api/v1/experiments/metrics-stream/metric-names")).status_code == 400
    assert (await api.user.get("/api/v1/experiments/metrics-stream/metric-names", ids=[77])).status_code == 404


async def test_the_stream_of_what_goes_on_is_told_of_its_end(api: Api, desk: Book) -> None:
    """A master that ends does not wait for the next look."""
    experiment, _ = await searched(desk, ended=False)
    api.master.shutdown.set()
    (message,) = lines(await api.user.get("/api/v1/experiments/metrics-stream/metric-names", ids=[experiment]))
    assert message["result"]["searcherMetrics"] == ["loss"]


async def test_without_news_nothing_is_said(api: Api, desk: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before anything was reported: one message at once, then none until the experiment ends."""
    experiment = await desk.experiment()
    polls: list[int] = []

    async def counted(conn: Connection, ids: Sequence[int]) -> tuple[list[str], bool]:
        polls.append(len(ids))
        names, going_on = await searched_by(conn, ids)
        return names, going_on and len(polls) < 4

    searched_by = summaries.searched
    monkeypatch.setattr(summaries, "searched", counted)
    monkeypatch.setattr("tenax.master.api.metrics.experiments._PERIOD_S", 0.01)
    (message,) = lines(await api.user.get("/api/v1/experiments/metrics-stream/metric-names", ids=[experiment]))
    assert message["result"]["metricNames"] == []
    assert len(polls) == 4


async def test_steps_of_a_metric_are_streamed(api: Api, desk: Book) -> None:
    """Over all trials, each once."""
    experiment, _ = await searched(desk)
    path = f"/api/v1/experiments/{experiment}/metrics-stream/batches"
    (message,) = lines(await api.user.get(path, metricName="loss", group="training"))
    assert message["result"] == {"batches": [1, 2, 4]}
    (message,) = lines(await api.user.get(path, metricName="loss", metricType="METRIC_TYPE_VALIDATION"))
    assert message["result"] == {"batches": [2, 4]}
    (message,) = lines(await api.user.get(path, metricName="never", group="training"))
    assert message["result"] == {"batches": []}
    for wrong in ({"metricName": "loss"}, {"metricName": "", "group": "training"},
                  {"metricName": "loss", "group": "training", "periodSeconds": -1}):  # fmt: skip
        assert (await api.user.get(path, **wrong)).status_code == 400


async def test_a_snapshot_takes_the_nearest_report_of_each_trial(api: Api, desk: Book) -> None:
    """Within the margin; trials without one are left out."""
    experiment, trials = await searched(desk)
    path = f"/api/v1/experiments/{experiment}/metrics-stream/trials-snapshot"
    query = {"metricName": "loss", "group": "validation", "batchesProcessed": 3, "batchesMargin": 1}
    (message,) = lines(await api.user.get(path, **query))
    nearest = {row["trialId"]: (row["batchesProcessed"], row["metric"]) for row in message["result"]["trials"]}
    assert nearest == {trials[0]: (2, 0.5), trials[1]: (2, 0.7)}
    (message,) = lines(await api.user.get(path, **query | {"batchesProcessed": 4, "batchesMargin": 0}))
    nearest = {row["trialId"]: row["metric"] for row in message["result"]["trials"]}
    assert nearest == {trials[0]: "NaN", trials[1]: 0.25}


async def test_a_sample_has_the_best_trials_with_their_lines(api: Api, desk: Book) -> None:
    """The best first, within the steps that are asked for."""
    experiment, trials = await searched(desk)
    path = f"/api/v1/experiments/{experiment}/metrics-stream/trials-sample"
    query = {"metricName": "loss", "group": "training", "maxTrials": 2, "startBatches": 2}
    begins, message = lines(await api.user.get(path, **query))
    # At once, so that a reader can draw an empty chart.
    assert begins["result"] == {"trials": [], "promotedTrials": [], "demotedTrials": []}
    result = message["result"]
    assert (result["promotedTrials"], result["demotedTrials"]) == ([trials[1], trials[0]], [])
    assert [row["trialId"] for row in result["trials"]] == [trials[1], trials[0]]
    data = result["trials"][0]["data"]
    assert [(point["batches"], point["epoch"], point["values"]["loss"]) for point in data] == [(2, 1, 3), (4, 2, 5)]
    assert (await api.user.get(path, metricName="loss", group="training", maxTrials=-1)).status_code == 400


async def test_a_sample_goes_on_with_what_is_new(api: Api, desk: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a search that runs: hyperparameters when a trial is first listed, then null."""
    experiment, (_, best, _) = await searched(desk, ended=False)
    looks = 0
    look = experiments._trials

    async def looked(*arguments: object) -> object:
        nonlocal looks
        looks += 1
        if looks == 2:
            await desk.report(best, "training", 8, {"loss": 9})
            async with desk.database.transaction() as conn:
                await conn.execute("update experiments set state = 'COMPLETED', ended_at = now()")
        return await look(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(experiments, "_trials", looked)
    monkeypatch.setattr(experiments, "_PERIOD_S", 0)
    path = f"/api/v1/experiments/{experiment}/metrics-stream/trials-sample"
    reply = await api.user.get(path, metricName="loss", group="training", maxTrials=1)
    _, (first,), (second,) = (message["result"]["trials"] for message in lines(reply))
    assert first["hparams"] is not None
    assert (second["trialId"], second["hparams"]) == (best, None)
    assert [point["batches"] for point in second["data"]] == [8]


@pytest.mark.parametrize("stream", ["batches", "trials-snapshot", "trials-sample"])
async def test_a_look_reads_all_trials_together(
    api: Api, desk: Book, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    """However many trials there are: packed metrics, and those that are not packed yet."""
    experiment, trials = await searched(desk)
    await desk.seal(trials[1])
    read: list[int] = []

    async def counted(
        conn: Connection,
        groups: Sequence[series.MetricGroup],
        metrics: Sequence[str],
        steps: tuple[float | None, float | None],
    ) -> object:
        read.append(len(groups))
        return await series_of(conn, groups, metrics, steps)

    series_of = series.series_of
    monkeypatch.setattr(series, "series_of", counted)
    query = {"metricName": "loss", "group": "training", "batchesProcessed": 4}
    *_, message = lines(await api.user.get(f"/api/v1/experiments/{experiment}/metrics-stream/{stream}", **query))
    assert read == [3]
    if stream == "batches":
        assert message["result"] == {"batches": [1, 2, 4]}
        return
    drawn = {row["trialId"]: row["data"][-1]["values"]["loss"] if "data" in row else row["metric"]
            for row in message["result"]["trials"]}  # fmt: skip
    assert drawn == {trials[0]: 4, trials[1]: 5, trials[2]: 6}


async def test_experiments_are_found_by_their_metrics(api: Api, desk: Book) -> None:
    """With the best trial of each, in the order that is asked for, page by page."""
    first, trials = await searched(desk)
    second, _ = await searched(desk)
    third = await desk.experiment()

    async def search(*conditions: dict[str, object], **more: object) -> dict[str, object]:
        query = {"filterGroup": {"kind": "group", "conjunction": "and", "children": list(conditions)}}
        body = {"projectId": 1, "filter": json.dumps(query | {"showArchived": True}), **more}
        reply = await api.user.post("/api/v1/experiments-search", body)
        assert reply.status_code == 200, reply.text
        return reply.json()  # type: ignore[no-any-return]

    def numbers(document: dict[str, object]) -> list[int]:
        return [result["experiment"]["id"] for result in document["experiments"]]  # type: ignore[attr-defined]

    low = {"kind": "field", "columnName": "validation.loss.min", "location": "LOCATION_TYPE_VALIDATIONS",
           "type": "COLUMN_TYPE_NUMBER", "operator": "<", "value": 0.3}  # fmt: skip
    assert numbers(await search()) == [first, second, third]
    document = await search(low, sort="id=desc")
    assert numbers(document) == [second, first]
    assert document["experiments"][1]["bestTrial"]["id"] == trials[1]
    assert (await search(limit=1, offset=1))["pagination"] == {
        "offset": 1, "limit": 1, "startIndex": 1, "endIndex": 2, "total": 3,
    }  # fmt: skip
    assert numbers(await search(limit=-2)) == []
    assert document["experiments"][0]["bestTrial"]["searcherMetricValue"] == 0.25
    assert (await search(sort="id=asc"))["experiments"][2]["bestTrial"] is None
    whole, short = [(await search(omitConfig=omitted))["experiments"][0]["experiment"] for omitted in (False, True)]
    assert whole["config"]["searcher"]
    assert short == {**whole, "config": {}, "originalConfig": "", "duration": short["duration"]}
    for body in ({"filter": "{"}, {"sort": "id"}, {"sort": "nonsense=asc"}, {"limit": -3}, {"filter": 3}):
        assert (await api.user.post("/api/v1/experiments-search", body)).status_code == 400, body
    assert (await api.user.post("/api/v1/experiments-search", {"projectId": 99})).status_code == 404
    assert numbers((await api.user.post("/api/v1/experiments-search", {})).json()) == [first, second, third]


async def test_experiments_are_found_by_what_is_typed(api: Api, desk: Book) -> None:
    """Beside a filter; a verb for all that are found goes to the same; what is wrong is said with its place."""
    first, _ = await searched(desk)
    second, _ = await searched(desk, ended=False)
    third = await desk.experiment()

    async def numbers(query: str, **more: object) -> list[int]:
        reply = await api.user.post("/api/v1/experiments-search", {"query": query, "projectId": 1, **more})
        assert reply.status_code == 200, reply.text
        return [result["experiment"]["id"] for result in reply.json()["experiments"]]

    assert await numbers("val_loss<0.5") == [first, second]
    assert await numbers("loss<0.5 state:completed") == [first]
    assert await numbers("NOT val_loss<0.5") == [third]
    assert await numbers("validation.loss.max<0.5") == []
    assert await numbers(f"{third} OR state:completed", sort="id=desc") == [third, first]
    assert await numbers("has:best", projectId=None) == [first, second]
    refused = await api.user.post("/api/v1/experiments-search", {"query": "state:error los<1"})
    assert refused.status_code == 400
    assert "characters 13 to 15: there is no column los: did you mean " in refused.text

    async def check(query: str, **more: object) -> dict[str, object]:
        reply = await api.user.get("/api/v1/experiments-search/query", query=query, projectId=1, **more)
        assert reply.status_code == 200, reply.text
        return reply.json()  # type: ignore[no-any-return]

    assert (await check("state:error"))["problem"] is None
    problem = (await check("state:error los<1"))["problem"]
    assert (problem["start"], problem["end"]) == (12, 15)  # type: ignore[index]
    completions = (await check("state:error val_l", at=17))["completions"]
    assert completions == [{"text": "val_loss", "start": 12, "end": 17, "kind": "column"}]
    texts = [each["text"] for each in (await check("state:ca", at=8))["completions"]]  # type: ignore[attr-defined]
    assert texts == ["canceled"]
    assert "me" in str((await check("owner:", at=6))["completions"])
    assert (await api.user.get("/api/v1/experiments-search/query", projectId=99)).status_code == 404

    filters = {"query": "val_loss<0.5", "archived": False}
    done = await api.admin.post("/api/v1/projects/0/experiments/archive", {"filters": filters})
    assert [(each["id"], bool(each.get("error"))) for each in done.json()["results"]] == [
        (first, False),
        (second, True),
    ]
    wrong = await api.admin.post("/api/v1/projects/0/experiments/archive", {"filters": {"query": "state:"}})
    assert wrong.status_code == 400
