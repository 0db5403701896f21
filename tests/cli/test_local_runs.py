"""``tenax local``: what ran by hand on this machine, from the command line; no master is asked."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from tenax.core.local_runs.files import LocalRun, local_runs, new_card
from tenax.core.spooling.file import SpoolFile
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.terminal import on_terminal, plain
from tests.kits.pretend_master import PretendMaster

UUID = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0077"


@pytest.fixture(autouse=True)
def data(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENAX_DATA_DIR", str(home / "data"))
    return home / "data"


def made(data: Path, name: str, losses: list[float], **more: object) -> LocalRun:
    run = LocalRun(str(data / "runs" / name))
    run.make()
    run.write_card({**new_card(["python", "train.py"]), "state": "COMPLETED", **more})  # type: ignore[dict-item]
    file = SpoolFile(run.path, "reports")
    file.append("run_start", json.dumps({"checkpointStorage": None, "hparams": {"lr": 0.1}}))
    for step, loss in enumerate(losses, 1):
        body = {"group": "validation", "stepsCompleted": step, "metrics": {"loss": loss, "note": "x"}}
        file.append("metrics", json.dumps(body))
    saved = {"uuid": UUID, "stepsCompleted": len(losses), "resources": {"a": 1}, "storage": {}, "metadata": {}}
    file.append("checkpoint", json.dumps(saved))
    file.close()
    place = data / "checkpoints" / UUID
    place.mkdir(parents=True, exist_ok=True)
    (place / "a").write_text("a")
    return run


def test_none(tenax: Tenax) -> None:
    """It is said where they would be."""
    done = tenax("local", "list")
    assert (done.code, done.out, "There is no local run" in done.err) == (0, "", True)
    assert tenax("local", "list", "--json").out.strip() == "[]"
    assert tenax("local", "metrics", "last").code == 6


def test_a_list(data: Path, tenax: Tenax) -> None:
    """The newest first, with the last and the best of what tells most, and where each is."""
    made(data, "20260101-000000-7-aaa111", [3.0, 1.0, 2.0])
    made(data, "20260102-000000-8-bbb222", [0.5], state="ERROR").write_sent({"trialId": 4, "done": False})
    shown = [row.split() for row in tenax("local", "list").out.splitlines()[1:]]
    assert [row[0] for row in shown] == ["bbb222", "aaa111"]
    assert shown[0][-4:] == ["1", "trial", "4", "(in", "part)"][-4:]
    assert {"2", "1", "COMPLETED", "no"} <= set(shown[1])
    (newest,) = json.loads(tenax("local", "list", "--last", "1", "--json").out)
    assert (newest["id"], newest["best"], newest["hparams"]) == ("bbb222", 0.5, {"lr": 0.1})
    assert "20260101-000000-7-aaa111" in tenax("local", "list", "--csv").out


def test_a_list_fits_a_usual_terminal(data: Path) -> None:
    """With figures in every cell; what has no room is named."""
    card = {"argv": ["python", "train_the_model.py"], "metric": "validation_accuracy"}
    run = made(data, "20260101-000000-7-aaa111", [0.0123456, 0.123456], **card)
    file = SpoolFile(run.path, "more")
    body = {"group": "validation", "stepsCompleted": 12345, "metrics": {"validation_accuracy": 0.0123456}}
    file.append("metrics", json.dumps(body))
    file.close()
    run.write_sent({"trialId": 12345, "done": False})
    with on_terminal("local", "list", COLUMNS="80") as terminal:
        assert terminal.end() == 0
    table, _, remark = plain(terminal.shown).partition("This terminal is")
    assert max(map(len, table.splitlines())) <= 80
    assert "too narrow for" in remark


def test_metrics(data: Path, tenax: Tenax) -> None:
    """Of several in one table, one picture, one file."""
    made(data, "20260101-000000-7-aaa111", [3.0, 1.0, 2.0])
    made(data, "20260102-000000-8-bbb222", [0.5, 0.25])
    table = tenax("local", "metrics", "aaa111", "bbb222", "--metric", "loss").out.splitlines()
    assert [line.split() for line in table[:2]] == [["RUN", "STEP", "loss"], ["aaa111", "1", "3"]]
    assert len(table) == 6
    drawn = tenax("local", "metrics", "aaa111", "bbb222", "--plot").out
    assert "aaa111 lr=0.1: last 2" in drawn
    assert "bbb222 lr=0.1: last 0.25" in drawn
    assert tenax("local", "metrics", "last", "--save", "curve.svg").out == "curve.svg\n"
    assert Path("curve.svg").read_text().startswith("<svg")
    assert tenax("local", "metrics", "last", "--save", "curve.gif").code == 2
    assert "No training metrics" in tenax("local", "metrics", "last", "--group", "training", "--table").err
    assert len(json.loads(tenax("local", "metrics", "last", "--json").out)) == 2
    unknown = tenax("local", "metrics", "last", "--table", "--metric", "los")
    assert (unknown.code, "No metric 'los' was reported; there is loss." in unknown.err) == (6, True)
    unknown = tenax("local", "metrics", "last", "--plot", "--metric", "los")
    assert (unknown.code, "No metric 'los' was reported; there is loss." in unknown.err) == (6, True)


def test_removal(data: Path, tenax: Tenax, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked first; with its checkpoints, unless they are to stay; nothing of a run that still runs."""
    first = made(data, "20260101-000000-7-aaa111", [3.0])
    monkeypatch.setattr("sys.stdin", io.StringIO())
    refused = tenax("local", "rm", "aaa111")
    assert (refused.code, "--yes" in refused.err, len(local_runs())) == (2, True, 1)
    held = first.hold()
    assert held is not None
    assert "still running" in tenax("local", "rm", "aaa111", "--yes").err
    os.close(held)
    assert tenax("local", "rm", "aaa111", "--yes", "--keep-checkpoints").code == 0
    assert (local_runs(), (data / "checkpoints" / UUID).exists()) == ([], True)
    made(data, "20260102-000000-8-bbb222", [0.5])
    assert tenax("local", "rm", "last", "--yes").code == 0
    assert not (data / "checkpoints" / UUID).exists()


