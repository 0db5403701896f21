"""How long jobs take from submission to end under each scheduler policy, in virtual time, and how close that is to
knowing everything.

Two seeded traces of published shapes: Philly's (many small, short jobs and a long tail; 16 machines of 8 slots, as much
work as the slots hold) and Pollux's (160 jobs in 8 hours, half of them gangs of 4 to 32; 16 machines of 4). The real
scheduler plans real pools, so gangs meet fragments. A job that is asked to leave takes 30 s of work anew. Beside them,
on the same trace, over slots without machines: strict first come, first served, and an oracle that knows what is left
of each job (least remaining slot time first, preemptive). With time limits each job has one, from what it takes to five
times that, as people give them. Prints one JSON line for each trace.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from benchmarks._measure import LONG, Line
from tenax.ids import AgentId, JobId, PoolName
from tenax.scheduler.simulation.replay import Scenario, replay
from tenax.scheduler.simulation.summary import summary
from tenax.scheduler.simulation.trace import Trace, TraceAgent, TraceAttempt
from tenax.scheduler.snapshot import PoolRules

RESTART_S = 30.0
_POOL = PoolName("p")
#: Goals of docs/performance.md: times strict first come, first served.
GOALS = {"philly": 2.4, "pollux": 1.5}
POLICIES = {
    "priority": PoolRules("priority"),
    "priority, reservation": PoolRules("priority", reservation=True),
    "priority, reservation, time limits": PoolRules("priority", reservation=True),
    "fair_share": PoolRules("fair_share"),
    "least_attained": PoolRules("least_attained"),
}


@dataclass(frozen=True, slots=True)
class Job:
    at: float
    slots: int
    work_s: float
    time_limit_s: float | None = None


def with_limits(jobs: list[Job], seed: int) -> list[Job]:
    """Each is longer than its work."""
    chance = random.Random(seed)
    return [replace(job, time_limit_s=job.work_s * chance.uniform(1.0, 5.0)) for job in jobs]


def philly(seed: int, count: int) -> tuple[list[Job], list[int]]:
    """Sizes and a log-normal of durations; they come evenly, in the time that their work fills all slots."""
    chance = random.Random(seed)
    machines = [8] * 16
    made = []
    for _ in range(count):
        (slots,) = chance.choices([1, 2, 4, 8, 16, 32], [70, 8, 8, 11, 2, 1])
        made.append((slots, max(10.0, min(chance.lognormvariate(math.log(780), 1.8), 2 * 86400.0))))
    span = sum(slots * work for slots, work in made) / sum(machines)
    return sorted((Job(chance.random() * span, *each) for each in made), key=lambda job: job.at), machines


def pollux(seed: int) -> tuple[list[Job], list[int]]:
    """Half of them gangs, within eight hours."""
    chance = random.Random(seed)
    made = []
    for _ in range(160):
        (sizes,) = chance.choices([[1], [4], [6, 8], [12, 16], [24, 32]], [50, 2, 22, 24, 2])
        work = max(60.0, min(chance.lognormvariate(math.log(1100), 1.2), 12 * 3600.0))
        made.append(Job(chance.random() * 8 * 3600, chance.choice(sizes), work))
    return sorted(made, key=lambda job: job.at), [4] * 16


def by_scheduler(jobs: list[Job], machines: list[int], rules: PoolRules) -> tuple[float, int]:
    """Mean seconds from submission to end, and how often somebody was asked to leave."""
    agents = tuple(TraceAgent(AgentId(f"m{number}"), _POOL, size) for number, size in enumerate(machines))
    attempts = tuple(
        TraceAttempt(
            str(number), JobId(str(number)), "", "", _POOL, job.slots, job.at, job.at, job.at + job.work_s,
            time_limit_s=job.time_limit_s,
        )
        for number, job in enumerate(jobs)
    )  # fmt: skip
    outcome = replay(Trace({_POOL: rules}, agents, attempts), Scenario("", {_POOL: rules}, agents, restart_s=RESTART_S))
    result = summary(outcome)
    return result.completion_mean_s, result.preemptions


def of_slots(jobs: list[Job], slots: int, *, knows: bool) -> float:
    """Mean seconds over slots without machines: first come, first served; or ``knows``: what is left decides."""
    left = [job.work_s for job in jobs]
    running: set[int] = set()
    waiting: list[int] = []
    now, total, arrived = 0.0, 0.0, 0
    while arrived < len(jobs) or running or waiting:
        ends = min((left[number] for number in running), default=math.inf)
        comes = jobs[arrived].at - now if arrived < len(jobs) else math.inf
        passed = min(ends, comes)
        now += passed
        for number in running:
            left[number] -= passed
        for number in [number for number in running if left[number] <= 1e-6]:
            running.discard(number)
            total += now - jobs[number].at
        while arrived < len(jobs) and jobs[arrived].at <= now:
            waiting.append(arrived)
            arrived += 1
        free = slots - sum(jobs[number].slots for number in running)
        if not knows:
            while waiting and jobs[waiting[0]].slots <= free:
                free -= jobs[waiting[0]].slots
                running.add(waiting.pop(0))
            continue
        order = sorted([*running, *waiting], key=lambda number: left[number] * jobs[number].slots)
        chosen: set[int] = set()
        free = slots
        for number in order:
            if jobs[number].slots <= free:
                chosen.add(number)
                free -= jobs[number].slots
        for number in running - chosen:
            left[number] += RESTART_S
        running, waiting = chosen, [number for number in order if number not in chosen]
    return total / len(jobs)


def main() -> None:
    traces = {"philly": philly(0, 6000 if LONG else 1000), "pollux": pollux(0)}
    for name, (jobs, machines) in traces.items():
        line = Line("completion_times")
        first_s = of_slots(jobs, sum(machines), knows=False)
        oracle_s = of_slots(jobs, sum(machines), knows=True)
        line.add(trace=name, jobs=len(jobs), first_come_s=round(first_s), oracle_s=round(oracle_s), goal=GOALS[name])
        for policy, rules in POLICIES.items():
            limited = with_limits(jobs, 1) if "time limits" in policy else jobs
            mean_s, asked = by_scheduler(limited, machines, rules)
            line.add(
                **{
                    policy: {
                        "mean_s": round(mean_s),
                        "times_first_come": round(first_s / mean_s, 2),
                        "times_oracle": round(mean_s / oracle_s, 2),
                        "asked_to_leave": asked,
                    }
                }
            )
        line.emit()


if __name__ == "__main__":
    main()
