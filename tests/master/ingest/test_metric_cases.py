"""Every case on metrics, through the intake and a real database."""

from __future__ import annotations

import json
from typing import cast

import pytest

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.master.store.metrics import summaries
from tenax.master.store.trials import lists as trials
from tenax.master.telemetry.reports import from_values
from tests.kits import cases
from tests.kits.telemetry import SINGLE, Book

CASES = cast("dict[str, list[dict[str, list[JsonObject]]]]", cases.load("metrics") or {})


def of(name: str) -> list[dict[str, list[JsonObject]]]:
    return CASES.get(name, [])


def floats(value: Json) -> Json:
    """Whole numbers and their floats are one number; NaN equals itself as a string."""
    return json.loads(json.dumps(value), parse_int=float) if not isinstance(value, dict) else value


def close(actual: dict[str, JsonObject], expected: dict[str, JsonObject]) -> None:
    assert actual.keys() == expected.keys()
    for name, summary in expected.items():
        assert {key: floats(value) for key, value in actual[name].items()} == {
            key: floats(value) for key, value in summary.items()
        }, name


async def summary_of(book: Book, trial: int, group: str) -> dict[str, JsonObject]:
    async with book.database.connection() as conn:
        return (await summaries.of_trials(conn, [trial]))[trial].get(group, {})


@pytest.mark.parametrize("case", of("summary"), ids=lambda case: str(case["name"]))
@pytest.mark.parametrize("anew", [False, True], ids=["kept", "recounted"])
async def test_summary(book: Book, case: dict[str, list[JsonObject]], anew: bool) -> None:
    """The summary of a trial's reports, kept as they come and counted anew, is the case's."""
    trial = await book.trial()
    step = 0
    for group in ("training", "validation"):
        for metrics in case[f"{group}_reports"]:
            step += 1
            await book.report(trial, group, step, metrics)
    if anew:
        await book.recount(trial)
    close(await summary_of(book, trial, "training"), cast("dict[str, JsonObject]", case["training_summary"]))
    close(await summary_of(book, trial, "validation"), cast("dict[str, JsonObject]", case["validation_summary"]))


@pytest.mark.parametrize("case", of("derived_summary"), ids=lambda case: str(case["name"]))
async def test_derived_summary(book: Book, case: dict[str, list[JsonObject]]) -> None:
    """The same of one group, also when it is packed and counted anew."""
    trial = await book.trial()
    for step, metrics in enumerate(case["reports"]):
        await book.report(trial, "training", step, metrics)
    close(await summary_of(book, trial, "training"), cast("dict[str, JsonObject]", case["summary"]))
    await book.seal(trial)
    await book.recount(trial)
    close(await summary_of(book, trial, "training"), cast("dict[str, JsonObject]", case["summary"]))


@pytest.mark.parametrize("case", of("epoch"), ids=lambda case: json.dumps(case["epoch"]))
def test_epoch(case: JsonObject) -> None:
    """An epoch is a finite number or null."""
    values: JsonObject = {"avgMetrics": {"epoch": case["epoch"]}}
    if case["accepted"]:
        assert from_values(1, 1, "training", 1, None, values).metrics == {"epoch": case["epoch"]}
    else:
        with pytest.raises(InvalidInput, match="'epoch' must be a finite number"):
            from_values(1, 1, "training", 1, None, values)


@pytest.mark.parametrize("case", of("merge") + of("merge_fail"), ids=lambda case: json.dumps(case["reports"]))
@pytest.mark.parametrize("sealed", [False, True], ids=["tail", "packed"])
async def test_merge(book: Book, case: dict[str, list[JsonObject]], sealed: bool) -> None:
    """Reports of one step are united; a value that was reported does not change, and what refuses it is left out."""
    trial = await book.trial()
    for place, metrics in enumerate(case["reports"]):
        refused = await book.say(trial, "training", 7, metrics)
        assert (refused is not None) == (place == case.get("fails_at"))
        if sealed:
            await book.seal(trial)
    stored = await book.reports(trial)
    assert len(stored) == 1
    if "merged" in case:
        assert stored[0].metrics == case["merged"]


def runs(case: object) -> list[JsonObject]:
    """Reports of a case; runs are counted from 1 here."""
    return [{**r, "trial_run_id": int(r["trial_run_id"]) + 1} for r in cast("list[dict[str, int]]", case)]


