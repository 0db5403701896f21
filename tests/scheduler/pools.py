"""Random pools, for properties."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tenax.ids import SlotId
from tenax.scheduler.devices import SlotDevice
from tenax.scheduler.registry import POLICIES
from tenax.scheduler.snapshot import DEVICE_NAME, AgentState, Constraints, Fitting, Phase, PoolAgent, PoolRules
from tests.kits.builders.pool import Pool, agent

pool_rules = st.builds(
    PoolRules,
    policy=st.sampled_from(["", *POLICIES]),
    preemption=st.booleans(),
    fitting=st.sampled_from(list(Fitting)),
    uneven_gangs=st.booleans(),
    reservation=st.booleans(),
)


_DEVICES = (SlotDevice("NVIDIA A100-SXM4-40GB", 40 << 30), SlotDevice("Tesla T4", 15 << 30), SlotDevice())


@st.composite
def described(draw: st.DrawFn, plain: PoolAgent) -> PoolAgent:
    """An agent that says in which zone it is, as a rule, and what its devices are: of one kind, or mixed."""
    zone = draw(st.sampled_from(["a", "b", ""]))
    kinds = draw(st.sampled_from([_DEVICES[:1], _DEVICES[1:2], _DEVICES[:2], _DEVICES]))
    devices = {SlotId(slot): kinds[slot % len(kinds)] for slot in plain.slots}
    return replace(plain, labels={"zone": zone} if zone else {}, devices=devices)


@st.composite
def constraints(draw: st.DrawFn) -> Constraints | None:
    """Constraints that some of these agents meet, as a rule."""
    made = Constraints(
        draw(st.sampled_from([(), (), (("zone", ("a",)),), (("zone", ("a", "b")),)])),
        draw(st.sampled_from([(), (), ("A100",), ("t4",), ("A100", "T4")])),
        draw(st.sampled_from([None, None, None, 16 << 30, 40 << 30])),
        draw(st.sampled_from([(), (), ("zone",), (DEVICE_NAME,), ("zone", DEVICE_NAME)])),
    )
    return None if made == Constraints() else made


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """A pool with some agents, jobs and requests, some of them running or being released."""
    agents = [
        agent(f"a{n}", draw(st.integers(0, 4)), aux_places=draw(st.integers(0, 2)))
        for n in range(draw(st.integers(1, 4)))
    ]
    narrow = draw(st.booleans())
    if narrow:
        agents = [draw(described(plain)) for plain in agents]
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
            has_run=draw(st.booleans()),
            blocked=draw(st.sets(st.sampled_from([one.id for one in agents]), max_size=1)),
            constraints=draw(constraints()) if narrow else None,
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
