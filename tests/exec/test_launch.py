"""From entrypoints to words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tenax.errors import InvalidInput
from tenax.exec import launch

PATH = "/usr/bin:/bin"


@pytest.mark.parametrize(
    ("entrypoint", "argv"),
    [
        (["python3", "a b.py", "$X"], ["python3", "a b.py", "$X"]),
        ("true --flag=1 x/y.py", ["true", "--flag=1", "x/y.py"]),
        ("  true  ", ["true"]),
        ("true 'a b'", ["/bin/sh", "-c", "true 'a b'"]),
        ("true && true", ["/bin/sh", "-c", "true && true"]),
        ("X=1 true", ["/bin/sh", "-c", "X=1 true"]),
        ("exec true", ["/bin/sh", "-c", "exec true"]),
        ("cd there", ["/bin/sh", "-c", "cd there"]),
        ("true\ntrue", ["/bin/sh", "-c", "true\ntrue"]),
        ("ls *.py", ["/bin/sh", "-c", "ls *.py"]),
        ("ls ~", ["/bin/sh", "-c", "ls ~"]),
        ("true a:b", ["true", "a:b"]),
    ],
)
def test_argv(entrypoint: str | list[str], argv: list[str]) -> None:
    """A list stands as it is; a string goes to the shell unless it means the same without one."""
    assert launch.argv_of(entrypoint, PATH) == argv  # type: ignore[arg-type]


@pytest.mark.parametrize("entrypoint", [None, "", "  ", [], [1], {"a": 1}])
def test_no_entrypoint(entrypoint: object) -> None:
    """What is no command is refused."""
    with pytest.raises(InvalidInput, match="entrypoint is missing"):
        launch.argv_of(entrypoint, PATH)  # type: ignore[arg-type]


@pytest.mark.parametrize("entrypoint", ["model_def:MyTrial", "pkg.module:Trial"])
def test_classes(entrypoint: str) -> None:
    """The old form that names a class: one rank per slot trains it."""
    launcher = ["python3", "-m", "tenax.launch.torch_distributed"]
    assert launch.argv_of(entrypoint, PATH) == [*launcher, "python3", "-m", "tenax.pytorch.of_class", entrypoint]


def test_environment_is_left_alone_where_it_fits() -> None:
    """PATH is not touched where it leads to the right interpreter already."""
    import os

    env = {"PATH": os.path.dirname(sys.executable) + ":/bin", "PYTHONUNBUFFERED": "0"}
    assert launch.with_interpreter(env, sys.executable) == env


def installed() -> bool:
    """Determined's package is there."""
    return True


@pytest.mark.parametrize("launcher", ["deepspeed", "horovod"])
def test_launchers_that_need_ssh(launcher: str) -> None:
    """Are refused where there are other machines to reach, with what else can be done."""
    line = f"python3 -m determined.launch.{launcher} -- python3 train.py"
    for entrypoint in (line, line.split()):
        with pytest.raises(
            InvalidInput, match=rf"over ssh.*is_single_node.*with tenax\.launch\.{launcher}, which.*torch_distributed"
        ):
            launch.check_reaches_others(entrypoint, {}, installed)  # type: ignore[arg-type]
    launch.check_reaches_others("python3 -m determined.launch.torch_distributed python3 train.py", {}, installed)


@pytest.mark.parametrize("launcher", ["deepspeed", "horovod"])
def test_our_own_launchers_need_none(launcher: str) -> None:
    """Under their own names, and under Determined's where that package is not."""
    for name in (f"tenax.launch.{launcher}", f"determined.launch.{launcher}"):
        launch.check_reaches_others(f"python3 -m {name} python3 train.py", {}, lambda: False)
    launch.check_reaches_others(f"python3 -m tenax.launch.{launcher} python3 train.py", {}, installed)


def test_horovodrun_itself() -> None:
    """Is refused where there are others, with the line to write instead."""
    with pytest.raises(
        InvalidInput, match=r"ssh.*entrypoint: python3 -m tenax\.launch\.horovod python3 train\.py --lr 1;"
    ):
        launch.check_reaches_others("horovodrun -np 4 -H a:2,b:2 python3 train.py --lr 1", {}, lambda: False)


@pytest.mark.parametrize(
    "entrypoint",
    [
        "torchrun --nproc_per_node 2 train.py --lr 0.1",
        ["/env/bin/torchrun", "--standalone", "train.py", "--lr", "0.1"],
        "cd x && python3 -m torch.distributed.run train.py --lr 0.1",
        "sh -c 'torchrun train.py --lr 0.1'",
    ],
)
def test_torchrun_of_one_machine(entrypoint: object) -> None:
    """Is refused where there are others, with the line to write instead; told of them, it is the user's own affair."""
    with pytest.raises(
        InvalidInput, match=r"own machine only.*tenax\.launch\.torch_distributed python3 train\.py --lr"
    ):
        launch.check_reaches_others(entrypoint, {}, installed)  # type: ignore[arg-type]
    launch.check_reaches_others(entrypoint, {"PET_NNODES": "2"}, installed)  # type: ignore[arg-type]
    launch.check_reaches_others("torchrun --nnodes 2 --node_rank $RANK train.py", {}, installed)
    launch.check_reaches_others("python3 torchrunner.py", {}, installed)


def test_a_user_without_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an image's container has it: a home that can be written, a name, and what pip installs for it on PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_123)
    env = {"HOME": "/", "PATH": "/bin", "PYTHONUSERBASE": "/base"}
    launch.settle_account(env)
    assert env == {
        "HOME": str(tmp_path),
        "PATH": "/base/bin:/bin",
        "PYTHONUSERBASE": "/base",
        "USER": "4000000123",
        "LOGNAME": "4000000123",
    }
    known = dict(env)
    launch.settle_account(env)
    assert env == known


def test_an_account_is_left_as_it_is() -> None:
    """Whoever has a home and a name keeps them."""
    env = {"HOME": "/home/ann", "USER": "ann", "PATH": "/bin"}
    launch.settle_account(env)
    assert env == {"HOME": "/home/ann", "USER": "ann", "PATH": "/bin"}


def test_output_is_not_held_back() -> None:
    """The last lines before a kill are in the log: Python's output is not buffered unless the user wants it."""
    assert launch.with_interpreter({"PATH": PATH}, sys.executable)["PYTHONUNBUFFERED"] == "1"
