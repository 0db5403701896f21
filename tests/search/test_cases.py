"""Every case of the shared case files on searching: asha, grid, nprand, searcher_sampling."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tenax.search import brackets, grid, space, view
from tenax.search.config import SearchConfig
from tenax.search.journal import Create, Rank
from tenax.search.methods import adaptive_asha
from tenax.search.methods.adaptive_asha import AdaptiveAsha, Mode
from tenax.search.searcher import ranked_value, start
from tenax.search.state import Rung
from tenax.search.stream import RandomStream
from tenax.search.validation import Objective, UnusableReport, read_report
from tests.kits import cases
from tests.kits.builders import search as build


def collect(file: str, part: str) -> list[Any]:
    """The cases of one part of a file as parameters; none where the files are not there."""
    document = cases.load(file)
    if document is None:
        return []
    part_cases = document[part]
    assert isinstance(part_cases, list)
    return [pytest.param(case, id=str(case.get("id", number))) for number, case in enumerate(part_cases)]


def of(file: str, part: str) -> pytest.MarkDecorator:
    """Run a test on every case of one part of a file."""
    return pytest.mark.parametrize("case", collect(file, part))


def close(left: object, right: object) -> bool:
    """Equal, with floats to the last bits but one."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(close(left[key], right[key]) for key in left)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == pytest.approx(right, rel=1e-14)
    return left == right


@of("nprand", "vectors")
def test_stream(case: Any) -> None:
    """The stream gives numpy's numbers."""
    stream = RandomStream(case["seed"])
    if case["fn"] == "choice":
        got = [stream.integer(0, 100) for _ in case["expect"]]
    elif case["fn"] == "randint":
        low, high = (eval_integer(part) for part in case["args"].split(","))
        got = [stream.integer(low, high) for _ in case["expect"]]
    else:
        low, high = (float(part) for part in case["args"].split(","))
        got = [stream.uniform(low, high) for _ in case["expect"]]
    assert got == case["expect"]


def eval_integer(text: str) -> int:
    """The value of an integer expression such as ``(1<<60) - 10``."""
    return int(eval(compile(ast.parse(text.strip(), mode="eval"), "case", "eval"), {"__builtins__": {}}))


@of("searcher_sampling", "golden_creates")
def test_creates_from_a_state(case: Any) -> None:
    """From a recorded state of the stream come the recorded trials, and the stream stands where it stood."""
    stream = RandomStream.from_state(case["mt_state"]["key"], case["mt_state"]["pos"])
    for create in case["expect_creates"]:
        if case["hyperparameters"] is not None:
            assert close(space.sample(build.space(case["hyperparameters"]), stream), create["hparams"])
        assert space.draw_request_id(stream) == create["request_id"]
        assert space.draw_seed(stream) == create["trial_seed"]
    assert (case["mt_state"]["pos"] + stream.position) % 624 == case["expect_pos_after"] % 624


@of("searcher_sampling", "derived_creates")
def test_creates_from_a_seed(case: Any) -> None:
    """The same experiment seed gives the same trials."""
    stream = RandomStream(case["experiment_seed"])
    for create in case["expect_creates"]:
        assert close(space.sample(build.space(case["hyperparameters"]), stream), create["hparams"])
        assert space.draw_request_id(stream) == create["request_id"]
        assert space.draw_seed(stream) == create["trial_seed"]


@of("searcher_sampling", "final_asha_state")
def test_final_state(case: Any) -> None:
    """The brackets and rungs of a recorded search come out of its configuration, its metrics in recorded order."""
    config = build.search({"name": "adaptive_asha", **case["config"]})
    plans = config.brackets()
    recorded = case["search_method_state"]["sub_search_states"]
    assert [plan.max_trials for plan in plans] == [len(sub["trial_rungs"]) for sub in recorded]
    assert [list(plan.units) for plan in plans] == [[r["units_needed"] for r in sub["rungs"]] for sub in recorded]
    for sub in recorded:
        for rung in sub["rungs"]:
            rebuilt = Rung(rung["units_needed"])
            for entry in sorted(rung["metrics"], key=lambda entry: str(entry["request_id"])):
                rebuilt.insert(entry["request_id"], entry["metric"])
            assert rebuilt.values == [entry["metric"] for entry in rung["metrics"]]
            assert rebuilt.trials == [entry["request_id"] for entry in rung["metrics"]]


@of("grid", "grid_size")
def test_grid_size(case: Any) -> None:
    """A grid has as many points as its axes span."""
    assert grid.size(build.space(case["hyperparameters"])) == case["expect_size"]


