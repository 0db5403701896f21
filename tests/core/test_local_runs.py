"""What a run by hand leaves on this machine, and what a script is told in it; no cluster is asked."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenax import core
from tenax.client.connection.address import Unreachable
from tenax.client.connection.session import Session
from tenax.core.local_runs import tracking
from tenax.core.local_runs.files import LocalRun, commit_of, find_run, local_runs, new_card, sending
from tenax.core.local_runs.reading import RunStory, is_better_when_smaller, startable, state_of, why_not_again
from tenax.core.local_runs.sending import RunSender, SentElsewhere, chosen_metric, script_name
from tenax.core.local_runs.tracking import Tracker
from tenax.errors import InvalidInput, NotFound
from tests.kits.machine import wait_for
from tests.kits.pretend_master import Asked, PretendMaster, Reply, refused


@pytest.fixture(autouse=True)
def here(off_cluster: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("TENAX_TRACK", "TENAX_RUN_DIR", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return off_cluster


def only() -> LocalRun:
    (run,) = local_runs()
    return run


def test_how_it_was_started_and_ended() -> None:
    """It stands in a file of this user's own; while it runs it is RUNNING, also for who only reads."""
    with core.init(hparams={"lr": 0.5, "layers": [1, 2]}) as context:
        assert context.hparams == {"lr": 0.5, "layers": [1, 2]}
        assert context.latest_checkpoint is None
        context.train.report_validation_metrics(3, {"accuracy": 0.5})
        assert state_of(only())[0] == "RUNNING"
    run = only()
    card, story = run.card, RunStory(run)
    assert os.stat(os.path.join(run.path, "run.json")).st_mode & 0o077 == 0
    assert (card["state"], card["host"], card["cwd"]) == ("COMPLETED", os.uname().nodename, os.getcwd())
    assert (story.hparams, story.step) == ({"lr": 0.5, "layers": [1, 2]}, 3)
    assert chosen_metric({}, story.names()) == ("accuracy", False)


def test_steps_that_go_back_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Each group counts its own; the same step may be reported again."""
    with core.init() as context:
        context.train.report_training_metrics(5, {"loss": 1.0})
        context.train.report_training_metrics(5, {"accuracy": 1.0})
        context.train.report_validation_metrics(3, {"loss": 1.0})
        assert "come after" not in capsys.readouterr().err
        context.train.report_training_metrics(2, {"loss": 1.0})
        context.train.report_training_metrics(1, {"loss": 1.0})
    warnings = [line for line in capsys.readouterr().err.splitlines() if "come after" in line]
    assert len(warnings) == 1
    assert "training metrics of step 2 come after those of step 5: their curve goes back. Count on" in warnings[0]


def test_one_of_several_processes_says_who_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own arguments would start one process, or none."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with core.init(hparams={"a": 1}):
        pass
    card = only().card
    assert "one of 2 processes" in why_not_again(card)
    assert startable(card) == card["startedBy"] != []


def test_what_multiprocessing_starts_says_so(tmp_path: Path) -> None:
    """The program that started it can be started again, which is how it is called."""
    (tmp_path / "spawns.py").write_text(
        "import multiprocessing\nfrom tenax import core\n"
        "def train():\n    with core.init(hparams={'a': 1}):\n        pass\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=train)\n"
        "    process.start()\n    process.join()\n"
    )
    subprocess.run([sys.executable, "spawns.py"], cwd=tmp_path, check=True)
    card = only().card
    assert "another process" in why_not_again(card)
    assert startable(card)[-1] == script_name(card) == "spawns.py"


def test_arguments_as_argparse_gives_them() -> None:
    """They are hyperparameters, paths among them as text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--data", type=Path, default=Path("/data"))
    with core.init(hparams=parser.parse_args([])) as context:
        assert context.hparams == {"lr": 0.5, "data": "/data"}


@pytest.mark.parametrize("wrong", [3, "lr=1", [1], object()])
def test_what_is_no_hyperparameters(wrong: object) -> None:
    """It is said, with what to give."""
    with pytest.raises(TypeError, match=rf"was given a {type(wrong).__name__}: give a dict.*vars\(arguments\)"):
        core.init(hparams=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"core\.init\(hparams=\.\.\.\): model is a object"):
        core.init(hparams={"model": object()})
    assert local_runs() == []


