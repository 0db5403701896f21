"""Taking in metrics: groups, sealing, late reports, what is refused, what fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenax.config.master import BudgetSettings
from tenax.errors import TryAgain
from tenax.jsonvalue import Json
from tenax.master.ingest.budget import Budget, NoRoom, Usage
from tenax.master.ingest.intake import Intake
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.metrics import rows as metrics
from tenax.master.store.metrics import series, summaries
from tenax.master.store.trials import lists as trials
from tenax.master.store.trials import rows as trial_rows
from tenax.master.telemetry.reports import from_values
from tenax.master.telemetry.values import SpooledReport
from tests.kits.telemetry import Book

#: (run advances, group, step, metrics)
REPORTS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 0, 1]),
        st.sampled_from(["training", "training", "validation", "custom"]),
        st.integers(0, 8),
        st.dictionaries(
            st.sampled_from(["loss", "b"]), st.sampled_from([1.0, 2.0, "NaN", "x"]), min_size=1, max_size=2
        ),
        st.booleans(),
    ),
    max_size=25,
)
KINDS = ("training", "validation", "custom")


class Model:
    """The rules in the shortest form: a list of reports, and which of them count."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int, int], dict[str, Json]] = {}

    def say(self, run: int, group: str, step: int, values: Mapping[str, Json]) -> bool:
        before = self.rows.get((group, run, step), {})
        if any(name in before and before[name] != value for name, value in values.items()):
            return False
        for other, older, at in list(self.rows):
            if older < run and (at >= step if other == group else at > step):
                del self.rows[other, older, at]
        self.rows[group, run, step] = {**before, **values}
        return True


