"""Detached mode beside a real cluster: the script of `tests/compat/test_unmanaged.py` without Determined's package."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tenax
from tenax.client.experiments import Experiment
from tenax.client.trials import Trial
from tests.e2e.trials import config, deleted, output, ran, script, was_kept
from tests.kits.detached_script import detached_script
from tests.kits.machine import TENAX, Machine, wait_for
from tests.kits.ports import free_port

SOURCE = str(Path(tenax.__file__).parents[1])


class Elsewhere:
    """A person on some machine, with this cluster's address and a login."""

    def __init__(self, place: Machine, root: Path) -> None:
        self.place = place
        self.root = root
        self.environment = {**place.environment, "TENAX_DATA_DIR": str(root / "data"), "PYTHONPATH": SOURCE}

    def begin(self, text: str, *words: str, **env: str) -> subprocess.Popen[str]:
        (self.root / "elsewhere.py").write_text(textwrap.dedent(text))
        return subprocess.Popen(
            [sys.executable, "elsewhere.py", *words],
            cwd=self.root,
            env={**self.environment, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def does(self, text: str, *words: str, **env: str) -> tuple[int, str, str]:
        process = self.begin(text, *words, **env)
        out, err = process.communicate(timeout=120)
        if was_kept(err):
            self.sync()
        return process.returncode, out, err

    def sync(self) -> None:
        done = subprocess.run([TENAX, "sync"], env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def known(self, words: str) -> tuple[int, str, int]:
        """Exit code, output, and number of the trial, of the script that all users have; ``words``: its arguments."""
        name, steps, fail = (*words.split(), "", "")[:3]
        code, out, err = self.does(detached_script("tenax"), name, str(self.root / "storage"), steps, fail)
        assert "ids " in out, out + err
        return code, out, int(out.split("ids ")[1].split()[1])

    def at_the_cluster(self, number: int) -> tuple[Trial, Experiment]:
        with self.place.client() as client:
            trial = client.trial(number)
            return trial, client.experiment(trial.experiment_id)

    def steps(self, number: int, group: str = "training") -> list[int]:
        with self.place.client() as client:
            return [report.steps for report in client.trial(number).metrics(group)]


@pytest.fixture
def elsewhere(place: Machine, tmp_path: Path) -> Elsewhere:
    return Elsewhere(place, tmp_path)


def test_a_named_trial_goes_on(elsewhere: Elsewhere) -> None:
    """The same trial, from its latest checkpoint, as run 2, and one curve; also on a machine that has none of it."""
    code, first, number = elsewhere.known("detached 3")
    assert (code, first.splitlines()[0]) == (0, "run 1 from 0")
    elsewhere.environment["TENAX_DATA_DIR"] = str(elsewhere.root / "another")
    code, second, again = elsewhere.known("detached 2")
    assert (code, again, second.splitlines()[0]) == (0, number, "run 2 from 3")
    trial, experiment = elsewhere.at_the_cluster(number)
    assert (trial.state, experiment.state) == ("COMPLETED", "COMPLETED")
    assert (trial.hparams, list(experiment.labels), experiment.config["data"]) == ({"lr": 0.5}, ["far"], {"a": 1})
    assert experiment.config["searcher"]["metric"] == "score"
    assert elsewhere.steps(number) == [1, 2, 3, 4, 5]
    assert trial.best_validation is not None
    assert trial.best_validation.metrics["score"] == 5.0
    assert "run 2 from 3" in output(elsewhere.place, trial)


def test_a_script_that_fails(elsewhere: Elsewhere) -> None:
    """Trial and experiment end as an error, with what was raised, and the traceback in the log."""
    code, _, number = elsewhere.known("fails 1 fail")
    assert code == 1
    trial, experiment = elsewhere.at_the_cluster(number)
    assert (trial.state, experiment.state) == ("ERROR", "ERROR")
    assert "ValueError: on purpose" in (trial.reason or "")
    assert 'raise ValueError("on purpose")' in output(elsewhere.place, trial)


def test_trials_of_another_search(elsewhere: Elsewhere) -> None:
    """One experiment, and a trial for each that it draws, in one process after the other or in one alone."""
    code, out, err = elsewhere.does(
        """
        from tenax.experimental import core_v2
        for number in range(3):
            config = core_v2.Config(
                external_experiment_id="search", external_trial_id=f"search-{number}", hparams={"x": number}
            )
            core_v2.init(config=config)
            core_v2.train.report_validation_metrics(1, {"validation_loss": number})
            print(core_v2.info.trial.experiment_id, core_v2.url_reverse_webui_exp_view().rpartition("/")[2])
        """
    )
    assert code == 0, err
    (both,) = set(out.splitlines())
    experiment, shown = both.split()
    assert experiment == shown
    with elsewhere.place.client() as client:
        trials = list(client.experiment(int(experiment)).trials())
    assert [(trial.state, trial.hparams) for trial in trials] == [("COMPLETED", {"x": x}) for x in range(3)]


def test_what_a_script_asks_the_cluster(elsewhere: Elsewhere) -> None:
    """The best validation of its experiment, and metadata of its run; by the login of this user."""
    code, out, err = elsewhere.does(
        """
        import time
        from tenax.experimental import core_v2
        config = core_v2.Config(searcher={"name": "single", "metric": "loss"})
        with core_v2.init_context(config=config) as context:
            context.train.report_validation_metrics(1, {"loss": 1.5})
            ends = time.monotonic() + 60
            while context.train.get_experiment_best_validation() is None and time.monotonic() < ends:
                time.sleep(0.05)
            print(context.train.get_experiment_best_validation(), context.train.set_metadata({"a": 1}))
            print(context.info.trial.trial_id, context.train.get_metadata())
        """
    )
    number = int(out.splitlines()[1].split()[0])
    assert (code, out) == (0, f"1.5 {{'a': 1}}\n{number} {{'a': 1}}\n"), err
    assert "not on a cluster" not in err
    with elsewhere.place.client() as client:
        assert client.trial(number).metadata() == {"a": 1}


def test_deleted_at_the_cluster_and_begun_again(elsewhere: Elsewhere) -> None:
    """It is a new trial, and begins anew, whatever this machine has of the old one."""
    _, _, number = elsewhere.known("deleted 2")
    _, experiment = elsewhere.at_the_cluster(number)
    assert elsewhere.known("deleted 1")[1].splitlines()[0] == "run 2 from 2"
    elsewhere.place.tenax("experiment", "delete", str(experiment.id), "--yes")
    deleted(elsewhere.place, experiment.id)
    code, out, again = elsewhere.known("deleted 1")
    assert (code, out.splitlines()[0], again > number) == (0, "run 1 from 0", True)


def test_without_a_cluster_and_sent_later(elsewhere: Elsewhere) -> None:
    """It goes on from this machine's checkpoint; ``tenax sync`` sends both runs as one trial, twice without harm."""
    words = ("alone", str(elsewhere.root / "storage"))
    away = {"DET_MASTER": f"http://127.0.0.1:{free_port()}"}
    for steps, begins in (("3", "run 0 from 0"), ("2", "run 0 from 3")):
        code, out, err = elsewhere.does(detached_script("tenax"), *words, steps, "", **away)
        assert (code, out.splitlines()[0]) == (0, begins), err
    for _ in range(2):
        elsewhere.sync()
    listed = subprocess.run(
        [TENAX, "local", "list", "--json"], env=elsewhere.environment, capture_output=True, text=True, check=True
    )
    (number,) = {run["trialId"] for run in json.loads(listed.stdout)}
    trial, _ = elsewhere.at_the_cluster(number)
    assert (trial.state, elsewhere.steps(number)) == ("COMPLETED", [1, 2, 3, 4, 5])
    # The cluster has it from now on.
    code, out, again = elsewhere.known("alone 1")
    assert (code, again, out.splitlines()[0]) == (0, number, "run 3 from 5")


def test_killed_and_begun_again(elsewhere: Elsewhere) -> None:
    """By -9: what it had reported is sent by the next run of the trial, which goes on from its checkpoint."""
    text = """
        import json, time
        from tenax.experimental import core_v2

        core_v2.init(config=core_v2.Config(external_trial_id="killed"))
        step = 0
        if core_v2.info.latest_checkpoint:
            with core_v2.checkpoint.restore_path(core_v2.info.latest_checkpoint) as path:
                step = json.loads((path / "step").read_text())
        print("from", step, flush=True)
        while step < 4:
            step += 1
            core_v2.train.report_training_metrics(step, {"loss": 1.0})
            if step == 2 and not core_v2.info.latest_checkpoint:
                with core_v2.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "step").write_text(json.dumps(step))
                print("stored", flush=True)
                while True:
                    time.sleep(1)
        print("trial", core_v2.info.trial.trial_id)
    """
    process = elsewhere.begin(text)
    assert process.stdout is not None
    wait_for(lambda: process.stdout is not None and process.stdout.readline() == "stored\n", "its checkpoint")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    code, out, err = elsewhere.does(text)
    assert (code, out.splitlines()[0]) == (0, "from 2"), err
    number = int(out.split("trial ")[1])
    assert elsewhere.at_the_cluster(number)[0].state == "COMPLETED"
    assert elsewhere.steps(number) == [1, 2, 3, 4]


def test_two_ranks(elsewhere: Elsewhere) -> None:
    """Both know the trial and where it goes on, and ask the cluster; the chief alone reports."""
    text = """
        import os, subprocess, sys
        # As torchrun starts them, which takes seconds to import what it is of.
        if "RANK" not in os.environ:
            ranks = [{**os.environ, "RANK": rank, "LOCAL_RANK": rank} for rank in "01"]
            both = [subprocess.Popen([sys.executable, __file__], env=rank) for rank in ranks]
            sys.exit(max(each.wait() for each in both))
        from tenax import core
        from tenax.experimental import core_v2

        distributed = core.DistributedContext.from_torch_distributed()
        core_v2.init(config=core_v2.Config(external_trial_id="ranks"), distributed=distributed)
        info = core_v2.info
        best = core_v2.train.get_experiment_best_validation()
        print(f"trial {info.trial.trial_id} best {best} from {bool(info.latest_checkpoint)}\\n", end="", flush=True)
        with core_v2.checkpoint.store_path({"steps_completed": 1}, shard=True) as (path, _):
            (path / f"{core_v2.distributed.rank}").write_text("x")
        if core_v2.distributed.rank == 0:
            core_v2.train.report_validation_metrics(1, {"validation_loss": 1.0})
        core_v2.close()
    """
    job = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    for goes_on in ("best None from False", "best 1.0 from True"):
        code, out, err = elsewhere.does(text, **job)
        assert code == 0, err
        (said,) = {line for line in out.splitlines() if line.startswith("trial")}
        assert said.endswith(goes_on)
    trial, _ = elsewhere.at_the_cluster(int(said.split()[1]))
    assert trial.state == "COMPLETED"


def test_in_a_trial_of_the_cluster(place: Machine, tmp_path: Path) -> None:
    """The names that it gives are those of another life: it is the trial that it is."""
    code = script(
        tmp_path / "code",
        """
        from determined.experimental import core_v2

        core_v2.init(config=core_v2.Config(name="other", hparams={"lr": 7}, external_trial_id="other"))
        core_v2.train.report_validation_metrics(1, {"loss": 1.0})
        print("hparams", core_v2.info.trial.hparams, core_v2.info.trial.trial_id)
        core_v2.close()
        """,
    )
    document = config(entrypoint="python3 train.py", hyperparameters={"lr": 0.5})
    experiment, (trial,) = ran(place, document, code)
    assert experiment.state == "COMPLETED"
    assert f"hparams {{'lr': 0.5}} {trial.id}" in output(place, trial)
