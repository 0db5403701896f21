"""Trials on two machines, four ranks, by the launcher: a real cluster, real agents, real torchrun.

Ranks that have nothing to learn do not import torch, which takes seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.client.experiments import Experiment
from tenax.client.trials import Trial
from tenax.errors import InvalidInput, NotFound
from tests.e2e.trials import config, output, ran, script
from tests.kits.horovod_stand_in import write_horovod
from tests.kits.machine import Machine, machine, outlast, processes, wait_for
from tests.kits.second_machine import SecondMachine, second_machine

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
LAUNCH = "python3 -m tenax.launch.torch_distributed"
PROCESSES = "python3 -m tenax.launch.processes"

# A busy machine takes half a minute to begin with torch, in each run.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    """Two slots on its own machine."""
    with machine(slots=2) as up:
        yield up


@pytest.fixture(scope="module", autouse=True)
def second(place: Machine) -> Iterator[SecondMachine]:
    """Two more."""
    with second_machine(place, slots=2) as made:
        yield made


def four(entrypoint: str, **changes: object) -> dict[str, object]:
    return dict(config(entrypoint=entrypoint, resources={"slots_per_trial": 4}, **changes))


def one_of(place: Machine, document: dict[str, object], code: Path, seconds: float = 240.0) -> tuple[Experiment, Trial]:
    experiment, trials = ran(place, document, code, seconds)  # type: ignore[arg-type]
    return experiment, trials[0]


def begun(place: Machine, document: dict[str, object], code: Path) -> int:
    with place.client() as client:
        return client.create_experiment(document, code).id  # type: ignore[arg-type]


def test_a_trial_runs_on_the_machine_that_it_asks_for(place: Machine, tmp_path: Path) -> None:
    """By labels as its agent was started with; what nothing meets is refused with what there is."""
    asks = {"slots_per_trial": 1, "constraints": {"labels": {"side": "second", "nvme": True}}}
    experiment, trial = one_of(place, dict(config(entrypoint="echo on $DET_AGENT_ID", resources=asks)), tmp_path)
    assert experiment.state == "COMPLETED"
    assert "on second" in output(place, trial)
    asks = {"slots_per_trial": 4, "constraints": {"same": "side"}}
    with pytest.raises(InvalidInput, match=r"4 slots on machines that are alike .* the largest group of them with 2"):
        begun(place, dict(config(entrypoint="true", resources=asks)), tmp_path)


#: Counts in step on all ranks, saves at each step, and does at step 3 what it is told to, unless it goes on from a
#: checkpoint: run 1 may have ended before it began, on a port that another cluster of this machine has.
COUNTING = """
    import json
    import os
    import pathlib
    import sys

    from tenax import core

    told, place = sys.argv[1], pathlib.Path(sys.argv[2])
    with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        ranks, info = context.distributed, context.info
        print("ranks", ranks.allgather((ranks.rank, ranks.local_rank, ranks.cross_rank)), flush=True)
        step = 0
        if info.latest_checkpoint:
            with context.checkpoint.restore_path(info.latest_checkpoint) as path:
                step = sum(json.loads((path / f"{rank}.json").read_text()) for rank in range(4)) // 4
            print("going on after step", step, flush=True)
        while step < 6:
            step += 1
            ranks.allgather(step)
            if step == 3 and told == "raise" and ranks.rank == 3 and not info.latest_checkpoint:
                raise ValueError("bad batch")
            if step == 3 and told == "exit" and ranks.rank == 1:
                sys.exit(7)
            if ranks.rank == 0:
                context.train.report_training_metrics(step, {"loss": 1 / step})
                context.train.report_validation_metrics(step, {"loss": 1 / step})
            with context.checkpoint.store_path({"steps_completed": step}, shard=True) as (path, _):
                (path / f"{ranks.rank}.json").write_text(json.dumps(step))
            while told == "wait" and step == 3 and not info.latest_checkpoint:
                (place / f"waiting-{ranks.rank}").touch()
                if context.preempt.should_preempt():
                    sys.exit(0)
