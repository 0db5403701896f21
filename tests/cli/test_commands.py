"""What commands print, ask for and end with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.experiments import experiment, serve, trial
from tests.kits.pretend_master import PretendMaster, Reply, refused


def test_help(tenax: Tenax) -> None:
    """Help names every command with its aliases and is a success."""
    done = tenax("--help")
    assert done.code == exits.OK
    assert "experiment, e" in done.out
    assert "preview-search" in done.out


@pytest.mark.parametrize(
    "arguments", [["experimnt"], ["experiment", "lst"], ["t", "describe", "x"], ["e", "list", "--bad"]]
)
def test_usage(tenax: Tenax, arguments: list[str]) -> None:
    """A command that is not written as it must be is refused with exit code 2 and a hint, without a traceback."""
    done = tenax(*arguments)
    assert done.code == exits.USAGE
    assert done.out == ""
    assert "Error" in done.err
    assert "Traceback" not in done.err


def test_suggestion(tenax: Tenax) -> None:
    """A name that is nearly right is answered with the right one."""
    assert "Did you mean 'experiment'?" in tenax("experimant").err
    assert "Did you mean 'user whoami'?" in tenax("whoami").err
    assert "Did you mean 'experiment plot'?" in tenax("plot").err
    # Many groups have it.
    assert "Did you mean" not in tenax("describe").err


def test_an_interrupt_while_it_is_loaded(tmp_path: Path) -> None:
    """Ctrl-C in the first tenth of a second is a word and an exit code, as later on."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    program = Path(sys.executable).with_name("tenax")
    done = subprocess.run(
        [program, "up"], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (exits.INTERRUPTED, "interrupted\n")


def test_list(tenax: Tenax, master: PretendMaster) -> None:
    """A list shows the caller's own experiments with the reason why one waits, aligned and without colour."""
    waiting = experiment(id=8, state="STATE_QUEUED", reason="waits for 4 slots: 2 of 2 are in use")
    master.on("GET", "/api/v1/experiments", {"experiments": [waiting, experiment()], "pagination": {}})
    done = tenax("e", "ls")
    assert done.code == exits.OK
    lines = done.out.splitlines()
    assert " ".join(lines[0].split()) == "ID NAME STATE PROGRESS TRIALS BEST OWNER SEARCHER STARTED TOOK WAITED REASON"
    assert "waits for 4 slots: 2 of 2 are in use" in lines[1]
    assert "25 %" in lines[2]
    assert "\x1b" not in done.out
    query = master.sent("GET", "/api/v1/experiments")[0].query
    assert query["users"] == ["ann"]
    assert query["archived"] == ["false"]


def test_json(tenax: Tenax, master: PretendMaster) -> None:
    """--json prints the master's answer as it came."""
    master.on("GET", "/api/v1/experiments", {"experiments": [experiment()], "pagination": {}})
    assert json.loads(tenax("experiment", "list", "--json").out) == [experiment()]


def test_describe(tenax: Tenax, master: PretendMaster) -> None:
    """An experiment is shown with its reason, its search and its trials, with the hyperparameters that differ."""
    other = trial(2, "COMPLETED", hparams={"lr": 0.5, "width": 64})
    serve(master, experiment(reason="waits for 4 slots"), trial(1, best=0.9), other)
    out = tenax("e", "describe", "7").out
    assert "waits for 4 slots" in out
    assert "adaptive_asha, largest accuracy" in out
    assert "(1 RUNNING, 1 COMPLETED)" in out
    assert "lr=0.01" in out
    assert "width" not in out
    assert "1m10s" in out


def test_no_such_experiment(tenax: Tenax, master: PretendMaster) -> None:
    """What does not exist is an error in the master's words, on stderr, with an exit code of its own."""
    master.on("GET", "/api/v1/experiments/9", refused(404, "experiment 9 not found"))
    done = tenax("e", "describe", "9")
    assert done.code == exits.NOT_FOUND
    assert done.out == ""
    assert done.err == "error: experiment 9 not found\n"


def test_not_reachable(tenax: Tenax) -> None:
    """When nothing answers the exit code says so."""
    done = tenax("-m", "http://127.0.0.1:9", "version")
    assert done.code == exits.OK
    assert "none answers at http://127.0.0.1:9" in done.out


def test_not_logged_in(tenax: Tenax, master: PretendMaster) -> None:
    """Without a login the message says how to log in."""
    done = tenax("-u", "bob", "e", "list")
    assert done.code == exits.NOT_ALLOWED
    assert "tenax user login bob" in done.err


def test_create(tenax: Tenax, master: PretendMaster, home: Path) -> None:
    """Create sends configuration and code, prints the number, and warns of what the master remarks."""
    (home / "code").mkdir()
    (home / "code" / "train.py").write_text("")
    (home / "a.yaml").write_text("name: digits # mine\n")
    answer = {"experiment": experiment(), "notices": ["max_length was read as max_time"]}
    master.on("POST", "/api/v1/experiments", {**answer, "warnings": ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]})
    done = tenax("experiment", "create", "a.yaml", "code", "--paused")
    assert done.code == exits.OK
    assert done.out == "Created experiment 7\n"
    assert "max_length was read as max_time" in done.err
    assert "more slots than the pool has now" in done.err
    body = master.asked[-1].body
    assert isinstance(body, dict)
    assert body["activate"] is False
    assert body["config"] == "name: digits # mine\n"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("searcher.max_trials=4", "max_trials: 4"),
        ("hyperparameters.lr=1e-3", "lr: 0.001"),
        ("resources.pool=yes", "pool: 'yes'"),
        ("description=a: b: c", "description: 'a: b: c'"),
    ],
)
def test_overrides(tenax: Tenax, master: PretendMaster, home: Path, override: str, expected: str) -> None:
    """--config lays a value over the file, read as YAML 1.2 is; what the file holds keeps its meaning."""
    (home / "a.yaml").write_text("searcher: {max_trials: 1, lr: 1e-5}\nquoted: '1e-5'\nflag: on\n")
    master.on("POST", "/api/v1/experiments", {"experiment": experiment()})
    assert tenax("e", "create", "a.yaml", "--config", override).code == exits.OK
    body = master.asked[-1].body
    assert isinstance(body, dict)
    text = str(body["config"])
    assert expected in text
    assert "lr: 1.0e-05" in text
    assert "quoted: '1e-5'" in text
    assert "flag: 'on'" in text


