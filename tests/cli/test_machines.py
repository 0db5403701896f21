"""Rented machines on the command line: what is asked of the master, and what is shown."""

from __future__ import annotations

import json
from pathlib import Path

from tenax.config.master import load_master_settings
from tenax.config.provider.rights import master_rights
from tests.kits.cli.command_line import Tenax
from tests.kits.pretend_master import PretendMaster


def test_what_machines_would_be_rented(master: PretendMaster, tenax: Tenax) -> None:
    """Per pool, with the reason of each request that waits; where nothing is rented, it says so."""
    waits = {
        "allocationId": "1.a.1",
        "jobId": "j",
        "slots": 4,
        "reason": "waits for a machine: g5.12xlarge in us-west-2",
    }
    plan = {
        "resourcePool": "default", "offer": "g5.12xlarge in us-west-2", "slotsPerMachine": 4, "minInstances": 0,
        "maxInstances": 5, "machines": 1, "launch": 1, "waiting": [waits],
        "end": [{"machineId": "m-1", "reason": "idle for 20 minutes"}], "drain": [],
    }  # fmt: skip
    master.on("GET", "/api/v1/machines/plan", {"plans": [plan]})
    assert tenax("machine", "plan").out.splitlines() == [
        "Pool default: 1 of at most 5 machines (g5.12xlarge in us-west-2, 4 slots each)",
        "  to rent now: 1",
        "  to end: m-1, idle for 20 minutes",
        "  1.a.1 (4 slots) waits for a machine: g5.12xlarge in us-west-2",
    ]
    assert json.loads(tenax("machine", "plan", "--json").out) == [plan]
    big = {
        "offer": "p4d in us-west-2",
        "slots": 8,
        "launch": 0,
        "reason": "offer p4d in us-west-2 rests until 12:00:00 UTC",
    }
    small = {
        "offer": "g5 in us-west-2", "slots": 4, "launch": 2, "reason": "it is the first that serves", "price": 5.672,
        "priceSource": "LISTED", "pricedAt": "2025-06-05T00:00:00Z", "priceWhere": "https://prices.example.org",
    }  # fmt: skip
    master.on("GET", "/api/v1/machines/plan", {"plans": [{**plan, "offers": [big, small], "launch": 2, "end": []}]})
    assert tenax("machine", "plan").out.splitlines()[:6] == [
        "Pool default: 1 of at most 5 machines (of 2 offers)",
        "  to rent now: 2",
        "  offer p4d in us-west-2 (8 slots): no price",
        "  offer g5 in us-west-2 (4 slots): 5.672 per hour, list price of 2025-06-05, https://prices.example.org",
        "  2 x g5 in us-west-2 (4 slots): it is the first that serves",
        "  offer p4d in us-west-2 rests until 12:00:00 UTC",
    ]
    budgets = [
        {"resourcePool": "default", "perMonth": 60.0, "spent": 50.0, "warning": "80% of it are spent"},
        {"perMonth": 100.0, "spent": 50.0},
    ]
    master.on("GET", "/api/v1/machines/plan", {"plans": [{**plan, "budgets": budgets}]})
    assert tenax("machine", "plan").out.splitlines()[2:4] == [
        "  budget of pool default: 50.00 of 60 this month; 80% of it are spent",
        "  budget of all pools: 50.00 of 100 this month",
    ]
    troubles = [
        {"machineIds": ["m-1"], "reason": "it could not be ended yet: allow ec2:TerminateInstances"},
        {"machineIds": ["m-1", "m-2", "m-3", "m-4", "m-5"], "reason": "nobody knows"},
    ]
    master.on("GET", "/api/v1/machines/plan", {"plans": [{**plan, "troubles": troubles}]})
    assert tenax("machine", "plan").out.splitlines()[3:5] == [
        "  m-1: it could not be ended yet: allow ec2:TerminateInstances",
        "  m-1, m-2, m-3 and 2 more: nobody knows",
    ]
    master.on("GET", "/api/v1/machines/plan", {"plans": []})
    assert "No machines are rented for any pool" in tenax("machine", "plan").err