"""


def counting(tmp_path: Path, told: str, launch: str = LAUNCH) -> tuple[str, Path]:
    code = script(tmp_path / "code", COUNTING)
    tmp_path.chmod(0o777)
    return f"{launch} python3 train.py {told} {tmp_path}", code


def steps(place: Machine, trial: Trial) -> list[int]:
    with place.client() as client:
        return [int(point.steps) for point in client.trial(trial.id).series("loss", "training")]


def until_step_3(place: Machine, number: int, tmp_path: Path) -> None:
    """All ranks of the first run wait there. Raises AssertionError with the output where they do not."""
    try:
        wait_for(lambda: len(list(tmp_path.glob("waiting-*"))) == 4, "all ranks at step 3")
    except AssertionError as error:
        with place.client() as client:
            trials = client.experiment(number).trials()
        raise AssertionError("\n".join(output(place, trial) for trial in trials)) from error


@pytest.mark.parametrize(
    "launch",
    [
        LAUNCH,
        *(pytest.param(each, marks=pytest.mark.long) for each in (PROCESSES, "python3 -m determined.launch.deepspeed")),
    ],
)
def test_a_rank_that_raises_ends_the_run_and_the_next_goes_on(place: Machine, tmp_path: Path, launch: str) -> None:
    """Sharded checkpoints, one restart; the reason is the exception of the rank that failed, not of its peers."""
    entrypoint, code = counting(tmp_path, "raise", launch)
    experiment, trial = one_of(place, four(entrypoint, max_restarts=1), code)
    log = output(place, trial)
    assert (experiment.state, trial.restarts) == ("COMPLETED", 1), log
    assert "rank 3 failed first: ValueError: bad batch" in log
    assert "has ended: rank 3 failed first: ValueError: bad batch (in workdir/train.py, line" in log
    assert "ranks [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]" in log
    assert "going on after step 2" in log
    assert steps(place, trial) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("launch", [LAUNCH, pytest.param(PROCESSES, marks=pytest.mark.long)])
def test_the_exit_code_is_that_of_the_rank(place: Machine, tmp_path: Path, launch: str) -> None:
    """No restart is allowed: the trial failed as the rank did, once, and none of its processes is left."""
    entrypoint, code = counting(tmp_path, "exit", launch)
    experiment, trial = one_of(place, four(entrypoint), code)
    assert (experiment.state, trial.restarts) == ("ERROR", 0)
    assert "rank 1 failed first, with exit code 7" in (experiment.reason or ""), output(place, trial)
    assert "non-zero exit code: 7" in output(place, trial)


@pytest.mark.parametrize("launch", [pytest.param(LAUNCH, marks=pytest.mark.long), PROCESSES])
def test_pause_and_resume(place: Machine, tmp_path: Path, launch: str) -> None:
    """All ranks leave together, and go on after the step that was saved."""
    entrypoint, code = counting(tmp_path, "wait", launch)
    number = begun(place, four(entrypoint), code)
    until_step_3(place, number, tmp_path)
    with place.client() as client:
        client.experiment(number).pause()
        wait_for(lambda: client.experiment(number).trials()[0].state == "PAUSED", "the pause")
        client.experiment(number).activate()
    ended = outlast(place, number)
    with place.client() as client:
        [trial] = client.experiment(number).trials()
    log = output(place, trial)
    assert (ended.state, trial.restarts) == ("COMPLETED", 0), log
    assert log.count("going on after step 3") == 4
    assert steps(place, trial) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("launch", [LAUNCH, pytest.param(PROCESSES, marks=pytest.mark.long)])
def test_a_kill_ends_all_ranks(place: Machine, second: SecondMachine, tmp_path: Path, launch: str) -> None:
    """On both machines."""
    entrypoint, code = counting(tmp_path, "wait", launch)
    number = begun(place, four(entrypoint), code)
    until_step_3(place, number, tmp_path)
    with place.client() as client:
        client.experiment(number).kill()
    assert outlast(place, number).state == "CANCELED"
    wait_for(lambda: not place.task_processes() and not second.task_processes(), "no process of it")


#: DeepSpeed's own words, over its own process group.
DEEPSPEED = """
    import deepspeed
    import torch

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="gloo")
    from tenax import core

    with core.init(distributed=core.DistributedContext.from_deepspeed()) as context:
        number = torch.ones(1)
        deepspeed.comm.all_reduce(number)
        print("together", int(number), context.distributed.size, flush=True)
        if context.distributed.rank == 0:
            context.train.report_validation_metrics(1, {"loss": 0.0})
