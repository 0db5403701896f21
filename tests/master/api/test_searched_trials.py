"""What trials of a search tried and what of it decided, and one metric of many trials at once, by the API."""

from __future__ import annotations

from typing import cast

import pytest

from tenax.jsonvalue import Json, JsonObject
from tests.kits.api import Api
from tests.kits.telemetry import Book

SEARCHER: JsonObject = {"name": "random", "metric": "loss", "smaller_is_better": False, "max_trials": 20}


async def searched(api: Api, count: int) -> tuple[Book, int, list[int]]:
    """Trials of which the rate alone decides; the first one diverged, the last one has reported nothing."""
    book = Book(api.master.db, api.master.intake)
    number = await book.experiment(SEARCHER)
    trials = [await book.trial(experiment=number) for _ in range(count)]
    async with api.master.db.transaction() as conn:
        for place, trial in enumerate(trials):
            hparams = {"rate": place / count, "net": {"depth": place * 7 % 5, "wide": place % 2 == 0}, "same": "x"}
            await conn.execute("update trials set hparams = $2 where id = $1", trial, hparams)
    for place, trial in enumerate(trials[:-1]):
        value: Json = "Infinity" if place == 0 else place / count
        await book.report(trial, "validation", 1, {"loss": value})
    return book, number, trials


async def test_trials_of_a_search(api: Api) -> None:
    """The best first, with hyperparameters by path; what is no finite number is no metric."""
    _, number, trials = await searched(api, 5)
    reply = (await api.user.get(f"/api/v1/experiments/{number}/search/trials")).json()
    assert (reply["metric"], reply["smallerIsBetter"], reply["total"]) == ("loss", False, 5)
    assert [trial["id"] for trial in reply["trials"]] == [*reversed(trials[1:4]), trials[0], trials[4]]
    assert [trial["metric"] for trial in reply["trials"][-2:]] == [None, None]
    assert reply["trials"][0]["hparams"] == {"rate": 0.6, "net.depth": 1, "net.wide": False, "same": "x"}
    few = (await api.user.get(f"/api/v1/experiments/{number}/search/trials", limit=2)).json()
    assert (len(few["trials"]), few["total"]) == (2, 5)
    assert (await api.user.get("/api/v1/experiments/77777/search/trials")).status_code == 404


async def test_importance(api: Api) -> None:
    """What decides is first, and shares sum to 1; of too few trials nothing is said."""
    _, few, _ = await searched(api, 6)
    reply = (await api.user.get(f"/api/v1/experiments/{few}/search/importance")).json()
    assert (reply["trials"], reply["minTrials"], reply["hyperparameters"]) == (4, 12, [])
    _, many, _ = await searched(api, 30)
    reply = (await api.user.get(f"/api/v1/experiments/{many}/search/importance")).json()
    shares = cast("list[dict[str, object]]", reply["hyperparameters"])
    assert shares[0]["name"] == "rate"
    assert sum(cast("float", share["importance"]) for share in shares) == pytest.approx(1)
    assert shares[0]["correlation"] == pytest.approx(1)
    assert (await api.user.get("/api/v1/experiments/77777/search/importance")).status_code == 404


async def test_one_metric_of_many_trials(api: Api) -> None:
    """In the order asked for, without those that have not reported it; a trial that is not there is said."""
    book, _, trials = await searched(api, 3)
    for step in range(1, 40):
        await book.report(trials[2], "training", step, {"lr": float(step)})
    await book.report(trials[1], "training", 5, {"lr": 9.0})
    asked = {"trialIds": [trials[2], trials[0], trials[1]], "metric": "lr", "maxPoints": 10}
    lines = (await api.user.get("/api/v1/trials/series", **asked)).json()["series"]
    assert [line["trialId"] for line in lines] == [trials[2], trials[1]]
    assert lines[0]["total"] == 39
    assert len(lines[0]["steps"]) <= 10
    assert max(lines[0]["values"]) == 39.0
    assert lines[1]["steps"] == [5]
    missing = await api.user.get("/api/v1/trials/series", trialIds=[trials[0], 77777], metric="lr")
    assert missing.status_code == 404
    many = await api.user.get("/api/v1/trials/series", trialIds=list(range(1, 102)), metric="lr")
    assert many.status_code == 400
