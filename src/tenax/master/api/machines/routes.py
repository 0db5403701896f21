"""Rented machines, shown to everyone: what there are, what would be done now, and why.

Nothing is changed here but what a machine itself says of its start, with its join token.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypedDict

from fastapi import Query, Request, Response

from tenax.config.master import PoolSettings
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.config.text import read_object
from tenax.errors import InvalidInput, NotFound
from tenax.lifecycle.budget import BudgetState
from tenax.lifecycle.machine import troubles_of
from tenax.lifecycle.offer import RestCause
from tenax.lifecycle.offer_facts import OfferPrice
from tenax.master.access.authorization import Allow
from tenax.master.access.task_tokens import token_hash
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.machines import messages
from tenax.master.context import Master
from tenax.master.observability import counters
from tenax.master.provision.budgets import budget_states
from tenax.master.provision.offers import decided, offers_of, order_of, price_of
from tenax.master.provision.port import shown
from tenax.master.store.machines import offer_rests
from tenax.master.store.machines import rows as machines
from tenax.master.store.machines.rows import MachineRow, RentedPool
from tenax.master.submission.commands import examine_command
from tenax.master.submission.experiments import examine
from tenax.master.submission.forecasts import RentalForecast, imagined_command, imagined_experiment, rental_of
from tenax.master.submission.messages import CreateExperimentRequest, LaunchCommandRequest
from tenax.master.submission.queue_control import snapshots_of
from tenax.scheduler.demand import Scaling
from tenax.scheduler.registry import plan
from tenax.scheduler.snapshot import Phase, PoolPlan, PoolSnapshot

routes = Routes("Machines")
#: Characters of the name of a step.
_STEP = 100


@routes.get("/api/v1/machines", "GetMachines", allow=Allow.USER)
async def get_machines(
    master: MasterDep,
    resource_pool: Annotated[str, Query()] = "",
    show_ended: Annotated[bool, Query()] = False,
) -> messages.GetMachinesResponse:
    """The machines that are not gone; with ``show_ended`` the newest of those that are, too."""
    async with master.db.connection() as conn:
        rows = await machines.all_of(conn, ended=show_ended, pool=resource_pool or None)
    return messages.GetMachinesResponse(machines=[machine_view(row) for row in rows])


@routes.get("/api/v1/machines/{machine_id}", "GetMachine", allow=Allow.USER)
async def get_machine(master: MasterDep, machine_id: str) -> messages.GetMachineResponse:
    """One machine, also one that is gone."""
    async with master.db.connection() as conn:
        return messages.GetMachineResponse(machine=machine_view(await machines.get(conn, machine_id)))


@routes.get("/api/v1/machines/{machine_id}/steps", "GetMachineSteps", allow=Allow.USER)
async def get_steps(master: MasterDep, machine_id: str) -> messages.GetMachineStepsResponse:
    """What a machine has said of its start."""
    async with master.db.connection() as conn:
        steps = await machines.steps_of(conn, machine_id)
    return messages.GetMachineStepsResponse(
        steps=[
            messages.MachineStepView(step=each.step, state=each.state, note=each.note, said_at=each.said_at)
            for each in steps
        ]
    )


@routes.post("/agents/machine-step", "SayMachineStep", allow=Allow.PUBLIC, response_class=Response)
async def say_step(master: MasterDep, request: Request) -> Response:
    """A line each: the machine's token, its id, the step, ``begun``, ``done`` or ``failed``; the rest says why."""
    token, machine_id, step, state, note = ((await request.body()).decode(errors="replace").split("\n", 4) + [""] * 5)[
        :5
    ]
    if state not in ("begun", "done", "failed") or not step.strip() or "\0" in step + note + machine_id:
        raise InvalidInput("write a line each: token, machine, step, and begun, done or failed; what follows says why")
    how = shown(step)[:_STEP], state, shown(note, [token])
    async with master.db.transaction() as conn:
        broken = await machines.say_step(conn, token_hash(token), machine_id, *how)
        if broken is not None:
            cause = RestCause.NEVER_JOINED
            order = order_of(master.settings.pool(broken.pool), broken, cause)
            if order is not None:
                await offer_rests.begin(conn, order, cause, broken.story, broken.planned_at)
    if broken is not None and broken.sent:
        counters.MACHINE_ORDERS.labels(broken.pool, counters.failed_as(RestCause.NEVER_JOINED)).inc()
    return Response(status_code=204)


