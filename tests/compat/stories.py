"""A trial with something of everything, for tests that only look: made once for all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from tenax.jsonvalue import Json
from tests.compat.client import RealClient

_SCRIPT = """\
import sys
from tenax import core

print("plain words")
print("[rank=3] WARNING: mind the gap", flush=True)
print("ERROR: dire straits", file=sys.stderr, flush=True)
with core.init() as context:
    for step in (1, 2, 3, 4):
        context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / step, "note": "x"})
        if step % 2 == 0:
            metrics = {"score": float(step), "lost": 5 - step}
            context.train.report_validation_metrics(steps_completed=step, metrics=metrics)
            with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "weights").write_text("w" * 10 * step)
    context.train.report_metrics(group="inference", steps_completed=4, metrics={"speed": 7.5})
print("something is amiss: corrupt shard 9", flush=True)
"""
_POLICIES: list[Json] = [{"name": "amiss", "pattern": "corrupt shard \\d", "action": "cancel_retries"}]


@dataclass(frozen=True)
class Story:
    """One trial that has ended well."""

    experiment: int
    trial: int


@pytest.fixture(scope="session")
def story(real: RealClient, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Four training reports, two validations, two checkpoints, one report of inference, lines of several kinds."""
    directory = tmp_path_factory.mktemp("story")
    (directory / "train.py").write_text(_SCRIPT)
    config: dict[str, Json] = {
        "name": "story",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "score", "smaller_is_better": False, "max_length": {"batches": 4}},
        "resources": {"slots_per_trial": 1},
        "max_restarts": 0,
        "hyperparameters": {"width": 16, "kind": {"type": "const", "val": "wide"}},
        "log_policies": _POLICIES,
        "checkpoint_storage": {
            "type": "shared_fs",
            "host_path": str(tmp_path_factory.mktemp("story-checkpoints")),
            "save_trial_latest": 10,
        },
    }
    experiment, trial = json.loads(
        str(
            real.sdk(
                "import json\n"
                "experiment = client.create_experiment(config, directory)\n"
                "assert experiment.wait(interval=0.2) == client.ExperimentState.COMPLETED\n"
                "result = json.dumps([experiment.id, experiment.list_trials()[0].id])",
                config=config,
                directory=str(directory),
            )
        )
    )
    return Story(experiment, trial)
