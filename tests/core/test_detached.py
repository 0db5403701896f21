"""Detached mode on this machine: what is kept of a run, what it goes on from, and what is refused; no cluster."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tenax
from tenax.client.connection.address import Unreachable
from tenax.core.context import Context
from tenax.core.local_runs import detached
from tenax.core.local_runs.files import LocalRun, local_runs
from tenax.core.local_runs.reading import RunStory, state_of, times_of
from tenax.core.searcher import Unit
from tenax.errors import InvalidInput, NotNow
from tenax.experimental import core_v2
from tenax.jsonvalue import JsonObject
from tests.kits.detached_script import detached_script
from tests.kits.interpreters import interpreters
from tests.kits.machine import TENAX
from tests.kits.ports import free_port

SOURCE = str(Path(tenax.__file__).parents[1])


@pytest.fixture(autouse=True)
def here(off_cluster: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("DET_MASTER", f"http://127.0.0.1:{free_port()}")
    # Looks for no cluster, which takes seconds where none answers.
    monkeypatch.setenv("TENAX_TRACK", "0")
    for name in ("TENAX_RUN_DIR", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return off_cluster


def run(tmp_path: Path, *words: str, python: str = sys.executable, **env: str) -> tuple[int, str, str]:
    (tmp_path / "elsewhere.py").write_text(detached_script("tenax"))
    done = subprocess.run(
        [python, "elsewhere.py", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE, **env},
        capture_output=True,
        text=True,
        timeout=240,
    )
    return done.returncode, done.stdout, done.stderr


def printed(one: LocalRun, name: str) -> str:
    return Path(one.output_path(name)).read_text()


@pytest.mark.parametrize("python", interpreters())
def test_a_script_of_determined_with_the_other_name(tmp_path: Path, python: str) -> None:
    """Nobody answers: it trains all the same, and what it said and printed is kept for ``tenax sync``."""
    code, out, err = run(tmp_path, "named", str(tmp_path / "storage"), "3", "", python=python, TENAX_TRACK="1")
    assert (code, out) == (0, "run 0 from 0\nids 0 0\n"), err
    assert "tenax sync" in err
    (one,) = local_runs()
    assert state_of(one) == ("COMPLETED", "")
    card, story = one.card, RunStory(one)
    assert (card["name"], card["labels"], card["data"], card["metric"]) == ("elsewhere", ["far"], {"a": 1}, "score")
    assert (card["experimentKey"], card["trialKey"], card["smallerIsBetter"]) == ("named", "named-1", False)
    assert (story.hparams, story.step, len(story.kept)) == ({"lr": 0.5}, 3, 1)
    assert printed(one, "stdout") == out


def test_the_same_trial_goes_on(tmp_path: Path) -> None:
    """From the newest checkpoint of this machine, also after a run that stored none."""
    words = ("named", str(tmp_path / "storage"))
    assert run(tmp_path, *words, "3", "")[0] == 0
    assert run(tmp_path, *words, "0", "fail")[0] == 1
    code, out, _ = run(tmp_path, *words, "2", "")
    assert (code, out.splitlines()[0]) == (0, "run 0 from 3")
    first, second, third = sorted(local_runs(), key=lambda one: times_of(one)[0])
    assert (second.card["resumedFrom"], third.card["resumedFrom"]) == (first.name, second.name)


def test_the_same_name_in_another_experiment_is_another_trial(tmp_path: Path) -> None:
    """Searches number their trials alike: each goes on from its own checkpoint."""
    for experiment, begins in (("a", 0), ("b", 0), ("a", 2), ("", 0), ("trial-1", 2)):
        named = core_v2.Config(external_experiment_id=experiment or None, external_trial_id="trial-1")
        with core_v2.init_context(config=named, checkpoint_storage=str(tmp_path / "storage")) as context:
            latest = context.latest_checkpoint
            step = int(str(context.checkpoint.get_metadata(latest)["steps_completed"])) if latest else 0
            assert step == begins, experiment
            with context.checkpoint.store_path({"steps_completed": step + 2}) as (path, _):
                (path / "state").write_text("x")


def test_from_the_newest_checkpoint_that_is_left(tmp_path: Path) -> None:
    """The cluster deletes those of an experiment with it: one that is gone is nothing to go on from."""
    named, storage = core_v2.Config(external_trial_id="t"), tmp_path / "storage"
    for begins in (False, True):
        with core_v2.init_context(config=named, checkpoint_storage=str(storage)) as context:
            assert (context.latest_checkpoint is not None) == begins
            if not begins:
                with context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
                    (path / "state").write_text("x")
    shutil.rmtree(storage / uuid)
    with core_v2.init_context(config=named, checkpoint_storage=str(storage)) as context:
        assert context.latest_checkpoint is None


def test_an_exception_is_its_end(tmp_path: Path) -> None:
    """Without a block around the script, too; its traceback is among what it printed."""
    code, _, _ = run(tmp_path, "", str(tmp_path / "storage"), "1", "fail")
    (one,) = local_runs()
    assert (code, state_of(one)) == (1, ("ERROR", "ValueError: on purpose"))
    assert "ValueError: on purpose" in printed(one, "stderr")


def test_a_fork_does_not_end_it(tmp_path: Path) -> None:
    """It has the parent's list of what is done at the exit."""
    (tmp_path / "forks.py").write_text(
        "import os\nfrom tenax.experimental import core_v2\ncore_v2.init()\n"
        "child = os.fork()\n"
        "if child:\n    os.waitpid(child, 0)\n    core_v2.train.report_training_metrics(1, {'loss': 1.0})\n"
        "    raise ValueError('of the parent')\n"
    )
    subprocess.run([sys.executable, "forks.py"], cwd=tmp_path, check=False, capture_output=True)
    (one,) = local_runs()
    assert state_of(one) == ("ERROR", "ValueError: of the parent")
    assert RunStory(one).step == 1


