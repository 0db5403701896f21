"""What is only seen on a terminal, and Ctrl-C."""

from __future__ import annotations

import datetime
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from tenax.cli.console import exits, trial_status
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.experiments import experiment, serve, trial
from tests.kits.cli.terminal import TENAX, on_terminal, plain
from tests.kits.pretend_master import Asked, PretendMaster, Reply

ESCAPE = "\x1b["


def test_live_table(master: PretendMaster) -> None:
    """On a terminal a search is one table that is kept up to date, and ends with the best trials."""
    running = {"experiment": experiment(numTrials=2)}
    serve(master, experiment(), trial(1, best=0.8), trial(2, best=0.9))
    master.on("GET", "/api/v1/experiments/7", running, running, {"experiment": experiment(state="STATE_COMPLETED")})
    with on_terminal("e", "wait", "7") as terminal:
        terminal.until("Ctrl-C detaches")
        assert terminal.end() == exits.OK
        assert ESCAPE in terminal.shown
        assert "25 %" in plain(terminal.shown)
        last = plain(terminal.shown).split("Experiment 7 COMPLETED")[-1]
        assert last.index("0.9") < last.index("0.8")
        assert re.search(r"next +tenax trial metrics 2\n?", last)


def test_what_comes_next_is_what_the_search_allows(master: PretendMaster) -> None:
    """After a cancel one without rungs goes on; what one with rungs has stopped stays so, and it is forked."""
    rungs = {"name": "adaptive_asha", "metric": "accuracy", "time_metric": "epochs", "max_time": 4}
    for searcher, verb in ((rungs, "fork"), ({"name": "random", "metric": "accuracy"}, "continue")):
        one = experiment(config={"searcher": searcher}, searcherType=searcher["name"], continuable=verb == "continue")
        serve(master, one, trial(1, "CANCELED"), trial(2, "CANCELED"))
        master.on(
            "GET", "/api/v1/experiments/7", {"experiment": one}, {"experiment": {**one, "state": "STATE_CANCELED"}}
        )
        with on_terminal("e", "wait", "7") as terminal:
            terminal.end()
        assert f"tenax experiment {verb} 7 -f" in plain(terminal.shown)


def test_a_terminal_that_cannot_be_written_over(master: PretendMaster) -> None:
    """Gets the dated lines that a file gets, while the search runs."""
    running = {"experiment": experiment(numTrials=2)}
    serve(master, experiment(), trial(1, best=0.8), trial(2, best=0.9))
    master.on("GET", "/api/v1/experiments/7", running, running, {"experiment": experiment(state="STATE_COMPLETED")})
    with on_terminal("e", "wait", "7", TERM="dumb") as terminal:
        assert terminal.end() == exits.OK
    assert re.search(r"^\d\d:\d\d:\d\d  RUNNING  25 %  2 trials \(2 RUNNING\)", terminal.shown, re.M)
    assert ESCAPE not in terminal.shown


def test_the_bar_without_colour(master: PretendMaster) -> None:
    """What is done and what is not are different characters; with colour, the same in two colours."""
    running, ended = {"experiment": experiment(progress=0.5)}, {"experiment": experiment(state="STATE_COMPLETED")}
    for variables, bar in (({"NO_COLOR": "1"}, "━" * 30 + "·" * 30), ({}, "━" * 60)):
        serve(master, experiment(), trial(1))
        master.on("GET", "/api/v1/experiments/7", running, running, ended)
        with on_terminal("e", "wait", "7", **variables) as terminal:
            terminal.until("Ctrl-C detaches")
            assert bar in plain(terminal.shown).splitlines()
            assert terminal.end() == exits.OK


SINGLE = {"searcherType": "single", "numTrials": 1, "progress": 0.25, "runningSeconds": 60.0}
STATUS = "25 %, about 3m00s left  step 5  accuracy 0.8"


