"""Hard constraints: each by itself, in their order, with a reason; and what they mean for everyone else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tenax.ids import AllocationId, JobId, SlotId
from tenax.scheduler.cluster import FreeSlots
from tenax.scheduler.constraints import as_document, constraints_of, is_named
from tenax.scheduler.devices import SlotDevice
from tenax.scheduler.explain import RemedyKind, explain
from tenax.scheduler.fitting import can_never_fit, find, ways
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import DEVICE_NAME, Constraints, Phase, PoolAgent, PoolRules
from tests.kits.builders.pool import Pool, agent, request

A100, T4 = SlotDevice("NVIDIA A100-SXM4-40GB", 42_505_273_344), SlotDevice("Tesla T4", 15_843_721_216)
_GIB = 1024**3


def machine(name: str, devices: list[SlotDevice], **labels: str) -> PoolAgent:
    """An agent with these devices as its slots."""
    known = {SlotId(number): device for number, device in enumerate(devices)}
    return agent(name, len(devices), labels=labels, devices=known)


def of(**asked: object) -> Constraints:
    """As a configuration writes them."""
    made = constraints_of(asked)
    assert made is not None
    return made


def slots_of(pool: Pool, name: str) -> dict[str, tuple[int, ...]]:
    """Where a plan puts a request."""
    members = pool.plan().placements[AllocationId(name)]
    return {str(member.agent_id): tuple(member.slots) for member in members}


@pytest.mark.parametrize(
    ("device", "names", "meets"),
    [
        ("NVIDIA A100-SXM4-40GB", ("A100",), True),
        ("NVIDIA A100-SXM4-40GB", ("a100-sxm4",), True),
        ("NVIDIA A100-SXM4-40GB", ("A10",), False),
        ("NVIDIA A100-SXM4-40GB", ("A100 40GB",), False),
        ("NVIDIA A10G", ("A10",), False),
        ("NVIDIA L40S", ("L4", "L40S"), True),
        ("NVIDIA GeForce RTX 4090", ("rtx 4090",), True),
        ("NVIDIA GeForce RTX 4090", ("RTX4090",), True),
        ("NVIDIA GeForce GTX 1080 Ti", ("1080Ti",), True),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", ("A100",), False),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", ("MIG 1g.5gb",), True),
        ("", ("A100",), False),
    ],
)
def test_a_device_is_named_by_words_that_stand_together(device: str, names: tuple[str, ...], meets: bool) -> None:
    """Parts of words are no names."""
    assert is_named(device, names) is meets


@pytest.mark.parametrize(
    ("memory", "asked", "meets"),
    [
        # What the drivers of these cards say, and what is on the box.
        (85_520_809_984, 80, True),
        (15_843_721_216, 16, True),
        (24_146_608_128, 24, True),
        (42_505_273_344, 40, True),
        (42_505_273_344, 48, False),
        (15_843_721_216, 24, False),
        (None, 1, False),
    ],
)
def test_memory_is_asked_for_as_it_is_sold(memory: int | None, asked: int, meets: bool) -> None:
    """A card of 80 GB has 79.6 GiB, and will do for who asks for 80 GB; a smaller one will not."""
    cluster = FreeSlots([machine("a", [SlotDevice("some card", memory)])])
    assert (
        find(request("r", 1, constraints=of(device_memory=asked * _GIB)), cluster, PoolRules()) is not None
    ) is meets


def test_a_machine_with_two_kinds_of_gpu_serves_both() -> None:
    """Slot by slot."""
    pool = Pool([machine("box", [T4, A100, T4, A100])])
    pool.ask("big", 2, constraints=of(device_name=["A100"])).ask("small", 1, constraints=of(device_name=["T4"]))
    assert slots_of(pool, "big") == {"box": (1, 3)}
    assert slots_of(pool, "small") == {"box": (0,)}


def test_a_gang_has_alike_what_it_asks_for() -> None:
    """Zones one by one, the fullest that will do; agents without the label are in none of them."""
    pool = Pool(
        [
            machine("a1", [T4, T4], zone="a"),
            machine("b1", [T4, T4], zone="b"),
            machine("b2", [T4, T4], zone="b"),
            machine("c1", [T4, T4]),
            machine("c2", [T4, T4]),
        ]
    )
    pool.ask("gang", 4, constraints=of(same=["zone"]))
    assert set(slots_of(pool, "gang")) == {"b1", "b2"}
    # On one machine everything is alike, label or not.
    pool = Pool([machine("c1", [T4, T4])])
    pool.ask("one", 2, constraints=of(same=["zone"]))
    assert slots_of(pool, "one") == {"c1": (0, 1)}


def test_devices_of_one_name_on_one_machine_and_on_several() -> None:
    """Two kinds in one machine are not alike."""
    pool = Pool([machine("mixed", [A100, T4]), machine("whole", [T4, T4])])
    pool.ask("pair", 2, constraints=of(same=[DEVICE_NAME]))
    assert slots_of(pool, "pair") == {"whole": (0, 1)}
    pool = Pool([machine("mixed", [A100, T4, T4]), machine("other", [T4, A100])])
    pool.ask("three", 3, constraints=of(same=[DEVICE_NAME]))
    assert slots_of(pool, "three") == {"mixed": (1, 2), "other": (0,)}


@pytest.mark.parametrize(
    ("asked", "slots", "reason"),
    [
        (
            {"labels": {"zone": ["d"]}},
            1,
            "Pool default has no agent with the label zone=d, but a (2), b (1), and 1 agent without it: "
            "change resources.constraints, or add agents.",
        ),
        ({"labels": {"rack": ["d"]}}, 1, "Pool default has no agent with a label rack: change"),
        (
            {"device_name": ["H100"]},
            1,
            "Pool default has no device named H100, but Tesla T4 (6), NVIDIA A100-SXM4-40GB",
        ),
        # The first that nothing meets is named, of what the ones before have left.
        (
            {"labels": {"zone": ["b"]}, "device_name": ["A100"]},
            1,
            "Pool default, of the agents with label zone: b, has no device named A100, but Tesla T4 (2): change",
        ),
        ({"same": ["rack"]}, 6, "Pool default has no agent with a label rack: change resources.constraints"),
        ({"device_memory": 80 * _GIB}, 1, "no device with 80 GiB of memory: the largest has 39.6 GiB"),
        (
            {"device_name": ["A100"]},
            4,
            "4 slots can never run here: pool default has 2 slots on 1 agent that meets its constraints "
            "(device name: A100). Ask for at most 2 slots",
        ),
        (
            {"same": ["zone"]},
            6,
            "6 slots on machines that are alike (all machines of one zone) can never run here: pool default has 8 "
            "slots on 4 agents that meet its constraints (all machines of one zone), the largest group of them with 4 "
            "(label zone: a).",
        ),
    ],
)
def test_each_has_a_reason(asked: Mapping[str, object], slots: int, reason: str) -> None:
    """In their order: labels, names, memory, number, what is alike."""
    agents = [
        machine("a1", [T4, T4], zone="a"),
        machine("a2", [A100, A100], zone="a"),
        machine("b1", [T4, T4], zone="b"),
        machine("c1", [T4, T4]),
    ]
    refusal = can_never_fit(slots, Pool(agents).snapshot, constraints=of(**asked))
    assert refusal is not None
    assert reason in refusal


def test_what_waits_for_some_machines_holds_up_nobody_elsewhere() -> None:
    """However urgent it is; but what it could use is nobody's."""
    pool = Pool([machine("a", [A100, A100]), machine("t", [T4, T4])])
    pool.job("urgent", 1).job("usual", 42).job("full", 50)
    pool.run("holder", 1, "a", "full").ask("waits", 2, "urgent", constraints=of(device_name=["A100"]))
    pool.ask("beside", 2, "usual").ask("bound", 1, "usual", constraints=of(device_name=["A100"]))
    decided = pool.plan()
    assert slots_of(pool, "beside") == {"t": (0, 1)}
    assert "waits behind waits" in decided.waiting[AllocationId("bound")]