def test_resumed_by_the_command_line(tmp_path: Path) -> None:
    """The run that ``tenax local resume`` begins is of the same trial, and the script in it is no second one."""
    (tmp_path / "named.py").write_text(
        "from tenax.experimental import core_v2\n"
        "with core_v2.init_context(config=core_v2.Config(external_trial_id='t')) as context:\n"
        "    print('from', context.info.latest_checkpoint)\n"
        "    with context.checkpoint.store_path({'steps_completed': 1}) as (path, uuid):\n"
        "        (path / 'state').write_text(uuid)\n"
    )
    subprocess.run([sys.executable, "named.py"], cwd=tmp_path, check=True, capture_output=True, timeout=240)
    (first,) = local_runs()
    resume = [str(TENAX), "local", "resume", "--offline", "last"]
    done = subprocess.run(resume, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (0, f"from {RunStory(first).kept[-1].uuid}\n"), done.stderr


def test_what_was_forked_does_not_keep_it_running(tmp_path: Path) -> None:
    """Workers outlive the run of their parent, which begins the trial again; and none of them ends it."""
    (tmp_path / "forks.py").write_text(
        "import os\nfrom tenax.experimental import core_v2\n"
        "named = core_v2.Config(external_trial_id='t')\n"
        "reads, writes = os.pipe()\n"
        "with core_v2.init_context(config=named) as context:\n"
        "    child = os.fork()\n"
        "    if not child:\n        os.close(writes)\n        os.read(reads, 1)\n"
        "        raise ValueError('of a worker')\n"
        "with core_v2.init_context(config=named) as context:\n"
        "    os.close(writes)\n    os.waitpid(child, 0)\n    print('again', context.train is not None)\n"
    )
    done = subprocess.run([sys.executable, "forks.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "again True\n"), done.stderr
    assert [state_of(one)[0] for one in local_runs()] == ["COMPLETED"] * 2


def test_the_copied_output_is_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    """For what scripts do with it: a block, a copy, a redirection; who has kept it writes on after the end."""
    with core_v2.init_context() as context:
        assert context.info is not None
        kept = sys.stdout
        sys.stdout.writelines(["a\n", "b\n"])
        with pytest.raises(TypeError, match="cannot pickle"):
            copy.deepcopy(sys.stdout)
        assert isinstance(copy.copy(sys.stdout), type(kept))
        with contextlib.redirect_stdout(io.StringIO()) as other:
            print("not kept")
        print("c", end="")
    kept.write("d\n")
    (one,) = local_runs()
    assert (printed(one, "stdout"), other.getvalue()) == ("a\nb\nc", "not kept\n")
    assert capsys.readouterr().out == "a\nb\ncd\n"


def test_a_copied_output_is_closed_in_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any file is."""
    own = io.StringIO()
    monkeypatch.setattr(sys, "stdout", own)
    with core_v2.init_context():
        with sys.stdout as stream:
            print("words", file=stream)
        assert own.closed


def test_a_variable_that_says_neither_yes_nor_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is kept or copied."""
    monkeypatch.setenv("TENAX_TRACK", "perhaps")
    streams = sys.stdout, sys.stderr
    with pytest.raises(InvalidInput, match="TENAX_TRACK is 'perhaps'"):
        core_v2.init()
    assert (sys.stdout, sys.stderr) == streams
    assert local_runs() == []


def test_parts_are_there_while_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Before and after it is said when; beginning anew ends what was begun, and the output is the process's again."""
    with pytest.raises(NotNow, match=r"core_v2\.train is there between core_v2\.init\(\) and core_v2\.close\(\)"):
        _ = core_v2.train
    streams = sys.stdout, sys.stderr
    core_v2.init(config=core_v2.Config(name="first", hparams={"lr": 1}))
    core_v2.train.report_training_metrics(1, {"loss": 1.0})
    assert core_v2.info.trial.hparams == {"lr": 1}
    core_v2.init(
        defaults=core_v2.DefaultConfig(name="second"), unmanaged=core_v2.UnmanagedConfig(external_trial_id="t")
    )
    print("words")
    core_v2.close()
    core_v2.close()
    print("after")
    assert (sys.stdout, sys.stderr) == streams
    first, second = sorted(local_runs(), key=lambda one: str(one.card["name"]))
    assert state_of(first)[0] == state_of(second)[0] == "COMPLETED"
    assert printed(second, "stdout") == "words\n"
    assert capsys.readouterr().out == "words\nafter\n"


SEARCHED = {
    "hparams": {"lr": 1},
    "data": {"a": 1},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": 7}},
}


def test_what_is_known_of_it() -> None:
    """In a block, too: hyperparameters, the configuration that the script gave, the length of an older searcher."""
    with core_v2.init_context(config=core_v2.Config(external_trial_id="t", **SEARCHED)) as context:  # type: ignore[arg-type]
        assert context.info is not None
        assert (context.info.trial.hparams, context.info.user_data) == ({"lr": 1}, {"a": 1})
        assert (context.info.latest_checkpoint, context.info.container_addrs) == (None, ["127.0.0.1"])
        assert [operation.length for operation in context.searcher.operations()] == [7]
        assert context.searcher.get_configured_units() is Unit.EPOCHS
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "state").write_text("x")
    with core_v2.init_context(config=core_v2.Config(external_trial_id="t")) as context:
        assert context.info is not None
        assert context.info.latest_checkpoint == uuid


def test_where_it_is_to_be_seen() -> None:
    """Scripts print the address in the end, also after it: without a cluster it is that of the directory."""
    core_v2.init(config=core_v2.Config(name="n"))
    (one,) = local_runs()
    assert core_v2.url_reverse_webui_exp_view() == Path(one.path).as_uri()
    core_v2.close()
    assert core_v2.url_reverse_webui_exp_view() == Path(one.path).as_uri()
    assert core_v2.info.trial.trial_id == 0
    one.write_sent({"master": "http://there", "trialId": 7, "experimentId": 5, "runId": 1})
    # Since a cluster has it.
    assert core_v2.url_reverse_webui_exp_view() == "http://there/det/experiments/5"


def test_nobody_is_there_to_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """What would be asked of a cluster is not known, and stops nothing."""
    with core_v2.init_context() as context:
        context.train.report_validation_metrics(1, {"loss": 1.0})
        assert context.train.get_experiment_best_validation() is None
        assert (context.train.set_metadata({"a": 1}), context.train.get_metadata()) == (None, None)
    assert 'metadata: {"a":1}' in capsys.readouterr().err


def test_a_trial_that_runs_is_not_begun_again() -> None:
    """Two processes that take themselves for one trial would mix their curves."""
    named = core_v2.Config(external_trial_id="t")
    with core_v2.init_context(config=named) as context:
        context.train.report_training_metrics(1, {"loss": 1.0})
        with pytest.raises(NotNow, match="'t' is a trial that runs"):
            core_v2.init_context(config=named)
    with core_v2.init_context(config=named) as context:
        assert context.latest_checkpoint is None


def test_one_that_runs_is_found_behind_a_newer_one() -> None:
    """Where a clock was put back, or two began at once, the newest run of a trial may have ended before another."""
    named = core_v2.Config(external_trial_id="t")
    with core_v2.init_context(config=named):
        pass
    ended = local_runs()[0]
    ended.write_card({**ended.card, "started": time.time() + 3600})
    with core_v2.init_context(config=named), pytest.raises(NotNow, match="'t' is a trial that runs"):
        core_v2.init_context(config=named)


def test_of_two_that_begin_at_once_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has looked before the first was there; it is refused, and leaves nothing of its own."""
    named = core_v2.Config(external_trial_id="t")
    looked = detached.require_none_runs
    first: list[Context] = []

    def overtaken(card: JsonObject) -> list[LocalRun]:
        runs = looked(card)
        monkeypatch.setattr(detached, "require_none_runs", looked)
        first.append(core_v2.init_context(config=named))
        return runs

    monkeypatch.setattr(detached, "require_none_runs", overtaken)
    with pytest.raises(NotNow, match="'t' is a trial that runs"):
        core_v2.init_context(config=named)
    assert len(local_runs()) == 1
    with first[0] as context:
        context.train.report_training_metrics(1, {"loss": 1.0})


def test_two_processes_begin_at_once(tmp_path: Path) -> None:
    """Exactly one of them runs."""
    script = (
        "import sys; from tenax.experimental import core_v2; print(flush=True); sys.stdin.readline()\n"
        "with core_v2.init_context(config=core_v2.Config(external_trial_id='t')): print('runs', flush=True);"
        " sys.stdin.readline()"
    )
    env = {**os.environ, "PYTHONPATH": SOURCE}
    pipe = subprocess.PIPE
    with contextlib.ExitStack() as stack:
        racers = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", script], env=env, stdin=pipe, stdout=pipe, stderr=pipe)
            )
            for _ in range(3)
        ]
        for racer in racers:
            assert racer.stdout is not None
            racer.stdout.readline()
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(b"\n")
            racer.stdin.flush()
        said = [racer.stdout.readline() for racer in racers if racer.stdout is not None]
        assert sorted(said) == [b"", b"", b"runs\n"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"project": "p"}, "give both, or neither"),
        ({"searcher": {"name": "single"}}, "says which metric ranks the trial"),
        ({"searcher": {"metric": "m", "smaller_is_better": "no"}}, "give True or False"),
        ({"labels": "far"}, "takes a list of texts"),
        ({"name": 3}, r"Config\(name=\.\.\.\) was given a int: give a text"),
        ({"external_trial_id": 7}, "give a text"),
        ({"external_experiment_id": ".."}, "no dots alone"),
        ({"external_trial_id": "a\nb"}, "characters that can be shown in a line"),
        ({"external_trial_id": "\ud800"}, "characters that can be shown in a line"),
        ({"external_trial_id": "x" * 501}, "must have 1 to 500 characters"),
        ({"data": {"a": object()}}, r"Config\(data=\.\.\.\)"),
        ({"hparams": [1]}, "give a dict"),
    ],
)
def test_what_makes_no_sense(given: dict[str, object], words: str) -> None:
    """It is said before anything is kept."""
    with pytest.raises((InvalidInput, TypeError), match=words):
        core_v2.init_context(config=core_v2.Config(**given))  # type: ignore[arg-type]
    assert local_runs() == []


def test_one_of_the_two_ways_to_say_it() -> None:
    """The older halves and the whole are not mixed."""
    with pytest.raises(InvalidInput, match="older halves"):
        core_v2.init(config=core_v2.Config(), defaults=core_v2.DefaultConfig())
    with pytest.raises(TypeError, match="colour"):
        core_v2.DefaultConfig(colour="red")  # type: ignore[call-arg]


def test_a_login_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session is asked for another one, in the thread that sends."""

    class Login:
        class _session:
            @staticmethod
            def another() -> object:
                raise Unreachable("no master there")

    monkeypatch.delenv("TENAX_TRACK")
    with core_v2.init_context(client=Login()) as context:  # type: ignore[arg-type]
        context.train.report_training_metrics(1, {"loss": 1.0})
    (one,) = local_runs()
    assert "no master there" in printed(one, "stderr")
