"""Spools: numbered lines of every kind, each exactly once."""

from __future__ import annotations

import asyncio
import json

import pytest

from tenax.core.values import metrics_body
from tenax.errors import InvalidInput, NotFound
from tenax.jsonvalue import Json, JsonObject
from tenax.master.ingest.budget import NoRoom
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.database.wakeups import Listener, notify
from tenax.master.store.metrics import summaries
from tenax.master.store.trials import lists as trials
from tests.kits.master.checkpoints import UUID
from tests.kits.telemetry import ASHA, SINGLE, Book, metrics_line, spool_line

STREAM = "aaaaaaaa-1-2"


def training(first: int, last: int) -> bytes:
    """Reports ``first`` to ``last``; the step is the number."""
    return b"".join(metrics_line(n, "training", n, {"loss": 1.0 / n}) for n in range(first, last + 1))


def nested(depth: int) -> Json:
    """A list in a list, ``depth`` times."""
    value: Json = 1
    for _ in range(depth):
        value = [value]
    return value


async def steps(book: Book, trial: int, group: str = "training") -> list[int | None]:
    return [report.step for report in await book.reports(trial, group)]


async def test_lines_are_stored_once_however_often_they_are_sent(book: Book) -> None:
    """A batch sent again, or one that overlaps, adds only what is new."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    take = book.intake.spool.take
    assert (await take(task, task.allocation_id, STREAM, training(1, 3)))["acked"] == 3
    assert (await take(task, task.allocation_id, STREAM, training(1, 3)))["acked"] == 3
    assert (await take(task, task.allocation_id, STREAM, training(2, 5)))["acked"] == 5
    assert await steps(book, trial) == [1, 2, 3, 4, 5]


async def test_reports_without_room_wait_and_the_log_of_the_task_says_so_once(book: Book) -> None:
    """Nothing is acknowledged; whoever wonders why the curve stands still finds the reason in the trial's log."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    object.__setattr__(book.intake.metrics._budget._settings, "metric_bytes", 0)
    for _ in range(2):
        with pytest.raises(NoRoom):
            await book.intake.spool.take(task, task.allocation_id, STREAM, training(1, 3))
    (line,) = [line.line.text for line in await book.output(trial)]
    assert line.startswith("reports wait where they were made: metrics take")


async def test_the_same_batch_at_once_is_stored_once(book: Book) -> None:
    """Requests that a client sent again while the first was under way do no harm."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    replies = await asyncio.gather(
        *(book.intake.spool.take(task, task.allocation_id, STREAM, training(1, 50)) for _ in range(5))
    )
    assert [reply["acked"] for reply in replies] == [50] * 5
    assert await steps(book, trial) == list(range(1, 51))


async def test_a_gap_is_asked_for(book: Book) -> None:
    """What comes after a missing line is not stored; the answer says where to go on."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    reply = await book.intake.spool.take(task, task.allocation_id, STREAM, training(1, 2) + training(4, 5))
    assert reply == {"acked": 2, "refused": []}
    assert (await book.intake.spool.take(task, task.allocation_id, STREAM, training(3, 5)))["acked"] == 5


async def test_two_processes_of_one_container_have_streams_of_their_own(book: Book) -> None:
    """Numbers of one stream say nothing about another; equal reports of both are one."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    await book.intake.spool.take(task, task.allocation_id, "a-1-1", training(1, 2))
    reply = await book.intake.spool.take(task, task.allocation_id, "a-2-1", training(1, 3))
    assert reply == {"acked": 3, "refused": []}
    assert await steps(book, trial) == [1, 2, 3]


async def test_a_bad_line_is_refused_for_good_and_the_others_are_stored(book: Book) -> None:
    """Each kind of bad line uses up its number, and a repeated question gets the same answer."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    bad = [
        b"this is no JSON\n",
        spool_line(2, "dance", {}),
        metrics_line(3, "a.b", 1, {"x": 1}),
        metrics_line(4, "training", 1, {"x": "a\x00b"}),
        metrics_line(5, "training", 1, {"epoch": "NaN"}),
        spool_line(6, "progress", {"progress": 2}),
        spool_line(7, "early_exit", {"reason": "BORED"}),
        spool_line(8, "checkpoint", {"uuid": "u", "stepsCompleted": "many", "resources": {}}),
        spool_line(9, "metrics", {"group": "training", "stepsCompleted": -3, "metrics": {"x": 1}}),
        metrics_line(10, "training", 1, {"x": nested(40)}),
        metrics_line(11, "training", 1, {"x" * 1025: 1}),
        metrics_line(12, "g" * 201, 1, {"x": 1}),
        spool_line(13, "metrics", {"group": "training", "metrics": {"x": 1}}, at=1e300),
        spool_line(14, "metrics", {"group": "training", "metrics": {}, "batchMetrics": {"x": 1}}),
        b'{"n":15,"kind":"metrics","at":1,"body":{"group":"training","metrics":{"x":"\\ud800 "}}}\n',
        b'{"n":16,"kind":"metrics","at":1,"body":{"group":"training","metrics":{},"batchMetrics":["\\ud800 "]}}\n',
    ]
    body = b"".join(bad) + training(17, 18)
    first = await book.intake.spool.take(task, task.allocation_id, STREAM, body)
    again = await book.intake.spool.take(task, task.allocation_id, STREAM, body)
    assert first["acked"] == 18
    assert [refusal["n"] for refusal in first["refused"]] == list(range(1, 17))
    assert again == first
    assert await steps(book, trial) == [17, 18]