"""


def test_ranks_of_horovod(place: Machine, tmp_path: Path) -> None:
    """Without ssh, with a package that stands in for Horovod; the reason is the first failure."""
    entrypoint, code = counting(tmp_path, "raise", "python3 -m determined.launch.horovod --fusion-threshold-mb 2 --")
    write_horovod(tmp_path / "packages")
    environment = {"environment_variables": [f"PYTHONPATH={tmp_path / 'packages'}"]}
    joined = "import horovod.torch as hvd; hvd.init(); DC = core.DistributedContext.from_horovod(hvd)"
    text = COUNTING.replace("core.DistributedContext.from_torch_distributed()", "DC")
    script(code, text.replace("from tenax import core", f"from tenax import core; {joined}"))
    (code / "train.py").write_text(
        (code / "train.py").read_text().replace("ranks.allgather(step)", "hvd.allreduce(step)")
    )
    experiment, trial = one_of(place, four(entrypoint, max_restarts=1, environment=environment), code)
    log = output(place, trial)
    assert (experiment.state, trial.restarts) == ("COMPLETED", 1), log
    assert "has ended: rank 3 failed first: ValueError: bad batch (in workdir/train.py, line" in log
    assert "ranks [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]" in log
    assert steps(place, trial) == [1, 2, 3, 4, 5, 6]


@pytest.mark.long
def test_deepspeed_itself(place: Machine, tmp_path: Path) -> None:
    """Four ranks on two machines, without ssh."""
    code = script(tmp_path / "code", DEEPSPEED)
    experiment, trial = one_of(place, four("python3 -m tenax.launch.deepspeed python3 train.py"), code)
    log = output(place, trial)
    assert experiment.state == "COMPLETED", log
    assert log.count("together 4 4") == 4


@pytest.mark.long
def test_a_rank_that_is_killed(place: Machine, tmp_path: Path) -> None:
    """As the kernel does when memory runs out: that rank is named, and how it ended."""
    entrypoint, code = counting(tmp_path, "wait")
    number = begun(place, four(entrypoint), code)
    until_step_3(place, number, tmp_path)
    [victim] = [pid for pid in _ranks() if _environment(pid).get("RANK") == "1" and str(tmp_path) in _command(pid)]
    os.kill(victim, signal.SIGKILL)
    ended = outlast(place, number)
    assert ended.state == "ERROR"
    assert "rank 1 failed first, killed by SIGKILL" in (ended.reason or "")


@pytest.mark.parametrize("told", ["torchrun", pytest.param("a script", marks=pytest.mark.long)])
def test_torchrun_alone_says_what_is_wrong(place: Machine, tmp_path: Path, told: str) -> None:
    """Before anything is trained, with the line to write instead."""
    code = script(tmp_path / "code", COUNTING)
    line = f"torchrun --nproc_per_node 2 train.py go {tmp_path}"
    (code / "run.sh").write_text(line + "\n")
    document = four(line if told == "torchrun" else "sh run.sh")
    # As people leave it: what can never start is not tried six times.
    document.pop("max_restarts", None)
    experiment, trial = one_of(place, document, code)
    log = output(place, trial)
    assert (experiment.state, trial.restarts) == ("ERROR", 1), log
    assert f"rite entrypoint: {LAUNCH} python3 train.py" in (experiment.reason or ""), f"{experiment.reason}\n{log}"
    assert "refused" not in log
    with pytest.raises(NotFound, match="none were reported"):
        steps(place, trial)


#: With nothing that belongs to ranks.
PLAIN = """
    from tenax import core

    with core.init() as context:
        print("rank", context.distributed.rank, "of", context.distributed.size, flush=True)
        if context.distributed.rank == 0:
            context.train.report_validation_metrics(1, {"loss": 1.0})