@pytest.mark.parametrize("override", ["max_trials", "=4", "a..b=1", "name.x=1"])
def test_bad_override(tenax: Tenax, master: PretendMaster, home: Path, override: str) -> None:
    """An override that does not fit is refused before anything is sent."""
    (home / "a.yaml").write_text("name: digits\n")
    done = tenax("e", "create", "a.yaml", "--config", override)
    assert done.code == exits.FAILED
    assert override in done.err
    assert not master.asked


def test_refused_configuration(tenax: Tenax, master: PretendMaster, home: Path) -> None:
    """The master's problems are shown line by line, as it wrote them."""
    (home / "a.yaml").write_text("nam: x\n")
    message = "The configuration has a problem:\n  nam (line 1): unknown key 'nam'; did you mean 'name'?"
    master.on("POST", "/api/v1/experiments", refused(400, message))
    done = tenax("e", "create", "a.yaml")
    assert done.code == exits.FAILED
    assert done.err == f"error: {message}\n"


def test_wait(tenax: Tenax, master: PretendMaster) -> None:
    """Waiting tells of changes on stderr, ends with the best trials, and the exit code tells how it ended."""
    serve(master, experiment(state="STATE_COMPLETED"), trial(1, best=0.8), trial(2, best=0.9))
    done = tenax("e", "wait", "7")
    assert done.code == exits.OK
    rows = [row.split()[0] for row in done.out.splitlines()]
    assert rows == ["TRIAL", "2", "1"]
    assert "Experiment 7 COMPLETED" in done.err


@pytest.mark.parametrize("state", ["ERROR", "CANCELED"])
def test_wait_for_a_failure(tenax: Tenax, master: PretendMaster, state: str) -> None:
    """An experiment that did not complete has an exit code of its own, and its reason is told."""
    serve(master, experiment(state=f"STATE_{state}", reason="too many trials failed"))
    done = tenax("e", "wait", "7")
    assert done.code == exits.NOT_COMPLETED
    assert "too many trials failed" in done.err


def test_follow_one_trial(tenax: Tenax, master: PretendMaster) -> None:
    """An experiment of one trial is followed by its output."""
    single = experiment(state="STATE_COMPLETED", searcherType="single", numTrials=1)
    serve(master, single, trial(3, "COMPLETED"))
    line = {"result": {"id": "1", "message": "hello\n", "level": "LOG_LEVEL_INFO"}}
    master.on("GET", "/api/v1/trials/3/logs", Reply(lines=[line]))
    done = tenax("e", "wait", "7")
    assert done.out == "hello\n"
    assert master.sent("GET", "/api/v1/trials/3/logs")[0].query["follow"] == ["true"]