def test_what_may_run_anywhere_leaves_the_rare_machines() -> None:
    """Where somebody waits for them, and as few machines will do."""
    pool = Pool([machine("a", [A100]), machine("t", [T4, T4])])
    assert slots_of(pool.ask("any", 1), "any") == {"a": (0,)}
    pool.ask("bound", 1, constraints=of(device_name=["A100"]))
    assert slots_of(pool, "any") == {"t": (0,)}
    assert slots_of(pool, "bound") == {"a": (0,)}


def test_only_those_leave_who_hold_what_is_needed() -> None:
    """Whoever is newer elsewhere stays."""
    pool = Pool([machine("mixed", [T4, A100]), machine("t", [T4])], PoolRules(preemption=True))
    pool.job("less", 50)
    pool.run("on t4", 1, "mixed", "less").run("on a100", 1, "mixed", "less").run("newest", 1, "t", "less")
    assert pool.requests[AllocationId("on a100")].members[0].slots == (1,)
    pool.job("more", 1).ask("asks", 1, "more", constraints=of(device_name=["A100"]))
    assert set(pool.plan().preempt) == {"on a100"}


def test_shares_of_jobs_that_are_bound_to_the_same_machines() -> None:
    """They share these; what they cannot use is the others'."""
    pool = Pool([machine("a", [A100] * 2), machine("t", [T4] * 6)], PoolRules("fair_share"))
    for job in ("one", "two"):
        for number in range(4):
            pool.ask(f"{job}{number}", 1, job, constraints=of(device_name=["A100"]))
    for number in range(8):
        pool.ask(f"any{number}", 1, "any")
    pool.apply(pool.plan())
    placed = [name for name, members in pool.placed().items() if members]
    assert sorted(name for name in placed if not name.startswith("any")) == ["one0", "two0"]
    assert sum(name.startswith("any") for name in placed) == 6


