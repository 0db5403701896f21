"""Random pools for which machines are rented, by seed, and what must hold of whatever is decided for them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tenax.ids import AgentId, AllocationId
from tenax.scheduler.demand import MachineStage, RentedMachine, Scaling, demand, is_idle
from tenax.scheduler.offers import MachineOffer, OfferRest, ScalingLimits
from tenax.scheduler.registry import POLICIES, plan
from tenax.scheduler.snapshot import Constraints, Fitting, Phase, PoolAgent, PoolRules, PoolSnapshot
from tests.kits.builders.pool import Pool, agent

_AT = 100.0


@dataclass(frozen=True)
class Rental:
    """What is decided on."""

    snapshot: PoolSnapshot
    offers: tuple[MachineOffer, ...]
    limits: ScalingLimits
    machines: tuple[RentedMachine, ...]
    rests: dict[str, OfferRest]

    def decided(self) -> Scaling:
        return demand(self.snapshot, self.offers, self.limits, self.machines, self.rests)

    def carried_out(self, scaling: Scaling) -> Rental:
        """What it says to rent comes."""
        by_name = {each.name: each for each in self.offers}
        new = [
            _machine(f"new-{launch.offer}-{number}", MachineStage.COMING, by_name[launch.offer])
            for launch in scaling.launches
            for number in range(launch.count)
        ]
        return replace(self, machines=(*self.machines, *new))

    def cost(self) -> float:
        """Of all machines, per hour."""
        return sum(each.price or 0.0 for each in self.machines)


def _machine(name: str, stage: MachineStage, offer: MachineOffer, idle_s: float | None = None) -> RentedMachine:
    return RentedMachine(AgentId(name), stage, 0.0, idle_s, offer.name, offer.slots, offer.price)


def rental(seed: int) -> Rental:
    """The same for the same seed."""
    rng = random.Random(seed)
    offers = tuple(
        MachineOffer(
            f"offer {number}",
            rng.choice([0, 1, 2, 4, 4, 8]),
            aux_places=rng.choice([0, 1, 2]),
            price=rng.choice([0.5, 1.0, 1.0, 2.0, 3.25]),
            max_price=rng.choice([None, None, None, 2.0]),
        )
        for number in range(rng.randint(1, 3))
    )
    most = rng.randint(1, 4)
    limits = ScalingLimits(
        rng.choice([0, 0, 0, min(1, most)]), most, 60.0,
        cheapest=rng.random() < 0.4, max_cost=rng.choice([None, None, 1.0, 2.5, 6.5]),
    )  # fmt: skip
    rests = {
        offer.name: OfferRest(rng.choice([50.0, 160.0, float("inf")]), "no capacity")
        for offer in offers
        if rng.random() < 0.15
    }
    pool, machines = _pool(rng, offers)
    return Rental(replace(pool.snapshot, at=_AT), offers, limits, tuple(machines), rests)


def _pool(rng: random.Random, offers: tuple[MachineOffer, ...]) -> tuple[Pool, list[RentedMachine]]:
    agents = [agent(f"own{number}", rng.randint(0, 4), aux_places=1) for number in range(rng.randint(0, 2))]
    machines: list[RentedMachine] = []
    for number in range(rng.choice([0, 0, 0, 1, 2])):
        offer, stage = rng.choice(offers), rng.choice(list(MachineStage))
        machines.append(_machine(f"m{number}", stage, offer, rng.choice([0.0, 61.0])))
        if stage is MachineStage.HERE:
            agents.append(replace(agent(f"m{number}", offer.slots, aux_places=offer.aux_places), rented=True))
    rules = PoolRules(
        rng.choice(["", "", *POLICIES]), rng.random() < 0.3, rng.choice(list(Fitting)),
        uneven_gangs=rng.random() < 0.7, reservation=rng.random() < 0.3,
    )  # fmt: skip
    pool = Pool(agents, rules)
    if rng.random() < 0.3:
        pool.limit("one", rng.randint(0, 8), spent=rng.choice(["", "", "all is used"]))
    for number in range(rng.randint(1, 3)):
        limits = tuple(pool.limits) if rng.random() < 0.5 else ()
        cap = rng.choice([None, None, 4, 8])
        pool.job(f"j{number}", rng.choice([10, 42, 42, 90]), float(rng.randint(0, 2)), max_slots=cap, limits=limits)
    for number in range(rng.randint(1, 6)):
        constraints = Constraints((("zone", ("a",)),)) if rng.random() < 0.05 else None
        job, single = f"j{rng.randrange(len(pool.jobs))}", rng.random() < 0.3
        slots = rng.choice([0, 1, 1, 2, 4, 4, 8, 8, 12])
        pool.ask(f"r{number}", slots, job, single_node=single, constraints=constraints, preemptible=rng.random() < 0.7)
    if agents and rng.random() < 0.6:
        pool.apply(pool.plan())
        pool.ask("late", rng.choice([1, 2, 4, 8]), "j0")
    idle = {name for name, it in pool.agents.items() if is_idle(it)}
    return pool, [each if each.id in idle else replace(each, idle_s=None) for each in machines]


def faults(case: Rental) -> Iterator[str]:
    """What does not hold, in words."""
    scaling = case.decided()
    after = case.carried_out(scaling)
    yield from _limits(case, scaling, after)
    again = after.decided()
    if again.launch:
        yield f"carried out and asked again it wants {again.launches}"
    # Where there must be some, one that comes lets an idle one go.
    if again.end.keys() - scaling.end.keys() and not case.limits.min_instances:
        yield f"carried out and asked again it ends {again.end}"
    yield from _use(case, scaling, after)
    yield from _reasons(case, scaling)


def _limits(case: Rental, scaling: Scaling, after: Rental) -> Iterator[str]:
    if scaling.launch and len(after.machines) > case.limits.max_instances:
        yield f"{len(after.machines)} machines, of at most {case.limits.max_instances}"
    if scaling.launch and case.limits.max_cost is not None and after.cost() > case.limits.max_cost + 1e-9:
        yield f"{after.cost()} per hour, of at most {case.limits.max_cost}"
    by_name = {each.name: each for each in case.offers}
    for launch in scaling.launches:
        offer, rest = by_name[launch.offer], case.rests.get(launch.offer)
        if offer.max_price is not None and (offer.price or 0.0) > offer.max_price:
            yield f"{offer.name} costs more than its max_price"
        if rest is not None and rest.until > _AT:
            yield f"{offer.name} rests"


def _use(case: Rental, scaling: Scaling, after: Rental) -> Iterator[str]:
    """Were the machines there, each would be given something of what waits."""
    leaves = plan(case.snapshot).preempt or any(it.phase is Phase.RELEASING for it in case.snapshot.requests)
    if leaves or case.limits.min_instances or not scaling.launch:
        return
    placed = plan(replace(case.snapshot, agents=(*case.snapshot.agents, *_agents(after)))).placements
    used = {member.agent_id for members in placed.values() for member in members}
    counts = Counter(each.offer for each in case.machines if each.stage is MachineStage.COMING)
    coming = _agents(replace(case, machines=tuple(it for it in case.machines if it.stage is MachineStage.COMING)))
    assert len(coming) == counts.total()
    unused = {each.id for each in _agents(after)} - used
    if len(unused) > counts.total():
        yield f"{len(unused)} machines would be given nothing"
    if not set(scaling.wanted_by) <= placed.keys():
        yield f"rented for {scaling.wanted_by}, and placed would be {list(placed)}"


def _agents(case: Rental) -> list[PoolAgent]:
    """Of all machines that come."""
    agents: list[PoolAgent] = []
    for index, offer in enumerate(case.offers):
        count = sum(it.stage is MachineStage.COMING and it.offer == offer.name for it in case.machines)
        agents += offer.agents(count, index * 10_000)
    return agents


def _reasons(case: Rental, scaling: Scaling) -> Iterator[str]:
    waiting = plan(case.snapshot).waiting
    explained = scaling.explained(waiting)
    pending = {each.allocation_id for each in case.snapshot.requests if each.phase is Phase.PENDING}
    if explained.keys() != waiting.keys() or not all(explained.values()):
        yield "one that waits has no reason"
    if scaling.coming_for.keys() & scaling.none_for.keys():
        yield "one is told of a machine that comes, and why none does"
    if not scaling.coming_for.keys() | scaling.none_for.keys() <= pending:
        yield "one that does not wait is told of machines"
    if not set(scaling.wanted_by) <= scaling.coming_for.keys():
        yield "one that a machine is rented for is not told so"
    for launch in scaling.launches:
        told = [name for name in launch.wanted_by if launch.offer not in scaling.coming_for[name]]
        if told:
            yield f"{told} are told of another offer than {launch.offer}"
        if launch.offer in scaling.not_used:
            yield f"{launch.offer} is rented and said not to be used"


def overtaken(case: Rental) -> list[AllocationId]:
    """Those that get a machine or room now, and with one machine more than there may be now would get none, though no
    more urgent one gets some instead."""
    larger = replace(case, limits=replace(case.limits, max_instances=case.limits.max_instances + 1))
    now, then = _served(case), _served(larger)
    order = list(plan(_plenty(case)).placements)
    lost = [name for name in order if name in now and name not in then]
    return [name for name in lost if not any(it in then and it not in now for it in order[: order.index(name)])]


def _served(case: Rental) -> set[AllocationId]:
    scaling = case.decided()
    return {*plan(case.snapshot).placements, *scaling.coming_for}


def _plenty(case: Rental) -> PoolSnapshot:
    """With more machines of each offer than anybody needs; decided in the order of urgency."""
    agents = [it for index, offer in enumerate(case.offers) for it in offer.agents(8, 1_000_000 + index * 10_000)]
    return replace(case.snapshot, agents=(*case.snapshot.agents, *agents))
