"""What operators type: agents and slots, the queue, pools, usage, the master's own."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest

from tenax.cli.console import exits
from tenax.client import Client
from tests.kits.cli.command_line import Tenax
from tests.kits.pretend_master import PretendMaster, Reply, refused


def agent(name: str, **more: object) -> dict[str, object]:
    slots = {
        f"00{number}": {
            "id": str(number),
            "device": {"id": number, "brand": "H100", "type": "TYPE_CUDA"},
            "enabled": more.get("enabled", True),
            "draining": False,
            "container": {"id": "c1"} if number == 0 else None,
        }
        for number in range(2)
    }
    value: dict[str, object] = {"id": name, "enabled": True, "resourcePools": ["default"], "slots": slots}
    return {**value, "containers": {"c1": {}}, **more}


def job(identity: str, number: int, name: str, ahead: int = 0, **more: object) -> dict[str, object]:
    summary = {"state": "STATE_QUEUED" if ahead else "STATE_SCHEDULED", "jobsAhead": ahead}
    value: dict[str, object] = {"jobId": identity, "entityId": str(number), "name": name, "type": "TYPE_EXPERIMENT"}
    rest = {"username": "ann", "resourcePool": "default", "priority": 42, "requestedSlots": 2, "allocatedSlots": 0}
    return {**value, **rest, "summary": summary, **more}


@pytest.fixture
def queue(master: PretendMaster) -> PretendMaster:
    """Two jobs in one pool, none in the other."""
    stats = {"queuedCount": 1, "scheduledCount": 1}
    default = {"name": "default", "stats": stats, "numAgents": 1, "schedulerType": "SCHEDULER_TYPE_FAIR_SHARE"}
    pools = [default, {"name": "spare"}]
    master.on("GET", "/api/v1/resource-pools", {"resourcePools": pools})
    waits = {"reason": "waits for 2 slots", "waitClass": "WAIT"}
    jobs = [job("aaaa-1", 7, "first"), job("bbbb-2", 8, "second", 1, username="bob", **waits)]
    none: list[object] = []
    master.on("GET", "/api/v1/job-queues", {"jobs": jobs}, {"jobs": none}, {"jobs": jobs}, {"jobs": none})
    master.on("POST", "/api/v1/job-queues", {})
    return master


def test_agents_are_listed_and_filtered(master: PretendMaster, tenax: Tenax) -> None:
    """As a table, CSV and JSON; by pool and by what they do."""
    both = [agent("a1"), agent("a2", enabled=False, resourcePools=["spare"])]
    master.on("GET", "/api/v1/agents", {"agents": both})
    assert tenax("agent", "list", "--csv").out.splitlines()[1].startswith("a1,enabled,default,2,1,1,H100")
    assert [agent["id"] for agent in json.loads(tenax("agent", "list", "--json", "--pool", "spare").out)] == ["a2"]
    assert tenax("a", "ls", "--state", "disabled", "--csv").out.count("\n") == 2
    rows = tenax("slot", "list", "--csv", "--state", "in use").out.splitlines()
    assert rows == ["agent,slot,type,state,container,memory,device", "a1,0,cuda,in use,c1,,H100"]
    assert len(json.loads(tenax("slot", "list", "--json", "--agent", "a2").out)) == 2


def test_an_agent_that_was_taken_out_says_why(master: PretendMaster, tenax: Tenax) -> None:
    """And how it takes work again; to people, not in what scripts read."""
    out = agent("a2", enabled=False, draining=True, reason="3 runs in a row failed here")
    master.on("GET", "/api/v1/agents", {"agents": [agent("a1"), out]})
    done = tenax("agent", "list")
    assert "a2 was taken out: 3 runs in a row failed here. Once it is well: tenax agent enable a2" in done.err
    assert "a1 was" not in done.err
    assert "taken out" not in done.out


def test_agents_and_slots_are_turned_on_and_off(master: PretendMaster, tenax: Tenax) -> None:
    """One, several or all of them; what is drained says so to the master."""
    master.on("GET", "/api/v1/agents", {"agents": [agent("a1"), agent("a2")]})
    for name in ("a1", "a2"):
        master.on("POST", f"/api/v1/agents/{name}/disable", {"agent": agent(name)})
        master.on("POST", f"/api/v1/agents/{name}/enable", {"agent": agent(name)})
    done = tenax("agent", "disable", "--all", "--drain")
    assert (done.code, done.out.splitlines()) == (exits.OK, ["Agent a1 is draining", "Agent a2 is draining"])
    assert "1 container may still finish there" in done.err
    assert [request.body for request in master.sent("POST", "/api/v1/agents/a2/disable")] == [{"drain": True}]
    assert tenax("agent", "enable", "a1", "a2").out.count("is enabled") == 2
    assert tenax("agent", "disable").code == exits.USAGE
    assert tenax("agent", "disable", "a1", "--all").code == exits.USAGE
    master.on("POST", "/api/v1/agents/a1/slots/1/disable", {})
    assert tenax("slot", "disable", "a1", "1").out == "Slot 1 of agent a1 is disabled\n"
    assert tenax("slot", "enable", "a1", "9").code == exits.NOT_FOUND


def test_an_agent_is_removed_after_asking(master: PretendMaster, tenax: Tenax) -> None:
    """Not without a yes; by force only where that is said."""
    master.on("DELETE", "/api/v1/agents/a1", refused(400, "containers may still run there"), {})
    assert tenax("agent", "remove", "a1").code != exits.OK
    assert master.sent("DELETE", "/api/v1/agents/a1") == []
    assert "may still run" in tenax("agent", "remove", "a1", "--yes").err
    assert tenax("agent", "rm", "a1", "-y", "--force").out == "Agent a1 is removed\n"
    assert [request.query["force"] for request in master.sent("DELETE", "/api/v1/agents/a1")] == [["false"], ["true"]]


def test_the_queue_is_listed(queue: PretendMaster, tenax: Tenax) -> None:
    """Of all pools, with the reason why each waits; by user."""
    rows = tenax("queue", "list", "--csv").out.splitlines()
    assert rows[0] == "#,job,type,id,name,user,pool,priority,weight,slots,state,submitted,to do,reason"
    assert rows[2] == "1,bbbb-2,experiment,8,second,bob,default,42,,0/2,QUEUED,,wait,waits for 2 slots"
    assert [request.query["resourcePool"] for request in queue.sent("GET", "/api/v1/job-queues")] == [
        ["default"],
        ["spare"],
    ]
    assert [job["jobId"] for job in json.loads(tenax("job", "ls", "--json", "--user", "bob").out)] == ["bbbb-2"]


def test_jobs_that_share_have_a_weight_and_no_turn(queue: PretendMaster, tenax: Tenax) -> None:
    """Neither place nor priority is shown where they do not count."""
    queue.on("GET", "/api/v1/job-queues", {"jobs": [job("aaaa-1", 7, "first", -1, weight=1.5)]})
    rows = tenax("queue", "list", "--pool", "default", "--csv").out.splitlines()
    assert rows[1].startswith(",aaaa-1,experiment,7,first,ann,default,,1.5,")


def test_a_job_is_explained(queue: PretendMaster, tenax: Tenax) -> None:
    """In a few lines, with the commands that would help; whole with --json."""
    other = {"entityId": "7", "name": "first", "type": "TYPE_EXPERIMENT", "username": "ann"}
    answer = {
        "jobId": "bbbb-2",
        "resourcePool": "default",
        "waitingSlots": 2,
        "reason": "waits for 2 free slots in pool default",
        "ahead": [other],
        "aheadTotal": 22,
        "holders": [{**other, "slots": 2}],
        "holding": 1,
        "remedies": [
            {"kind": "SLOTS", "value": "1", "leaving": 0},
            {"kind": "POOL", "value": "spare", "leaving": 0},
            {"kind": "PRIORITY", "value": "41", "leaving": 1},
        ],
    }
    soon = datetime.now(timezone.utc) + timedelta(minutes=10, seconds=30)
    answer |= {"likelyStart": soon.isoformat(), "sureness": "GUESS"}
    queue.on("GET", "/api/v1/job-queues/bbbb-2/explanation", answer)
    first, second, third, *rest = tenax("queue", "explain", "second").out.splitlines()
    assert third.startswith("It is likely to start in 10m")
    assert third.endswith("s, which is a guess: by time limits, and by how long runs in this pool usually take.")
    assert [first, second, *rest] == [
        "experiment 8 (second) of bob, in the pool default",
        "waits for 2 free slots in pool default",
        "Ahead of it:",
        "  experiment 7 (first) of ann",
        "  and 21 more",
        "Slots are held by:",
        "  experiment 7 (first) of ann, 2 slots",
        "It would start at once with:",
        "  1 slots each, if it is made anew (resources.slots_per_trial; resources.slots of a task)",
        "  the pool spare: tenax queue update 8 --pool spare",
        "It would start, once what runs has saved and left, with:",
        "  priority 41: tenax queue update 8 --priority 41",
    ]


def test_what_is_explained_is_there_for_scripts(queue: PretendMaster, tenax: Tenax) -> None:
    """And a job of which nothing waits says so."""
    queue.on("GET", "/api/v1/job-queues/aaaa-1/explanation", {"jobId": "aaaa-1", "resourcePool": "default"})
    assert json.loads(tenax("queue", "explain", "7", "--json").out)["jobId"] == "aaaa-1"
    queue.on("GET", "/api/v1/job-queues", {"jobs": [job("aaaa-1", 7, "first")]}, {"jobs": []})
    assert tenax("queue", "explain", "7").out.splitlines()[1:] == ["Nothing of it waits."]


def test_jobs_are_named_as_people_know_them(queue: PretendMaster, tenax: Tenax) -> None:
    """By experiment, by name, by the beginning of the id; what is not in the queue is said so."""
    assert tenax("queue", "update", "8", "--priority", "5").code == exits.OK
    assert tenax("queue", "move-ahead", "second", "aaaa").code == exits.NOT_FOUND
    sent = [request.body for request in queue.sent("POST", "/api/v1/job-queues")]
    assert sent == [{"updates": [{"jobId": "bbbb-2", "priority": 5}]}]


def test_jobs_move(queue: PretendMaster, tenax: Tenax) -> None:
    """Before and behind another, both named in any way."""
    jobs = {"jobs": [job("aaaa-1", 7, "first"), job("bbbb-2", 8, "second", 1)]}
    queue.on("GET", "/api/v1/resource-pools", {"resourcePools": [{"name": "default"}]})
    queue.on("GET", "/api/v1/job-queues", jobs)
    assert "is ahead of aaaa-1" in tenax("queue", "move-ahead", "second", "7").out
    assert "is behind bbbb-2" in tenax("job", "move-behind", "aaaa", "bbbb-2").out
    assert tenax("j", "update-batch", "7.priority=3", "second.resource-pool=spare", "8.weight=1.5").code == exits.OK
    sent = [request.body for request in queue.sent("POST", "/api/v1/job-queues")]
    assert sent == [
        {"updates": [{"jobId": "bbbb-2", "aheadOf": "aaaa-1"}]},
        {"updates": [{"jobId": "aaaa-1", "behindOf": "bbbb-2"}]},
        {
            "updates": [
                {"jobId": "aaaa-1", "priority": 3},
                {"jobId": "bbbb-2", "resourcePool": "spare"},
                {"jobId": "bbbb-2", "weight": 1.5},
            ]
        },
    ]


@pytest.mark.parametrize("wrong", ["7", "7.priority", "7.color=red", "7.priority=high", ".priority=3=4", "7.weight="])
def test_a_change_that_is_none_is_refused(queue: PretendMaster, tenax: Tenax, wrong: str) -> None:
    """Before anything is sent."""
    assert tenax("queue", "update-batch", wrong).code in (exits.USAGE, exits.NOT_FOUND)
    assert tenax("queue", "update", "7").code == exits.USAGE
    assert queue.sent("POST", "/api/v1/job-queues") == []


def test_pools_and_whom_they_are_kept_for(queue: PretendMaster, tenax: Tenax) -> None:
    """Listed; bound, replaced and freed by the names of workspaces."""
    assert tenax("pool", "list", "--csv").out.splitlines()[1].startswith("default,1,0,0,,1,1,fair_share,no")
    path = "/api/v1/resource-pools/gpu%20s/workspace-bindings"
    queue.on("GET", path, {"workspaceIds": [3]})
    queue.on("GET", "/api/v1/workspaces", {"workspaces": [{"id": 3, "name": "lab"}]})
    for method in ("POST", "PUT", "DELETE"):
        queue.on(method, path, {})
    assert tenax("pool", "bindings", "list-workspaces", "gpu s", "--csv").out == "id,workspace\n3,lab\n"
    tenax("rp", "bindings", "add", "gpu s", "lab", "shop")
    tenax("rp", "bindings", "remove", "gpu s", "lab")
    assert tenax("resource-pool", "bindings", "replace", "gpu s").out == "The pool gpu s is open to all workspaces\n"
    sent = [
        (request.method, request.body) for request in queue.asked if request.path == path and request.method != "GET"
    ]
    assert sent == [
        ("POST", {"workspaceNames": ["lab", "shop"]}),
        ("DELETE", {"workspaceNames": ["lab"]}),
        ("PUT", {"workspaceNames": []}),
    ]


def test_usage(master: PretendMaster, tenax: Tenax) -> None:
    """Slot hours by day, by whom; CSV as the master has it."""
    entries = [
        {"periodStart": "2026-11-20", "seconds": 0, "byUsername": {}},
        {
            "periodStart": "2026-11-21",
            "seconds": 7200,
            "byUsername": {"ann": 1800, "bob": 5400},
            "waited": {"ann": 900, "cid": 36},
        },
    ]
    master.on("GET", "/api/v1/resources/allocation/aggregated", {"resourceEntries": entries})
    rows = tenax("usage", "aggregated", "2026-11-20", "2026-11-21").out.splitlines()
    assert [row.split() for row in rows] == [["DAY", "SLOT", "HOURS"], ["2026-11-21", "2.00"]]
    by_user = tenax("res", "agg", "2026-11", "--monthly", "--by", "user").out.splitlines()
    assert [line.split()[1:] for line in by_user[1:]] == [
        ["bob", "1.50", "0.00"],
        ["ann", "0.50", "0.25"],
        ["cid", "0.00", "0.01"],
    ]
    sent_query = master.sent("GET", "/api/v1/resources/allocation/aggregated")[1].query
    assert (sent_query["startDate"], sent_query["period"], sent_query["by"]) == (
        ["2026-11"],
        ["RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY"],
        ["user"],
    )
    master.on("GET", "/resources/allocation/aggregated", Reply(b"aggregation_type,seconds\ntotal,1\n"))
    assert tenax("usage", "agg", "--csv").out == "aggregation_type,seconds\ntotal,1\n"
    attempt = {"allocationId": "1.x.1", "kind": "command", "username": "ann", "slots": 1, "seconds": 90.0}
    master.on("GET", "/api/v1/resources/allocation/raw", {"resourceEntries": [attempt]})
    assert "1m30s" in tenax("usage", "raw").out


def test_the_master_s_own(master: PretendMaster, tenax: Tenax) -> None:
    """Settings as YAML, its log by level, the message, the clean-up."""
    master.on("GET", "/api/v1/master/config", {"config": {"port": 8080, "log": {"level": "info"}}})
    assert tenax("master", "config").out == "port: 8080\nlog:\n  level: info\n"
    assert json.loads(tenax("master", "config", "show", "--json").out)["port"] == 8080
    master.on("PATCH", "/api/v1/master/config", {})
    assert tenax("master", "config", "set", "--log-level", "debug", "--log-color", "off").code == exits.OK
    assert master.sent("PATCH", "/api/v1/master/config")[0].body == {
        "config": {"log": {"level": "LOG_LEVEL_DEBUG", "color": False}},
        "fieldMask": {"paths": ["log.level", "log.color"]},
    }
    entries = [
        {"id": n, "message": f"m{n}", "level": f"LOG_LEVEL_{level}"} for n, level in enumerate(("INFO", "ERROR"))
    ]
    master.on("GET", "/api/v1/master/logs", Reply(lines=[{"result": {"logEntry": entry}} for entry in entries]))
    assert tenax("master", "logs", "--level", "warning").out == " [error] m1\n"
    assert [json.loads(line)["message"] for line in tenax("master", "logs", "--json").out.splitlines()] == ["m0", "m1"]
    assert tenax("master", "logs", "--tail", "7").out.count("\n") == 2
    assert master.sent("GET", "/api/v1/master/logs")[2].query["offset"] == ["-7"]
    master.on("PUT", "/api/v1/master/cluster_message", {})
    assert tenax("master", "message", "set", "noon", "-d", "2h").code == exits.OK
    assert master.sent("PUT", "/api/v1/master/cluster_message")[0].body == {"message": "noon", "duration": "2h"}
    master.on("GET", "/api/v1/master/cluster_message", {"clusterMessage": None})
    assert "no message" in tenax("master", "cluster-message", "get").err
    master.on("POST", "/api/v1/cleanup_logs", {"removedCount": "12"})
    assert tenax("master", "cleanup-logs").out == "12 lines deleted\n"


def test_the_sdk_knows_pools_and_queue(queue: PretendMaster) -> None:
    """As values."""
    with Client(queue.url, token="t") as client:
        assert [(pool.name, pool.queued_jobs) for pool in client.pools()] == [("default", 1), ("spare", 0)]
        assert [(job.name, job.ahead, job.state) for job in client.jobs("default")] == [
            ("first", 0, "SCHEDULED"),
            ("second", 1, "QUEUED"),
        ]
