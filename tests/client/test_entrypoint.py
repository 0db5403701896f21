"""The script of an entrypoint is sent with it, or the experiment is refused before it is submitted."""

from __future__ import annotations

import pytest

from tenax.client.context import check_script, script_of
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json


@pytest.mark.parametrize(
    ("entrypoint", "script"),
    [
        ("python3 train.py --lr 1", "train.py"),
        ("python3.11 -u src/train.py", "src/train.py"),
        (["python", "train.py", "x y"], "train.py"),
        ("./run.sh", "./run.sh"),
        ("python3 -m tenax.launch.torch_distributed train.py", "train.py"),
        ("python3 -m tenax.launch.torch_distributed python3 src/train.py", "src/train.py"),
        ("python3 -m tenax.launch.torch_distributed ./run.sh", "./run.sh"),
        ("python3 -m tenax.launch.torch_distributed --nproc_per_node 2 -- train.py", "train.py"),
        ("python3 -m tenax.launch.torch_distributed --nproc_per_node 2 train.py", None),
        ("python3 -m tenax.launch.processes python3 train.py", "train.py"),
        ("python3 -m determined.launch.deepspeed -- python3 train.py", "train.py"),
        ("python3 -m determined.launch.torch_distributed -- --trial model:Trial", None),
        ("python3 -m determined.launch.torch_distributed --trial model:Trial", None),
        ("python3 -m tenax.launch.torch_distributed -m package.train", None),
        (["python3", "-m", "tenax.launch.with_hparams", "train.py", "--lr", "{lr}"], "train.py"),
        (["python3", "-m", "tenax.launch.with_hparams", "-m", "tenax.launch.torch_distributed", "a.py"], "a.py"),
        ("bash run.sh", "run.sh"),
        ("python3 -m package.train", None),
        ("python3 -c 'print(1)'", None),
        ("cd code && python3 train.py", None),
        ("python3 $SCRIPT.py", None),
        ("python3 /opt/train.py", None),
        ("torchrun train.py", "train.py"),
        ("torchrun --nproc_per_node 2 --standalone src/train.py --config x.py", "src/train.py"),
        ("torchrun --nproc_per_node 2 -m package.train", None),
        ("torchrun --no-python ./run.sh", None),
        ("LR=1 OMP_NUM_THREADS=2 python3 train.py", "train.py"),
        (["LR=1", "python3", "train.py"], None),
        ("LR=1", None),
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
    check_script(config, [{"path": "train.py"}])
    check_script(config, [{"path": "startup-hook.sh"}])
    check_script(config + "bind_mounts: [{host_path: /c, container_path: code}]\n", [])
    for wrong in ("a: [", "- a", ""):
        check_script(wrong, [])
    with pytest.raises(InvalidInput, match=r"\./train\.py, and no code is sent"):
        check_script(config, [])
    with pytest.raises(InvalidInput, match=r"not among the files .*\.detignore"):
        check_script(config, [{"path": "other.py"}])
