"""The first program of a container that is no trial's, as a process."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import tenax
from tenax.core.info import read_cluster_info
from tests.kits.interpreters import interpreters

SOURCE = str(Path(tenax.__file__).parents[1])
CONTRACT = {
    "DET_MASTER": "http://127.0.0.1:1",
    "DET_CLUSTER_ID": "c",
    "DET_AGENT_ID": "a",
    "DET_SLOT_IDS": "[0]",
    "DET_TASK_ID": "t",
    "DET_ALLOCATION_ID": "t.1",
    "DET_SESSION_TOKEN": "secret",
    "DET_TASK_TYPE": "COMMAND",
}


def run(directory: Path, python: Path | str, *command: str, **env: str) -> tuple[int, str, str]:
    (directory / "run").mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    given = {**CONTRACT, "DET_RUN_DIR": str(directory / "run"), "TENAX_TASK_ENTRYPOINT": json.dumps(command)}
    done = subprocess.run(
        [str(python), "-m", "tenax.exec.task"],
        cwd=directory,
        env={**kept, "PYTHONPATH": SOURCE, **given, **env},
        capture_output=True,
        text=True,
        timeout=240,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(params=interpreters())
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_one_word_is_a_line_for_the_shell_and_several_are_a_program(tmp_path: Path, python: str) -> None:
    """The exit code is that of the program; quoting is the user's own."""
    assert run(tmp_path, python, "echo $((1 + 1)); exit 3") == (3, "2\n", "")
    assert run(tmp_path, python, "echo", "$HOME;", "a  b") == (0, "$HOME; a  b\n", "")
    assert run(tmp_path, python, "{python}", "-c", "print('mod:Class')") == (0, "mod:Class\n", "")
    assert run(tmp_path, python, "echo a:B") == (0, "a:B\n", "")


def test_the_program_finds_the_info_files_and_not_our_variable(tmp_path: Path, python: str) -> None:
    """Written before it starts, for its owner alone."""
    assert run(tmp_path, python, "env | grep -c TENAX_TASK")[1] == "0\n"
    info = read_cluster_info(str(tmp_path / "run"))
    assert info is not None
    assert (info.task_type, info.slot_ids, info.is_trial) == ("COMMAND", [0], False)
    assert (tmp_path / "run" / "info" / "cluster.json").stat().st_mode & 0o777 == 0o600


def test_hooks_are_sourced_first(tmp_path: Path, python: str) -> None:
    """The cluster's, then that of the task; one that fails ends it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "dynamic-tcd-startup-hook.sh").write_text("export FIRST=1")
    (tmp_path / "startup-hook.sh").write_text("export SECOND=$((FIRST + 1))")
    assert run(tmp_path, python, "echo $SECOND")[1] == "2\n"
    (tmp_path / "startup-hook.sh").write_text("false")
    assert run(tmp_path, python, "echo not reached")[:2] == (1, "")


def test_what_cannot_be_run_ends_as_in_a_shell(tmp_path: Path, python: str) -> None:
    """In words, with the codes that everybody knows."""
    (tmp_path / "plain").write_text("x")
    for command, code in ((("no-such-program", "x"), 127), (("./plain", "x"), 126)):
        ended, out, err = run(tmp_path, python, *command)
        assert (ended, out) == (code, "")
        assert err.startswith("tenax: ")
    assert run(tmp_path, python, "x", TENAX_TASK_ENTRYPOINT="[1]")[0] == 1
    assert run(tmp_path, python) == (0, "", ""), "nothing to run is done at once"
