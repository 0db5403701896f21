"""A trial as a master sends it to the process runtime, run to its end."""

from __future__ import annotations

import json
from typing import Optional

from tenax.runtime.process import ProcessRuntime
from tenax.wire.agents import ContainerSpec
from tenax.wire.task_names import RUN_BEGINS
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import output, placement, spec, until_exited

#: Exit code, output below the head of its log, and errors.
Result = tuple[Optional[int], bytes, bytes]

FIRST = ["{python}", "-m", "tenax.exec.trial"]


def trial(bench: ProcessBench, entrypoint: object, *, storage: str = "directory", **env: str) -> ContainerSpec:
    """What a master sends, with model code in the arguments."""
    config = {
        "entrypoint": entrypoint,
        "resources": {"slots_per_trial": 1},
        "checkpoint_storage": {"type": storage, "container_path": str(bench.directory / "checkpoints")},
    }
    values = {
        "DET_CLUSTER_ID": "c",
        "DET_AGENT_ID": "box",
        "DET_SLOT_IDS": "[0]",
        "DET_TASK_ID": "t",
        "DET_ALLOCATION_ID": "a",
        "DET_SESSION_TOKEN": "token",
        "DET_TASK_TYPE": "TRIAL",
        "DET_TRIAL_ID": "1",
        "DET_EXPERIMENT_ID": "1",
        "DET_TRIAL_SEED": "1",
        "DET_TRIAL_RUN_ID": "1",
        "DET_EXPERIMENT_CONFIG": json.dumps(config),
        "DET_HPARAMS": "{}",
        "DET_STEPS_COMPLETED": "0",
        "UMLAUT": "\u00e4 \u4e2d\n=x",
        **env,
    }
    return spec(bench, "hello", argv=FIRST, env=values)


async def result_of(runtime: ProcessRuntime, task_spec: ContainerSpec) -> Result:
    """Exit code, output below the head of its log, and errors of a container run to its end, which is removed."""
    await runtime.start(task_spec, placement())
    status = await until_exited(runtime, task_spec.container_id)
    name = task_spec.container_id
    printed, errors = await output(runtime, name), await output(runtime, name, "stderr")
    head = b"INFO: " + RUN_BEGINS.encode()
    below = b"".join(line for line in printed.splitlines(keepends=True) if not line.startswith(head))
    await runtime.remove(name)
    assert status.exit is not None
    return status.exit.code, below, errors