@routes.get("/api/v1/machines/plan", "GetMachinePlan", allow=Allow.USER)
async def get_plan(master: MasterDep, resource_pool: Annotated[str, Query()] = "") -> messages.GetMachinePlanResponse:
    """What would be rented and ended now, per pool, and what each request that waits is told; of one pool or all."""
    pools, settings = renting_pools(master, resource_pool), master.settings
    if not pools:
        return messages.GetMachinePlanResponse(plans=[])
    async with master.db.snapshot() as conn:
        snapshots = await snapshots_of(conn, settings)
        rented = await machines.of_pools(conn)
        rows = await machines.all_of(conn)
        budgets = await budget_states(conn, settings.pools, settings.renting)

    def plans() -> list[messages.PoolMachinePlan]:
        return [
            _plan(
                pool,
                provider,
                snapshots[pool.name],
                rented.get(pool.name, RentedPool()),
                budgets.get(pool.name, ()),
                [row for row in rows if row.pool == pool.name],
            )
            for pool, provider in pools
        ]

    return messages.GetMachinePlanResponse(plans=await master.examiners.run(plans))


@routes.post("/api/v1/machines/plan", "PlanSubmission", allow=Allow.USER)
async def plan_submission(
    master: MasterDep, caller: CallerDep, body: messages.PlanSubmissionRequest
) -> messages.PlanSubmissionResponse:
    """What would be rented for an experiment or a command that is not submitted: nothing is made."""
    settings, threads = master.settings, master.examiners
    if not body.config.strip():
        raise InvalidInput("no configuration was given: submit the YAML text of one")
    if body.is_command:
        config, _ = await threads.run(read_object, body.config)
        request = LaunchCommandRequest(
            config=config, template_name=body.template or "", workspace_id=body.workspace_id, preview=True
        )
        launch = await examine_command(master.db, settings, threads, caller.person.id, request)
        imagined, notices = imagined_command(launch), launch.notices
    else:
        wished = CreateExperimentRequest(config=body.config, project_id=body.project_id, template=body.template)
        submission = await examine(master.db, settings, threads, caller.person.id, wished)
        imagined, notices = imagined_experiment(submission), submission.notices
    [(pool, provider)] = renting_pools(master, imagined.pool)
    rental = await rental_of(master.db, settings, threads, pool, imagined)
    return _submission_plan(pool, provider, rental, notices)


def _submission_plan(
    pool: PoolSettings, provider: AnyProviderSettings, rental: RentalForecast, notices: Sequence[str]
) -> messages.PlanSubmissionResponse:
    rented_for = {name: each.offer for each in rental.after.launches for name in each.wanted_by}
    before = {each.offer: each.count for each in rental.before.launches}
    offers = [
        messages.SubmissionOffer(**each.model_dump(), more=max(0, each.launch - before.get(each.offer, 0)))
        for each in _offer_plans(pool, provider, rental.after, rental.rented, rental.budgets)
    ]
    costs = [None if each.price is None else each.price * each.more for each in offers if each.more]
    return messages.PlanSubmissionResponse(
        resource_pool=pool.name,
        requests=[
            messages.PlannedRequest(
                name=each.allocation_id,
                slots=each.slots,
                starts=each.allocation_id in rental.starting,
                offer=rented_for.get(each.allocation_id, ""),
                reason=rental.waiting.get(each.allocation_id, ""),
            )
            for each in rental.job.requests
        ],
        offers=offers,
        cost_per_hour=None if None in costs else sum(each for each in costs if each is not None),
        notices=list(notices),
    )


def renting_pools(master: Master, name: str = "") -> list[tuple[PoolSettings, AnyProviderSettings]]:
    """The pools for which machines are rented. Raises NotFound, InvalidInput: for the one that is named none are."""
    named = master.settings.pool(name)
    if name and named is None:
        known = ", ".join(sorted(pool.name for pool in master.settings.pools))
        raise NotFound(f"resource pool {name!r} not found; the pools are {known}")
    if named is not None and named.provider is None:
        raise InvalidInput(f"no machines are rented for the pool {name!r}: its settings have no provider")
    pools = master.settings.pools if named is None else (named,)
    return [(pool, pool.provider) for pool in pools if pool.provider is not None]


