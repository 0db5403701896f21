"""What lists and details show is what is: checkpoints that exist, times that ran, the best first, names that fit."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.experiments import experiment, serve, trial
from tests.kits.cli.terminal import TENAX, on_terminal, plain
from tests.kits.pretend_master import PretendMaster, Reply, refused


def checkpoint(name: str, state: str = "COMPLETED", metric: float | None = None) -> dict[str, object]:
    training = {"trialId": 1, "experimentId": 7, "searcherMetric": metric}
    return {"uuid": name, "state": f"STATE_{state}", "metadata": {"steps_completed": 5}, "training": training}


def test_checkpoints_that_exist(tenax: Tenax, master: PretendMaster) -> None:
    """Deleted ones are listed where they are asked for, and are never among the best."""
    serve(master, experiment(), trial(1))
    saved = [checkpoint("gone", "DELETED", 0.99), checkpoint("half", "PARTIALLY_DELETED", 0.9), checkpoint("whole")]
    page = {"checkpoints": saved, "pagination": {"endIndex": 3, "total": 3}}
    master.on("GET", "/api/v1/experiments/7/checkpoints", page)
    assert "gone" not in tenax("c", "list", "7").out
    best = tenax("c", "list", "7", "--best", "1").out
    assert ("half" in best, "gone" in best) == (True, False)
    assert "gone" in tenax("c", "list", "7", "--deleted").out
    assert "gone" in tenax("c", "list", "7", "--state", "DELETED").out
    master.on("GET", "/api/v1/trials/1", {"trial": trial(1)})
    master.on("GET", "/api/v1/trials/1/checkpoints", page)
    assert "gone" not in tenax("t", "describe", "1").out


def test_took_is_running_time(tenax: Tenax, master: PretendMaster) -> None:
    """Waiting has a column of its own; a master that does not say it is shown as before."""
    serve(master, experiment(runningSeconds=12), trial(1, runningSeconds=0.0), trial(2, runningSeconds=60.5))
    header, first, second = tenax("t", "list", "7").out.splitlines()
    assert header.split()[-2:] == ["TOOK", "WAITED"]
    assert first.split()[-2:] == ["0s", "1m10s"]
    assert second.split()[-2:] == ["1m00s", "9s"]
    assert ["took", "12s"] in [line.split() for line in tenax("e", "describe", "7").out.splitlines()]
    serve(master, experiment(), trial(1))
    header, first = tenax("t", "list", "7").out.splitlines()
    assert "WAITED" not in header
    assert "1m10s" in first


def test_took_of_a_run_is_running_time(tenax: Tenax, master: PretendMaster) -> None:
    """In the list of runs, too."""
    times = {"startTime": "2026-01-02T03:00:00Z", "endTime": "2026-01-02T03:01:00Z", "runningSeconds": 12.4}
    one = {"id": 5, "state": "STATE_COMPLETED", "experiment": {"id": 7, "name": "digits"}, **times}
    master.on("POST", "/api/v1/runs", {"runs": [one], "pagination": {"endIndex": 1, "total": 1}})
    header, row = tenax("run", "list").out.splitlines()
    assert header.split()[-3:] == ["TOOK", "WAITED", "OF"]
    assert row.split()[-3:] == ["12s", "47s", "digits"]


def test_a_list_of_runs_fits_a_usual_terminal(tenax: Tenax, master: PretendMaster) -> None:
    """With many hyperparameters, of which none is cut; programs get a column of each."""
    hparams = {"learning_rate": 0.001234, "hidden_size": 128, "dropout": 0.25, "weight_decay": 1e-5, "optimizer": "a"}
    times = {"startTime": "2026-01-02T03:00:00Z", "endTime": "2026-01-02T03:01:00Z", "runningSeconds": 12.4}
    of = {"id": 7, "name": "a-search-of-some-name"}
    one = {"id": 5, "state": "STATE_COMPLETED", "experiment": of, "hyperparameters": hparams, **times}
    master.on("POST", "/api/v1/runs", {"runs": [one], "pagination": {"endIndex": 1, "total": 1}})
    with on_terminal("run", "list", COLUMNS="80") as terminal:
        assert terminal.end() == exits.OK
    table = plain(terminal.shown).partition("This terminal is")[0]
    assert max(map(len, table.splitlines())) <= 80
    for name, value in hparams.items():
        assert f"{name}={value}" in table
    header, row = (line.split(",") for line in tenax("run", "list", "--csv").out.splitlines())
    assert header[-6:] == [*hparams, "of"]
    assert row[-5:] == ["128", "0.25", "1e-05", "a", "a-search-of-some-name"]


def test_the_best_first(tenax: Tenax, master: PretendMaster) -> None:
    """Each by its own direction; those without a value come last, and the limit counts after that."""
    smaller = {"searcher": {"name": "single", "metric": "loss", "smaller_is_better": True}}
    values = [(1, 0.5, None), (2, 0.9, None), (3, 3.0, smaller), (4, 1.0, smaller), (5, None, None), (6, "NaN", None)]
    made = [
        experiment(id=number, bestTrialSearcherMetric=value, **({"config": config} if config else {}))
        for number, value, config in values
    ]
    master.on("GET", "/api/v1/experiments", {"experiments": made, "pagination": {"total": 6, "endIndex": 6}})

    def numbers(*arguments: str) -> list[str]:
        done = tenax("e", "list", "--csv", "--sort-by", "metric", *arguments)
        return [row.split(",")[0] for row in done.out.splitlines()[1:]]

    assert numbers() == ["2", "1", "4", "3", "6", "5"]
    assert numbers("--limit", "2") == ["2", "1"]


def test_a_mistyped_metric(tenax: Tenax, master: PretendMaster) -> None:
    """Is a warning in the details and at the end of what was followed, with the name that is near to it."""
    for searcher in ("single", "random"):
        config = {"searcher": {"name": searcher, "metric": "acuracy"}}
        one = experiment(state="STATE_COMPLETED", searcherType=searcher, config=config, numTrials=1)
        # As the master has it: what lacks the searcher's metric is neither the best validation nor the latest.
        serve(master, one, trial(1, "COMPLETED", best=0.9, bestValidation=None, latestValidation=None))
        master.on("GET", "/api/v1/trials/1/logs", {})
        master.on("GET", "/api/v1/trials/1/checkpoints", {"checkpoints": []})
        for arguments in (("e", "describe", "7"), ("e", "wait", "7")):
            done = tenax(*arguments)
            assert done.code == exits.OK
            assert "'acuracy', which no validation has: they report accuracy. Did you mean 'accuracy'?" in done.err


def test_how_far_and_how_long(tenax: Tenax, master: PretendMaster) -> None:
    """The time that is left follows from the progress; where nobody says it, what to call."""
    serve(master, experiment(progress=0.25, runningSeconds=60), trial(1))
    assert "25 %, about 3m00s left" in tenax("e", "describe", "7").out
    silent = {"searcher": {"name": "single", "metric": "loss"}}
    serve(master, experiment(progress=0.0, config=silent), trial(1))
    assert "train.report_progress" in tenax("e", "describe", "7").out
    long = {"searcher": {"name": "single", "metric": "loss", "max_length": 100}}
    serve(master, experiment(progress=0.0, config=long), trial(1))
    assert "report_progress" not in tenax("e", "describe", "7").out
    serve(master, experiment(progress=0.0, config=long), trial(1, totalBatchesProcessed=0, runningSeconds=31.0))
    assert "train.report_training_metrics" in tenax("e", "describe", "7").out
    serve(master, experiment(progress=0.0, config=long), trial(1, totalBatchesProcessed=0, runningSeconds=29.0))
    assert "report_" not in tenax("e", "describe", "7").out
    counted = {"searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": 10}}}
    serve(master, experiment(progress=0.0, config=counted), trial(1, best=0.9))
    assert "no validation reports 'epochs', which searcher.max_length counts" in tenax("e", "describe", "7").out
    serve(master, experiment(progress=0.1, config=counted), trial(1, best=0.9))
    assert "'epochs'" not in tenax("e", "describe", "7").out
    steps = {"searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 10}}}
    serve(master, experiment(progress=0.0, config=steps), trial(1, best=0.9))
    assert "which searcher.max_length counts" not in tenax("e", "describe", "7").out


def test_an_empty_list_says_who_has_some(tenax: Tenax, master: PretendMaster) -> None:
    """A user without experiments on a cluster that has some is told how to see them."""
    master.on("GET", "/api/v1/experiments", {"experiments": [], "pagination": {"total": 4}})
    assert "Other users have 4: tenax experiment list --all" in tenax("e", "list", "--label", "nope").err
    # Of the same kind: it counted one's own, and what no filter shows.
    counted = master.sent("GET", "/api/v1/experiments")[-1].query
    assert (counted["labels"], counted["archived"]) == (["nope"], ["false"])
    assert "--all" not in tenax("e", "list", "--all").err
    master.on("GET", "/api/v1/experiments", {"experiments": [], "pagination": {"total": 0}})
    assert "--all" not in tenax("e", "list").err
    master.on("GET", "/api/v1/me", {"user": {"id": 1, "username": "ann"}})
    none, one = {"commands": []}, {"commands": [{"id": "c1", "username": "bob"}]}
    master.on("GET", "/api/v1/commands", none, one)
    assert "Other users have 1: tenax command list --all" in tenax("command", "list").err


def test_nobody_to_ask(master: PretendMaster) -> None:
    """Without a terminal a question has no answer: nothing is done, and the message says --yes."""
    done = subprocess.run([TENAX, "e", "delete", "7"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == exits.USAGE
    assert done.stderr.splitlines()[1].startswith("Usage: ")
    assert "add --yes" in done.stderr
    done = subprocess.run([TENAX, "e", "delete", "7"], input="n\n", capture_output=True, text=True)
    assert (done.returncode, done.stderr[-18:]) == (exits.FAILED, "Nothing was done.\n")
    assert not master.sent("DELETE", "/api/v1/experiments/7")


def test_a_reader_that_goes_away(master: PretendMaster) -> None:
    """What is written only at the end, to a pipe that nobody reads any more, is no complaint of the interpreter's."""
    master.on("GET", "/api/v1/experiments", {"experiments": [experiment()], "pagination": {}})
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as pipe:
        done = subprocess.run([TENAX, "e", "list"], stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (exits.OK, "")


def test_a_support_bundle_is_not_written_here(
    tenax: Tenax, master: PretendMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This may be the directory of the code, which is sent with every experiment."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    here = tmp_path / "code"
    here.mkdir()
    monkeypatch.chdir(here)
    serve(master, experiment(), trial(1))
    master.on("GET", "/api/v1/trials/1", {"trial": trial(1)})
    for path in ("/api/v1/trials/1/workloads", "/api/v1/trials/1/logs", "/api/v1/master/logs"):
        master.on("GET", path, refused(403, "no"))
    done = tenax("t", "support-bundle", "1")
    assert done.code == exits.OK, done.err
    written = Path(done.out.strip())
    assert written.is_file()
    assert tmp_path / "temporary" in written.parents
    assert list(here.iterdir()) == []


def test_lines_of_output_on_a_narrow_terminal(master: PretendMaster) -> None:
    """A terminal gets the time of day; a file gets the whole line as it always was."""
    message = "[2026-01-02T03:04:05.123456Z] 0f3c2a1b [rank=1] || epoch 1 done\n"
    line = {
        "id": "1",
        "timestamp": "2026-01-02T03:04:05.123456Z",
        "message": message,
        "log": "epoch 1 done\n",
        "rankId": 1,
    }
    master.on("GET", "/api/v1/trials/1", {"trial": trial(1)})
    master.on("GET", "/api/v1/trials/1/logs", Reply(lines=[{"result": line}]))
    with on_terminal("t", "logs", "1", COLUMNS="80", TZ="UTC") as terminal:
        assert terminal.end() == exits.OK
        assert plain(terminal.shown).strip() == "03:04:05 [rank=1] epoch 1 done"
    done = subprocess.run([TENAX, "t", "logs", "1"], capture_output=True, text=True)
    assert done.stdout == message


def test_states_in_words(master: PretendMaster) -> None:
    """People read what is going on, programs the state as it is."""
    serve(master, experiment(), trial(1, "STOPPING_COMPLETED"))
    with on_terminal("t", "list", "7") as terminal:
        assert terminal.end() == exits.OK
        assert "STOPPING " in plain(terminal.shown)
        assert "STOPPING_" not in terminal.shown
    done = subprocess.run([TENAX, "t", "list", "7", "--csv"], capture_output=True, text=True)
    assert "STOPPING_COMPLETED" in done.stdout