async def play(book: Book, trial: int, reports: list[JsonObject]) -> None:
    """Report them, and compare what each hides and how far the trial is after it."""
    for report in reports:
        group, run, step = str(report["group"]), cast(int, report["trial_run_id"]), cast(int, report["steps_completed"])
        await book.run(trial, run)
        before = len(await book.reports(trial))
        # Checkpoints are no metrics: they never hide anything.
        if group != "checkpoint":
            await book.report(trial, group, step, {"a": 1.0}, run=run)
        hidden = before + (group != "checkpoint") - len(await book.reports(trial))
        async with book.database.connection() as conn:
            view = await trials.get(conn, trial)
        assert (hidden, view.total_batches) == (report["rolled_back"], report["total_batches"]), report


@pytest.mark.skipif(not CASES, reason="the case files are not beside this checkout")
async def test_rollback(book: Book) -> None:
    """A newer run that goes on from an earlier step hides what lies beyond it."""
    trial = await book.trial(run=1)
    await play(book, trial, runs(CASES["rollback"]))
    assert len(await book.reports(trial, "generic-golabi")) == 1


@pytest.mark.parametrize("case", of("derived_rollback"), ids=lambda case: str(case["name"]))
async def test_derived_rollback(book: Book, case: dict[str, list[JsonObject]]) -> None:
    """What is left visible is the case's, in the tail and packed."""
    trial = await book.trial()
    await play(book, trial, runs(case["reports"]))
    for group in {str(report["group"]) for report in case["reports"]}:
        await book.seal(trial, group)
    kept = [(r.group, r.run_id, r.step) for r in await book.reports(trial)]
    expected = [(r["group"], r["trial_run_id"], r["steps_completed"]) for r in runs(case["kept"])]
    assert sorted(kept) == sorted(expected)  # type: ignore[type-var]


@pytest.mark.parametrize("case", of("latest_validation"), ids=lambda case: json.dumps(case["validation"]))
async def test_latest_validation(book: Book, case: dict[str, list[JsonObject]]) -> None:
    """Only a validation with the searcher's metric is the latest one."""
    trial = await book.trial({**SINGLE, "metric": cast(str, case["searcher_metric"])})
    for group in ("training", "validation"):
        for step, metrics in enumerate(case[group]):
            await book.report(trial, group, step, metrics)
    async with book.database.connection() as conn:
        latest = (await trials.get(conn, trial)).latest_validation
    assert (None if latest is None else latest["metrics"]) == case["latest"]


@pytest.mark.skipif(not CASES, reason="the case files are not beside this checkout")
async def test_generic_group(book: Book) -> None:
    """A group of any name has a summary, and its metrics any names."""
    case = cast("dict[str, list[JsonObject]]", CASES["generic_group"])
    trial = await book.trial()
    for report in case["reports"]:
        await book.report(trial, str(report["group"]), cast(int, report["step"]), cast(JsonObject, report["metrics"]))
    close(await summary_of(book, trial, "inference"), cast("dict[str, JsonObject]", case["summary"]))


@pytest.mark.parametrize("case", [case for case in of("metric_names") if "trials" in case], ids=json.dumps)
async def test_metric_names(book: Book, case: dict[str, list[JsonObject]]) -> None:
    """The names of an experiment's metrics are sorted and distinct over its trials."""
    experiment = await book.experiment()
    groups = {name for trial in case["trials"] for name in trial}
    for reports in case["trials"]:
        trial = await book.trial(experiment=experiment)
        for group, rows in reports.items():
            for step, metrics in enumerate(cast("list[JsonObject]", rows)):
                await book.report(trial, group, step, metrics)
    async with book.database.connection() as conn:
        names = await summaries.names_of_experiment(conn, experiment)
    assert names == {group: case[group] for group in groups}


@pytest.mark.parametrize("case", of("best_validation"), ids=json.dumps)
async def test_best_validation(book: Book, case: dict[str, list[list[float]]]) -> None:
    """The best validation of an experiment, in either direction."""
    smaller = bool(case["smaller_is_better"])
    experiment = await book.experiment({**SINGLE, "smaller_is_better": smaller})
    for values in case["trials"]:
        trial = await book.trial(experiment=experiment)
        for step, value in enumerate(values):
            await book.report(trial, "validation", step, {"loss": value})
    async with book.database.connection() as conn:
        best = await conn.fetchval("select best_metric from experiment_tallies where experiment_id = $1", experiment)
    assert best == case["best"]