def test_the_rights_of_the_master_are_printed(tenax: Tenax, tmp_path: Path) -> None:
    """For a file, as a document and nothing else; what to know of it stands beside. No master is asked."""
    file = tmp_path / "master.yaml"
    provider = {
        "type": "aws", "master_url": "https://master.example.org", "region": "us-west-2", "image_id": "ami-1",
        "instance_type": "g5.12xlarge", "instance_slots": 4,
        "iam_instance_profile_arn": "arn:aws:iam::123456789012:instance-profile/training",
    }  # fmt: skip
    file.write_text(json.dumps({"pools": [{"name": "default", "provider": provider}]}))
    done = tenax("machine", "policy", "--config", str(file))
    pools = load_master_settings(file, environ={}).pools
    assert json.loads(done.out) == master_rights(pools).policy
    assert "role/training is taken for the role in the instance profile" in done.err
    assert "give --cluster-id" in done.err
    cluster, role = "00000000-0000-4000-8000-000000000001", "arn:aws:iam::123456789012:role/other"
    done = tenax("machine", "policy", "--config", str(file), "--cluster-id", cluster, "--role", role)
    assert json.loads(done.out) == master_rights(pools, cluster, [role]).policy
    assert done.err == ""
    refused = tenax("machine", "policy", "--config", str(file), "--role", "other")
    assert (refused.code, refused.out) == (1, "")
    assert "is not the ARN of a role" in refused.err
    file.write_text(json.dumps({"pools": [{"name": "default", "provider": {**provider, "region": ""}}]}))
    refused = tenax("machine", "policy", "--config", str(file))
    assert (refused.code, refused.out) == (1, "")
    assert "region" in refused.err


def test_the_plan_of_what_is_not_submitted(master: PretendMaster, tenax: Tenax, tmp_path: Path) -> None:
    """Each trial, the machines that would be rented more, and what they cost."""
    offer = {
        "offer": "g5 in us-west-2", "slots": 4, "launch": 3, "more": 2, "price": 5.5, "priceSource": "WRITTEN",
        "reason": "",
    }  # fmt: skip
    requests = [
        {"name": "trial 1 of this", "slots": 4, "starts": True},
        {"name": "trial 2 of this", "slots": 4, "starts": False, "reason": "waits for a machine: g5 in us-west-2"},
    ]
    answer = {"resourcePool": "default", "requests": requests, "offers": [offer], "costPerHour": 11.0}
    master.on("POST", "/api/v1/machines/plan", answer)
    config = tmp_path / "e.yaml"
    config.write_text("name: e\n")
    assert tenax("machine", "plan", "--submit", str(config)).out.splitlines() == [
        "Pool default, if it was submitted now",
        "  trial 1 of this (4 slots) starts at once, on what is there",
        "  trial 2 of this (4 slots) waits for a machine: g5 in us-west-2",
        "  2 machines more of g5 in us-west-2 (4 slots): 5.5 per hour, written in the settings",
        "  all of them per hour: 11",
    ]
    assert json.loads(tenax("machine", "plan", "--submit", str(config), "--command", "--json").out) == answer
    sent = [request.body for request in master.sent("POST", "/api/v1/machines/plan")]
    assert [(body["config"], body["isCommand"]) for body in sent] == [("name: e\n", False), ("name: e\n", True)]
    assert "name it with --submit" in tenax("machine", "plan", "--command").err
    assert "leave out --pool" in tenax("machine", "plan", "--submit", str(config), "--pool", "x").err