@of("grid", "axis")
def test_axis(case: Any) -> None:
    """An axis takes the values of its hyperparameter."""
    hyperparameter = build.hyperparameter(case["hyperparameter"])
    if "expect_axes" in case:
        found_axes = grid.axes(build.space({case["name"]: case["hyperparameter"]}))
        got = [[{"route": list(axis.route), "value": value} for value in axis.values] for axis in found_axes]
        assert got == case["expect_axes"]
        return
    values = grid.axis_values(hyperparameter)
    assert len(values) == case["expect_len"]
    if "expect_values_derived" in case:
        assert list(values) == pytest.approx(case["expect_values_derived"])


@of("grid", "grid")
def test_grid(case: Any) -> None:
    """The points of a grid, in order of their numbers."""
    axes = grid.axes(build.space(case["hyperparameters"]))
    points = [grid.point(axes, number) for number in range(grid.size(build.space(case["hyperparameters"])))]
    if case.get("ordered", True):
        assert points == case["expect"]
    else:
        assert sorted(map(canonical, points)) == sorted(map(canonical, case["expect"]))


def canonical(value: Any) -> str:
    """A value as text: names sorted at every level, every number a float."""
    if isinstance(value, dict):
        return str([(name, canonical(value[name])) for name in sorted(value)])
    return str(float(value))


@of("grid", "sampling")
def test_sampling(case: Any) -> None:
    """A sample has the shape of its space, and the same seed gives the same sample and the same place."""
    tree = build.space(case["hyperparameters"])
    for seed in case.get("seeds", [case.get("seed", 0)]) if "seed" in case else range(50):
        first, second = RandomStream(seed), RandomStream(seed)
        sample = space.sample(tree, first)
        assert sample == space.sample(tree, second)
        assert first.position == second.position
        assert first.word() == second.word()
        assert sample == case.get("expect", sample)
        assert set(sample) == set(case["hyperparameters"])


@of("asha", "make_rungs")
def test_rung_units(case: Any) -> None:
    """Rungs lie a factor of the divisor apart, the top one at max_time."""
    assert list(brackets.rung_units(case["num_rungs"], case["max_time"], case["divisor"])) == case["expect_units"]


@of("asha", "insert_metric")
def test_insert(case: Any) -> None:
    """A metric is inserted in ascending order, before its equals."""
    rung = Rung(1)
    for value in case["existing"]:
        rung.insert(value, value)
    assert rung.place(case["new"]) == case["expect_index"]
    rung.insert(case["new"], case["new"])
    assert rung.values == case["expect_metrics"]


@of("asha", "get_metric")
def test_read_report(case: Any) -> None:
    """The searcher's metric and time are read from a report; what lacks them is refused."""
    objective = Objective(case["metric"], case["time_metric"], needs_validations=True)
    if "error_contains" in case["expect"]:
        with pytest.raises(UnusableReport, match=case["expect"]["error_contains"]):
            read_report(objective, case["metrics"], 1)
        return
    reading = read_report(objective, case["metrics"], 1)
    assert reading is not None
    assert reading.time == case["expect"]["time_step"]
    config = build.search({"name": "single", "metric": "loss", "smaller_is_better": case["smaller_is_better"]})
    assert ranked_value(config, reading.metric) == case["expect"]["metric"]


@of("asha", "early_stopping")
def test_early_stopping(case: Any) -> None:
    """A report enters the rungs it reaches, and only the best share of them goes on."""
    units = [rung["units"] for rung in case["rungs_before"]]
    config = build.asha(
        len(case["trial_rungs_before"]), 0, max_time=units[-1], num_rungs=len(units), divisor=case["divisor"]
    )
    run = build.Run(config)
    names = dict(zip(sorted(map(int, case["trial_rungs_before"])), run.ids, strict=False))
    for number, rung in enumerate(case["rungs_before"]):
        for entry in rung["metrics"]:
            run.state.apply(Rank(names[entry["trial"]], number, entry["metric"]))
    report = case["report"]
    trial = sorted(names).index(report["trial"])
    stopped = [stop.request_id for stop in build.stops(run.report(trial, report["time_step"], report["metric"]))]
    assert stopped == [names[name] for name in case["expect_stopped"]]
    for name, rung_number in case["expect_trial_rungs"].items():
        known = run.state.trials[names[int(name)]]
        assert rung_number == (known.entered if known.stopped_at is None else known.stopped_at)
    got = [list(zip(rung.trials, rung.values, strict=True)) for rung in run.state.brackets[0].rungs]
    assert got == [[(names[e["trial"]], e["metric"]) for e in rung["metrics"]] for rung in case["expect_rungs"]]


