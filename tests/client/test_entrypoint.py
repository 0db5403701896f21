"""The script of an entrypoint is sent with it, or the experiment is refused before it is submitted."""

from __future__ import annotations

import pytest

from tenax.client.connection.session import Session
from tenax.client.context import check_script
from tenax.client.experiments import create_experiment
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject
from tenax.wire.entrypoints import code_run_by
from tests.kits.pretend_master import PretendMaster


@pytest.mark.parametrize(
    ("entrypoint", "target"),
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
        ("python3 -m determined.launch.horovod --autohorovod --verbose -- python3 train.py", "train.py"),
        ("python3 -m tenax.launch.horovod --autohorovod --trial model:Trial", "model:Trial"),
        ("horovodrun -np 2 python3 train.py", "train.py"),
        ("python3 -m determined.launch.torch_distributed -- --trial model:Trial", "model:Trial"),
        ("python3 -m determined.launch.torch_distributed --trial model:Trial", "model:Trial"),
        ("python3 -m tenax.launch.torch_distributed -m package.train", "package.train"),
        (["python3", "-m", "tenax.launch.with_hparams", "train.py", "--lr", "{lr}"], "train.py"),
        (["python3", "-m", "tenax.launch.with_hparams", "-m", "tenax.launch.torch_distributed", "a.py"], "a.py"),
        ("bash run.sh", "run.sh"),
        ("python3 -m package.train", "package.train"),
        ("python3 -c 'print(1)'", None),
        ("cd code && python3 train.py", None),
        ("python3 $SCRIPT.py", None),
        ("python3 /opt/train.py", None),
        ("torchrun train.py", "train.py"),
        ("torchrun --nproc_per_node 2 --standalone src/train.py --config x.py", "src/train.py"),
        ("torchrun --nproc_per_node 2 -m package.train --config x.py", "package.train"),
        ("torchrun train.py -m 3", "train.py"),
        ("torchrun --nproc_per_node $GPUS train.py", None),
        ("torchrun --no-python ./run.sh", None),
        ("LR=1 OMP_NUM_THREADS=2 python3 train.py", "train.py"),
        (["LR=1", "python3", "train.py"], None),
        ("LR=1", None),
        ("env LR=1 python3 train.py", "train.py"),
        ("exec python3 train.py", "train.py"),
        ("python3 -W ignore train.py", "train.py"),
        ("python3 -X dev -u -O train.py", "train.py"),
        ("python3 -uWignore train.py", "train.py"),
        ("python3 -uOW ignore train.py", "train.py"),
        ("python3 -um package.train", "package.train"),
        ("bash -eo pipefail run.sh", "run.sh"),
        ("bash -ec ./run.sh", None),
        ("scripts/run.sh", "scripts/run.sh"),
        ("python3 -m torch.distributed.run --nproc_per_node 2 train.py", "train.py"),
        ("python3 -m torch.distributed.launch --use_env train.py", "train.py"),
        ("accelerate launch --config_file a.yaml --num_processes 2 train.py --lr 1", "train.py"),
        ("accelerate launch -m package.train", "package.train"),
        ("accelerate-launch --cpu train.py", "train.py"),
        ("accelerate test", None),
        ("deepspeed --num_gpus=2 train.py", "train.py"),
        ("uv run train.py", "train.py"),
        ("uv run --with torch --frozen -p 3.11 python -u train.py", "train.py"),
        ("uv run --extra=cpu torchrun train.py", "train.py"),
        ("uv run --with-requirements needs.py -- train.py", "train.py"),
        ("uv run -m package.train", "package.train"),
        ("uv run --directory code train.py", None),
        ("uv run https://example.org/train.py", None),
        ("uv run -", None),
        ("uv sync", None),
        ("model_def:MyTrial", "model_def:MyTrial"),
        (" package.model:MyTrial ", "package.model:MyTrial"),
        ("python3 -m determined.exec.harness model_def:MyTrial", "model_def:MyTrial"),
        ("python3 -m tenax.launch.torch_distributed python3 -m tenax.pytorch.of_class m:T", "m:T"),
        ("python3 train.py --lr $LR", "train.py"),
        ("python3 train.py 2>&1 | tee log.txt", "train.py"),
        ("python3 train.py;", "train.py"),
        ("python3 train.py --out run$N", "train.py"),
        ("python3 \\\n  train.py \\\n  --lr 1\n", "train.py"),
        ("set -e\npython3 train.py\n", None),
        ("python3 ~/train.py", None),
        (["python3", "-m", "tenax.launch.with_hparams", "{script}.py"], None),
        ("python3 'open", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_what_a_command_line_runs(entrypoint: Json, target: str | None) -> None:
    """Where it is plain; anything else is not guessed at."""
    runs = code_run_by(entrypoint)
    assert (None if runs is None else runs.name) == target


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


@pytest.mark.parametrize(
    ("entrypoint", "files", "missing"),
    [
        ("model_def:MyTrial", [], "the module model_def, and no code is sent"),
        ("model_def:MyTrial", ["train.py"], "the module model_def, which is not among the files"),
        ("python3 -m determined.exec.harness model_def:MyTrial", [], "the module model_def, and no code is sent"),
        ("model_def:MyTrial", ["model_def.py"], None),
        ("model_def:MyTrial", ["model_def", "model_def/__init__.py"], None),
        ("model_def:MyTrial", ["model_def", "model_def/trial.py"], None),
        ("package.model:MyTrial", [], None),
        ("package.model:MyTrial", ["package/other.py"], None),
        ("package.model:MyTrial", ["package/__init__.py"], r"the module package\.model, which is not among"),
        ("package.model:MyTrial", ["package/__init__.py", "package/model.py"], None),
        ("python3 -m package.train", [], None),
        ("python3 -m train", [], None),
        ("python3 -m package.train", ["package/__init__.py"], r"the module package\.train, which is not among"),
        ("python3 -m package.train", ["package/__init__.py", "package/train/__main__.py"], None),
        ("python3 -m torch.distributed.run -m package.train", ["package.py"], r"the module package\.train, which"),
        ("accelerate launch --num_processes 2 train.py", [], r"runs train\.py, and no code is sent"),
        ("uv run train.py", ["src/train.py"], r"runs train\.py, which is not among"),
    ],
)
def test_a_module_is_missed_where_no_package_can_bring_it(
    entrypoint: str, files: list[str], missing: str | None
) -> None:
    """Of a package that is sent, and of a trial class; what may be installed where the task runs is not judged."""
    sent: list[JsonObject] = [{"path": path} for path in files]
    if missing is None:
        check_script(f"entrypoint: {entrypoint}\n", sent)
    else:
        with pytest.raises(InvalidInput, match=missing):
            check_script(f"entrypoint: {entrypoint}\n", sent)


def test_the_module_of_a_trial_class_may_come_from_elsewhere() -> None:
    """From an image, a mount, a folder on PYTHONPATH, or where it is installed; the refusal says how to say so."""
    config = "entrypoint: model_def:MyTrial\n"
    with pytest.raises(InvalidInput, match=r"CONFIG DIRECTORY\. If it is installed .* PYTHONPATH"):
        check_script(config, [])
    check_script(config + "environment: {image: mine}\n", [])
    check_script(config + "environment: {environment_variables: [PYTHONPATH=/opt]}\n", [])
    check_script(config + "bind_mounts: [{host_path: /opt, container_path: /opt}]\n", [])
    check_script("entrypoint: pytest:MyTrial\n", [])


def test_the_code_of_a_fork_is_looked_through_where_it_is_sent_anew(master: PretendMaster) -> None:
    """It takes the place of all that its parent has; without any it has its parent's."""
    master.on("POST", "/api/v1/experiments", {"experiment": {"id": 8}})
    session, config = Session(master.url, token="t"), "entrypoint: python3 train.py\n"
    with pytest.raises(InvalidInput, match=r"runs train\.py, which is not among the files"):
        create_experiment(session, config, [{"path": "other.py"}], parent_id=7)
    create_experiment(session, config, [], parent_id=7)
    assert len(master.sent("POST", "/api/v1/experiments")) == 1
