"""Gangs on two agents, as their owner sees them where a member does not come, or does not stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.compat.client import PYTHON
from tests.e2e.trials import config, output, ran, script
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
    assert "on agent second (running, has not asked)" in (experiment.reason or "")
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
