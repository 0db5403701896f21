"""The script of an entrypoint is sent with it, or the experiment is refused before it is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.cli.experiment.entrypoint import check_script, script_of
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json


@pytest.mark.parametrize(
    ("entrypoint", "script"),
    [
        ("python3 train.py --lr 1", "train.py"),
        ("python3.11 -u src/train.py", "src/train.py"),
        (["python", "train.py", "x y"], "train.py"),
        ("./run.sh", "./run.sh"),
        ("bash run.sh", "run.sh"),
        ("python3 -m package.train", None),
        ("python3 -c 'print(1)'", None),
        ("cd code && python3 train.py", None),
        ("python3 $SCRIPT.py", None),
        ("python3 /opt/train.py", None),
        ("torchrun train.py", None),
        ("python3 'open", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_the_script_of_a_command_line(entrypoint: Json, script: str | None) -> None:
    """Where it is plain; anything else is not guessed at."""
    assert script_of(entrypoint) == script


def test_a_script_that_is_not_sent_is_named() -> None:
    """With what was forgotten; a hook, or a mount into the work directory, could bring it."""
    config = "entrypoint: python3 ./train.py\n"
    check_script(config, [{"path": "train.py"}], Path("code"))
    check_script(config, [{"path": "startup-hook.sh"}], Path("code"))
    check_script(config + "bind_mounts: [{host_path: /c, container_path: code}]\n", [], None)
    for wrong in ("a: [", "- a", ""):
        check_script(wrong, [], None)
    with pytest.raises(InvalidInput, match=r"\./train\.py, and no DIRECTORY"):
        check_script(config, [], None)
    with pytest.raises(InvalidInput, match="code has no such file"):
        check_script(config, [{"path": "other.py"}], Path("code"))