async def test_what_the_library_writes_is_taken_as_it_is(book: Book) -> None:
    """With metrics of each batch, and without."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    bodies = [
        metrics_body("training", 1, {"loss": 1.5}, [{"loss": 1.0}, {"loss": 2.0}]),
        metrics_body("training", 2, {"loss": 1.0}, []),
        metrics_body("training", 3, {"loss": 0.5}),
    ]
    lines = b"".join(spool_line(n, "metrics", json.loads(body)) for n, body in enumerate(bodies, 1))
    assert await book.intake.spool.take(task, task.allocation_id, STREAM, lines) == {"acked": 3, "refused": []}
    stored = [(report.metrics, report.batch) for report in await book.reports(trial)]
    assert stored == [({"loss": 1.5}, b'[{"loss":1.0},{"loss":2.0}]'), ({"loss": 1.0}, None), ({"loss": 0.5}, None)]


async def test_a_torn_last_line_does_not_count(book: Book) -> None:
    """What has no line feed was torn by a crash, or is not written yet."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    reply = await book.intake.spool.take(task, task.allocation_id, STREAM, training(1, 2) + training(3, 3)[:-5])
    assert reply == {"acked": 2, "refused": []}


async def test_a_conflict_is_refused_and_named(book: Book) -> None:
    """Another value for what was reported at a step is refused, in the same batch and later."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    body = metrics_line(1, "training", 1, {"a": 1}) + metrics_line(2, "training", 1, {"a": 2, "b": 3})
    reply = await book.intake.spool.take(task, task.allocation_id, STREAM, body)
    assert [(refusal["n"], refusal["fatal"]) for refusal in reply["refused"]] == [(2, False)]
    assert "'a'" in reply["refused"][0]["message"]
    assert [report.metrics for report in await book.reports(trial)] == [{"a": 1}]


async def test_a_checkpoint_cannot_be_named_out_of_its_storage(book: Book) -> None:
    """An id is the name of a directory: what could be a path is refused, and stored nowhere."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    lines = [
        spool_line(1, "checkpoint", {"uuid": "../other", "stepsCompleted": 5, "resources": {}}),
        spool_line(2, "checkpoint_files", {"uuid": "a/b", "resources": {}}),
    ]
    reply = await book.intake.spool.take(task, task.allocation_id, STREAM, b"".join(lines))
    assert [refusal["n"] for refusal in reply["refused"]] == [1, 2]
    async with book.database.connection() as conn:
        assert await conn.fetchval("select count(*) from checkpoints") == 0


