"""From a plain script to trials: it has flags as scripts have them, and learns next to nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.machine import Machine, outlast

TRAIN = """
import argparse, json, sys
from tenax import core

parser = argparse.ArgumentParser()
parser.add_argument("--alpha", type=float, required=True)
parser.add_argument("--penalty", default="l2")
parser.add_argument("--average", action="store_true")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--shift", type=float, default=0.0)
parser.add_argument("rest", nargs="*")
arguments = parser.parse_args()

with core.init(hparams=vars(arguments)) as context:
    print("called", json.dumps(sys.argv[1:]), flush=True)
    print("hparams", json.dumps(context.hparams, sort_keys=True), flush=True)
    for epoch in range(1, arguments.epochs + 1):
        accuracy = 1 - arguments.alpha / epoch + arguments.shift
        context.train.report_validation_metrics(epoch, {"accuracy": accuracy, "epochs": epoch})
        if context.preempt.should_preempt():
            break
"""


#: The same flags, and nothing to learn.
PLAIN = """
import argparse, json, sys
from tenax import core

parser = argparse.ArgumentParser()
parser.add_argument("--alpha", type=float, required=True)
parser.add_argument("--average", action="store_true")
parser.add_argument("--epochs", type=int, default=4)
arguments = parser.parse_args()

with core.init(hparams=vars(arguments)) as context:
    print("called", json.dumps(sys.argv[1:]), flush=True)
    context.train.report_validation_metrics(1, {"accuracy": arguments.alpha})
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    """It reports how accurate it is after each epoch."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    return str(code / "train.py")


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """It only says how it was called."""
    code = tmp_path / "plain"
    code.mkdir()
    (code / "train.py").write_text(PLAIN)
    return str(code / "train.py")


def said(place: Machine, trial: int, what: str) -> object:
    """What the script of a trial printed behind that word."""
    output = place.tenax("trial", "logs", str(trial)).stdout
    (line,) = re.findall(rf"\b{what} ([\[{{].*)$", output, re.MULTILINE)
    return json.loads(line)


def number_of(created: str) -> int:
    return int(re.findall(r"Created experiment (\d+)", created)[0])


def test_a_search_of_a_plain_script(place: Machine, script: str) -> None:
    """Each trial's own values are in the arguments of its script, and are what the cluster knows of it."""
    done = place.tenax("search", script, "--alpha", "1e-6..1e-1:log", "--penalty", "l1,l2", "--average",
                       "true,false:switch", "--time", "4", "--trials", "3", "--shift", "-1e-5", "-f",
                       "--", "--epochs", "4", "{alpha}", "1..2")  # fmt: skip
    assert done.returncode == exits.OK, done.stderr
    number = number_of(done.stdout)
    with place.client() as client:
        experiment = client.experiment(number)
        trials = experiment.trials()
        assert (experiment.state, len(trials)) == ("COMPLETED", 3)
        assert (experiment.metric, experiment.smaller_is_better) == ("accuracy", False)
        assert experiment.best_metric is not None
        assert experiment.best_metric > 0.5
        for trial in trials:
            hparams = trial.hparams
            # Over those of its own arguments that the search does not choose.
            own = {"epochs": 4, "rest": ["{alpha}", "1..2"]}
            assert said(place, trial.id, "hparams") == {**own, **hparams}
            assert isinstance(hparams["alpha"], float)
            assert 1e-6 <= hparams["alpha"] <= 1e-1
            assert said(place, trial.id, "called") == [
                *("--alpha", repr(hparams["alpha"]), "--penalty", hparams["penalty"]),
                *(["--average"] if hparams["average"] else []),
                *("--shift", "-0.00001", "--epochs", "4", "{alpha}", "1..2"),
            ]
        assert len({trial.hparams["alpha"] for trial in trials}) == 3


def test_one_trial_of_a_plain_script(place: Machine, plain: str, tmp_path: Path) -> None:
    """What is kept makes the same trial again, and a fork with another value gives its script that one."""
    config = tmp_path / "config.yaml"
    done = place.tenax("submit", plain, "--alpha", "1e-3", "--epochs=2", "--average", "--save", str(config))
    assert "{name: single, metric: accuracy, smaller_is_better: false}" in done.stderr
    kept = place.tenax("experiment", "create", str(config), str(Path(plain).parent))
    first = number_of(done.stdout)
    fork = place.tenax("experiment", "fork", str(first), "--config", "hyperparameters.average=false",
                       "--config", "hyperparameters.alpha=0.01")  # fmt: skip
    forked = number_of(fork.stdout)
    calls = {}
    for number in (first, number_of(kept.stdout), forked):
        assert outlast(place, number).state == "COMPLETED"
        with place.client() as client:
            (trial,) = client.experiment(number).trials()
        calls[number] = said(place, trial.id, "called")
    assert calls.pop(forked) == ["--alpha", "0.01", "--epochs=2"]
    assert list(calls.values()) == [["--alpha", "0.001", "--epochs=2", "--average"]] * 2


def test_a_value_that_the_script_does_not_take(place: Machine, plain: str) -> None:
    """Is an error of the script's own words."""
    done = place.tenax("submit", plain, "--alpha", "much", "--config", "max_restarts=0", "-f", check=False)
    assert done.returncode == exits.NOT_COMPLETED
    assert "argument --alpha: invalid float value: 'much'" in done.stdout + done.stderr


def test_several_slots(place: Machine, tmp_path: Path) -> None:
    """Each rank is called with the values of its trial."""
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks" / "train.py").write_text(
        "import os, sys; print(f\"called {sys.argv[1:]} as {os.environ['RANK']} of {os.environ['WORLD_SIZE']}\")\n"
    )
    done = place.tenax("submit", str(tmp_path / "ranks" / "train.py"), "--lr=-1e-5", "--slots", "2", "-f")
    assert done.returncode == exits.OK, done.stderr
    with place.client() as client:
        (trial,) = client.experiment(number_of(done.stdout)).trials()
    output = place.tenax("trial", "logs", str(trial.id)).stdout
    for rank in range(2):
        assert f"called ['--lr=-0.00001'] as {rank} of 2" in output


def test_a_name_that_is_no_hyperparameter(place: Machine, plain: str, tmp_path: Path) -> None:
    """Keeps a trial from starting; it is named, and what fails in the same way twice is not tried on and on."""
    config = tmp_path / "config.yaml"
    config.write_text(
        'entrypoint: [python3, -m, tenax.launch.with_hparams, train.py, --alpha, "{alhpa}"]\n'
        "hyperparameters: {alpha: 0.1}\nsearcher: {name: single, metric: accuracy}\n"
    )
    done = place.tenax("experiment", "create", str(config), str(Path(plain).parent), "-f", check=False)
    assert done.returncode == exits.NOT_COMPLETED
    assert "a hyperparameter 'alhpa' that this trial does not have (there is alpha)" in done.stdout + done.stderr
    with place.client() as client:
        (trial,) = client.experiment(number_of(done.stdout)).trials()
    assert trial.restarts == 1