def test_what_waits_for_others_is_told_from_what_is_in_its_way() -> None:
    """A less urgent request asks for room where nothing that waits could go, and says what it waits for there."""
    pool = Pool([machine("a", [A100, A100]), machine("t", [T4, T4])], PoolRules(preemption=True))
    pool.job("urgent", 1).job("usual", 42).job("last", 90).job("fixed", 1)
    pool.run("holder", 1, "a", "fixed", preemptible=False).run("leaves", 2, "t", "last")
    pool.ask("waits", 2, "urgent", constraints=of(device_name=["A100"]))
    pool.ask("beside", 2, "usual", constraints=of(device_name=["T4"]), preemptible=False)
    assert set(pool.plan().preempt) == {"leaves"}
    pool.rules = PoolRules()
    reasons = pool.plan().waiting
    assert reasons[AllocationId("beside")].startswith("waits for 2 free slots in pool default: 2 in use or promised")
    pool.ask("any", 1, "usual")
    assert reasons.keys() < pool.plan().waiting.keys()
    assert "waits behind waits" in pool.plan().waiting[AllocationId("any")]


def test_the_other_slots_of_a_machine_are_free_for_others() -> None:
    """What waits for two of its kinds of GPU holds up nobody who wants the other."""
    pool = Pool([machine("mixed", [A100, A100, T4, T4])])
    pool.job("urgent", 1).job("usual", 42)
    pool.run("holder", 1, "mixed", "urgent").ask("waits", 2, "urgent", constraints=of(device_name=["A100"]))
    pool.jobs[JobId("urgent")] = replace(pool.jobs[JobId("urgent")], priority=1)
    pool.ask("beside", 1, "usual", constraints=of(device_name=["T4"]))
    assert slots_of(pool, "beside") == {"mixed": (2,)}