def test_how_far_a_trial_is_stands_below_its_output(master: PretendMaster) -> None:
    """On a terminal: its output is above it, whole, and nothing of it is left at the end."""
    serve(master, experiment(**SINGLE), trial(3))
    master.on("GET", "/api/v1/trials/3", {"trial": trial(3, best=0.8)})
    lines = [{"result": {"id": str(at), "message": f"line {at}"}} for at in range(2)]
    shown = threading.Event()

    def logs(_: Asked) -> Reply:
        first = not master.sent("GET", "/api/v1/trials/3/logs")[1:]
        assert first or shown.wait(60)
        return Reply(lines=[lines[0]] if first else lines, broken=True)

    master.answers["GET", "/api/v1/trials/3/logs"] = logs
    with on_terminal("e", "wait", "7") as terminal:
        terminal.until(STATUS)
        shown.set()
        terminal.until("line 1")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == exits.INTERRUPTED
    assert re.search(rf"\r\x1b\[2K\x1b\[2m{STATUS}\x1b\[0m\r\x1b\[2Kline 1(\x1b\[0m)?\r\n", terminal.shown)
    last_drawn, _, end = terminal.shown.rpartition(STATUS)
    assert "line 0" in last_drawn
    assert ESCAPE + "2K" in end.partition("Detached")[0]