"""


def test_a_plain_script_runs_once_each_message_is_followed(place: Machine, tmp_path: Path) -> None:
    """Literally, and one after the other: the entrypoint, and then what the script lacks."""
    code = script(tmp_path / "code", PLAIN)
    _, trial = one_of(place, four("python3 train.py", max_restarts=0), code)
    (line,) = set(re.findall(r"write entrypoint: (.*), and in the script pass core", output(place, trial)))
    _, trial = one_of(place, four(line, max_restarts=0), code)
    (init,) = set(re.findall(r"as rank \d of 4: pass (core\.init\(.*\)) in the script", output(place, trial)))
    script(code, PLAIN.replace("core.init()", init))
    experiment, trial = one_of(place, four(line, max_restarts=0), code)
    assert experiment.state == "COMPLETED", output(place, trial)
    assert sorted(re.findall(r"rank (\d) of 4\b", output(place, trial))) == ["0", "1", "2", "3"]


#: The example, and what its ranks have learnt.
WEIGHTS = """
import hashlib

import torch
import torch.distributed as dist
from tenax import core
from train_distributed import main

with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
    dist.init_process_group("gloo")
    model = main(context, torch.device("cpu"))
    numbers = b"".join(part.detach().numpy().tobytes() for part in model.parameters())
    print("weights", hashlib.sha256(numbers).hexdigest(), flush=True)
    dist.destroy_process_group()
"""


@pytest.mark.long
def test_the_curve_is_that_of_one_process(place: Machine, tmp_path: Path) -> None:
    """Four ranks that see different data learn what one process does with whole batches; their weights are the same."""
    hparams: dict[str, object] = {"lr": 0.003, "batch_size": 64, "hidden": 16, "epochs": 3}
    code = tmp_path / "code"
    shutil.copytree(DIGITS, code)
    (code / "weights.py").write_text(WEIGHTS)
    line = f"{LAUNCH} weights.py"
    changes = {"hyperparameters": hparams, "reproducibility": {"experiment_seed": 7}}
    four_ranks = one_of(place, four(line, **changes), code)[1]
    single = one_of(place, dict(config(entrypoint=line, **changes)), code)[1]
    curves = []
    for trial in (four_ranks, single):
        with place.client() as client:
            whole = client.trial(trial.id)
            assert whole.state == "COMPLETED", output(place, trial)
            curves.append(
                [
                    (point.steps, point.value)
                    for group in ("training", "validation")
                    for point in whole.series("loss", group)
                ]
            )
    weights = re.findall(r"weights (\w+)", output(place, four_ranks))
    assert (len(weights), len(set(weights))) == (4, 1)
    assert len(curves[0]) == len(curves[1]) == 6
    for (step, together), (other, alone) in zip(*curves, strict=True):
        assert step == other
        assert together == pytest.approx(alone, rel=1e-3)


def _ranks() -> list[int]:
    """Processes that are scripts of ranks, and not what wraps them."""
    return [pid for pid, _ in processes() if _command(pid).startswith("python3 train.py")]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def _environment(pid: int) -> dict[str, str]:
    items = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return {name.decode(): value.decode() for name, _, value in (item.partition(b"=") for item in items)}