def test_what_waits_for_slots_holds_up_no_task_without() -> None:
    """They compete apart, also behind one of their own that waits elsewhere."""
    pool = Pool(
        [agent("a", 1, 1, aux_places=1, aux_in_use=1, labels={"zone": "a"}), agent("b", 1, 1, labels={"zone": "b"})]
    )
    pool.job("urgent", 1).job("usual", 42)
    pool.ask("slotted", 1, "urgent").ask("aux a", 0, "urgent", constraints=of(labels={"zone": ["a"]}))
    pool.ask("aux b", 0, "usual", constraints=of(labels={"zone": ["b"]}))
    assert slots_of(pool, "aux b") == {"b": ()}


def test_who_holds_what_somebody_is_bound_to_leaves_first() -> None:
    """Under fair shares: not the earliest, whose slots are of no use to who waits."""
    pool = Pool([machine("t", [T4] * 4), machine("a", [A100] * 4)], PoolRules("fair_share"))
    for number in range(8):
        pool.run(f"u{number}", 1, "t" if number < 4 else "a", "any")
    for number in range(4):
        pool.ask(f"x{number}", 1, "bound", constraints=of(device_name=["A100"]))
    decided = pool.plan()
    assert set(decided.preempt) == {"u4", "u5", "u6", "u7"}
    # Where nobody can be asked for them, nobody leaves in vain, and nothing is left idle for a share that is of no use.
    pool = Pool([machine("t", [T4] * 4), machine("a", [A100] * 4)], PoolRules("fair_share"))
    for number in range(4):
        pool.run(f"u{number}", 1, "a", "any", preemptible=False).ask(f"more{number}", 1, "any")
    pool.ask("x", 1, "bound", constraints=of(device_name=["A100"]))
    decided = pool.plan()
    assert len(decided.placements) == 4
    assert not decided.preempt


def test_a_part_of_the_machines_counts_no_more_than_there_is() -> None:
    """Who is bound to one slot of nine gets that, whatever is asked for; and nothing is kept for whom a quota stops."""
    pool = Pool([machine("a", [A100]), machine("v", [SlotDevice("V100", 32 * _GIB)] * 7)], PoolRules("fair_share"))
    for number in range(8):
        pool.run(f"y{number}", 1, "a" if number == 0 else "v", "wide", constraints=of(device_memory=20 * _GIB))
        pool.ask(f"x{number}", 1, "narrow", constraints=of(device_name=["A100"]))
    assert set(pool.plan().preempt) == {"y0"}
    pool = Pool([machine("a", [A100] * 4)], PoolRules("fair_share")).limit("none", 0)
    pool.job("stopped", limits=("none",))
    for number in range(4):
        pool.run(f"y{number}", 1, "a", "wide", constraints=of(device_name=["A100"]))
        pool.ask(f"x{number}", 1, "stopped", constraints=of(device_name=["A100"]))
    assert not pool.plan().preempt


