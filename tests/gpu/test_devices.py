"""An agent finds the GPUs of its machine, gives them to tasks, keeps them from others, and measures them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tenax.agent.detect import detect
from tenax.client.trials import Trial
from tenax.config.agent import AgentSettings
from tenax.runtime.gpus.nvidia import Nvidia
from tests.e2e.trials import config, script
from tests.kits.machine import Machine, outlast

#: What a task sees, and the driver's own names of it.
SEES = """
    import os
    import torch
    print("variable", os.environ.get("CUDA_VISIBLE_DEVICES"))
    print("count", torch.cuda.device_count())
    if torch.cuda.is_available():
        print("name", torch.cuda.get_device_name(0), "uuid", torch.cuda.get_device_properties(0).uuid)
        print("sum", int(torch.ones(1000, device="cuda").sum()))
    print("seen")
"""
#: Reports values that lie on the GPU, works for a while on it, and measures it meanwhile.
MEASURES = """
    import time
    import torch
    from tenax import core

    with core.init() as context:
        context.profiler.on(sampling_interval=0.1, samples_per_report=5)
        left = right = torch.randn(4096, 4096, device="cuda")
        until = time.monotonic() + 4
        while time.monotonic() < until:
            left = (left @ right).tanh()
            torch.cuda.synchronize()
        context.profiler.off()
        on_gpu = torch.tensor(0.25, device="cuda")
        context.train.report_training_metrics(1, {"loss": on_gpu, "half": on_gpu.half(), "pair": torch.ones(2).cuda()})
        context.train.report_validation_metrics(1, {"validation_loss": on_gpu.bfloat16()})
"""


def driver(*fields: str) -> list[list[str]]:
    """What the driver's own program says of each GPU."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [[word.strip() for word in line.split(",")] for line in lines]


def test_gpus_are_those_of_the_driver() -> None:
    """By identity and name, in its order; one slot each."""
    gpus = Nvidia().find()
    assert [[gpu.index, gpu.uuid, gpu.name] for gpu in gpus] == driver("index", "uuid", "name")
    slots = detect(AgentSettings(), {})
    assert [(slot.kind, slot.uuid) for slot in slots] == [("cuda", gpu.uuid) for gpu in gpus]


def test_a_cluster_offers_its_gpu(place: Machine) -> None:
    """Its name is what people see."""
    ((name,), *_) = driver("name")
    with place.client() as client:
        ((slot,),) = [agent.slots for agent in client.agents()]
    assert (slot.kind, slot.name) == ("cuda", name), slot
    assert name in place.tenax("slot", "list").stdout


def test_a_trial_has_its_gpu_and_a_task_without_slots_none(place: Machine, tmp_path: Path) -> None:
    """By the identity of the device, whatever the order of others is."""
    ((uuid,), *_) = driver("uuid")
    logs = []
    for slots in (1, 0):
        with place.client() as client:
            made = client.create_experiment(
                config(resources={"slots_per_trial": slots}), script(tmp_path / f"{slots}", SEES)
            )
        outlast(place, made.id)
        logs.append(place.tenax("trial", "logs", str(only_trial(place, made.id).id)).stdout)
    assert f"variable {uuid}" in logs[0], logs[0]
    assert "count 1" in logs[0]
    assert f"uuid {uuid.removeprefix('GPU-')}" in logs[0]
    assert "sum 1000" in logs[0]
    assert "count 0" in logs[1], logs[1]
    assert "seen" in logs[1]


def test_values_on_a_gpu_are_reported_and_it_is_measured(place: Machine, tmp_path: Path) -> None:
    """Tensors on it are numbers in a report; its use and its free memory are metrics of the trial."""
    ((uuid, memory), *_) = driver("uuid", "memory.total")
    with place.client() as client:
        made = client.create_experiment(config(), script(tmp_path / "code", MEASURES))
        outlast(place, made.id)
        trial = only_trial(place, made.id)
        assert trial.state == "COMPLETED", place.tenax("trial", "logs", str(trial.id)).stdout
        (training,) = client.trial(trial.id).metrics("training")
        (validation,) = client.trial(trial.id).metrics("validation")
        measured = [next(iter(row.metrics.values()))[uuid] for row in client.trial(trial.id).metrics("gpu")]
    assert training.metrics == {"loss": 0.25, "half": 0.25, "pair": [1.0, 1.0]}
    assert validation.metrics["validation_loss"] == 0.25
    assert len(measured) >= 4
    assert max(each["gpu_util"] for each in measured) > 50, measured
    free = {each["gpu_free_memory"] for each in measured}
    assert max(free) < int(memory.split()[0]) * 2**20, (free, memory)


def only_trial(place: Machine, experiment: int) -> Trial:
    """Of an experiment with one."""
    with place.client() as client:
        (trial,) = client.experiment(experiment).trials()
    return trial