def test_verbs(tenax: Tenax, master: PretendMaster) -> None:
    """A verb is done to each experiment that is named, also after one has refused, and the refusal is the exit code."""
    master.on("GET", "/api/v1/experiments/7", {"experiment": experiment()})
    master.on("POST", "/api/v1/experiments/7/pause", {})
    done = tenax("e", "pause", "5", "7")
    assert done.code == exits.NOT_FOUND
    assert done.out == "Experiment 7 is pausing\n"
    assert "experiment 5" in done.err


def test_delete_asks(tenax: Tenax, master: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete does nothing unless the person says yes."""
    master.on("GET", "/api/v1/experiments/7", {"experiment": experiment()})
    master.on("DELETE", "/api/v1/experiments/7", {})
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    assert tenax("e", "delete", "7").code == exits.FAILED
    assert not master.sent("DELETE", "/api/v1/experiments/7")
    assert tenax("e", "delete", "7", "--yes").code == exits.OK
    assert master.sent("DELETE", "/api/v1/experiments/7")


def test_trial_metrics(tenax: Tenax, master: PretendMaster) -> None:
    """Metrics are a table with a row a step and a column a name."""
    master.on("GET", "/api/v1/trials/3", {"trial": trial(3)})
    reports = [
        {"totalBatches": step, "trialRunId": 1, "group": "validation", "metrics": {"avg_metrics": {"loss": 1 / step}}}
        for step in (1, 3)
    ]
    master.on("GET", "/api/v1/trials/metrics/trial_metrics", Reply(lines=[{"result": {"metrics": reports}}]))
    assert [row.split() for row in tenax("t", "metrics", "3").out.splitlines()] == [
        ["STEP", "loss"],
        ["1", "1"],
        ["3", "0.333333"],
    ]


def test_agents_and_slots(tenax: Tenax, master: PretendMaster) -> None:
    """Agents are listed with their free slots, slots with what runs on them."""
    device = {"type": "TYPE_CPU", "brand": "Some CPU"}
    slots = {
        "0": {"id": "0", "device": device, "enabled": True, "container": {"id": "c1"}},
        "1": {"id": "1", "device": device, "enabled": True},
    }
    agent = {"id": "box", "enabled": True, "resourcePools": ["default"], "slots": slots, "containers": {"c1": {}}}
    master.on("GET", "/api/v1/agents", {"agents": [agent]})
    assert tenax("a", "list").out.splitlines()[1].split()[:6] == ["box", "enabled", "default", "2", "1", "1"]
    assert "in use" in tenax("s", "list").out.splitlines()[1]
    assert json.loads(tenax("s", "list", "--json").out)[1]["containerId"] == ""


def test_login(tenax: Tenax, master: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The password is read from standard input when asked to, and never shown."""
    import io

    master.on("POST", "/api/v1/auth/login", {"token": "fresh"})
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    done = tenax("user", "login", "bob", "--password-stdin")
    assert done.code == exits.OK
    assert "secret" not in done.out + done.err
    assert tenax("user", "whoami").out == f"ann at {master.url}, by the login that tenax user login remembered\n"
    assert master.asked[-1].headers["Authorization"] == "Bearer fresh"


def test_logout(tenax: Tenax, master: PretendMaster) -> None:
    """After logging out the token is forgotten here and ended there."""
    master.on("POST", "/api/v1/auth/logout", {})
    assert tenax("user", "logout").code == exits.OK
    assert len(master.sent("POST", "/api/v1/auth/logout")) == 1
    assert tenax("user", "whoami").code == exits.NOT_ALLOWED


def test_preview(tenax: Tenax, master: PretendMaster, home: Path) -> None:
    """A preview says how many trials train for how long."""
    (home / "a.yaml").write_text("searcher: {name: random}\n")
    trials = [
        {"count": 12, "unit": {"name": "batches", "value": 100}},
        {"count": 4, "unit": {"maxLength": True}},
    ]
    master.on("POST", "/api/v1/preview-hp-search", {"summary": {"trials": trials}})
    out = tenax("preview-search", "a.yaml").out
    assert [row.split() for row in out.splitlines()[1:]] == [["12", "100", "batches"], ["4", "the", "whole", "length"]]


def test_status_of_nothing(tenax: Tenax) -> None:
    """Where no cluster ever was, status says how to start one."""
    done = tenax("status")
    assert done.code == exits.UNREACHABLE
    assert "tenax up" in done.err


def test_down_of_nothing(tenax: Tenax) -> None:
    """Stopping what is not up is a success that says so."""
    done = tenax("down")
    assert done.code == exits.OK
    assert "No cluster is up" in done.err