def test_who_is_at_its_share_calls_nobody_back() -> None:
    """What leaves is what somebody waits for who may have it."""
    pool = Pool([machine("a", [A100] * 4, zone="a"), machine("b", [A100] * 4, zone="b")], PoolRules("fair_share"))
    for number in range(8):
        pool.run(f"x{number}", 1, "ab"[number // 4], "both", constraints=of(device_name=["A100"]))
    for number in range(4):
        pool.ask(f"w{number}", 1, "both", constraints=of(device_name=["A100"]))
        pool.ask(f"y{number}", 1, "bound", constraints=of(labels={"zone": ["b"]}))
    assert set(pool.plan().preempt) == {"x4", "x5", "x6", "x7"}


def test_a_task_without_slots_goes_to_a_machine_without_slots() -> None:
    """Also beside a gang that wants machines of one zone."""
    pool = Pool([machine("g", [T4, T4], zone="a"), agent("cpu", 0, labels={"zone": "a"})])
    pool.ask("gang", 2, constraints=of(same=["zone"])).ask("aux", 0, constraints=of(labels={"zone": ["a"]}))
    pool.agents = {name: replace(one, aux_places=int(name == "cpu")) for name, one in pool.agents.items()}
    assert slots_of(pool, "aux") == {"cpu": ()}


def test_words_for_the_same_machines_share_them() -> None:
    """Whoever asks for the memory that only these have is bound to them, too."""
    pool = Pool([machine("a", [A100] * 4), machine("t", [T4] * 4)], PoolRules("fair_share"))
    for number in range(4):
        pool.run(f"one{number}", 1, "a", "one", constraints=of(device_name=["A100"]))
        pool.ask(f"two{number}", 1, "two", constraints=of(device_memory=30 * _GIB))
    assert len(pool.plan().preempt) == 2


def test_a_label_that_differs_everywhere_costs_nobody_a_look_at_each() -> None:
    """A gang on machines of one host is none: nothing is made for each of a thousand."""
    agents = [machine(f"m{number}", [T4] * 2, host=f"h{number}") for number in range(1000)]
    cluster = FreeSlots(agents)
    asking = request("r", 4, constraints=of(same=["host"]))
    assert [way.alone for way in ways(asking, cluster)] == [True]
    assert find(asking, cluster, PoolRules()) is None
    sizes = [request("r", 1, constraints=of(device_memory=size << 20)) for size in range(100, 500)]
    assert all(find(each, cluster, PoolRules()) is not None for each in sizes)
    # All of them are one index.
    assert len({id(cluster.narrowed(each.constraints)) for each in sizes}) == 1


def test_many_who_wait_for_something_else_each_let_nobody_past() -> None:
    """A few are looked at one by one; beyond that they are as if they could use everything."""
    for count, starts in ((8, True), (40, False)):
        agents = [machine(f"m{number}", [T4], host=f"h{number}") for number in range(count)]
        pool = Pool([*agents, machine("free", [T4], host="free")])
        pool.job("urgent", 1).job("usual", 42)
        for number in range(count):
            pool.run(f"holds{number}", 1, f"m{number}", "urgent", preemptible=False)
            pool.ask(f"waits{number}", 1, "urgent", constraints=of(labels={"host": [f"h{number}"]}))
        pool.ask("behind", 1, "usual")
        assert ("behind" in pool.plan().placements) is starts


def test_explain_says_without_which_it_would_start() -> None:
    """The first of them that helps; and what it waits for counts those machines alone."""
    pool = Pool([machine("a", [A100], zone="a"), machine("t", [T4, T4], zone="a")])
    pool.run("holder", 1, "a").ask("waits", 1, constraints=of(device_name=["A100"], labels={"zone": ["a"]}))
    explained = explain(pool.requests[AllocationId("waits")].job_id, "default", {"default": pool.snapshot})
    assert explained is not None
    assert explained.reason.startswith(
        "waits for 1 free slot in pool default: 1 in use or promised, 0 free on 1 agent that meets its constraints "
        "(label zone: a; device name: A100), largest free block 0"
    )
    assert [(each.kind, each.value) for each in explained.remedies] == [(RemedyKind.CONSTRAINT, "device name: A100")]


def test_labels_that_change_move_nothing_that_runs() -> None:
    """What waits is placed by those of now."""
    pool = Pool([machine("a", [T4, T4], zone="a")])
    pool.ask("runs", 1, constraints=of(labels={"zone": ["a"]}))
    pool.apply(pool.plan())
    pool.agents = {name: machine(name, [T4, T4], zone="b") for name in pool.agents}
    pool.ask("waits", 1, constraints=of(labels={"zone": ["a"]}))
    decided = plan(pool.snapshot)
    assert not decided.preempt
    assert pool.requests[AllocationId("runs")].phase is Phase.PLACED
    assert "can never start as it is" in decided.waiting[AllocationId("waits")]


def test_a_document_is_read_as_it_was_written() -> None:
    """Nothing asked for is no constraint."""
    constraints = of(labels={"zone": ["a", "b"]}, device_name=["A100"], device_memory=1, same=["switch"])
    assert constraints_of(as_document(constraints)) == constraints
    assert constraints_of({"labels": {}, "device_name": None, "device_memory": None, "same": None}) is None
    assert constraints_of(None) is None