async def test_every_kind_of_line_does_what_it_says(book: Book) -> None:
    """Metrics, progress, state, a checkpoint, an acknowledgement and an early exit, in one batch."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    async with book.database.transaction() as conn:
        await conn.execute(
            "update allocations set preemption = 'REQUESTED', preemption_deadline = now() where allocation_id = $1",
            task.allocation_id,
        )
    storage = {"type": "shared_fs", "host_path": "/data", "save_trial_best": 1}
    checkpoint = {"uuid": UUID, "stepsCompleted": 5, "metadata": {"k": 1}, "resources": {"w": 3, "d/": 0}}
    lines = [
        spool_line(1, "run_start", {"checkpointStorage": storage}),
        metrics_line(2, "validation", 5, {"loss": 0.5}),
        spool_line(3, "progress", {"progress": 0.25}),
        spool_line(4, "runner_state", {"state": "validating"}),
        spool_line(5, "progress", {"progress": 0.5}),
        spool_line(6, "checkpoint", {**checkpoint, "storage": storage, "state": "COMPLETED"}),
        spool_line(7, "checkpoint_files", {"uuid": UUID, "resources": {"w": 3}}),
        spool_line(8, "ack_preemption", {}),
        spool_line(9, "early_exit", {"reason": "EXITED_REASON_INVALID_HP"}),
    ]
    reply = await book.intake.spool.take(task, task.allocation_id, STREAM, b"".join(lines))
    assert reply == {"acked": 9, "refused": []}
    async with book.database.connection() as conn:
        view = await trials.get(conn, trial)
        stored = await checkpoints.get(conn, UUID)
        places = await conn.fetch("select config from storage_backends")
        assert await conn.fetchval("select invalid_hp from trials where id = $1", trial)
        acked = await conn.fetchval("select preemption from allocations where allocation_id = $1", task.allocation_id)
    assert (view.progress, view.runner_state, view.best_metric) == (0.5, "validating", 0.5)
    assert (stored.state, stored.resources, stored.steps_completed) == ("PARTIALLY_DELETED", {"w": 3}, 5)
    # What is no part of the place does not make another one.
    assert [row["config"] for row in places] == [{"type": "shared_fs", "host_path": "/data"}]
    assert acked == "ACKNOWLEDGED"


async def test_an_older_run_changes_no_state(book: Book) -> None:
    """Its metrics are kept under its own run, its checkpoint as superseded; the rest changes nothing."""
    trial = await book.trial()
    old = await book.run(trial, 1)
    await book.run(trial, 2)
    lines = [
        metrics_line(1, "validation", 5, {"loss": 0.5}),
        spool_line(2, "progress", {"progress": 0.5}),
        spool_line(3, "checkpoint", {"uuid": UUID, "stepsCompleted": 5, "resources": {"w": 3}, "state": "COMPLETED"}),
        spool_line(4, "early_exit", {"reason": "EXITED_REASON_INVALID_HP"}),
        spool_line(5, "ack_preemption", {}),
    ]
    reply = await book.intake.spool.take(old, old.allocation_id, STREAM, b"".join(lines))
    assert reply == {"acked": 5, "refused": []}
    assert [(report.run_id, report.step) for report in await book.reports(trial)] == [(1, 5)]
    assert await book.inbox(trial) == []
    async with book.database.connection() as conn:
        view = await trials.get(conn, trial)
        assert await checkpoints.latest(conn, trial) is None
        assert (await checkpoints.get(conn, UUID)).superseded
        assert not await conn.fetchval("select invalid_hp from trials where id = $1", trial)
    assert view.progress is None


async def test_a_validation_is_a_fact_for_the_search_once(book: Book) -> None:
    """The searcher's metric goes into the inbox with its step, once per step, also from a later run."""
    trial = await book.trial(ASHA)
    body = {"loss": 0.5, "batches": 16}
    await book.report(trial, "validation", 16, body)
    await book.report(trial, "validation", 16, body)
    await book.run(trial, 2)
    await book.report(trial, "validation", 16, {"loss": 0.7, "batches": 16}, run=2)
    facts = await book.inbox(trial)
    assert [(fact["type"], fact["step"], fact["metric"], fact["time"]) for fact in facts] == [
        ("validated", 16, 0.5, 16.0)
    ]