def test_nothing_is_made_before_something_is_said() -> None:
    """A script that only looks leaves no run."""
    with core.init() as context:
        assert context.hparams == {}
    assert local_runs() == []


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (ValueError("bad"), ("ERROR", "ValueError: bad")),
        (KeyboardInterrupt(), ("CANCELED", "KeyboardInterrupt")),
        (SystemExit(3), ("ERROR", "SystemExit: 3")),
        (SystemExit(0), ("COMPLETED", "")),
    ],
)
def test_how_it_ended(error: BaseException, ending: tuple[str, str]) -> None:
    """The state and why, from what left the block."""
    with pytest.raises(type(error)), core.init(hparams={"a": 1}):
        raise error
    assert state_of(only()) == ending


def test_hyperparameters_that_make_no_sense() -> None:
    """The script ends well, and its run is an error that says so."""
    with pytest.raises(SystemExit), core.init(hparams={"a": 1}):
        raise core.InvalidHP("too small")
    assert state_of(only()) == ("ERROR", "these hyperparameters cannot be trained: too small")


def test_what_was_given_and_not_read_is_said(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What lies over the script's own, and the checkpoint; a script that reads them hears nothing."""
    run = LocalRun(str(here / "runs" / "x-1-abc"))
    run.make()
    run.write_card(new_card(["python"], hparams={"lr": 2}, checkpoint="some"))
    monkeypatch.setenv("TENAX_RUN_DIR", run.path)
    with core.init(hparams={"lr": 1, "steps": 3}) as context:
        assert context.hparams == {"lr": 2, "steps": 3}
        assert context.latest_checkpoint == "some"
    assert "did not read" not in capsys.readouterr().err
    with core.init():
        pass
    said = capsys.readouterr().err
    assert "context.hparams" in said
    assert "context.latest_checkpoint" in said
    # Each has a file of its own, and the run is not theirs to end.
    assert len(run.streams()) == 2
    assert run.card["state"] == ""


def test_a_process_of_many_says_which_one_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is tracked; alone it runs as ever."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with core.init():
        pass
    monkeypatch.setenv("TENAX_TRACK", "1")
    with pytest.raises(InvalidInput, match="from_torch_distributed"):
        core.init()


def test_runs_are_found_by_parts_of_their_names(here: Path) -> None:
    """The last part, a beginning, all of it, or the last one; never one of several."""
    for name in ("20260101-000000-7-aaa111", "20260102-000000-8-bbb222"):
        LocalRun(str(here / "runs" / name)).make()
    for text in ("bbb222", "20260102", "20260102-000000-8-bbb222", "last"):
        assert find_run(text).name == "20260102-000000-8-bbb222"
    with pytest.raises(InvalidInput, match="any of 2"):
        find_run("2026")
    for text in ("", "222", ".."):
        with pytest.raises(NotFound):
            find_run(text)


def test_a_run_whose_process_was_killed() -> None:
    """It is an error without a word; a line that it did not finish does not count."""
    script = (
        "import os, signal\nfrom tenax import core\n"
        "with core.init() as context:\n"
        "    context.train.report_training_metrics(1, {'loss': 1.0})\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False, timeout=240)
    run = only()
    with open(run.stream_path("reports"), "ab") as file:
        file.write(b'{"n":2,"kind":"metrics","at":1,"body":{"group":"training","stepsCom')
    assert state_of(run)[0] == "ERROR"
    assert [report.step for report in RunStory(run).reports] == [1]


def test_the_commit_is_read_from_files(tmp_path: Path) -> None:
    """On a branch, on a packed one, on none; elsewhere there is none."""
    assert commit_of(str(tmp_path)) == ""
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    head, here = tmp_path / ".git" / "HEAD", str(tmp_path / "deep" / "er")
    head.write_text("a" * 40 + "\n")
    assert commit_of(here) == "a" * 40
    head.write_text("ref: refs/main\n")
    (tmp_path / ".git" / "packed-refs").write_text("# packed\n" + "b" * 40 + " refs/main\n")
    assert commit_of(here) == "b" * 40
    (tmp_path / ".git" / "refs" / "main").write_text("c" * 40 + "\n")
    assert commit_of(here) == "c" * 40


@pytest.mark.parametrize(
    ("metric", "smaller"), [("val_loss", True), ("accuracy", False), ("perplexity", True), ("map_loss", True)]
)
def test_what_a_name_lets_guess(metric: str, smaller: bool) -> None:
    """Losses are small; what is known to be great is great; the rest is an error of some kind."""
    assert is_better_when_smaller(metric) is smaller


@pytest.fixture
def sent_to(monkeypatch: pytest.MonkeyPatch) -> PretendMaster:
    master = PretendMaster()
    master.on("GET", "/info", {"version": "0.38.1", "cluster_id": "here"})
    return master


def left_behind(**sent: object) -> LocalRun:
    with core.init(hparams={"a": 1}) as context:
        context.train.report_validation_metrics(1, {"loss": 1.0})
    run = only()
    if sent:
        run.write_sent(sent)  # type: ignore[arg-type]
    return run


def test_a_run_is_at_one_cluster(sent_to: PretendMaster) -> None:
    """What another one has is not sent by accident: it is said where it is, and how to send it anyway."""
    run = left_behind(clusterId="elsewhere", master="http://far:8080")
    with sent_to.running(), Session(sent_to.url, token="t") as session:
        with pytest.raises(SentElsewhere, match=r"http://far:8080.*--anew"):
            RunSender(run, session, print).connect()


def test_one_process_sends_a_run() -> None:
    """Another one is refused meanwhile."""
    run = left_behind()
    with sending(run) as first, sending(run) as second:
        assert (first, second) == (True, False)
    with sending(run) as again:
        assert again


def test_lines_out_of_order_end_the_sending_of_a_file(sent_to: PretendMaster) -> None:
    """Numbers that do not follow one another come from something else; it is said, and nothing waits for ever."""
    run = left_behind(clusterId="here", experimentId=1, trialId=2, runId=1)
    with open(run.stream_path("reports"), "a") as file:
        file.write(json.dumps({"n": 9, "kind": "metrics", "at": 1, "body": {}}).replace(" ", "") + "\n")
    asked: list[bytes] = []
    sent_to.on("POST", "/api/v1/trials/2/runs/1/spool", {"acked": 2, "refused": []})
    said: list[str] = []
    with sent_to.running(), Session(sent_to.url, token="t") as session:
        sender = RunSender(run, session, said.append)
        sender.connect()
        while sender.send_new():
            asked.append(b"")
    assert "line 9 comes after line 2" in said[0]
    assert len(asked) < 5


@pytest.mark.parametrize("broken", ["somebody else's cluster", "no right"])
def test_a_cluster_that_is_not_for_us(broken: str, sent_to: PretendMaster, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a line, and the run is kept."""
    run = left_behind()
    sent_to.on("PUT", f"/api/v1/experiments/by-external-id/{run.card['trialKey']}", refused(403, "not yours"))

    def session() -> Session:
        if broken == "no right":
            return Session(sent_to.url, token="t", retry_for_s=0.0)
        raise Unreachable("What listens there belongs to ann")

    with sent_to.running():
        tracker = Tracker(run, session)
        tracker.start()
        tracker.tried(240)
        assert not tracker.finish()
    said = capsys.readouterr().err
    assert "belongs to ann" in said or "not yours" in said
    assert "tenax sync" in said
    assert not run.sent


def test_the_end_of_a_run_waits_for_the_rest(sent_to: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was reported last is with the cluster, and how it ended, once it has ended: nothing is left to be synced."""
    monkeypatch.setattr(tracking, "LAST_WAIT_S", 240.0)
    run = left_behind(clusterId="here", experimentId=1, trialId=2, runId=1)
    spool, trial = "/api/v1/trials/2/runs/1/spool", "/api/v1/trials/2"

    def has(asked: Asked) -> Reply:
        """The first two lines from before, and what comes after them."""
        return Reply({"acked": asked.body["n"] if isinstance(asked.body, dict) else 2, "refused": []})

    sent_to.answers["POST", spool] = has
    sent_to.on("PATCH", trial, {})
    with sent_to.running():
        tracker = Tracker(run, lambda: Session(sent_to.url, token="t"))
        tracker.start()
        wait_for(lambda: "streams" in run.sent, "the end of its first look")
        with open(run.stream_path("reports"), "a") as file:
            file.write('{"n":3,"kind":"metrics","at":1,"body":{}}\n')
        assert tracker.finish()
    assert sent_to.sent("POST", spool)[-1].body == {"n": 3, "kind": "metrics", "at": 1, "body": {}}
    [told] = sent_to.sent("PATCH", trial)
    assert isinstance(told.body, dict)
    assert told.body["state"] == "STATE_COMPLETED"
    assert run.sent["done"] is True
