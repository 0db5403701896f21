"""Gangs on two machines whose members meet, say with how many, and end."""

from __future__ import annotations

import re
from pathlib import Path

from tenax.client.trials import Trial
from tests.e2e.trials import config, output, script
from tests.kits.machine import Machine, outlast, wait_for

LAUNCH = "python3 -m tenax.launch.processes python3 train.py"

MEETING = """
    from tenax import core

    with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        ranks = context.distributed
        both = sorted(set(ranks.allgather(context.info.agent_id)))
        print("met", ranks.size, "on", len(both), flush=True)
        if ranks.rank == 0:
            context.train.report_validation_metrics(1, {"loss": 1.0})
"""


class Gang:
    """One on two machines whose member on ``second`` stays in its startup hook until `let_go`, in each run."""

    def __init__(self, place: Machine, root: Path, slots: int = 4, **resources: object) -> None:
        self.place = place
        self.root = root
        self.slots = slots
        code = script(root / "code", MEETING)
        root.chmod(0o777)
        held = f'touch "{root}/held-$DET_ALLOCATION_ID"; while [ ! -e "{root}/go" ]; do sleep 0.05; done'
        (code / "startup-hook.sh").write_text(f'if [ "$DET_AGENT_ID" = second ]; then {held}; fi\n')
        document = config(entrypoint=LAUNCH, resources={"slots_per_trial": slots, **resources})
        with place.client() as client:
            self.number = client.create_experiment(document, code).id

    @property
    def trial(self) -> Trial:
        with self.place.client() as client:
            return client.experiment(self.number).trials()[0]

    def meets(self, runs: int = 1) -> None:
        """Until a member waits for the other, in so many runs in all."""
        wait_for(lambda: len(list(self.root.glob("held-*"))) >= runs, f"{runs} runs whose members meet")

    def let_go(self) -> None:
        (self.root / "go").touch()

    def completed(self, runs: int = 1) -> None:
        """Once, by all ranks on both machines, at nobody's cost."""
        ended = outlast(self.place, self.number)
        log = output(self.place, self.trial)
        assert (ended.state, self.trial.restarts) == ("COMPLETED", 0), f"{ended.reason}\n{log}"
        assert re.findall(r"met (.*)", log) == [f"{self.slots} on 2"] * self.slots, log
        assert f"run {runs} was the last" in log, log