@of("asha", "bracket_max_trials")
def test_bracket_trials(case: Any) -> None:
    """Trials are shared out over brackets by cost."""
    got = adaptive_asha.bracket_trials(case["max_trials"], case["divisor"], case["bracket_rungs"])
    assert list(got) == case["expect"]


@of("asha", "bracket_max_concurrent_trials")
def test_bracket_concurrency(case: Any) -> None:
    """Concurrency is shared out evenly over brackets."""
    got = adaptive_asha.bracket_concurrency(case["max_concurrent_trials"], case["divisor"], case["bracket_max_trials"])
    assert list(got) == case["expect"]


@of("asha", "make_brackets")
def test_brackets(case: Any) -> None:
    """A configuration gives its brackets."""
    plans = build.search({"name": "adaptive_asha", **case.get("defaulted", {}), **case["config"]}).brackets()
    assert shapes(plans) == case["expect"]


def shapes(plans: tuple[brackets.BracketPlan, ...]) -> list[dict[str, int]]:
    """Brackets in the form of the case files."""
    return [
        {
            "num_rungs": len(plan.units),
            "max_trials": plan.max_trials,
            "max_concurrent_trials": plan.max_concurrent_trials,
        }
        for plan in plans
    ]


@of("asha", "simulate")
def test_preview(case: Any) -> None:
    """A preview says how many trials train how long."""
    config = build.search(case["searcher"], build.space(case["hyperparameters"]))
    expected = [(row["count"], row["unit"].get("value")) for row in case["expect_trials"]]
    assert [(row.count, row.units) for row in view.preview(config)] == expected
    assert {row["unit"].get("name") for row in case["expect_trials"]} == {view.time_metric(config)}


@of("asha", "derived_adaptive")
def test_adaptive(case: Any) -> None:
    """Brackets, rungs, first trials and preview of an adaptive search."""
    values = case["config"]
    config = SearchConfig(
        build.X,
        AdaptiveAsha(
            "batches",
            values["max_time"],
            values["max_trials"],
            Mode(values["mode"]),
            values["divisor"],
            values["max_rungs"],
            values["max_concurrent_trials"],
        ),
        "loss",
    )
    expect = case["expect"]
    plans = config.brackets()
    assert shapes(plans) == expect["brackets"]
    assert [list(plan.units) for plan in plans] == expect["rung_units"]
    assert [plan.initial_trials for plan in plans] == expect["initial_trials"]
    assert [{"count": row.count, "value": row.units} for row in view.preview(config)] == expect["preview"]
    made = [decision.bracket for decision in start(config, 0)[1] if isinstance(decision, Create)]
    assert [made.count(number) for number in range(len(plans))] == expect["initial_trials"]
    assert made == sorted(made)


@of("asha", "search_runs")
def test_search_run(case: Any) -> None:
    """A whole search, told one metric after another, stops its trials where it should."""
    run = build.Run(build.search(case["searcher"], build.space(case["hyperparameters"])))
    expect, stopped_at = case["expect"], whole_run(run, **case["runner"])
    assert len(run.ids) == expect["total_trials"]
    assert len(run.first) == expect.get("initial_trials", len(run.first))
    assert run.state.shutdown is not None
    if "rung_units" in expect:
        assert [list(bracket.plan.units) for bracket in run.state.brackets] == expect["rung_units"]
    if expect.get("none_stopped"):
        assert not stopped_at
    groups = expect.get("brackets") or ([expect] if "stopped_at" in expect else [])
    for number, group in enumerate(groups):
        mine = [time for trial, time in stopped_at.items() if run.state.trials[trial].bracket == number]
        assert {str(time): mine.count(time) for time in mine} == group["stopped_at"]


def whole_run(run: build.Run, max: int, period: int, metric_trend: str) -> dict[Any, int]:
    """Drive trials one after another; where each was stopped."""
    stopped_at: dict[Any, int] = {}
    counter, number = 0, 0
    while number < len(run.ids):
        for time in range(0, max + 1, period):
            counter += 1 if metric_trend == "increasing" else -1
            if build.stops(run.report(number, time, counter)):
                stopped_at[run.ids[number]] = time
                break
        run.exit(number)
        number += 1
    return stopped_at
