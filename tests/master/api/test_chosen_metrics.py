"""Lists of trials with the summaries of some metrics alone: a trial may have thousands."""

from __future__ import annotations

from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.metrics import reported

MANY = {f"layer {number}/weight.norm": float(number) for number in range(50)}


async def test_rows_come_with_the_metrics_of_their_columns(api: Api) -> None:
    """By the names of the catalogue, whatever is in them; none is none, and without a word of it they are all."""
    run = await running(api)
    await reported(run, "training", 1, **MANY)
    await reported(run, "validation", 1, accuracy=0.5, **MANY)

    async def summaries(**chosen: object) -> list[dict[str, dict[str, object]]]:
        rows = (await api.user.post("/api/v1/runs", chosen)).json()["runs"]
        found = (await api.user.post("/api/v1/experiments-search", chosen)).json()["experiments"]
        query = {} if "metrics" not in chosen else {"metrics": chosen["metrics"] or [""]}
        trials = (await api.user.get("/api/v1/experiments/1/trials", **query)).json()["trials"]
        return [rows[0]["summaryMetrics"], found[0]["bestTrial"]["summaryMetrics"], trials[0]["summaryMetrics"]]

    for summed in await summaries():
        assert len(summed["avg_metrics"]) == 50
        assert len(summed["validation_metrics"]) == 51
    brief = (await api.user.get("/api/v1/experiments/1/trials", metrics=[""])).text
    assert len(brief) < 4000
    for summed in await summaries(metrics=[]):
        assert not any(summed.values())
    columns = ["validation.layer 7/weight.norm.last", "training.layer 9/weight.norm.min", "training.none.last", "id"]
    for summed in await summaries(metrics=columns):
        assert {group: list(of) for group, of in summed.items()} == {
            "avg_metrics": ["layer 9/weight.norm"],
            "validation_metrics": ["layer 7/weight.norm"],
        }


async def test_of_many_metrics_those_of_validations_are_columns(api: Api) -> None:
    """There is an end to what is offered: what searches decide by is not beyond it."""
    run = await running(api)
    for start in range(0, 2600, 1300):
        await reported(run, "training", 1, **{f"part {number}": 1.0 for number in range(start, start + 1300)})
    await reported(run, "validation", 1, accuracy=0.5)
    columns = (await api.user.get("/api/v1/projects/1/columns", tableType="TABLE_TYPE_RUN")).json()["columns"]
    names = [each["column"] for each in columns]
    assert "validation.accuracy.last" in names
    assert sum(name.startswith("training.") for name in names) == 4 * (2500 - 1)
