"""Trials that hang, on a real cluster of two machines: the log, the trial and its reason say which rank stands where.

Ranks do not import torch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.jsonvalue import JsonObject
from tests.e2e.trials import config, output, ran
from tests.kits.hanging import line_of
from tests.kits.hanging import script as text_of
from tests.kits.machine import Machine, machine, wait_for
from tests.kits.second_machine import second_machine

pytestmark = pytest.mark.timeout(240)

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


@pytest.fixture(scope="module")
def place() -> Iterator[Machine]:
    """Two machines with a slot each."""
    with machine(slots=1) as up, second_machine(up, slots=1):
        yield up


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(text_of(LOCKS))
    return tmp_path


def hanging(policy: str, code: Path, **changes: object) -> JsonObject:
    entrypoint = "python3 -m tenax.launch.torch_distributed python3 train.py"
    hang = {"after": "2s", "policy": policy}
    hparams = {"place": str(code)}
    return config(
        entrypoint=entrypoint, hang=hang, resources={"slots_per_trial": 2}, hyperparameters=hparams, **changes
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
