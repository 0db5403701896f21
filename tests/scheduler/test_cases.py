"""Every case of the shared case files on fitting and on the policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tenax.ids import AgentId, AllocationId, JobId, PoolName, SlotId
from tenax.scheduler import fitting
from tenax.scheduler.cluster import FreeSlots, Room, distance, place_on_ring
from tenax.scheduler.registry import plan, queue
from tenax.scheduler.snapshot import Fitting, Phase, PlacedMember, PoolJob, PoolRules, PoolSnapshot, SlotRequest
from tests.kits import departures
from tests.kits.builders.pool import Pool, agent, request
from tests.kits.cases import collect


def of(file: str, part: str) -> pytest.MarkDecorator:
    """Run a test on every case of one part of a file."""
    return pytest.mark.parametrize("case", collect(file, part))


def an_agent(case: Any) -> Any:
    """An agent of a case file."""
    return agent(
        case["id"],
        case["slots"],
        case.get("slots_used", 0),
        aux_places=case.get("max_zero_slot_containers", 0),
        aux_in_use=case.get("zero_slot_containers", 0),
    )


def a_request(task: Any) -> SlotRequest:
    """A task of a case file."""
    blocked = task.get("blocked_nodes", ())
    return request(task["id"], task["slots"], blocked=blocked, single_node=task.get("single_agent", False))


def fit_of(case: Any, slot_request: SlotRequest, agents: list[Any]) -> list[dict[str, Any]]:
    """What fitting answers, in the form of the case files."""
    uneven = case.get("allow_heterogeneous_fits", False)
    pool_rules = PoolRules(fitting=Fitting(case["fitting_policy"]), uneven_gangs=uneven)
    fit = fitting.find(slot_request, FreeSlots(agents), pool_rules)
    return [{"agent": name, "slots": slots} for name, slots in (fit.parts if fit else ())]


@of("fitting", "find_fits")
def test_first_fit(case: Any) -> None:
    """A request goes to the agent that fits best."""
    fit = fit_of(case, a_request(case["task"]), [an_agent(agent) for agent in case["agents"]])
    assert fit[0]["agent"] == case["expect_first_agent"]


@of("fitting", "derived_find_fits")
def test_fit(case: Any) -> None:
    """A request gets all its members, or none."""
    fit = fit_of(case, a_request(case["task"]), [an_agent(agent) for agent in case["agents"]])
    assert fit == case["expect"]


@of("fitting", "dedicated_fits")
def test_gang(case: Any) -> None:
    """A gang is found on whole agents of one size, else of unequal sizes where that is allowed."""
    agents = [agent(f"agent{number}", slots) for number, slots in enumerate(case["agent_slots"])]
    fit = fit_of(case, request("task", case["slots"]), agents)
    if "expect_num_agents" in case:
        assert len(fit) == case["expect_num_agents"]
    else:
        assert sorted(part["agent"] for part in fit) == [f"agent{number}" for number in case["expect_agent_indexes"]]
    assert sum(part["slots"] for part in fit) in (0, case["slots"])


@of("fitting", "blocked_nodes")
def test_blocked_agents(case: Any) -> None:
    """A request is never placed on an agent that it excludes."""
    fit = fit_of(case, a_request(case["task"]), [an_agent(agent) for agent in case["agents"]])
    assert [agent["agent"] for agent in fit] == case["expect_agents"]


@of("fitting", "is_viable")
def test_viable(case: Any) -> None:
    """An agent is viable when it has the free slots."""
    cluster = FreeSlots([an_agent(case["agent"])])
    assert fitting.viable(case["slots_needed"], cluster.room(case["agent"]["id"])) is case["expect"]


@of("fitting", "scores")
def test_score(case: Any) -> None:
    """An agent's score under best and worst fit."""
    room = FreeSlots([an_agent(case["agent"])]).room(case["agent"]["id"])
    assert isinstance(room, Room)
    assert fitting.score(Fitting(case["fitting_policy"]), case["slots_needed"], room) == pytest.approx(
        case["expect_score"]
    )


@of("fitting", "hash_distance")
def test_distance(case: Any) -> None:
    """Ties are settled by a distance of hashes, modulo 2**64."""
    assert place_on_ring(case["allocation_id"]) == int(case["md5_le64_allocation"])
    assert place_on_ring(case["agent_id"]) == int(case["md5_le64_agent"])
    assert distance(case["allocation_id"], case["agent_id"]) == int(case["expect_distance_u64"])


def pool_of(case: Any) -> Pool:
    """The pool of a case of the priority policy."""
    pool = Pool(
        [an_agent(agent) for agent in case["agents"]], PoolRules(preemption=case["preemption"], uneven_gangs=False)
    )
    for group in case["groups"]:
        pool.job(group["id"], group["priority"], 0.0, max_slots=group.get("max_slots"))
    add(pool, case["tasks"])
    return pool


