"""Gangs on two agents, as their owner sees them where a member does not come, does not stay, or hangs.

Who hangs: the log, the trial and its reason say which rank stands where. Those ranks do not import torch, which takes
seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tenax.jsonvalue import JsonObject
from tests.compat.client import PYTHON
from tests.e2e.trials import config, output, ran, script
from tests.kits.hanging import line_of
from tests.kits.hanging import script as text_of
from tests.kits.machine import Machine, machine, wait_for
from tests.kits.second_machine import SecondMachine, second_machine

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One slot on its own machine; members wait for each other for some seconds."""
    settings = tmp_path_factory.mktemp("settings") / "master.yaml"
    settings.write_text(yaml.safe_dump({"rendezvous_timeout": 5}))
    with machine(slots=1, options=("--config", str(settings))) as up:
        yield up


@pytest.fixture(scope="module", autouse=True)
def second(place: Machine) -> Iterator[SecondMachine]:
    """One more."""
    with second_machine(place, slots=1) as made:
        yield made


def test_who_does_not_come_is_named_in_the_time_that_the_master_sets(
    place: Machine, second: SecondMachine, tmp_path: Path
) -> None:
    """With rank and agent, in the trial's reason and its output; nothing of either member is left."""
    code = script(tmp_path / "code", "raise SystemExit('nobody is to come this far')")
    (code / "startup-hook.sh").write_text('if [ "$DET_AGENT_ID" = second ]; then kill -STOP $$; fi\n')
    experiment, [trial] = ran(place, config(resources={"slots_per_trial": 2}), code, 120.0)
    log = output(place, trial)
    assert experiment.state == "ERROR"
    assert "1 of 2 members did not come within 5 s: rank " in (experiment.reason or ""), f"{experiment.reason}\n{log}"
    # On a busy machine it may be starting still.
    missing = r"on agent second \((assigned|pulling|starting|running), has not asked\)"
    assert re.search(missing, experiment.reason or ""), experiment.reason
    assert "nobody is to come" not in log
    wait_for(lambda: not place.task_processes() and not second.task_processes(), "no process of it")


#: With Determined's own library, and its own launcher.
DETERMINED = """
    import determined as det
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    with det.core.init(distributed=det.core.DistributedContext.from_torch_distributed()) as context:
        number = torch.ones(1)
        dist.all_reduce(number)
        context.distributed.allgather(1)
        print("together", int(number), context.distributed.size, flush=True)
    dist.destroy_process_group()
"""


@pytest.mark.long
def test_determineds_own_launcher_with_two_members_on_one_machine(place: Machine, tmp_path: Path) -> None:
    """They meet, and not in a file of one name."""
    document = config(
        entrypoint="python3 -m determined.launch.torch_distributed python3 train.py",
        resources={"slots_per_trial": 2},
        environment={"environment_variables": [f"DET_PYTHON_EXECUTABLE={PYTHON}", "DET_RENDEZVOUS_TIMEOUT=60"]},
    )
    experiment, [trial] = ran(place, document, script(tmp_path / "code", DETERMINED), 120.0)
    log = output(place, trial)
    assert experiment.state == "COMPLETED", log
    assert log.count("together 2 2") == 2


#: The last rank takes a lock twice at step 3, until it has gone on from a checkpoint. On a busy machine one rank starts
#: seconds after the other, and a checkpoint takes a while: they wait for each other before they are watched, and no
#: step before the third is one from which silence counts.
LOCKS = """
    import os
    import pathlib
    import threading
    import time
    import tenax
    from tenax import core

    run = pathlib.Path(tenax.get_cluster_info().trial.hparams["place"]) / os.environ["DET_ALLOCATION_ID"]
    run.mkdir(exist_ok=True)
    (run / os.environ["RANK"]).touch()
    while len(list(run.iterdir())) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.02)
    with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        ranks = context.distributed
        lock = threading.Lock()
        for step in range(1, 6):
            if step >= 3:
                context.train.beat(step)
            if step == 3 and ranks.rank == ranks.size - 1 and context.latest_checkpoint is None:
                lock.acquire()
                lock.acquire()  # here: lock
            ranks.allgather(step)  # here: allgather
            if ranks.rank == 0:
                with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "state").write_text(str(step))
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(text_of(LOCKS))
    return tmp_path


def hanging(policy: str, code: Path, **changes: object) -> JsonObject:
    entrypoint = "python3 -m tenax.launch.torch_distributed python3 train.py"
    hang = {"after": "2s", "policy": policy}
    hparams = {"place": str(code)}
    # On a busy machine one member starts long after the other.
    meeting = {"environment_variables": ["DET_RENDEZVOUS_TIMEOUT=120"]}
    slots = {"slots_per_trial": 2}
    return config(
        entrypoint=entrypoint, hang=hang, resources=slots, hyperparameters=hparams, environment=meeting, **changes
    )


STANDS = f"rank 1 stands at train.py:{line_of(LOCKS, 'lock')}, `lock.acquire()  # here: lock` at step 3; "
WAITS = f"rank 0 waits in allgather (train.py:{line_of(LOCKS, 'allgather')}) at step 3. No step for "


def test_a_rank_on_another_machine_that_hangs(place: Machine, code: Path) -> None:
    """One sentence for the ranks of both machines: in the log, and as what is the matter with the trial."""
    with place.client() as client:
        experiment = client.create_experiment(hanging("warn", code), code)

        def health() -> JsonObject | None:
            trials = client.experiment(experiment.id).trials()
            known = trials[0].health() if trials else {}
            return known if known.get("kind") == "HUNG" else None

        known = wait_for(health, "a trial that hangs")
        trial = client.experiment(experiment.id).trials()[0]
        innermost = f'train.py", line {line_of(LOCKS, "lock")}, in <module>'
        shown = wait_for(lambda: innermost in output(place, trial) and output(place, trial), "the stack of rank 1")
        client.experiment(experiment.id).kill()
        wait_for(lambda: not any(agent.container_count for agent in client.agents()), "free slots")
    assert str(known["sentence"]).startswith(f"Hangs: {STANDS}{WAITS}")
    assert shown.count("this trial hangs") == 1
    assert f"WARNING: tenax: this trial hangs: {STANDS}{WAITS}" in shown


@pytest.mark.long
def test_it_begins_again_from_its_checkpoint(place: Machine, code: Path) -> None:
    """Under the policy ``restart``, counted as a failure, whose reason is where it stood."""
    experiment, (trial,) = ran(place, hanging("restart", code, max_restarts=1), code, 120.0)
    lines = output(place, trial)
    assert experiment.state == "COMPLETED", lines
    assert trial.restarts == 1
    assert f"run 1 has ended: it hung: {STANDS}{WAITS}" in lines