def _plan(
    pool: PoolSettings,
    provider: AnyProviderSettings,
    snapshot: PoolSnapshot,
    rented: RentedPool,
    budgets: Sequence[BudgetState],
    rows: Sequence[MachineRow],
) -> messages.PoolMachinePlan:
    scaling = decided(pool, provider, snapshot, rented, budgets)
    offers = _offer_plans(pool, provider, scaling, rented, budgets)
    return messages.PoolMachinePlan(
        resource_pool=pool.name,
        advises=provider.advises,
        offer=offers[0].offer,
        slots_per_machine=offers[0].slots,
        offers=offers,
        min_instances=provider.min_instances,
        max_instances=provider.max_instances,
        max_cost_per_hour=provider.max_cost_per_hour,
        budgets=[_budget(each) for each in budgets],
        machines=len(rented.machines),
        launch=scaling.launch,
        end=[messages.PlannedMachineStep(machine_id=name, reason=why) for name, why in scaling.end.items()],
        drain=[messages.PlannedMachineStep(machine_id=name, reason=why) for name, why in scaling.drain.items()],
        troubles=_troubles(rows),
        waiting=_waiting(snapshot, scaling, plan(snapshot)),
    )


def _troubles(rows: Sequence[MachineRow]) -> list[messages.MachineTrouble]:
    """What a provider does not do, once for all of whom it is said."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        for reason in troubles_of(row.story):
            by_reason.setdefault(reason, []).append(row.machine_id)
    return [messages.MachineTrouble(machine_ids=names, reason=reason) for reason, names in by_reason.items()]


def _offer_plans(
    pool: PoolSettings,
    provider: AnyProviderSettings,
    scaling: Scaling,
    rented: RentedPool,
    budgets: Sequence[BudgetState],
) -> list[messages.OfferPlan]:
    prices = {each.offer_name: price_of(each, rented.facts) for each in provider.each_offer()}
    launches = {each.offer: each for each in scaling.launches}
    return [
        messages.OfferPlan(
            offer=each.name,
            slots=each.slots,
            **_priced(prices[each.name]),
            launch=launches[each.name].count if each.name in launches else 0,
            reason=launches[each.name].why if each.name in launches else scaling.not_used.get(each.name, ""),
        )
        for each in offers_of(pool, provider, rented.facts, budgets)
    ]


class _PriceFields(TypedDict):
    price: float | None
    price_source: str
    priced_at: datetime | None
    price_where: str


def _priced(price: OfferPrice | None) -> _PriceFields:
    if price is None:
        return {"price": None, "price_source": "", "priced_at": None, "price_where": ""}
    return {
        "price": price.amount,
        "price_source": price.source.value,
        "priced_at": price.at,
        "price_where": price.where,
    }


def _budget(state: BudgetState) -> messages.MachineBudgetView:
    return messages.MachineBudgetView(
        resource_pool=state.budget.pool,
        per_month=state.budget.amount,
        stops=state.budget.stops,
        spent=round(state.spent, 2),
        unpriced_hours=state.unpriced_hours,
        stage=state.stage.value,
        warning=state.warning,
        until=state.ends,
    )


def _waiting(snapshot: PoolSnapshot, scaling: Scaling, decided: PoolPlan) -> list[messages.MachineWait]:
    reasons = scaling.explained(decided.waiting)
    return [
        messages.MachineWait(
            allocation_id=each.allocation_id,
            job_id=each.job_id,
            slots=each.slots,
            reason=reasons[each.allocation_id],
        )
        for each in snapshot.requests
        if each.phase is Phase.PENDING and each.allocation_id in reasons
    ]


def machine_view(row: MachineRow) -> messages.RentedMachineView:
    """As it is shown."""
    return messages.RentedMachineView(
        id=row.machine_id,
        resource_pool=row.pool,
        state=row.state.value,
        provider=row.provider,
        region=row.region,
        zone=row.zone,
        instance_type=row.instance_type,
        offer=row.offer,
        price=row.price,
        price_source=row.price_source,
        priced_at=row.priced_at,
        price_where=row.price_where,
        hours=row.hours,
        cost=row.cost,
        slots=row.slots,
        provider_id=row.provider_id,
        wanted_by=list(row.wanted_by),
        story=row.story,
        planned_at=row.planned_at,
        joined_at=row.joined_at,
        changed_at=row.changed_at,
        ended_at=row.ended_at,
        sent=row.sent,
        end_sent=row.end_sent,
        notice=row.notice,
        notice_until=row.notice_until,
    )
