"""A command line with the hyperparameters of its trial in it: what stands for what, and the process that it becomes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.core.hparams_in_words import escaped, filled, rendered
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tests.exec.place import SOURCE
from tests.kits.interpreters import interpreters

HPARAMS: JsonObject = {
    "lr": 0.003,
    "batch_size": 32,
    "model": {"depth": 4, "lr": -1e-05},
    "amp": True,
    "bias": False,
    "text": "a b",
    "empty": "",
    "a.b": "whole",
}


@pytest.mark.parametrize(
    ("command", "result"),
    [
        (["train.py", "--lr", "{lr}"], ["train.py", "--lr", "0.003"]),
        (["--batch-size={batch_size}", "model.depth={model.depth}"], ["--batch-size=32", "model.depth=4"]),
        (["{amp:+--amp}", "{bias:+--bias}", "--amp={amp}"], ["--amp", "--amp=true"]),
        (["x{bias:+-no}y"], ["xy"]),
        (["{text}", "{empty}", "", "{a.b}"], ["a b", "", "", "whole"]),
        (["{lr}/{batch_size}"], ["0.003/32"]),
        (["{{lr}}", "{{{lr}}}", "{{lr}", "{}", '{"a": 1}', "{ lr }", "${HOME}x"], None),
    ],
)
def test_what_stands_for_what(command: list[str], result: list[str] | None) -> None:
    """Names in braces are values; doubled braces, and braces around anything else, are text."""
    if result is None:
        with pytest.raises(InvalidInput, match="HOME"):
            filled(command, HPARAMS)
        command, result = command[:-1], ["{lr}", "{{lr}}", "{{lr}", "{}", '{"a": 1}', "{ lr }"]
    assert filled(command, HPARAMS) == result


@given(st.lists(st.text(alphabet='{}ab:+.-_1 "', max_size=12)))
def test_what_is_escaped_stays_as_it_is(words: list[str]) -> None:
    """Whatever a person passes on untouched arrives so, empty words as well."""
    assert filled([escaped(word) for word in words], {}) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e-05, "1e-05"),
        (1.0, "1.0"),
        (-1e-05, "-0.00001"),
        (-2.5, "-2.5"),
        (7, "7"),
        (True, "true"),
        (None, "null"),
        ("adam", "adam"),
        ([1, "a"], '[1, "a"]'),
    ],
)
def test_a_value_as_a_word(value: Json, text: str) -> None:
    """So that argparse takes a negative number for a value, not for an option."""
    assert json.loads(rendered(value)) == value if not isinstance(value, str) else rendered(value) == value
    assert rendered(value).replace(" ", "") == text.replace(" ", "")


def test_what_has_no_value_is_named() -> None:
    """With what there is, and how text is written that looks like a name."""
    with pytest.raises(InvalidInput, match=r"'lrr'.*there is lr\).*\{\{lrr\}\}"):
        filled(["{lrr}"], {"lr": 1})
    with pytest.raises(InvalidInput, match="there is none"):
        filled(["{a.b}"], {})
    with pytest.raises(InvalidInput, match=r"lr is 0\.1: write \{lr\}"):
        filled(["{lr:+--lr}"], {"lr": 0.1})


def start(python: str, run_dir: Path, work: Path, *command: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    return subprocess.run(
        [python, "-m", "tenax.launch.with_hparams", *command],
        cwd=work,
        env={**kept, "PYTHONPATH": SOURCE, "DET_RUN_DIR": str(run_dir)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Of a trial with a learning rate."""
    info = tmp_path / "run" / "info"
    info.mkdir(parents=True)
    cluster = {
        "master_url": "http://m",
        "cluster_id": "c",
        "agent_id": "a",
        "slot_ids": [],
        "task_id": "t",
        "allocation_id": "t.1",
        "session_token": "s",
        "task_type": "TRIAL",
    }
    trial = {
        "trial_id": 1,
        "experiment_id": 1,
        "trial_seed": 1,
        "hparams": {"lr": 0.25, "amp": True},
        "config": {},
        "steps_completed": 0,
        "trial_run_id": 1,
    }
    (info / "cluster.json").write_text(json.dumps(cluster))
    (info / "trial.json").write_text(json.dumps(trial))
    return info.parent


@pytest.mark.parametrize("python", interpreters())
def test_the_command_takes_the_place_of_the_launcher(python: str, run_dir: Path, tmp_path: Path) -> None:
    """Under the same Python, with the exit code of the command; files of the user's shadow nothing."""
    (tmp_path / "train.py").write_text("import sys; print(sys.argv, sys.executable); sys.exit(3)\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')\n")
    (tmp_path / "module.py").write_text("import sys; print(sys.argv[1:])\n")
    done = start(python, run_dir, tmp_path, "train.py", "--lr", "{lr}", "{amp:+--amp}")
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("['train.py', '--lr', '0.25', '--amp'] ")
    assert start(python, run_dir, tmp_path, "sh", "-c", "echo {lr}").stdout == "0.25\n"
    (tmp_path / "json.py").unlink()
    assert start(python, run_dir, tmp_path, "-m", "module", "{lr}").stdout == "['0.25']\n"


def test_what_cannot_start_says_why(run_dir: Path, tmp_path: Path) -> None:
    """As the master reads it: what would fail every time is not tried again."""
    (python, *_) = interpreters()
    done = start(python, run_dir, tmp_path, "train.py", "{lrr}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tenax: this trial cannot start as it is configured: the entrypoint names")
    assert "there is no command" in start(python, run_dir, tmp_path).stderr
    assert "is for trials of a cluster" in start(python, tmp_path, tmp_path, "train.py").stderr
    assert "cannot be started" in start(python, run_dir, tmp_path, "no-such-program").stderr
    assert start(python, run_dir, tmp_path, "-h").stdout.startswith("usage: python3 -m tenax.launch.with_hparams")