@given(REPORTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_reading_gives_what_was_reported(
    book: Book, reports: list[tuple[int, str, int, dict[str, Json], bool]]
) -> None:
    """Whatever is reported, merged, refused, hidden by newer runs and packed: it reads as a plain model of the rules.

    The summary that is kept is the one that is counted anew.
    """
    trial, run, model = await book.trial(), 1, Model()
    for advance, group, step, values, seal in reports:
        run += advance
        await book.run(trial, run)
        refused = await book.say(trial, group, step, values, run=run)
        assert (refused is None) == model.say(run, group, step, values)
        if seal:
            await book.seal(trial, group)
    stored = {(r.group, r.run_id, r.step): r.metrics for r in await book.reports(trial)}
    assert stored == model.rows
    async with book.database.connection() as conn:
        kept = (await summaries.of_trials(conn, [trial]))[trial], await trials.get(conn, trial)
    await book.recount(trial)
    async with book.database.connection() as conn:
        anew = (await summaries.of_trials(conn, [trial]))[trial], await trials.get(conn, trial)
    assert kept[0] == anew[0]
    assert kept[1].total_batches == anew[1].total_batches
    assert _step(kept[1].latest_validation) == _step(anew[1].latest_validation)
    assert kept[1].best_metric == anew[1].best_metric or str(kept[1].best_metric) == str(anew[1].best_metric) == "nan"


def _step(validation: Mapping[str, Json] | None) -> Json:
    return None if validation is None else validation["step"]


async def test_a_long_series_is_packed_by_itself_and_reads_the_same(book: Book) -> None:
    """Thousands of reports leave the tail for packed rows; every one reads back, and the chart has them all."""
    trial = await book.trial()
    items = [
        SpooledReport(
            from_values(trial, 1, "training", step, None, {"avgMetrics": {"loss": step / 7, "n": step, "w": "x"}})
        )
        for step in range(3000)
    ]
    await book.intake.metrics.submit(items)
    await packed(book, trial)
    await book.report(trial, "training", 3000, {"loss": 1.0})
    reports = await book.reports(trial)
    assert [report.step for report in reports] == list(range(3001))
    assert reports[1234].metrics == {"loss": 1234 / 7, "n": 1234, "w": "x"}
    async with book.database.snapshot() as conn:
        (group,) = await series.groups_of(conn, [trial])
        points = (await series.series(conn, group, "loss")).unpack()
        whole = (await series.series(conn, group, "n")).unpack()
    assert points.values.tolist() == [*(step / 7 for step in range(3000)), 1.0]
    assert len(whole) == 3000


async def packed(book: Book, trial: int) -> None:
    """Until the background task has packed all there is."""
    async with book.database.connection() as conn:
        while await conn.fetchval("select count(*) from metric_tail where trial_id = $1", trial):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_what_a_trial_left_is_packed_after_its_end(book: Book) -> None:
    """However few its reports are."""
    trial = await book.trial()
    await book.report(trial, "training", 1, {"loss": 1.0})
    async with book.database.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now() where id = $1", trial)
    await book.intake.sealing.sweep()
    await packed(book, trial)
    assert [report.metrics for report in await book.reports(trial)] == [{"loss": 1.0}]


async def test_the_profiler_has_no_steps_and_is_never_hidden(book: Book) -> None:
    """Its reports all count, in the order they came, whatever newer runs do."""
    trial = await book.trial()
    for value in (1.0, 2.0, 2.0):
        await book.report(trial, "gpu", None, {"util": value}, reportTime="2026-01-02T03:04:05Z")
    await book.run(trial, 2)
    await book.report(trial, "training", 0, {"loss": 1.0}, run=2)
    await book.seal(trial, "gpu")
    assert [(report.step, report.metrics) for report in await book.reports(trial, "gpu")] == [
        (None, {"util": 1.0}),
        (None, {"util": 2.0}),
        (None, {"util": 2.0}),
    ]


async def test_batch_metrics_are_kept_and_not_overwritten(book: Book) -> None:
    """They come back as they were; the same again is nothing, others are refused."""
    trial = await book.trial()
    batch: list[Json] = [{"loss": 1.0}, {"loss": 2.0}]
    await book.report(trial, "training", 2, {"loss": 1.5}, batchMetrics=batch)
    await book.report(trial, "training", 2, {"loss": 1.5}, batchMetrics=batch)
    await book.report(trial, "training", 4, {"loss": 1.5})
    await book.seal(trial)
    assert await book.say(trial, "training", 2, {"loss": 1.5}, batchMetrics=[{"loss": 3.0}]) is not None
    assert [report.batch for report in await book.reports(trial)] == [b'[{"loss":1.0},{"loss":2.0}]', None]


async def test_what_is_outside_of_a_range_of_steps_is_not_read(book: Book) -> None:
    """Of packed reports only those that lie with some inside; what is inside is the same as of all of them."""
    trial = await book.trial()
    for first in (0, 10, 20):
        for step in range(first, first + 10):
            await book.report(trial, "training", step, {"loss": float(step), **({"acc": 1.0} if step % 2 else {})})
        await book.seal(trial)
    await book.report(trial, "training", 30, {"loss": 30.0})

    async def of(name: str, low: float | None, high: float | None) -> series.Series:
        async with book.database.snapshot() as conn:
            groups = await series.groups_of(conn, [trial])
            loss, acc = (await series.series_of(conn, groups, ["loss", "acc"], (low, high)))[trial]
            alone = (await series.series(conn, groups[0], name, (low, high))).unpack()
        together = {"loss": loss, "acc": acc}[name].unpack()
        assert alone.steps.tolist() == together.steps.tolist()
        return together

    assert (await of("loss", None, None)).steps.tolist() == list(range(31))
    assert (await of("acc", None, None)).steps.tolist() == list(range(1, 30, 2))
    assert (await of("loss", 12, 15)).steps.tolist() == [*range(10, 20), 30]
    assert (await of("loss", None, 9)).steps.tolist() == [*range(10), 30]
    assert (await of("acc", 20, None)).values.tolist() == [1.0] * 5
    assert (await of("acc", 40, None)).steps.tolist() == []


async def test_reports_without_numbers_must_be_of_the_current_run(book: Book) -> None:
    """An older run and one that is not there yet are refused, and so is a trial that does not exist."""
    trial = await book.trial(run=2)
    for run in (1, 3):
        refused = await book.say(trial, "training", 1, {"loss": 1.0}, run=run)
        assert refused is not None
        assert "only its current run may report" in refused.message
    assert (await book.say(10**9, "training", 1, {"loss": 1.0})) is not None
    assert await book.reports(trial) == []


async def test_many_reporters_at_once_share_transactions_and_lose_nothing(book: Book) -> None:
    """Reports of many trials at once are each there once, with far fewer transactions than reports."""
    several = [await book.trial() for _ in range(8)]
    commits = await _commits(book)
    await asyncio.gather(*(book.report(trial, "training", step, {"x": 1}) for trial in several for step in range(50)))
    assert await _commits(book) - commits < 100
    for trial in several:
        assert [report.step for report in await book.reports(trial)] == list(range(50))


async def _commits(book: Book) -> int:
    async with book.database.connection() as conn:
        await conn.execute("select pg_stat_force_next_flush()")
        number: int = await conn.fetchval("select xact_commit from pg_stat_database where datname = current_database()")
    return number


async def test_a_report_that_cannot_be_stored_costs_only_itself(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a transaction fails for an unforeseen reason, all but the culprit are stored one by one."""
    trial = await book.trial()
    append = metrics._tail_row

    def broken(row: metrics.TailRow, now_us: int) -> tuple[object, ...]:
        if any("poison" in report.metrics for report in row.reports):
            raise RuntimeError("unforeseen")
        return append(row, now_us)

    monkeypatch.setattr(metrics, "_tail_row", broken)
    names = ["a", "poison", "b"]
    items = [
        SpooledReport(from_values(trial, 1, "training", step, None, {"avgMetrics": {name: 1.0}}))
        for step, name in enumerate(names)
    ]
    refused = (await book.intake.metrics.submit(items)).refused
    assert [why is not None for why in refused] == [False, True, False]
    assert [report.metrics for report in await book.reports(trial)] == [{"a": 1.0}, {"b": 1.0}]


async def test_without_a_database_the_answer_is_try_again(book: Book) -> None:
    """Nothing is answered from memory: the report is there after the database is."""
    trial = await book.trial()
    async with book.database.connection() as conn:
        await conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    await book.database.close()
    with pytest.raises(TryAgain):
        await book.report(trial, "training", 1, {"loss": 1.0})


async def test_no_room_refuses_logs_first_then_metrics(book: Book) -> None:
    """By bytes used, and by bytes left on the disk; state is never asked."""
    limits = BudgetSettings(log_bytes=2**20, metric_bytes=2**20, min_free_bytes=1000)
    cases = [
        (Usage(0, 0, None), False, False),
        (Usage(2**20, 0, None), True, False),
        (Usage(0, 2**20, None), False, True),
        (Usage(0, 0, 999), True, False),
        (Usage(0, 0, 499), True, True),
        (Usage(0, 0, 1000), False, False),
    ]
    for usage, no_logs, no_metrics in cases:

        async def measure(usage: Usage = usage) -> Usage:
            return usage

        async def largest(what: str) -> list[str]:
            return [f"experiment of {what}"]

        budget = Budget(limits, measure, largest)
        assert (await _refuses(budget.check_logs), await _refuses(budget.check_metrics)) == (no_logs, no_metrics)


async def _refuses(check: object) -> bool:
    try:
        await check()  # type: ignore[operator]
    except NoRoom:
        return True
    return False


async def test_the_database_says_what_telemetry_takes(book: Book) -> None:
    """Metrics beyond their budget are refused with what to do, and go on once there is room."""
    trial = await book.trial()
    tight = BudgetSettings(metric_bytes=2**20, min_free_bytes=0)
    async with Intake(book.database, tight).running() as intake:
        small = replace(book, intake=intake)
        await small.report(trial, "training", 1, {"blob": "x" * 2**21})
        intake.metrics._budget._measured_at = -100.0
        with pytest.raises(NoRoom, match=r"metric_retention_days.*; the most is of experiment \d+$"):
            await small.report(trial, "training", 2, {"loss": 1.0})
        async with book.database.transaction() as conn:
            # As a deletion leaves it: the file is as large as before.
            await conn.execute("delete from metric_tail")
        intake.metrics._budget._measured_at = -100.0
        await small.report(trial, "validation", 2, {"loss": 1.0})


async def test_a_report_does_not_wait_for_an_exit_that_is_being_decided(book: Book) -> None:
    """Who decides holds the experiment, then the trial; a report refers to both, and must not stand between them."""
    experiment_id = await book.experiment()
    trial = await book.trial(experiment=experiment_id)
    async with book.database.transaction() as conn:
        await experiments.lock(conn, experiment_id)
        await trial_rows.lock(conn, trial)
        async with asyncio.timeout(60):
            await book.report(trial, "validation", 1, {"loss": 1.0})
    assert [report.step for report in await book.reports(trial)] == [1]
