"""Trace files: what is read of them, and what is said of those that make no sense."""

from __future__ import annotations

import json

import pytest

from tenax.config.problems import ConfigError
from tenax.config.trace import parse_trace, trace_of
from tenax.ids import PoolName
from tenax.scheduler.devices import SlotDevice
from tenax.scheduler.snapshot import Constraints, Fitting, PoolRules

TIMES = {"requested_at": "2026-11-21T08:00:00Z", "started_at": "2026-11-21T08:01:00Z", "ended_at": 1795250000}


def test_a_saved_trace() -> None:
    """Times as people or as programs write them; attempts in the order in which they were asked for."""
    document = {
        "pools": [{"name": "gpus", "policy": "fair_share", "fitting": "worst", "preemption": True}],
        "agents": [{"id": "a", "pool": "gpus", "slots": 8, "kind": "cuda"}],
        "groups": {"ml": ["ann", "bob"], "all": ["ann"]},
        "attempts": [
            {"slots": 2, "pool": "gpus", **TIMES, "job": "7", "priority": None},
            {"slots": 1, "requested_at": 5, "seconds": 3, "user": "ann"},
        ],
    }
    trace = trace_of(parse_trace(json.dumps(document)))
    assert trace.rules == {
        PoolName("gpus"): PoolRules("fair_share", preemption=True, fitting=Fitting.WORST),
        PoolName("default"): PoolRules("", False),
    }
    assert trace.groups == {"ann": ("ml", "all"), "bob": ("ml",)}
    first, second = trace.attempts
    assert (first.user, first.started_at, first.ended_at, first.task_id) == ("ann", 5.0, 8.0, "row 2")
    assert (second.requested_at, second.started_at - second.requested_at, second.job_id) == (1795248000.0, 60.0, "7")


def test_machines_and_what_was_asked_of_them() -> None:
    """Devices by number of slots, in their order, no more than there are; constraints as configurations write them."""
    document = {
        "agents": [
            {
                "id": "a",
                "slots": 3,
                "labels": {"zone": "a"},
                "devices": [{"name": "A100", "memory": "40 GB", "slots": 1}, {"name": "T4", "slots": 9}],
            }
        ],
        "attempts": [
            {"slots": 1, "requested_at": 5, "seconds": 3, "constraints": {"device_name": "T4", "same": "zone"}}
        ],
    }
    trace = trace_of(parse_trace(json.dumps(document)))
    assert trace.agents[0].labels == {"zone": "a"}
    assert trace.agents[0].devices == (SlotDevice("A100", 40 << 30), SlotDevice("T4"), SlotDevice("T4"))
    assert trace.attempts[0].constraints == Constraints(device_name=("T4",), same=("zone",))


def test_a_table() -> None:
    """Names are texts, whatever they look like; empty cells and lines are passed over."""
    text = "\ufeffslots,requested_at,seconds,user,single_node\n4,2026-11-21,60.5,007,true\n\n1,0,5,,\n"
    first, second = parse_trace(text).attempts
    assert (first.slots, first.seconds, first.user, first.single_node) == (4, 60.5, "007", True)
    bound = 'slots,requested_at,seconds,constraints\n1,0,5,"{""device_name"": ""T4""}"\n'
    assert trace_of(parse_trace(bound)).attempts[0].constraints == Constraints(device_name=("T4",))
    assert (second.user, second.single_node) == ("", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with no names of columns"),
        ("a,b\n1,2\n", "slots, requested_at, and seconds"),
        ("{", "is no JSON"),
        ("[1]", "a map is expected"),
        ("{}", "attempts"),
        ("slots,requested_at,seconds\n1,0,5\nmany,0,5\n", "attempts[1].slots (line 3): a whole number is expected"),
        ("slots,requested_at,seconds\n1,2,3,4\n", "more cells than names: line 2"),
        ("slots,requested_at,seconds\n1,soon,5\n", "attempts[0].requested_at (line 2): 'soon' is no time"),
        ("slots,requested_at\n1,5\n", "says not for how long"),
        ("slots,requested_at,started_at\n1,5,6\n", "says not for how long"),
        ("slots,requested_at,started_at,ended_at\n1,5,7,6\n", "goes backwards"),
        ("slots,requested_at,started_at,ended_at\n1,5,4,6\n", "goes backwards"),
        ("slots,requested_at,seconds\n-1,5,5\n", "too small"),
        ("slots,requested_at,seconds\n1,5,1e300\n", "too large"),
        ("[" * 100_000, "nested too deeply"),
        ("slots,requested_at,seconds\n1,5,nan\n", "finite"),
        ("slots,requested_at,seconds,pirority\n1,5,5,7\n", "priority"),
        ("slots,requested_at,seconds,priority\n1,5,5,100\n", "too large"),
        ('{"attempts": [], "pools": [{"name": "p", "policy": "fifo"}]}', "fifo"),
        ('{"attempts": [], "agents": [{"id": "a", "slots": 1}, {"id": "a", "slots": 2}]}', "two agents 'a'"),
    ],
)
def test_what_makes_no_sense(text: str, said: str) -> None:
    """Said with its place."""
    with pytest.raises(ConfigError) as raised:
        parse_trace(text)
    assert str(raised.value).startswith("The trace has a problem:")
    assert said in str(raised.value)
