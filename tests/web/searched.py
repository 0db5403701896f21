"""A search in the middle of its life, for the tests of the page: its journal, its trials, and what they reported.

Of its hyperparameters ``lr`` decides, with an optimum inside of its range; ``width`` and ``optimizer`` decide nothing.
"""

from __future__ import annotations

import asyncio
import math
import random
import time

from tenax.config.resolve import stored_experiment
from tenax.jsonvalue import JsonObject
from tenax.master.store.experiments import searches
from tenax.master.store.trials import rows as trials
from tenax.master.telemetry.reports import from_values
from tenax.master.telemetry.values import SpooledReport
from tenax.search import view
from tenax.search.journal import Create, ExitReason, Stop
from tests.kits.api import Api
from tests.kits.builders.search import Run
from tests.kits.telemetry import Book

TRIALS = 60
#: When it began, and from one trial to the next.
BEGAN_S, EACH_S = 7200, 100
#: That report `METRICS` metrics each.
DETAILED, METRICS = 20, 30
PLANTED = "lr"
SEARCHER: JsonObject = {
    "name": "async_halving",
    "metric": "loss",
    "smaller_is_better": True,
    "num_rungs": 3,
    "divisor": 3,
    "max_trials": TRIALS,
    "max_concurrent_trials": 16,
    "time_metric": "batches",
    "max_time": 90,
}
HYPERPARAMETERS: JsonObject = {
    "lr": {"type": "log", "minval": -5, "maxval": -1, "base": 10},
    "width": {"type": "int", "minval": 16, "maxval": 256},
    "optimizer": {"type": "categorical", "vals": ["adam", "sgd", "lion"]},
    "dropout": {"type": "double", "minval": 0, "maxval": 0.5},
    "batch_size": 64,
}


def loss(hparams: JsonObject, step: int) -> float:
    """Of a trial after so many batches; the same each time."""
    rate = float(str(hparams["lr"]))
    noise = random.Random(str(sorted(hparams.items()))).random()
    return 0.2 + 0.15 * (math.log10(rate) + 3) ** 2 + 0.03 * noise + 1 / step


async def make(api: Api, book: Book) -> tuple[int, list[int]]:
    """The experiment and its trials, in order of creation."""
    number = await book.experiment(SEARCHER)
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update experiment_documents set config = config || $2, name = 'halving over digits'"
            " where experiment_id = $1",
            number,
            {"hyperparameters": HYPERPARAMETERS},
        )
        config = await conn.fetchval("select config from experiment_documents where experiment_id = $1", number)
        run = Run(stored_experiment(config).search)
        _live(run)
        await searches.append(conn, number, 1, run.journal, view.standing(run.state))
        made = {place: entry for place, entry in enumerate(run.journal, 1) if isinstance(entry, Create)}
        numbers = await trials.create(conn, number, made, None)
        await conn.execute("update trials set run_id = 1 where id = any($1)", numbers)
        ago = "now() - make_interval(secs => $2)"
        await conn.execute(f"update experiments set created_at = {ago} where id = $1", number, float(BEGAN_S))
    await _report(book, run, numbers)
    async with api.master.db.transaction() as conn:
        over = [place for place, trial in zip(numbers, run.state.trials.values()) if not trial.open]
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now() where id = any($1)", over)
        # As they came one after the other, instead of all at once.
        await conn.execute(
            f"update validations v set reported_at = {ago} + make_interval(secs => $3 * t.place + v.step)"
            " from unnest($1::bigint[]) with ordinality as t(id, place) where v.trial_id = t.id",
            numbers,
            float(BEGAN_S),
            float(EACH_S),
        )
    return number, numbers


def _live(run: Run) -> None:
    """Until some trials of the last third are on their way."""
    units = [rung.units for rung in run.state.brackets[0].rungs]
    place = 0
    while place < len(run.ids) and place < TRIALS - 4:
        hparams = run.creates[place].hparams
        for unit in units:
            decisions = run.report(place, unit, loss(hparams, unit))
            stopped = [each for each in decisions if isinstance(each, Stop) and each.request_id == run.ids[place]]
            # Some train on from the bottom.
            if stopped or place % 9 == 5:
                break
        if not run.state.trials[run.ids[place]].open:
            run.exit(place, ExitReason.FINISHED)
        place += 1


async def _report(book: Book, run: Run, numbers: list[int]) -> None:
    units = [rung.units for rung in run.state.brackets[0].rungs]
    reports = []
    spooled = []
    began = time.time() - BEGAN_S
    for place, (trial, made) in enumerate(zip(numbers, run.creates)):
        for step in units[: run.state.trials[made.request_id].entered]:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began + (place + 1) * EACH_S + step))
            values: JsonObject = {"avgMetrics": {"loss": loss(made.hparams, step)}}
            spooled.append(SpooledReport(from_values(trial, 1, "validation", step, at, values)))
        if place < DETAILED:
            for step in range(2, 12):
                value = loss(made.hparams, step)
                metrics = {f"metric_{name:02}": value * (name + 1) for name in range(METRICS - 1)}
                reports.append(book.report(trial, "training", step, {**metrics, "loss": value}))
    assert not any((await book.intake.metrics.submit(spooled)).refused)
    # Those that come together are stored together.
    await asyncio.gather(*reports)
