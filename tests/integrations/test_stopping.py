"""All ranks of a loop stop after the same step, however the chief hears of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenax import core
from tenax.core import info as cluster_info
from tenax.core import preempt
from tenax.integrations.stopping import StopQuestion
from tests.integrations.place import Trial
from tests.kits import task_master
from tests.kits.ranks import on_ranks


def test_ranks_stop_after_the_same_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all ask after each step, but after one that they have agreed on; an end of an epoch all may ask at once."""
    monkeypatch.setattr(preempt, "_LOOK_S", 0.01)
    with task_master.running() as master:
        environment, _ = Trial(tmp_path, monkeypatch, {}).set_up(master, DET_SLOT_IDS=json.dumps([0, 1, 2]))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(cluster_info, "_read", False)
        info = core.get_cluster_info()

        def loop(distributed: core.DistributedContext) -> object:
            context = core.Context(info, distributed, None, core.PreemptMode.WorkersAskChief)
            question, step = StopQuestion(context), 1
            first = question.asked_to_stop(step), question.asked_to_stop(step, always=True)
            while not question.asked_to_stop(step):
                step += 1
                if step == 50 and distributed.rank == 0:
                    master.preempt.set()
            context.close()
            return first, step

        results = on_ranks(loop)
        assert len(set(results)) == 1, results
        first, step = results[0]  # type: ignore[misc]
        assert first == (False, False)
        assert step >= 50
        assert len(master.bodies_of("ack_preemption")) == 1