@pytest.mark.parametrize(
    ("searcher", "decides"),
    [
        (SINGLE, False),
        ({**SINGLE, "name": "random", "max_trials": 4}, False),
        ({**SINGLE, "name": "grid"}, False),
        (ASHA, True),
        ({**ASHA, "name": "async_halving", "num_rungs": 3}, True),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
async def test_a_search_is_told_of_validations_that_it_decides_by(
    book: Book, searcher: JsonObject, decides: bool
) -> None:
    """Elsewhere nothing waits for it and nobody wakes it; what was validated is kept under every method."""
    trial = await book.trial(searcher)
    listener = Listener(book.database)
    listening = asyncio.create_task(listener.run())
    await listener.connected()
    with listener.subscribe("search") as search, listener.subscribe("last") as last:
        await search.wait()
        await last.wait()
        await book.report(trial, "validation", 16, {"loss": 0.5, "batches": 16})
        async with book.database.transaction() as conn:
            await notify(conn, "last", 1)
        assert (await last.wait()).ids == {"1"}
        assert bool(await search.wait(0)) is decides
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert len(await book.inbox(trial)) == decides
    async with book.database.connection() as conn:
        rows = await conn.fetch("select step, metric from validations where trial_id = $1", trial)
    assert [tuple(row) for row in rows] == [(16, 0.5)]


async def test_what_is_searched_elsewhere_tells_no_search(book: Book) -> None:
    """An unmanaged experiment decides nothing here, whatever method it names."""
    experiment = await book.experiment(ASHA)
    async with book.database.transaction() as conn:
        await conn.execute("update experiments set unmanaged = true where id = $1", experiment)
    trial = await book.trial(experiment=experiment)
    await book.report(trial, "validation", 16, {"loss": 0.5})
    assert await book.inbox(trial) == []


async def test_a_validation_that_comes_again_is_kept_once(book: Book) -> None:
    """The first report of a step counts, also where the next run reports it again or in the same delivery."""
    trial = await book.trial()
    task = await book.run(trial, 1)
    lines = metrics_line(1, "validation", 1, {"loss": 0.5}) + metrics_line(2, "validation", 1, {"accuracy": 0.9})
    await book.intake.spool.take(task, task.allocation_id, STREAM, lines + metrics_line(3, "validation", 2, {"x": 1}))
    await book.run(trial, 2)
    await book.report(trial, "validation", 1, {"loss": 0.7}, run=2)
    async with book.database.connection() as conn:
        rows = await conn.fetch("select step, metric from validations where trial_id = $1", trial)
        improvements = await summaries.improvements(conn, 1, smaller_is_better=True)
    assert [tuple(row) for row in rows] == [(1, 0.5)]
    assert [(best.trial_id, best.metric) for best in improvements] == [(trial, 0.5)]


@pytest.mark.parametrize(
    ("metrics", "named"),
    [
        ({"accuracy": 0.5, "samples": 4}, "'loss'"),
        ({"loss": 0.5}, "'samples'"),
        ({"loss": "low", "samples": 4}, "'loss'"),
        ({"loss": None, "samples": 4}, "'loss'"),
        ({"loss": 0.5, "samples": "NaN"}, "'samples'"),
        ({}, "'loss' and 'samples'"),
    ],
)
async def test_a_validation_without_what_the_search_needs_ends_the_trial(
    book: Book, metrics: dict[str, float | str | None], named: str
) -> None:
    """It is refused as fatal with what was expected and what came; the trial is marked, other groups are stored."""
    trial = await book.trial({**ASHA, "time_metric": "samples"})
    task = await book.run(trial, 1)
    lines = metrics_line(1, "validation", 4, metrics) + metrics_line(2, "training", 4, {"x": 1})
    reply = await book.intake.spool.take(task, task.allocation_id, STREAM, lines)
    (refusal,) = reply["refused"]
    assert (refusal["n"], refusal["fatal"]) == (1, True)
    assert named in refusal["message"]
    assert refusal["message"].startswith("error parsing searcher ")
    assert all(name in refusal["message"] for name in metrics)
    async with book.database.connection() as conn:
        assert await conn.fetchval("select fatal from trials where id = $1", trial) == refusal["message"]
    assert [report.group for report in await book.reports(trial)] == ["training"]
    assert await book.inbox(trial) == []


async def test_a_validation_may_be_completed_at_its_step(book: Book) -> None:
    """What was reported at a step together counts: a second report there needs no searcher's metric of its own."""
    trial = await book.trial(ASHA)
    await book.report(trial, "validation", 4, {"loss": 0.5, "batches": 4})
    await book.report(trial, "validation", 4, {"accuracy": 0.9})
    assert [report.metrics for report in await book.reports(trial)] == [{"loss": 0.5, "batches": 4, "accuracy": 0.9}]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
async def test_what_is_not_finite_is_stored_ranks_worst_and_is_warned_of(book: Book, value: str) -> None:
    """It goes to the search as it is, is never the best, and the trial's output names the trial."""
    trial = await book.trial(ASHA)
    await book.report(trial, "validation", 1, {"loss": 5.0, "batches": 1})
    await book.report(trial, "validation", 2, {"loss": value, "batches": 2})
    assert [fact["metric"] for fact in await book.inbox(trial)] == [5.0, value]
    async with book.database.connection() as conn:
        view = await trials.get(conn, trial)
    assert view.best_metric == 5.0
    assert view.latest_validation is not None
    assert view.latest_validation["metrics"] == {"loss": value, "batches": 2}
    (line,) = await book.output(trial)
    assert f"trial {trial}" in line.line.text
    assert line.line.level == 4


async def test_a_container_of_another_allocation_is_refused(book: Book) -> None:
    """The token speaks for the containers of its own allocation only."""
    task = await book.run(await book.trial(), 1)
    other = await book.run(await book.trial(), 1)
    with pytest.raises(NotFound):
        await book.intake.spool.take(task, other.allocation_id, STREAM, training(1, 1))
    with pytest.raises(InvalidInput):
        await book.intake.spool.take(task, task.allocation_id, "", training(1, 1))


async def test_a_time_in_batches_is_the_step_where_nobody_says_more(book: Book) -> None:
    """What names no batches is as far as its step; what names them is believed."""
    trial = await book.trial(ASHA)
    await book.report(trial, "validation", 4, {"loss": 0.5})
    await book.report(trial, "validation", 8, {"loss": 0.25, "batches": 80})
    assert [fact["time"] for fact in await book.inbox(trial)] == [4.0, 80.0]