def test_how_far_a_trial_is_off_a_terminal(
    master: PretendMaster, tenax: Tenax, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dated line now and then, and once what to call where nobody says it."""
    monkeypatch.setattr(trial_status, "_LINE_EVERY", datetime.timedelta(0))
    monkeypatch.setattr(trial_status, "_HINT_AFTER_S", 0.0)
    silent = {**SINGLE, "progress": 0.0, "config": SILENT}
    serve(master, experiment(**silent), trial(3))
    asked = threading.Event()

    def answer(_: Asked) -> Reply:
        if len(master.sent("GET", "/api/v1/trials/3")) > 1:
            serve(master, experiment(**{**silent, "state": "STATE_COMPLETED"}), trial(3, "COMPLETED", best=0.8))
            asked.set()
        return Reply({"trial": trial(3, best=0.8)})

    def logs(_: Asked) -> Reply:
        assert asked.wait(60)
        return Reply(lines=[])

    master.answers["GET", "/api/v1/trials/3"] = answer
    master.answers["GET", "/api/v1/trials/3/logs"] = logs
    done = tenax("e", "wait", "7")
    assert done.code == exits.OK
    assert re.search(r"^\d\d:\d\d:\d\d  0 %  step 5  accuracy 0.8$", done.err, re.M)
    assert done.err.count(HINT) == 1


def test_a_search_that_failed_ends_with_where_to_look(master: PretendMaster) -> None:
    """The log of a trial that failed."""
    serve(master, experiment(state="STATE_ERROR"), trial(1, best=0.8, state="COMPLETED"), trial(2, state="ERROR"))
    with on_terminal("e", "wait", "7") as terminal:
        assert terminal.end() == exits.NOT_COMPLETED
        assert "tenax trial logs 2 --tail 50" in terminal.shown


def test_the_configuration_is_not_shown_while_a_trial_is_followed(master: PretendMaster, tenax: Tenax) -> None:
    """It is in the log, whose other lines are shown as they are."""
    serve(master, experiment(searcherType="single", state="STATE_COMPLETED"), trial(3))
    begins = "INFO: New trial runner in (container c) on agent box"
    logged = [begins + ': {"name":"digits"}', 'loss: {"a": 1}']
    lines: list[object] = [{"result": {"id": str(at), "message": text}} for at, text in enumerate(logged)]
    master.on("GET", "/api/v1/trials/3", {"trial": trial(3)})
    master.on("GET", "/api/v1/trials/3/logs", Reply(lines=lines))
    shown = tenax("e", "wait", "7").out.splitlines()
    assert shown[:2] == [begins, logged[1]]
    assert tenax("t", "logs", "3").out.splitlines() == logged
    # It filled the terminal of who looked for the first line of a script.
    with on_terminal("t", "logs", "3") as terminal:
        assert terminal.end() == exits.OK
        assert plain(terminal.shown).splitlines() == shown[:2]


@pytest.mark.parametrize("searcher", ["adaptive_asha", "single"])
def test_ctrl_c_detaches(master: PretendMaster, searcher: str) -> None:
    """Ctrl-C while an experiment is followed ends the command, not the experiment, and says how to come back."""
    serve(master, experiment(searcherType=searcher), trial(3))
    line = {"result": {"id": "1", "message": "hello from the script", "level": "LOG_LEVEL_INFO"}}
    master.on("GET", "/api/v1/trials/3/logs", Reply(lines=[line], broken=True))
    with on_terminal("e", "wait", "7") as terminal:
        terminal.until("hello from the script" if searcher == "single" else "Ctrl-C detaches")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == exits.INTERRUPTED
        assert "tenax experiment wait 7" in terminal.shown
        assert "Traceback" not in terminal.shown
    assert not [request for request in master.asked if request.method == "POST"]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (80, 40), (200, 50)])
def test_all_of_the_live_view_is_on_the_terminal(master: PretendMaster, columns: int, lines: int) -> None:
    """However long names and reasons are: the hint stands at its end, and what has no room is counted."""
    many = {f"hyperparameter_{number}": 0.123456 * number for number in range(9)}
    trials = [trial(number, best=0.1 * number, hparams={**many, "lr": number}, reason="r" * 90) for number in range(40)]
    one = {"experiment": experiment(numTrials=40, reason="a reason of many words " * 8)}
    serve(master, experiment(), *trials)
    data = [{"batches": step, "time": "2026-01-02T03:04:05Z", "values": {"accuracy": step / 9}} for step in range(9)]
    series = [{"trial": {"id": number}, "metrics": [{"data": data}]} for number in range(40)]
    master.on("GET", "/api/v1/trials/time-series", {"trials": series})
    master.on("GET", "/api/v1/experiments/7", one, one, {"experiment": experiment(state="STATE_COMPLETED")})
    with on_terminal("e", "wait", "7", COLUMNS=str(columns), LINES=str(lines)) as terminal:
        terminal.until("Ctrl-C detaches; the experiment keeps running.")
        frame = plain(terminal.shown).split("Ctrl-C detaches")[0].splitlines()
        assert terminal.end() == exits.OK
    assert len(frame) < lines
    assert max(map(len, frame)) <= columns
    shown = "\n".join(frame)
    assert "accuracy by step" in shown or lines == 24
    assert re.search(r"TRIAL .*\n.*RUNNING", shown)
    hidden = re.search(r"and (\d+) more: a higher terminal shows them", shown)
    assert hidden is not None
    assert int(hidden[1]) + len(re.findall(r"^ *\d+  RUNNING", shown, re.M)) == 40


def test_the_best_above_the_table_is_the_best_in_it(master: PretendMaster, tenax: Tenax) -> None:
    """Though trials go on between the answers about the experiment and about them; off a terminal, too."""
    one = experiment(bestTrialSearcherMetric=0.5, bestTrialId=1)
    ended = {"experiment": {**one, "state": "STATE_COMPLETED"}}
    serve(master, one, trial(1, best=0.8), trial(2, best=0.9))
    master.on("GET", "/api/v1/experiments/7", {"experiment": one}, {"experiment": one}, ended)
    with on_terminal("e", "wait", "7") as terminal:
        terminal.until("Ctrl-C detaches")
        assert "best accuracy 0.9 (trial 2)" in plain(terminal.shown)
        assert terminal.end() == exits.OK
    master.on("GET", "/api/v1/experiments/7", {"experiment": one}, {"experiment": one}, ended)
    assert "2 trials (2 RUNNING)  best accuracy 0.9 (trial 2)" in tenax("e", "wait", "7").err


SILENT = {"searcher": {"name": "random", "metric": "accuracy", "smaller_is_better": False}}
HINT = "the script can say how far it is with train.report_progress(0.5), or max_length"


@pytest.mark.parametrize("name", ["digits", "a-search-" * 12])
def test_nothing_of_what_the_live_view_says_is_cut(master: PretendMaster, name: str) -> None:
    """On 80 columns what to call, the progress, all states and the best are whole; of a long name so much as fits."""
    states = ("RUNNING", "QUEUED", "COMPLETED", "ERROR", "CANCELED", "PAUSED", "STOPPING_COMPLETED")
    trials = [trial(number, state, best=0.1 * number) for number, state in enumerate(states, 1)]
    best = {"bestTrialSearcherMetric": 0.7, "bestTrialId": 7}
    one = experiment(name=name, progress=0.0, config=SILENT, searcherType="random", runningSeconds=8.0, **best)
    serve(master, one, *trials)
    ended = {"experiment": {**one, "state": "STATE_COMPLETED", "reason": "its reason " * 20}}
    master.on("GET", "/api/v1/experiments/7", {"experiment": one}, {"experiment": one}, ended)
    with on_terminal("e", "wait", "7", COLUMNS="80", LINES="40") as terminal:
        terminal.until("Ctrl-C detaches")
        frame = plain(terminal.shown).split("TRIAL")[0].splitlines()
        assert terminal.end() == exits.OK
    end = plain(terminal.shown).partition("Experiment 7 COMPLETED after")[2].split("\n\n")[0].splitlines()
    assert len(end) > 3
    assert max(map(len, end)) <= 80
    assert max(map(len, frame)) <= 80
    assert re.search(r"^Experiment 7 \S+  RUNNING  0 %  8s$", frame[0])
    shown = " ".join(" ".join(frame).split())
    assert HINT in shown
    assert "1 STOPPING) best accuracy 0.7 (trial 7)" in shown


def test_details_are_broken_between_words(master: PretendMaster) -> None:
    """Of an experiment of one trial, on 80 columns; what goes into a pipe is not broken at all."""
    one = experiment(progress=0.0, config=SILENT, numTrials=1, description="why " * 40 + "/a/" + "path-" * 20)
    serve(master, one, trial(1, best=0.8, runningSeconds=39.0, hparams={"lr": 0.1, "sleep": 1, "width": 64}))
    with on_terminal("e", "describe", "7", COLUMNS="80") as terminal:
        assert terminal.end() == exits.OK
    lines = plain(terminal.shown).splitlines()
    assert [len(line) > 80 for line in lines].count(True) == 1
    shown = " ".join(" ".join(lines).split())
    for whole in (HINT, "/a/" + "path-" * 20, "lr=0.1 sleep=1 width=64"):
        assert whole in shown
    piped = subprocess.run([TENAX, "e", "describe", "7"], capture_output=True, text=True)
    assert f"progress     0 %: {HINT}\n" in piped.stdout


def test_colour(master: PretendMaster) -> None:
    """A terminal gets colours, and none where the person wants none."""
    master.on("GET", "/api/v1/experiments", {"experiments": [experiment()], "pagination": {}})
    with on_terminal("e", "list") as terminal:
        assert terminal.end() == exits.OK
        assert ESCAPE in terminal.shown
    with on_terminal("e", "list", NO_COLOR="1") as terminal:
        assert terminal.end() == exits.OK
        assert not re.search(r"\x1b\[3\dm", terminal.shown)
        assert "digits" in terminal.shown


def test_a_reader_that_has_enough(master: PretendMaster) -> None:
    """A pipe that is closed early is no error."""
    master.on("GET", "/api/v1/experiments", {"experiments": [experiment()] * 2000, "pagination": {}})
    command = f"set -o pipefail; {TENAX} e list | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == exits.OK
    assert done.stderr == ""
    assert done.stdout.startswith(" ID") or done.stdout.startswith("ID")


def test_messages_and_tables_in_one_file() -> None:
    """They stand there in the order in which they were printed, though Python keeps back what goes into a file."""
    script = "from tenax.cli.console import output; print('table'); output.say('message'); print('document')"
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.stdout.split() == ["table", "message", "document"]