def test_what_is_not_at_a_provider_fails_the_check(master: PretendMaster, tenax: Tenax) -> None:
    """With where it is written and what to write; a provider that has all is said to."""
    finding = {"resourcePool": "default", "path": "image_id", "problem": "there is no image", "instead": "another"}
    master.on("GET", "/api/v1/machines/check", {"findings": [finding], "resourcePools": ["default"]})
    done = tenax("machine", "check", "--pool", "default")
    assert (done.code, done.out.splitlines()[1].split()) == (
        1,
        ["default", "image_id", *finding["problem"].split(), "another"],
    )
    assert json.loads(tenax("machine", "check", "--json").out) == [finding]
    master.on("GET", "/api/v1/machines/check", {"findings": [], "resourcePools": ["default"]})
    done = tenax("machine", "check")
    assert (done.code, "Nothing is wrong with the provider of default" in done.err) == (0, True)
    master.on("GET", "/api/v1/machines/check", {"findings": [], "resourcePools": []})
    assert "No machines are rented for any pool" in tenax("machine", "check").err


def test_machines_that_there_are(master: PretendMaster, tenax: Tenax) -> None:
    """Listed, and described with why they are as they are."""
    machine = {
        "id": "m-1", "resourcePool": "default", "state": "STARTING", "provider": "aws", "region": "us-west-2",
        "zone": "us-west-2b", "instanceType": "g5.12xlarge", "slots": 4, "providerId": "i-1", "wantedBy": ["1.a.1"],
        "story": "rented for 1.a.1", "plannedAt": "2026-11-29T00:00:00Z", "offer": "g5.12xlarge in us-west-2",
        "price": 5.672, "hours": 2.5, "cost": 14.18, "priceSource": "ASKED", "pricedAt": "2026-11-29T00:00:00Z",
        "priceWhere": "DescribeSpotPriceHistory",
    }  # fmt: skip
    master.on("GET", "/api/v1/machines", {"machines": [machine]})
    rows = [line.split() for line in tenax("machine", "list").out.splitlines()]
    assert rows[1][:6] == ["m-1", "STARTING", "default", "g5.12xlarge", "4", "us-west-2b"]
    assert json.loads(tenax("machine", "list", "--json").out) == [machine]
    master.on("GET", "/api/v1/machines/m-1", {"machine": machine})
    shown = tenax("machine", "describe", "m-1").out
    assert "rented for 1.a.1" in shown
    assert "aws us-west-2 us-west-2b" in shown
    for words in ("5.6720, asked at 2026-11-29 00:00 UTC (DescribeSpotPriceHistory)", "2.5 hours", "14.18"):
        assert words in shown
    step = {"step": "install torch", "state": "failed", "note": "no room on /", "saidAt": "2026-11-29T00:00:00Z"}
    master.on("GET", "/api/v1/machines/m-1/steps", {"steps": [step]})
    assert tenax("machine", "logs", "m-1").out.split()[-7:] == ["install", "torch", "failed", "no", "room", "on", "/"]
    master.on("GET", "/api/v1/machines/m-1/steps", {"steps": []})
    assert "has said nothing" in tenax("machine", "logs", "m-1").err
    master.on("GET", "/api/v1/machines", {"machines": []})
    assert "No machines are rented now" in tenax("machine", "list").err