def add(pool: Pool, tasks: list[Any]) -> None:
    """Add tasks of a case, running or waiting."""
    for task in tasks:
        assert task.get("occupies_devices", True)
        more = {"preemptible": task.get("preemptible", True), "blocked": task.get("blocked_nodes", ())}
        if "allocated_on" in task:
            pool.run(task["id"], task["slots"], task["allocated_on"], task["group"], **more)
        else:
            pool.ask(task["id"], task["slots"], task["group"], **more)


@of("priority", "cases")
def test_priority(case: Any) -> None:
    """Passes over a pool start and stop what they should."""
    listed = departures.departure("priority", case["id"])
    steps = listed.expect if listed is not None else case["steps"]
    assert isinstance(steps, list)
    pool = pool_of(case)
    last = pool.plan()
    for step in steps:
        match step["op"]:
            case "schedule":
                last = pool.plan()
                assert set(last.placements) == set(step["expect"]["allocate"])
                assert set(last.preempt) == set(step["expect"].get("release", ()))
            case "apply_last_allocations":
                pool.apply(last)
            case "add_tasks":
                add(pool, step["tasks"])
            case "remove_tasks":
                for name in step["ids"]:
                    pool.end(name)
            case "set_queue_positions":
                for name, position in step["positions"].items():
                    pool.jobs[JobId(name)] = replace(pool.jobs[JobId(name)], queue_position=position)
            case "expect_empty_slots_per_agent":
                free = [len(agent.slots) - len(agent.in_use) for agent in pool.agents.values()]
                assert free == [step["value"]] * len(free)
            case other:
                raise AssertionError(f"unknown step {other}")


def shared_pool(case: Any) -> PoolSnapshot:
    """The pool of a case of fair shares: what runs there leaves its devices free, and may be more than there are."""
    agents = [an_agent(agent) for agent in case["agents"]]
    jobs = {
        JobId(group["id"]): PoolJob(
            JobId(group["id"]), 42, float(place), group.get("max_slots"), float(group.get("weight", 0.0))
        )
        for place, group in enumerate(case["groups"])
    }
    requests = []
    for place, task in enumerate(case["tasks"]):
        assert not task.get("occupies_devices", False)
        asked = replace(
            a_request(task),
            job_id=JobId(task.get("group", task["id"])),
            requested_at=task.get("submitted_at", float(place)),
            preemptible=task.get("preemptible", True),
        )
        jobs.setdefault(asked.job_id, PoolJob(asked.job_id, 42, float(len(jobs)), None, 0.0))
        if "allocated_on" in task:
            members = (PlacedMember(AgentId(task["allocated_on"]), tuple(map(SlotId, range(asked.slots)))),)
            asked = replace(asked, phase=Phase.PLACED, members=members)
        requests.append(asked)
    rules = PoolRules(policy="fair_share", uneven_gangs=False)
    return PoolSnapshot(PoolName("default"), tuple(agents), jobs, tuple(requests), rules)


@of("fair_share", "cases")
def test_fair_share(case: Any) -> None:
    """One pass over a pool gives each job its share."""
    listed = departures.departure("fair_share", case["id"])
    expected = listed.expect if listed is not None else case["expect"]
    assert isinstance(expected, dict)
    decided = plan(shared_pool(case))
    assert set(decided.placements) == set(expected["allocate"])
    assert set(decided.preempt) == set(expected["release"])


@of("priority", "ordering")
def test_order(case: Any) -> None:
    """Requests stand by priority, then by time of asking; those without slots apart."""
    pool = Pool([])
    for group in case["groups"]:
        pool.job(group["id"], group["priority"], 0.0)
    for task in case["tasks"]:
        pool.ask(task["id"], task["slots"], task["group"], requested_at=task["submitted_at"])

    def names(slotted: bool, phase: Phase, priority: str) -> list[str]:
        return [
            each.allocation_id
            for each in queue(pool.snapshot)
            if (each.slots > 0) == slotted and each.phase is phase and pool.jobs[each.job_id].priority == int(priority)
        ]

    for priority, expected in case["expect_pending_zero_slot"].items():
        assert names(False, Phase.PENDING, priority) == expected
    for priority, expected in case["expect_pending_slot"].items():
        assert names(True, Phase.PENDING, priority) == expected
    name = AllocationId(case["after_allocating"])
    pool.requests[name] = replace(pool.requests[name], phase=Phase.PLACED)
    for priority, expected in case["expect_scheduled_slot"].items():
        assert names(True, Phase.PLACED, priority) == expected
