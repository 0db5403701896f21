"""Random pools, for properties."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tenax.scheduler.registry import POLICIES
from tenax.scheduler.snapshot import AgentState, Fitting, Phase, PoolRules
from tests.kits.builders.pool import Pool, agent

pool_rules = st.builds(
    PoolRules,
    policy=st.sampled_from(["", *POLICIES]),
    preemption=st.booleans(),
    fitting=st.sampled_from(list(Fitting)),
    uneven_gangs=st.booleans(),
    reservation=st.booleans(),
)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """A pool with some agents, jobs and requests, some of them running or being released."""
    agents = [
        agent(f"a{n}", draw(st.integers(0, 4)), aux_places=draw(st.integers(0, 2)))
        for n in range(draw(st.integers(1, 4)))
    ]
    pool = Pool(agents, draw(pool_rules))
    limits = draw(st.sampled_from([(), (), ("one",), ("one", "two")]))
    for name in limits:
        pool.limit(
            name,
            draw(st.one_of(st.none(), st.integers(0, 8))),
            elsewhere=draw(st.integers(0, 2)),
            spent=draw(st.sampled_from(["", "", "", "all is used"])),
        )
    for number in range(draw(st.integers(1, 4))):
        cap = draw(st.one_of(st.none(), st.integers(1, 6)))
        priority, place = draw(st.sampled_from([10, 42, 42, 90])), float(draw(st.integers(0, 3)))
        pool.job(
            f"j{number}",
            priority,
            place,
            max_slots=cap,
            weight=draw(st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0])),
            turn=draw(st.sampled_from([0, 0, 1])) if limits else 0,
            attained=draw(st.sampled_from([0.0, 0.0, 20_000.0, 1e9])),
            limits=tuple(name for name in limits if draw(st.booleans())),
        )
    for number in range(draw(st.integers(1, 8))):
        job = f"j{draw(st.integers(0, len(pool.jobs) - 1))}"
        pool.ask(
            f"r{number}",
            draw(st.integers(0, 6)),
            job,
            preemptible=draw(st.booleans()),
            time_limit=draw(st.sampled_from([None, None, 10.0, 20.0, 60.0])),
            single_node=draw(st.booleans()),
            blocked=draw(st.sets(st.sampled_from([one.id for one in agents]), max_size=1)),
        )
        if draw(st.booleans()):
            uncapped = {name: replace(job, max_slots=None, limits=()) for name, job in pool.jobs.items()}
            capped, pool.jobs = pool.jobs, uncapped
            pool.apply(replace(pool.plan(), preempt={}))
            pool.jobs = capped
    pool.at = draw(st.sampled_from([0.0, 5.0]))
    for name, held in list(pool.requests.items()):
        if held.phase is Phase.PLACED and draw(st.integers(0, 4)) == 0:
            pool.requests[name] = replace(held, phase=Phase.RELEASING)
    for name, supplied in list(pool.agents.items()):
        if draw(st.integers(0, 7)) == 0:
            pool.agents[name] = replace(supplied, state=draw(st.sampled_from(list(AgentState))))
    return pool
