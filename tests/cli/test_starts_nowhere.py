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


CLOSED = "cannot start before somebody acts: Pool default has only disabled agents"
NEVER = "can never start as it is: 9 slots can never run here"


def _job(number: int, reason: str) -> dict[str, object]:
    return {
        "jobId": f"j{number}",
        "entityId": str(number),
        "name": "digits",
        "type": "TYPE_EXPERIMENT",
        "summary": {"state": "STATE_QUEUED"},
        "reason": reason,
        "waitClass": class_of(reason),
    }


def _lines(
    master: PretendMaster, tmp_path: Path, jobs: dict[int, tuple[str, str]], *, joined: bool = True, away: bool = False
) -> list[str]:
    """What is said of jobs, each with its reason in the queue and what the scheduler says of it now: nothing where it
    starts a moment later."""
    started = [f"j{number}" for number, (_, now) in jobs.items() if not now]
    master.on("GET", "/api/v1/resource-pools", {"resourcePools": [{"name": "default"}], "pagination": {}})
    master.on("GET", "/api/v1/agents", {"agents": [{"id": "a"}, {"id": "b", "connected": not away}]})
    queue = {"jobs": [_job(number, reason) for number, (reason, _) in jobs.items()]}
    master.on(
        "GET", "/api/v1/job-queues", queue, {"jobs": [job for job in queue["jobs"] if job["jobId"] not in started]}
    )
    for number, (_, now) in jobs.items():
        # Of what is only tried again no class is said: nothing of it waits in the queue.
        kind = None if now == REASON else class_of(now)
        master.on("GET", f"/api/v1/job-queues/j{number}/explanation", {"reason": now, "waitClass": kind})
    cluster = SimpleNamespace(state=StateDir(tmp_path / "cluster"), url=master.url)
    return up._what_cannot_start(cluster, joined=joined)  # type: ignore[arg-type]


def test_when_the_cluster_comes_up(master: PretendMaster, tmp_path: Path) -> None:
    """Each with what it is and the reason; what merely waits is left out, and a crowd is counted."""
    jobs = {1: ("waits for 1 slot", "waits for 1 slot"), 2: (CLOSED, CLOSED), 3: ("", NEVER)}
    lines = _lines(master, tmp_path, {**jobs, **dict.fromkeys(range(4, 11), (NEVER, NEVER))})
    assert lines[:2] == [f"experiment 2 (digits): {CLOSED}", f"experiment 3 (digits): {NEVER}"]
    assert lines[5:] == ["and 4 more: tenax queue list"]


def test_a_reason_from_before_is_no_news_when_the_cluster_comes_up(master: PretendMaster, tmp_path: Path) -> None:
    """What could start now that the agent is there, or is tried again by itself, is not named."""
    jobs = {1: (CLOSED, ""), 2: (NEVER, "waits for 1 slot"), 3: (CLOSED, NEVER)}
    lines = _lines(master, tmp_path, {**jobs, 4: (REASON, REASON)})
    assert lines == [f"experiment 3 (digits): {NEVER}"]


@pytest.mark.parametrize("case", [{"joined": False}, {"away": True}], ids=str)
def test_while_an_agent_is_away_only_what_can_never_start_is_named(
    master: PretendMaster, tmp_path: Path, case: dict[str, bool]
) -> None:
    """What waits for that agent starts a moment later."""
    assert _lines(master, tmp_path, {1: (CLOSED, CLOSED), 2: (NEVER, NEVER)}, **case) == [
        f"experiment 2 (digits): {NEVER}"
    ]
