"""`tenax.pytorch` on a GPU: mixed precision, compiled models, NCCL; a run that was paused is the run that was not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tenax import pytorch
from tests.pytorch.processes import ROOT, run, said_in
from tests.pytorch.trials import Digits, StopAfter, directory_of

LENGTH = 24


@pytest.fixture(autouse=True)
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two runs of the same program are the same."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    state = torch.cuda.get_rng_state()
    yield
    torch.cuda.set_rng_state(state)
    torch.use_deterministic_algorithms(False)


class OnGpu(Digits):
    """``how``: plain, async (checkpoints), amp (by itself), scaler (the trial's own) or compiled."""

    def __init__(self, context: pytorch.PyTorchTrialContext, how: str, reports: int | None) -> None:
        self.how, self.watch = how, StopAfter(context, reports)
        if how == "amp":
            context.experimental.use_amp()
        self.scaler = context.wrap_scaler(torch.amp.GradScaler("cuda")) if how == "scaler" else None
        super().__init__(context)
        if how == "compiled":
            # As a new process compiles it: where sizes vary, what has seen several is compiled for any of them.
            torch._dynamo.reset()
            self.model.compile(dynamic=False)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"watch": self.watch}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        assert all(part.is_cuda for part in batch)
        if self.scaler is None:
            return super().train_batch(batch, epoch_idx, batch_idx)
        numbers, pixels, labels = batch
        with torch.autocast("cuda"):
            scores = self.model(pixels)
            assert scores.dtype is torch.float16
            loss = nn.functional.cross_entropy(scores, labels)
        self.context.backward(self.scaler.scale(loss))
        self.context.step_optimizer(self.optimizer, scaler=self.scaler, clip_grads=self.clip)
        self.scaler.update()
        self.seen.append((batch_idx, numbers.tolist(), float(loss.detach())))
        return {"loss": loss}

    def clip(self, parameters: Any) -> None:
        assert self.scaler is not None
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(parameters, 1.0)


def train(how: str, stop_after: int | None, checkpoint: str | None = None) -> tuple[OnGpu, Any]:
    """One process's part of a run, and the scale of its gradients in the end."""
    torch.manual_seed(11)
    with pytorch.init() as context:
        assert context.device == torch.device("cuda:0")
        trial = OnGpu(context, how, None if stop_after is None else 1)
        period = pytorch.Batch(4) if stop_after is None else pytorch.Batch([stop_after])
        pytorch.Trainer(trial, context).fit(
            max_length=pytorch.Batch(LENGTH),
            reporting_period=period,
            latest_checkpoint=checkpoint,
            async_checkpoints=how == "async",
        )
        scaler = context.experimental.scaler
        return trial, None if scaler is None else scaler.state_dict()


@pytest.mark.parametrize("how", ["plain", "async", "amp", "scaler", "compiled"])
def test_a_paused_run_is_the_run_that_was_not(how: str) -> None:
    """To the last bit: dropout's random numbers are the GPU's, and the scale of gradients goes on."""
    whole, scale = train(how, None)
    for stop in (7, 13):
        first, _ = train(how, stop)
        rest, scale_of_rest = train(how, None, first.watch.stored[-1])
        assert first.seen + rest.seen == whole.seen
        assert rest.parameters() == whole.parameters()
        assert scale_of_rest == scale
    assert whole.seen[-1][2] < whole.seen[0][2]


def test_a_copy_of_a_state_is_of_its_moment(tmp_path: Path) -> None:
    """Whatever is done on the GPU meanwhile; memory that was page-locked for one copy is made anew for a larger one."""
    copy = pytorch.StateCopy()
    for size in (2**20, 2**22):
        weight, half = torch.randn(size, device="cuda"), torch.ones(3, device="cuda").half()
        state: dict[str, Any] = {"weight": weight, "half": half, "step": size}
        due = {name: value.clone() for name, value in state.items() if isinstance(value, torch.Tensor)}
        write = copy.take(state)
        for name in due:
            state[name].zero_()
        write(tmp_path)
        stored = torch.load(tmp_path / "state.pt")
        assert stored["step"] == size
        assert all(torch.equal(stored[name].cpu(), value.cpu()) for name, value in due.items())
    del copy, write
    assert float(torch.ones(2**20, device="cuda").cpu().sum()) == 2**20


def test_mixed_precision_computes_in_half() -> None:
    """And what comes out of a model has full precision."""
    with pytorch.init() as context:
        context.experimental.use_amp()
        kinds: list[Any] = []
        linear = nn.Linear(8, 8)
        linear.register_forward_hook(lambda _, __, output: kinds.append(output.dtype))
        model = context.wrap_model(nn.Sequential(linear))
        assert model(torch.ones(2, 8, device="cuda")).dtype is torch.float32
        assert kinds == [torch.float16]
        assert context.experimental.scaler.is_enabled()


def test_a_checkpoint_of_a_gpu_is_loaded_where_there_is_none(here: Path) -> None:
    """As somebody who looks at a model on a laptop does."""
    trial, _ = train("plain", None)
    directory = directory_of(trial.watch.stored[-1], here)
    program = f"""
        import json
        from pathlib import Path
        import torch
        from tenax.pytorch import state

        assert not torch.cuda.is_available()
        (model,) = state.read(Path({str(directory)!r}))["models_state_dict"]
        print(json.dumps([float(number) for value in model.values() for number in value.reshape(-1)]))
    """
    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert json.loads(printed) == trial.parameters()


def test_a_rank_that_torchrun_started_talks_by_nccl(tmp_path: Path) -> None:
    """One rank is all that one GPU takes; its model is one of several ranks all the same when it is asked for."""
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    run([*launcher, "-m", "tests.pytorch.job", "rank", str(tmp_path), "8"])
    (said,) = said_in(tmp_path, 1)
    assert len(said["seen"]) == 8
    program = tmp_path / "nccl.py"
    program.write_text(
        textwrap.dedent("""
            import torch, torch.distributed as group
            from tenax import pytorch
            with pytorch.init() as context:
                assert group.get_backend() == "nccl", group.get_backend()
                value = torch.ones(4, device=context.device)
                group.all_reduce(value)
                assert value.tolist() == [1.0] * 4
                model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).to(context.device))
                model(value).sum().backward()
                print("nccl", ".".join(map(str, torch.cuda.nccl.version())))
        """)
    )
    done = subprocess.run(
        [sys.executable, "-m", *launcher, str(program)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "nccl 2" in done.stdout, done.stdout + done.stderr
