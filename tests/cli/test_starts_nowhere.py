"""A job that cannot start anywhere says so where somebody looks: while followed, and when the cluster comes up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tenax.cli.console import exits
from tenax.cli.local import up
from tenax.local.state_dir import StateDir
from tenax.scheduler.reasons import class_of
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.experiments import experiment, serve, trial
from tests.kits.pretend_master import PretendMaster

REASON = "it cannot start: no room (tried 3 times so far, and again within a minute)"


@pytest.mark.parametrize("searcher", ["single", "adaptive_asha"])
def test_while_it_is_followed(master: PretendMaster, tenax: Tenax, searcher: str) -> None:
    """The reason is said once for as long as it stays, and then how it ended."""
    waits = {"experiment": experiment(searcherType=searcher, state="STATE_QUEUED", reason=REASON)}
    serve(master, experiment(searcherType=searcher), trial(3))
    master.on("GET", "/api/v1/trials/3/logs", {})
    ended = {"experiment": experiment(searcherType=searcher, state="STATE_CANCELED")}
    master.on("GET", "/api/v1/experiments/7", waits, waits, waits, ended)
    done = tenax("experiment", "wait", "7")
    assert done.code == exits.NOT_COMPLETED
    assert done.err.count(REASON) == 1


def test_when_the_cluster_comes_up(master: PretendMaster, tmp_path: Path) -> None:
    """Each with what it is and the reason; what merely waits is left out, and a crowd is counted."""

    def job(number: int, reason: str) -> dict[str, object]:
        return {
            "jobId": f"j{number}",
            "entityId": str(number),
            "name": "digits",
            "type": "TYPE_EXPERIMENT",
            "summary": {"state": "STATE_QUEUED"},
            "reason": reason,
            "waitClass": class_of(reason),
        }

    pools = {"resourcePools": [{"name": "default"}], "pagination": {}}
    master.on("GET", "/api/v1/resource-pools", pools)
    closed = "cannot start before somebody acts: Pool default has only disabled agents"
    jobs = [job(1, "waits for 1 slot"), job(2, closed), *(job(number, REASON) for number in range(3, 10))]
    # A scheduler that has just come up has said nothing yet.
    master.on("GET", "/api/v1/job-queues", {"jobs": [job(2, "")]}, {"jobs": jobs})
    cluster = SimpleNamespace(state=StateDir(tmp_path / "cluster"), url=master.url)
    lines = up._what_cannot_start(cluster)  # type: ignore[arg-type]
    assert lines[:2] == [f"experiment 2 (digits): {closed}", f"experiment 3 (digits): {REASON}"]
    assert lines[5:] == ["and 3 more: tenax queue list"]
