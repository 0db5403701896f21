"""`tenax simulate`: what is asked of the master, what is compared, and what is said of nonsense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.cli.command_line import Tenax
from tests.kits.pretend_master import PretendMaster

#: Two of one user's that fill the machine, one after the other, and a small one behind them.
ROWS = "slots,requested_at,seconds,user\n4,0,600,ann\n4,60,600,ann\n1,120,60,bob\n"
ATTEMPT = {
    "taskId": "t1", "job": "experiment 7", "username": "ann", "workspaceName": "lab", "resourcePool": "default",
    "slots": 4, "requestedAt": "2026-11-21T08:00:00Z", "startedAt": "2026-11-21T08:00:00Z",
    "endedAt": "2026-11-21T09:00:00Z", "priority": 42, "weight": 1.0, "maxSlots": None, "singleNode": False,
    "preemptible": True, "timeLimitS": None,
}  # fmt: skip
TRACE = {
    "pools": [{"name": "default", "policy": "priority", "preemption": False, "fitting": "best", "reservation": False,
               "unevenGangs": True}],
    "agents": [{"id": "a1", "resourcePool": "default", "slots": 4, "kind": "cpu"}],
    "groups": [{"name": "ml", "usernames": ["ann"]}],
    "attempts": [ATTEMPT, {**ATTEMPT, "taskId": "t2", "job": "experiment 8", "username": "bob",
                           "requestedAt": "2026-11-21T08:30:00Z", "startedAt": "2026-11-21T09:30:00Z",
                           "endedAt": "2026-11-21T09:40:00Z"}],
}  # fmt: skip


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "jobs.csv"
    file.write_text(ROWS)
    return str(file)


@pytest.fixture
def queue(master: PretendMaster) -> PretendMaster:
    master.on("GET", "/api/v1/job-queues/trace", TRACE)
    master.on("GET", "/api/v1/quotas", {"applied": False, "lines": []})
    return master


def test_scenarios_side_by_side(tenax: Tenax, rows: str) -> None:
    """A row for each; what waits by user beside it. No master is asked."""
    done = tenax("simulate", "--trace", rows, "--agents", "1x4", "--with", "agents=2x4", "--with", "policy=fair_share")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    # 0, 540 and 1,080 s: (540 + 1080) / 3.
    assert lines[1][:4] == ["rules", "of", "now", "9m00s"]
    # The third fits beside nobody until the first has ended: 480 s.
    assert lines[2][:2] == ["agents=2x4", "2m40s"]
    assert ["USER", "rules", "of", "now", "agents=2x4", "policy=fair_share"] in lines
    assert "as recorded" not in done.out


def test_figures_for_programs(tenax: Tenax, rows: str) -> None:
    """Seconds, exactly."""
    done = tenax("simulate", "--trace", rows, "--agents", "1x4", "--json", "--by", "slots")
    (only,) = json.loads(done.out)
    assert (only["name"], only["attempts"], only["waited_mean_s"]) == ("rules of now", 3, 540.0)
    assert (only["waited_p95_s"], only["completion_mean_s"], only["unserved"]) == (1080.0, 960.0, 0)
    assert only["waited_mean_s_by_slots"] == {"4": 270.0, "1": 1080.0}
    table = tenax("simulate", "--trace", rows, "--agents", "1x4", "--csv").out.splitlines()
    assert table[1].startswith("rules of now,9m00s,")
    assert tenax("simulate", "--trace", rows, "--agents", "1x4", "--csv", "--by", "user").out.splitlines() == [
        "user,rules of now", "ann,4m30s", "bob,18m00s",
    ]  # fmt: skip


def test_what_happened_and_what_would_have(queue: PretendMaster, tenax: Tenax) -> None:
    """The history of the master; the first row is what happened, the second the same work as the rules are."""
    done = tenax("simulate", "--after", "2026-11-20", "--before", "2026-11-22", "--pool", "default", "--json")
    happened, now = json.loads(done.out)
    assert (happened["name"], happened["waited_mean_s"]) == ("as recorded", 1800.0)
    assert (now["name"], now["waited_mean_s"]) == ("rules of now", 900.0)
    (asked,) = queue.sent("GET", "/api/v1/job-queues/trace")
    assert asked.query == {
        "timestampAfter": ["2026-11-20"], "timestampBefore": ["2026-11-22"], "resourcePool": ["default"],
    }  # fmt: skip


def test_a_trace_is_carried_away(queue: PretendMaster, tenax: Tenax, tmp_path: Path) -> None:
    """What was saved gives the same without a master."""
    file = tmp_path / "trace.json"
    done = tenax("simulate", "--save", str(file))
    assert (done.code, done.out) == (0, "")
    assert f"2 attempts are in {file}" in done.err
    again = tenax("simulate", "--trace", str(file), "--json").out
    assert len(queue.sent("GET", "/api/v1/job-queues/trace")) == 1
    assert json.loads(again) == json.loads(tenax("simulate", "--json").out)


def test_quotas_that_hold_are_part_of_what_is(master: PretendMaster, tenax: Tenax, tmp_path: Path) -> None:
    """And can be left out, or be others; whom a file names and nothing is of is said."""
    master.on("GET", "/api/v1/job-queues/trace", TRACE)
    master.on("GET", "/api/v1/quotas", {"applied": True, "source": "users: {bob: {max_slots: 2}}", "lines": []})
    file = tmp_path / "quotas.yaml"
    file.write_text("users:\n  ann: {max_slots: 8}\n  eve: {max_slots: 1}\n")
    done = tenax("simulate", "--with", "quotas=none", "--with", f"quotas={file}", "--json")
    assert [each["unserved"] for each in json.loads(done.out)] == [0, 1, 0, 0]
    assert f"quotas={file}: nothing here is of eve" in done.err
    shown = tenax("simulate")
    assert "rules of now: 1 never ran, the first as this:" in shown.err
    assert "the quota of the user bob is 2 slots, and this needs 4" in shown.err


def test_curves(tenax: Tenax, rows: str) -> None:
    """Slots that wait, by a unit that they are a few of."""
    done = tenax("simulate", "--trace", rows, "--agents", "1x4", "--curves")
    assert "slots that wait by minute  rules of now" in done.out
    assert "last" not in done.out
    nothing = tenax("simulate", "--trace", rows, "--agents", "1x3", "--with", "preemption=on", "--curves")
    assert nothing.code == 0, nothing.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--with", "polcy=priority"], "Did you mean policy?"),
        (["--with", "policy"], "is no change"),
        (["--with", "policy=fifo"], "policy is 'fifo': it can be priority or fair_share"),
        (["--with", "preemption=maybe"], "preemption is 'maybe': it can be on or off"),
        (["--with", "fitting=tight"], "it can be best or worst"),
        (["--with", "agents=lots"], "write 16x8 (sixteen of eight slots)"),
        (["--with", "agents=999999x999999"], "at most 20000 agents, and 1000000 slots in all"),
        (["--with", "agents=-2x4"], "there are 1 of 4 slots"),
        (["--with", "policy=priority,policy=fair_share"], "gives policy twice"),
        (["--with", "quotas=/nowhere/q.yaml"], "the file cannot be read"),
        (["--after", "2026-11-01"], "leave them out with --trace"),
        (["--restart-cost", "-1"], "restart-cost"),
        (["--restart-cost", "nan"], "--restart-cost is a number of seconds"),
        (["--restart-cost", "inf"], "restart-cost"),
        (["--save", "x.json", "--with", "preemption=on"], "leave out --with"),
    ],
)
def test_nonsense(tenax: Tenax, rows: str, arguments: list[str], said: str) -> None:
    """Said with what to write instead; nothing is replayed."""
    done = tenax("simulate", "--trace", rows, "--agents", "1x4", *arguments)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert said in done.err


def test_nothing_to_replay(queue: PretendMaster, tenax: Tenax, rows: str) -> None:
    """No machines, no work, a pool that nothing is of."""
    assert "say which machines there would be, with --agents" in tenax("simulate", "--trace", rows).err
    queue.on("GET", "/api/v1/job-queues/trace", {**TRACE, "attempts": []})
    done = tenax("simulate")
    assert (done.code, done.out) == (exits.FAILED, "")
    assert "there is nothing to replay: what has not ended is in no trace; choose another with --after" in done.err
    assert "in the pool 'other'" in tenax("simulate", "--trace", rows, "--pool", "other").err
