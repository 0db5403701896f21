"""A trial that is trained in this process, in parts, as a cluster would: each part is a run of its own, with a master
to report to, which asks it to stop or sees it killed."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tenax import core
from tenax.core import info
from tenax.exec import prepare
from tests.kits import task_master
from tests.kits.task_master import TaskMaster, environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"


class Killed(BaseException):
    """What a part of a trial ends with that a SIGKILL would have ended: nothing that comes after it counts."""


@dataclass
class Part:
    """What the master has of one run."""

    #: (group, steps) -> metrics, of groups in the order of their reports.
    metrics: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    #: The checkpoints that were reported.
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    acknowledged: bool = False
    progress: float = 0.0

    def steps(self, group: str) -> list[int]:
        return [steps for name, steps in self.metrics if name == group]


class Trial:
    """Parts of one trial, one after the other; its checkpoints lie in ``root``."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, hparams: dict[str, Any], **config: Any) -> None:
        self.root = root
        self._patch = patch
        self._hparams = hparams
        self._config = {
            "searcher": {"name": "single", "metric": "loss"},
            "resources": {"slots_per_trial": 1},
            "checkpoint_storage": {"type": "directory", "container_path": str(root / "checkpoints")},
            **config,
        }
        self.parts: list[Part] = []

    @property
    def latest(self) -> str | None:
        """The last checkpoint that was reported."""
        stored = [each["uuid"] for part in self.parts for each in part.checkpoints]
        return stored[-1] if stored else None

    def directory(self) -> Path:
        """Of that checkpoint."""
        assert self.latest is not None
        return self.root / "checkpoints" / self.latest

    def train(
        self,
        main: Callable[[core.Context], object],
        *,
        stop_after: int | None = None,
        kill_after: int | None = None,
    ) -> Part:
        """One run of what is given a context."""

        def script() -> None:
            with core.init() as context:
                main(context)

        return self.run(script, stop_after=stop_after, kill_after=kill_after)

    def run(
        self, script: Callable[[], object], *, stop_after: int | None = None, kill_after: int | None = None
    ) -> Part:
        """One run of what makes its context itself: asked to stop after so many reports of progress, or gone then."""
        enter = core.Context.__enter__

        def interrupted(context: core.Context) -> core.Context:
            _interrupt(enter(context), master, stop_after, kill_after)
            return context

        with task_master.running() as master, pytest.MonkeyPatch.context() as patch:
            variables, work = self.set_up(master)
            for name, value in variables.items():
                self._patch.setenv(name, value)
            # Nothing that an earlier part left where it trained is there.
            self._patch.chdir(work)
            self._patch.setattr(info, "_read", False)
            patch.setattr(core.Context, "__enter__", interrupted)
            try:
                script()
            except Killed:
                assert kill_after is not None
            return self.add(master)

    def set_up(self, master: TaskMaster, **also: str) -> tuple[dict[str, str], Path]:
        """The variables of the next run, and the empty directory in which it is started."""
        work = self.root / f"run-{len(self.parts) + 1}"
        work.mkdir(parents=True)
        latest = {"DET_LATEST_CHECKPOINT": self.latest} if self.latest is not None else {}
        variables = environment(
            master,
            str(work / "run"),
            DET_HPARAMS=json.dumps(self._hparams),
            DET_EXPERIMENT_CONFIG=json.dumps(self._config),
            **latest,
            **also,
        )
        described = prepare.TrialEnvironment(variables)
        prepare.write_info(described)
        prepare.meet(described)
        return variables, work

    def add(self, master: TaskMaster) -> Part:
        """What that run has told."""
        self.parts.append(_part(master))
        return self.parts[-1]


def _interrupt(context: core.Context, master: TaskMaster, stop_after: int | None, kill_after: int | None) -> None:
    report, count = context.train.report_progress, 0

    def report_progress(progress: float) -> None:
        nonlocal count
        count += 1
        report(progress)
        if count == stop_after:
            master.preempt.set()
            _wait_for_signal(context)
        if count == kill_after:
            raise Killed

    context.train.report_progress = report_progress  # type: ignore[method-assign]


def _wait_for_signal(context: core.Context) -> None:
    """The answer to the question that waits at the master takes a moment."""
    for _ in range(4000):
        if context.preempt.should_preempt(auto_ack=False):
            return
        threading.Event().wait(0.005)
    pytest.fail("nobody was asked to stop")


def _part(master: TaskMaster) -> Part:
    part = Part(acknowledged=bool(master.bodies_of("ack_preemption")))
    for body in master.bodies_of("metrics"):
        key = str(body["group"]), int(str(body["stepsCompleted"]))
        part.metrics.setdefault(key, {}).update(body["metrics"])  # type: ignore[arg-type]
    part.checkpoints = master.bodies_of("checkpoint")  # type: ignore[assignment]
    part.progress = max([float(str(body["progress"])) for body in master.bodies_of("progress")], default=0.0)
    return part


def example(name: str, patch: pytest.MonkeyPatch) -> Any:
    """A module of the examples."""
    patch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    patch.setitem(sys.modules, name, module := importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module