def test_machines_without_a_row_are_shown_and_ended(master: PretendMaster, tenax: Tenax) -> None:
    """After asking, those alone; a place that does not answer is named, and the command fails."""
    stray = {
        "provider": "aws", "region": "us-west-2", "providerId": "i-1", "sighting": "RUNNING", "stray": True,
        "why": "no row",
    }  # fmt: skip
    known = {**stray, "providerId": "i-2", "stray": False, "machineId": "m-2", "state": "JOINED", "why": "by ada"}
    answer: dict[str, object] = {"machines": [stray, known], "unanswered": []}
    master.on("GET", "/api/v1/machines/audit", answer)
    shown = [line.split() for line in tenax("machine", "audit").out.splitlines()]
    assert shown[1] == ["i-1", "RUNNING", "us-west-2", "none", "no", "row"]
    assert shown[2][:2] + shown[2][-4:] == ["i-2", "RUNNING", "m-2", "JOINED", "by", "ada"]
    assert json.loads(tenax("machine", "audit", "--json").out) == answer
    master.on("POST", "/api/v1/machines/audit/end", {"machines": [{"id": "m-9"}]})
    asked = tenax("machine", "audit", "--end")
    assert asked.code != 0
    assert "End 1 machine without a row" in asked.err
    assert master.sent("POST", "/api/v1/machines/audit/end") == []
    assert "i-1 is ended, as machine m-9." in tenax("machine", "audit", "--end", "--yes").err
    assert json.loads(tenax("machine", "audit", "--end", "--yes", "--json").out) == {
        "machines": [{"id": "m-9"}],
        "parts": [],
    }
    named = {"machines": [{"provider": "aws", "region": "us-west-2", "providerId": "i-1"}]}
    assert [request.body for request in master.sent("POST", "/api/v1/machines/audit/end")] == [named, named]
    away = [{"provider": "aws", "region": "us-east-1", "reason": "no credentials"}]
    master.on("GET", "/api/v1/machines/audit", {"machines": [], "unanswered": away})
    failed = tenax("machine", "audit", "--end")
    assert failed.code == 1
    assert "aws us-east-1: no credentials" in failed.err
    assert json.loads(tenax("machine", "audit", "--end", "--json").out) == {"machines": [], "parts": []}
    master.on("GET", "/api/v1/machines/audit", {"machines": [], "unanswered": []})
    assert "No machine carries the mark of this cluster" in tenax("machine", "audit").err


def test_what_is_left_of_machines_is_shown_and_deleted(master: PretendMaster, tenax: Tenax) -> None:
    """By a flag of its own; what a machine has is not shown, and what is under way is, and is left alone."""
    place = {"provider": "aws", "region": "us-west-2"}
    left = {**place, "kind": "DISK", "providerId": "vol-1", "detail": "50 GiB", "stray": True, "why": "no row"}
    held = {**left, "providerId": "vol-2", "stray": False, "holder": "i-2", "why": "i-2 has it"}
    under_way = {**left, "kind": "OPERATION", "providerId": "op-1", "detail": "delete", "stray": False}
    answer: dict[str, object] = {"machines": [], "parts": [left, under_way, held], "unanswered": []}
    master.on("GET", "/api/v1/machines/audit", answer)
    rows = [line.split() for line in tenax("machine", "audit").out.splitlines()]
    assert ["vol-1", "DISK", "us-west-2", "50", "GiB", "none", "no", "row"] in rows
    assert [row[0] for row in rows if row[1:2] in (["DISK"], ["OPERATION"])] == ["vol-1", "op-1"]
    assert json.loads(tenax("machine", "audit", "--json").out) == answer
    # CSV is one table.
    assert len(tenax("machine", "audit", "--csv").out.splitlines()) == 1
    assert "Delete 1 part of machines that are gone, for good?" in tenax("machine", "audit", "--delete-parts").err
    tenax("machine", "audit", "--end", "--yes")
    assert master.sent("POST", "/api/v1/machines/audit/delete-parts") == []
    deleted = {**place, "kind": "DISK", "providerId": "vol-1", "failure": ""}
    master.on("POST", "/api/v1/machines/audit/delete-parts", {"parts": [deleted]})
    assert "vol-1 is deleted." in tenax("machine", "audit", "--delete-parts", "--yes").err
    [sent] = master.sent("POST", "/api/v1/machines/audit/delete-parts")
    assert sent.body == {"parts": [{**place, "kind": "DISK", "providerId": "vol-1"}]}
    master.on("POST", "/api/v1/machines/audit/delete-parts", {"parts": [{**deleted, "failure": "it is in use"}]})
    failed = tenax("machine", "audit", "--delete-parts", "--yes")
    assert (failed.code, "vol-1 is there still: it is in use" in failed.err) == (1, True)
    as_json = tenax("machine", "audit", "--delete-parts", "--yes", "--json")
    assert json.loads(as_json.out) == {"machines": [], "parts": [{**deleted, "failure": "it is in use"}]}