def test_what_cannot_be_resumed(data: Path, tenax: Tenax) -> None:
    """One that runs, one whose directory is gone, one of an older release: each says why."""
    run = made(data, "20260101-000000-7-aaa111", [3.0], cwd="/nowhere/at/all")
    assert "/nowhere/at/all is gone" in tenax("local", "resume", "last").err
    run.write_card({})
    assert "does not say how it was started" in tenax("local", "resume", "last").err
    assert tenax("local", "resume", "zzz").code == 6


def test_what_something_else_started_is_resumed_by_its_line(data: Path, tenax: Tenax) -> None:
    """One of several processes starts no others: what to type is said, quoted as a shell wants it; nothing is kept."""
    about = {"notAgain": "it was one of 2 processes", "startedBy": ["torchrun", "--nproc_per_node", "2", "my file.py"]}
    run = made(data, "20260101-000000-7-aaa111", [3.0], **about)
    done = tenax("local", "resume", "last")
    assert done.code == 1
    assert "it was one of 2 processes. Say what starts it: tenax local resume aaa111 -- " in done.err
    assert "aaa111 -- torchrun --nproc_per_node 2 'my file.py'\n" in done.err
    assert json.loads(tenax("local", "list", "--json").out)[0]["script"] == "my file.py"
    assert len(local_runs()) == 1
    run.write_card({**run.card, "startedBy": []})
    assert "tenax local resume aaa111 -- PROGRAM" in tenax("local", "resume", "last").err
    spawned = {"notAgain": "", "argv": ["python", "-c", "spawn_main(3)", "--multiprocessing-fork"]}
    run.write_card({**run.card, **spawned})
    assert "another process of its program started it" in tenax("local", "resume", "last").err
    run.write_card({**run.card, "argv": ["/gone/python", "train.py"]})
    assert "/gone/python, which local run aaa111 was started with, is gone" in tenax("local", "resume", "last").err
    assert len(local_runs()) == 1
    say = "import os, json; print(json.load(open(os.environ['TENAX_RUN_DIR'] + '/run.json'))['checkpoint'])"
    assert tenax("local", "resume", "--offline", "last", "--", "python", "-c", say).code == 0
    assert (len(local_runs()), local_runs()[-1].card["checkpoint"]) == (2, UUID)


def test_a_resumed_run_is_of_the_same_trial(data: Path, tenax: Tenax) -> None:
    """Also where its script named the experiment, as one in detached mode does, and said what it is about."""
    about = {"experimentKey": "search", "trialKey": "t", "labels": ["far"], "description": "d", "data": {"a": 1}}
    run = made(data, "20260101-000000-7-aaa111", [3.0])
    run.write_card({**run.card, **about})  # type: ignore[dict-item]
    assert tenax("local", "resume", "--offline", "last", "--", "true").code == 0
    again = local_runs()[-1].card
    assert {key: again.get(key) for key in about} == about


