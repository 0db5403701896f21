"""Learning curves from the command line: in lists, on a terminal, in a file, and at the end of what was followed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.experiments import SEARCHER, experiment, serve, trial
from tests.kits.cli.terminal import on_terminal, plain
from tests.kits.pretend_master import PretendMaster, Reply, refused

SERIES = "/api/v1/trials/time-series"
BRAILLE = re.compile("[\u2801-\u28ff]")


def series(*numbers: int, metric: str = "accuracy", values: tuple[object, ...] = (0.1, 0.4, "NaN", 0.8)) -> object:
    data = [
        {"batches": 10 * (at + 1), "time": "2026-01-02T03:04:05Z", "values": {metric: value}}
        for at, value in enumerate(values)
    ]
    return {"trials": [{"trial": {"id": number}, "metrics": [{"data": data}]} for number in numbers]}


@pytest.fixture
def curves(master: PretendMaster) -> PretendMaster:
    """Two trials that reported."""
    serve(master, experiment(), trial(1, best=0.8), trial(2, best=0.9, hparams={"lr": 0.1, "width": 64}))
    master.on("GET", SERIES, series(1, 2))
    master.on("GET", "/api/v1/experiments/7/metric-names", {"validation": ["accuracy", "loss"], "training": ["loss"]})
    for number in (1, 2):
        master.on("GET", f"/api/v1/trials/{number}", {"trial": trial(number, best=0.8)})
        summary = {"validation": {"accuracy": {"type": "number", "count": 4}, "note": {"type": "string"}}}
        master.on("GET", f"/api/v1/trials/{number}/metric-summaries", summary)
    return master


def test_plot(tenax: Tenax, curves: PretendMaster) -> None:
    """The best trials' curves of the searcher's metric, named by what tells them apart."""
    done = tenax("e", "plot", "7")
    assert done.code == exits.OK, done.err
    assert BRAILLE.search(done.out)
    assert "a trial 2 lr=0.1: last 0.8   b trial 1 lr=0.01: last 0.8" in done.out
    assert "2 of 8 values are no finite number" in done.out
    (asked,) = curves.sent("GET", SERIES)
    assert (asked.query["metricNames"], asked.query["group"]) == (["accuracy"], ["validation"])
    tenax("e", "plot", "7", "--metric", "loss", "--group", "training", "--trial", "1")
    asked = curves.sent("GET", SERIES)[-1]
    assert (asked.query["trialIds"], asked.query["group"]) == (["1"], ["training"])


def test_trials_that_nothing_ranks_are_not_called_the_best(tenax: Tenax, curves: PretendMaster) -> None:
    """They come in their order: those that failed, or whose experiment ranks by a metric that no validation has."""
    assert "The best 1 of 2 trials: --best N shows more" in tenax("e", "plot", "7", "--best", "1").err
    serve(
        curves, experiment(config={"searcher": {**SEARCHER, "metric": "acuracy"}}), *(trial(at) for at in range(1, 13))
    )
    curves.on("GET", SERIES, series(*range(1, 6)))
    assert "The first 5 of 12 trials: --best N shows more" in tenax("e", "plot", "7", "--metric", "accuracy").err
    failed = [trial(at, "ERROR") for at in range(1, 13)]
    serve(curves, experiment(state="STATE_ERROR", numTrials=12), *failed)
    assert "The first 10 of 12 trials:" in tenax("e", "wait", "7").err


def test_a_long_reason_is_said_once(tenax: Tenax, master: PretendMaster) -> None:
    """Of trials that failed alike; each for programs, and one of a few words for people, too."""
    long = "your code raised ValueError: a wrong shape (exited with code 1); it is not tried again"
    serve(
        master,
        experiment(state="STATE_ERROR", numTrials=4),
        *(trial(at, "ERROR", reason=long) for at in (1, 2)),
        *(trial(at, "ERROR", reason="killed by SIGKILL") for at in (3, 4)),
    )
    shown = " ".join(tenax("e", "list-trials", "7").out.split())
    assert (shown.count("a wrong shape"), shown.count("as trial 1"), shown.count("killed by SIGKILL")) == (1, 1, 2)
    assert tenax("e", "list-trials", "7", "--csv").out.count(long) == 2


def test_a_plot_is_no_higher_than_its_terminal(curves: PretendMaster) -> None:
    """Its top scrolled away above a long legend."""
    long = {f"parameter_{letter}": 0.125 for letter in "abcd"}
    many = [trial(at, best=0.8, hparams={name: at * value for name, value in long.items()}) for at in range(1, 6)]
    serve(curves, experiment(), *many)
    curves.on("GET", SERIES, series(*range(1, 6)))
    with on_terminal("e", "plot", "7", COLUMNS="60", LINES="24") as terminal:
        assert terminal.end() == exits.OK
        shown = plain(terminal.shown).rstrip().splitlines()
    assert shown[0] == "accuracy by step"
    assert sum("trial" in line for line in shown) == 5
    assert 20 <= len(shown) < 24, shown


def test_a_metric_of_two_groups_is_that_of_the_validation(tenax: Tenax, curves: PretendMaster) -> None:
    """As the search and -f have it; metrics that are named together are of one group, where one has them all."""
    both = {"training": ["loss", "lr"], "validation": ["accuracy", "loss"]}
    curves.on("GET", "/api/v1/experiments/7/metric-names", both)
    numbers = {group: {name: {"type": "number", "count": 4} for name in names} for group, names in both.items()}
    curves.on("GET", "/api/v1/trials/1/metric-summaries", numbers)
    loss, lr, accuracy = (("--metric", name) for name in ("loss", "lr", "accuracy"))

    def asked(*arguments: str) -> list[list[str]]:
        before = len(curves.sent("GET", SERIES))
        assert tenax(*arguments).code == exits.OK
        return [request.query["group"] for request in curves.sent("GET", SERIES)[before:]]

    for command in (("e", "plot", "7"), ("t", "metrics", "1", "--plot")):
        assert asked(*command, *loss) == [["validation"]]
        assert asked(*command, *accuracy, *loss) == [["validation"]] * 2
        assert asked(*command, *loss, *lr) == [["training"]] * 2
        assert asked(*command, *loss, *lr, *accuracy) == [["validation"], ["training"], ["validation"]]
        assert asked(*command, *loss, "--group", "training") == [["training"]]


def test_plot_refuses(tenax: Tenax, curves: PretendMaster) -> None:
    """A file of another kind, a trial of another experiment, and a metric that nobody reported, which it is near to."""
    assert "ends in neither" in tenax("e", "plot", "7", "--save", "curve.pdf").err
    assert "no trial 9" in tenax("e", "plot", "7", "--trial", "9").err
    done = tenax("e", "plot", "7", "--metric", "acuracy")
    assert (done.code, "there is accuracy" in done.err) == (exits.NOT_FOUND, True)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("PNG", b"\x89PNG")])
def test_saved(tenax: Tenax, curves: PretendMaster, tmp_path: Path, suffix: str, start: bytes) -> None:
    """The ending of the file says what it is; its path is all that is printed."""
    path = tmp_path / f"curve.{suffix}"
    done = tenax("e", "plot", "7", "--save", str(path), "--log")
    assert (done.code, done.out) == (exits.OK, f"{path}\n")
    assert path.read_bytes().startswith(start)


def test_curves_of_trials(tenax: Tenax, curves: PretendMaster) -> None:
    """A plot for each metric that has numbers; several trials are in one."""
    done = tenax("t", "metrics", "1", "2", "--plot")
    assert done.code == exits.OK, done.err
    assert done.out.count(" by step") == 1
    assert "a trial 1" in done.out
    assert "b trial 2" in done.out
    with on_terminal("t", "metrics", "1", COLUMNS="80") as terminal:
        assert terminal.end() == exits.OK
        shown = plain(terminal.shown)
        assert BRAILLE.search(shown)
        assert max(len(line) for line in shown.splitlines()) <= 80


def test_tables_of_trials(tenax: Tenax, curves: PretendMaster) -> None:
    """Several trials are in one table, each row with its trial."""
    report = {"trialId": 1, "totalBatches": 5, "trialRunId": 1, "group": "validation"}
    reports = [{**report, "metrics": {"avg_metrics": {"accuracy": 0.5}}}]
    curves.on("GET", "/api/v1/trials/metrics/trial_metrics", Reply(lines=[{"result": {"metrics": reports}}]))
    rows = [row.split() for row in tenax("t", "metrics", "1", "2").out.splitlines()]
    assert rows == [["TRIAL", "STEP", "accuracy"], ["1", "5", "0.5"], ["1", "5", "0.5"]]
    assert tenax("t", "metrics", "1", "--plot", "--csv").code == exits.USAGE
    for wrong in (["--table"], ["--plot"], ["--csv"]):
        done = tenax("t", "metrics", "1", "--metric", "acuracy", *wrong)
        assert (done.code, "there is accuracy" in done.err, done.out) == (exits.NOT_FOUND, True, "")
    summary = {"validation": {"accuracy": {"count": 4}}, "training": {"loss": {"count": 4}}}
    curves.on("GET", "/api/v1/trials/1/metric-summaries", summary)
    done = tenax("t", "metrics", "1", "--metric", "loss", "--table")
    assert "it is among the training metrics: --group training" in done.err


def test_lists_have_a_curve(tenax: Tenax, curves: PretendMaster) -> None:
    """A line of a list shows how a trial went; a list does not fail for it, and programs get what they always got."""
    assert "▁▄×█" in tenax("t", "list", "7").out
    assert "▁▄×█" in tenax("e", "describe", "7").out
    assert "curve" not in tenax("t", "list", "7", "--csv").out
    curves.on("GET", SERIES, refused(500, "no"))
    done = tenax("t", "list", "7")
    assert (done.code, "CURVE" in done.out) == (exits.OK, False)


def test_live_curves(curves: PretendMaster) -> None:
    """While a search runs its best trials are drawn, and hyperparameters are whole on 80 columns."""
    running, ended = {"experiment": experiment()}, {"experiment": experiment(state="STATE_COMPLETED")}
    curves.on("GET", "/api/v1/experiments/7", running, running, ended)
    with on_terminal("e", "wait", "7", COLUMNS="80", LINES="40") as terminal:
        terminal.until("Ctrl-C detaches")
        live = plain(terminal.shown)
        assert BRAILLE.search(live)
        assert "lr=0.01" in live
        assert terminal.end() == exits.OK
        assert BRAILLE.search(plain(terminal.shown).split("COMPLETED after")[-1])


def followed(master: PretendMaster, state: str) -> str:
    """What is shown to the end of an experiment of one trial."""
    serve(
        master,
        experiment(state=f"STATE_{state}", searcherType="single", numTrials=1, continuable=True),
        trial(1, state, best=0.8),
    )
    line = {"id": "1", "timestamp": "2026-01-02T03:04:05.123456Z", "level": "LOG_LEVEL_INFO", "log": "epoch 1 done\n"}
    message = "[2026-01-02T03:04:05.123456Z] 0f3c2a1b || epoch 1 done\n"
    master.on("GET", "/api/v1/trials/1/logs", Reply(lines=[{"result": {**line, "message": message}}]))
    files = {"state": "STATE_COMPLETED", "metadata": {"steps_completed": 5}, "resources": {"w": 1}}
    saved = [{"uuid": "gone", **files, "state": "STATE_DELETED"}, {"uuid": "0f1e-whole", **files}]
    master.on("GET", "/api/v1/trials/1/checkpoints", {"checkpoints": saved, "pagination": {"total": 2, "endIndex": 2}})
    with on_terminal("e", "wait", "7", COLUMNS="80", TZ="UTC") as terminal:
        terminal.end()
        return plain(terminal.shown)


def test_a_single_trial_ends_with_what_came_of_it(curves: PretendMaster) -> None:
    """Its curve, its best metric, its checkpoint, and the next command; lines of output have the time of day alone."""
    shown = followed(curves, "COMPLETED")
    assert "03:04:05 epoch 1 done" in shown
    assert "2026-01-02T" not in shown
    assert BRAILLE.search(shown)
    end = shown.split("COMPLETED after")[-1]
    assert "accuracy 0.8 at step 5" in end
    assert "0f1e-whole at step 5" in end
    assert "tenax checkpoint download 0f1e-whole" in end


def test_the_next_command_is_of_the_end(curves: PretendMaster) -> None:
    """After a failure the log, after a cancel how it goes on."""
    assert "tenax trial logs 1 --tail 50" in followed(curves, "ERROR")
    assert "tenax experiment continue 7 -f" in followed(curves, "CANCELED")


def test_continue_shows_what_is_new(tenax: Tenax, curves: PretendMaster) -> None:
    """The output of before is not shown again."""
    one = experiment(state="STATE_COMPLETED", searcherType="single", numTrials=1)
    serve(curves, one, trial(1, "COMPLETED", best=0.8))
    curves.on("POST", "/api/v1/experiments/continue", {"experiment": one})
    curves.on("GET", "/api/v1/trials/1/checkpoints", {"checkpoints": []})
    line = {"result": {"id": "1", "timestamp": "2026-01-02T03:04:05.123456Z", "message": "last", "log": "last"}}
    curves.on("GET", "/api/v1/trials/1/logs", Reply(lines=[line]), Reply(lines=[]))
    assert tenax("e", "continue", "7", "-f").code == exits.OK
    last, rest = curves.sent("GET", "/api/v1/trials/1/logs")
    assert last.query["orderBy"] == ["ORDER_BY_DESC"]
    assert rest.query["timestampAfter"] == ["2026-01-02T03:04:05.123457+00:00"]