def test_machines_are_rented_by_hand(master: PretendMaster, tenax: Tenax) -> None:
    """For a pool that is named, so many, of an offer that is named or the first."""
    machines = [{"id": "m-1", "offer": "g5.12xlarge in us-west-2"}]
    master.on("POST", "/api/v1/machines/launch", {"machines": machines})
    assert tenax("machine", "launch", "-p", "gpus").out == "Machine m-1 is rented: g5.12xlarge in us-west-2\n"
    more = "--pool", "gpus", "--count", "2", "--offer", "p4d in us-west-2", "--json"
    assert json.loads(tenax("machine", "launch", *more).out) == machines
    assert [request.body for request in master.sent("POST", "/api/v1/machines/launch")] == [
        {"resourcePool": "gpus", "count": 1, "offer": ""},
        {"resourcePool": "gpus", "count": 2, "offer": "p4d in us-west-2"},
    ]
    assert "Missing option" in tenax("machine", "launch").err


def test_machines_are_let_go(master: PretendMaster, tenax: Tenax) -> None:
    """Those that are named; nobody is asked, as nothing is lost but time."""
    machines = [{"id": name, "state": "JOINED", "story": "ended by ada"} for name in ("m-1", "m-2")]
    master.on("POST", "/api/v1/machines/end", {"machines": machines})
    assert tenax("machine", "end", "m-1", "m-2").out.splitlines() == [
        "Machine m-1 is let go",
        "Machine m-2 is let go",
    ]
    assert json.loads(tenax("machine", "end", "m-1", "--now", "--json").out) == machines
    sent = [request.body for request in master.sent("POST", "/api/v1/machines/end")]
    assert sent == [{"machineIds": ["m-1", "m-2"], "now": False}, {"machineIds": ["m-1"], "now": True}]
    assert "Missing argument" in tenax("machine", "end").err


def test_what_machines_cost(master: PretendMaster, tenax: Tenax) -> None:
    """A row each, what is idle by its name, and the sum; what has no price is unknown, and not 0."""
    total = {"name": "", "hours": 6.5, "cost": 8.33, "unpricedHours": 0.5}
    answer = {
        "since": "2026-11-01T00:00:00Z",
        "until": "2026-11-21T00:00:00Z",
        "costs": [
            {"name": "ada", "hours": 4.0, "cost": 2.17},
            {"name": "bob", "hours": 0.5, "unpricedHours": 0.5},
            {"name": "", "hours": 1.0, "cost": 1.0},
            {"name": "", "idle": True, "hours": 1.0, "cost": 5.16},
        ],
        "total": total,
    }
    master.on("GET", "/api/v1/machines/cost", answer)
    assert [line.split() for line in tenax("machine", "cost").out.splitlines()] == [
        ["USER", "HOURS", "COST", "HOURS", "WITHOUT", "PRICE"],
        ["ada", "4.0", "2.17"],
        ["bob", "0.5", "unknown", "0.5"],
        ["–", "1.0", "1.00"],
        ["idle", "1.0", "5.16"],
        ["total", "6.5", "8.33", "0.5"],
    ]
    assert json.loads(tenax("machine", "cost", "--json").out) == answer
    assert tenax("machine", "cost", "--csv").out.splitlines()[1:3] == ["ada,4.0,2.17,", "bob,0.5,unknown,0.5"]
    tenax("machine", "cost", "--by", "day", "--since", "2026-11-01", "--until", "2026-11-20", "-p", "gpus")
    [*_, asked] = master.sent("GET", "/api/v1/machines/cost")
    wanted = {"by": ["day"], "since": ["2026-11-01"], "until": ["2026-11-20"], "resourcePool": ["gpus"]}
    assert asked.query == wanted
    master.on("GET", "/api/v1/machines/cost", {**answer, "costs": []})
    assert "No machines were paid for from" in tenax("machine", "cost").err
    assert "No machines of pool other were paid for from" in tenax("machine", "cost", "-p", "other").err