def test_how_to_run_it_again_can_be_typed(data: Path, tenax: Tenax) -> None:
    """Of a run without a checkpoint: its line, quoted; no line where it would not work."""
    run = LocalRun(str(data / "runs" / "20260101-000000-7-aaa111"))
    run.make()
    run.write_card(new_card(["python", "-c", "print(1)"]))
    assert "To run it again: python -c 'print(1)'\n" in tenax("local", "resume", "last").err
    run.write_card({**run.card, "notAgain": "its script came from standard input"})
    done = tenax("local", "resume", "last")
    assert ("no checkpoint" in done.err, "To run it again" in done.err) == (True, False)


def test_a_program_that_is_not_there(tenax: Tenax) -> None:
    """It is said before anything is kept; so is a hyperparameter that is none."""
    done = tenax("track", "--offline", "no-such-program-here")
    assert (done.code, "no-such-program-here" in done.err) == (2, True)
    assert "--hparam 'lr'" in tenax("track", "--hparam", "lr", "true").err
    assert local_runs() == []


def test_a_metric_that_the_script_did_not_report(tenax: Tenax) -> None:
    """It is said once, at the end, with those that it did."""
    script = (
        "from tenax import core\nwith core.init() as context: context.train.report_validation_metrics(1, {'loss': 1})"
    )
    done = tenax("track", "--offline", "--metric", "accuracy", sys.executable, "-c", script)
    assert (done.code, done.err.count("no validation metric 'accuracy'; there is loss")) == (0, 1)
    assert (
        "no validation metric" not in tenax("track", "--offline", "--metric", "loss", sys.executable, "-c", script).err
    )


def test_a_python_without_tenax(tenax: Tenax, tmp_path: Path) -> None:
    """What to do is said, whether the outputs are two or a terminal's one; of another failure it is not."""
    other = ("python3", "-I", "-S", "-c")
    assert sys.executable in tenax("track", "--offline", *other, "from tenax import core").err
    assert "has no tenax" not in tenax("track", "--offline", *other, "import not_there").err
    with on_terminal("track", "--offline", *other, "import tenax") as terminal:
        assert terminal.end() == 1
    assert "has no tenax: run the script with" in " ".join(plain(terminal.shown).split())


def test_a_project_that_is_not_there(tenax: Tenax, master: PretendMaster) -> None:
    """What to type is said; the run is kept."""
    master.on("GET", "/api/v1/workspaces", {"workspaces": [], "pagination": {}})
    said = tenax("track", "--project", "a b/c", "true").err
    assert "To make it: tenax workspace create 'a b' && tenax project create 'a b' c. What is not sent is kept" in said
    master.on("GET", "/api/v1/workspaces", {"workspaces": [{"id": 4, "name": "a b"}], "pagination": {}})
    master.on("GET", "/api/v1/workspaces/4/projects", {"projects": [], "pagination": {}})
    assert "'a b'. To make it: tenax project create 'a b' c. What" in tenax("track", "--project", "a b/c", "true").err


def test_all_that_another_cluster_has(data: Path, tenax: Tenax, master: PretendMaster) -> None:
    """--anew alone sends it to this one; what this one has is not sent again."""
    run = made(data, "20260101-000000-1-aa", [1.0], trialKey="local-a")
    run.write_sent({"clusterId": "there", "experimentId": 1, "trialId": 2, "runId": 1, "done": True})
    master.on("GET", "/info", {"version": "0.38.1", "cluster_id": "here"})
    master.on("PUT", "/api/v1/experiments/by-external-id/local-a", {"experiment": {"id": 7}, "config": {}})
    master.on("PUT", "/api/v1/trials", {"trial": {"id": 8}})
    master.on("POST", "/api/v1/trials/8/start", {"trialRunId": 1})
    master.on("POST", "/api/v1/runs/8/metadata", {})
    master.on("POST", "/api/v1/trials/8/runs/1/spool", {"acked": 3, "refused": []})
    master.on("POST", "/api/v1/trials/8/runs/1/output", {"next": 0})
    master.on("PATCH", "/api/v1/trials/8", {})
    assert "nothing to send" in tenax("sync").err
    done = tenax("sync", "--anew")
    assert (done.code, "trial 8 of experiment 7" in done.out) == (0, True), done.err
    assert "every local run is at this cluster" in tenax("sync", "--anew").err


def test_nothing_to_send(tenax: Tenax) -> None:
    """It is said without a master."""
    done = tenax("sync")
    assert (done.code, "nothing to send" in done.err) == (0, True)
