"""Rows of rented machines: planned, sent, answered, joined, ended; each change by one transition of the lifecycle.

Rules: a write of a row that has changed meanwhile is Stale, and changes nothing; a token is kept as its hash, and spent
in the transaction of the join; what webhooks are told is written with the change; whatever a change may alter for work
that waits wakes the loop that schedules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from asyncpg import Connection

from tenax.errors import Forbidden, Stale, TryAgain
from tenax.ids import AgentId, AllocationId
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.machine import Dismissal, MachineEvent, MachineNews, MachineState, after, news_of
from tenax.lifecycle.offer import RestCause
from tenax.lifecycle.offer_facts import OfferFacts, OfferPrice
from tenax.master.store.database.queries import existing, load, row_as
from tenax.master.store.database.wakeups import notify
from tenax.master.store.machines import offer_facts, offer_rests
from tenax.master.store.machines.offer_rests import StoredRest
from tenax.master.store.webhooks import events as webhook_events
from tenax.scheduler.demand import MachineStage, RentedMachine

Q = load("machines")
#: Machines of one list.
MAX_LISTED = 1000
#: Steps of one machine.
MAX_STEPS = 100


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One machine, from before it is asked for."""

    machine_id: str
    pool: str
    provider: str
    region: str
    #: Of the provider's API; empty: the usual one.
    endpoint: str
    instance_type: str
    slots: int
    state: MachineState
    #: Allocations that it was rented for.
    wanted_by: tuple[str, ...]
    #: What the provider calls it; empty: nobody knows yet.
    provider_id: str
    zone: str
    #: Why it is as it is.
    story: str
    planned_at: datetime
    joined_at: datetime | None
    #: When it came to its state, or was last asked for or to end.
    changed_at: datetime
    ended_at: datetime | None
    #: How often the provider was asked for it, and to end it.
    sent: int
    end_sent: int
    version: int
    #: What a person wants of it.
    dismissal: Dismissal
    #: Of its pool; empty: it was rented before there were several.
    offer: str
    #: Per hour, as it was when it was ordered; None: nobody knows.
    price: float | None
    #: `PriceSource`; empty: there is none, or it was rented before this was kept.
    price_source: str
    #: When it was asked, or of which day the list is.
    priced_at: datetime | None
    #: The call, or the page.
    price_where: str
    #: For how long it has been paid for; None: it is not there yet, or never was.
    hours: float | None
    #: Seconds since ``changed_at``, and since it was planned.
    age_s: float
    since_planned_s: float
    #: What its cloud says of it, and when it ends for that.
    notice: str
    notice_until: datetime | None

    @property
    def cost(self) -> float | None:
        """So far, by its price alone: neither disks nor traffic; None: nobody knows."""
        return None if self.hours is None or self.price is None else self.hours * self.price

    @property
    def offers(self) -> tuple[str, str]:
        """Its offer with its zone, and without."""
        return self.offer, f"{self.offer.rpartition(' in ')[0]} in {self.region}"


@dataclass(frozen=True, slots=True)
class MachineStanding:
    """What its agent does."""

    machine_id: str
    #: In seconds since 1970.
    planned_at: float
    #: Seconds since its agent was heard; 0: it is connected.
    away_s: float | None
    #: Its agent has said what it has; it is connected.
    greeted: bool
    connected: bool
    #: It is connected, and has fewer slots than were rented.
    lacks: bool
    #: Its agent has said what it holds, and nothing runs there, known here or not.
    idle: bool
    #: For how long; of one that has joined.
    idle_s: float | None
    takes_work: bool
    #: For which its agent takes nothing new; empty: none.
    notice: str


@dataclass(frozen=True, slots=True)
class MachineStepRow:
    """What a machine has said of its start."""

    step: str
    #: ``begun``, ``done``, ``failed``.
    state: str
    note: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class RentedPool:
    """The machines of a pool, as the scheduler takes them."""

    machines: tuple[RentedMachine, ...] = ()
    #: They may be over, or of settings that are others now.
    rests: tuple[StoredRest, ...] = ()
    #: Attempts that leave a machine of which there is a notice, and go on elsewhere.
    returning: frozenset[AllocationId] = frozenset()
    #: Those of them that stay until there is room elsewhere, with the notice.
    staying: Mapping[AllocationId, str] = field(default_factory=dict)
    #: What its provider has said of offers, by offer.
    facts: Mapping[str, OfferFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewMachine:
    """What is written of a machine before anybody is asked for it."""

    machine_id: str
    pool: str
    provider: str
    region: str
    endpoint: str
    instance_type: str
    slots: int
    wanted_by: Sequence[str]
    #: None: nobody can join with it.
    token_hash: bytes | None
    story: str
    offer: str = ""
    price: OfferPrice | None = None


async def hold_pool(conn: Connection, pool: str) -> None:
    """Until the transaction ends nobody else plans machines of that pool: limits that were looked at hold."""
    await conn.execute(Q.hold_pool, pool)


async def plan(conn: Connection, new: Sequence[NewMachine], known: Collection[str] | None = None) -> None:
    """Rows of machines of one pool that are going to be asked for.

    ``known``: those that were counted for it; None: the caller holds the pool. Raises Stale: there are others.
    """
    if new and known is not None:
        await hold_pool(conn, new[0].pool)
        if await conn.fetchval(Q.any_unknown, new[0].pool, list(known)):
            raise Stale
    for each in new:
        place = each.provider, each.region, each.endpoint, each.instance_type
        what = each.slots, list(each.wanted_by), each.token_hash, each.story, each.offer
        await conn.execute(Q.plan, each.machine_id, each.pool, *place, *what, *_price_columns(each.price))
    await notify(conn, "scheduling", "")
    if known is None:
        # By hand: the loop that rents does not know of it.
        await notify(conn, "queue", "")


async def adopt(conn: Connection, stray: NewMachine, provider_id: str, zone: str) -> bool:
    """The row of a machine that carries our mark and had none; with a token its agent may join, else it is ENDING.

    False: there is a row of that id, or of that machine.
    """
    place = stray.provider, stray.region, stray.endpoint, stray.instance_type
    what = stray.token_hash, provider_id, zone, stray.story
    is_new = await conn.fetchval(Q.adopt, stray.machine_id, stray.pool, *place, *what) is not None
    if is_new:
        await _tell(conn, MachineNews.ORPHAN, await get(conn, stray.machine_id))
        await notify(conn, "queue", "")
    return is_new


async def say_step(
    conn: Connection, token_hash: bytes, machine_id: str, step: str, state: str, note: str
) -> MachineRow | None:
    """What the machine of a token says of its start; one that failed is ended, and is what is returned.

    Raises Forbidden: the token is not that machine's, or spent; TryAgain: the provider's answer is not stored yet.
    """
    row = await conn.fetchrow(Q.of_token, token_hash)
    if row is None or row["machine_id"] != machine_id:
        raise Forbidden("that is not the token of that machine, or its start is over")
    if state == "failed" and row["state"] in (MachineState.PLANNED.value, MachineState.ASKED.value):
        raise TryAgain("the provider's answer for this machine is not stored yet: try again in a moment")
    await conn.execute(Q.add_step, machine_id, step, state, note, MAX_STEPS)
    if state != "failed":
        return None
    story = f"could not {step}: {note}" if note else f"could not {step}"
    await happen(conn, await get(conn, machine_id), MachineEvent.BROKE, story)
    await notify(conn, "queue", "")
    return await get(conn, machine_id)


async def steps_of(conn: Connection, machine_id: str) -> list[MachineStepRow]:
    """What a machine has said of its start, in that order. Raises NotFound."""
    await get(conn, machine_id)
    return [row_as(MachineStepRow, row) for row in await conn.fetch(Q.steps, machine_id)]


async def is_known(conn: Connection, machine_id: str, *, still_there: bool = False) -> bool:
    """Whether a machine has a row; ``still_there``: and is not gone."""
    return bool(await conn.fetchval(Q.is_known, machine_id, still_there))


async def is_adopted(conn: Connection, machine_id: str) -> bool:
    """Whether this is a machine that had no row when it was seen, and is not gone."""
    return bool(await conn.fetchval(Q.is_adopted, machine_id))


async def note(conn: Connection, machine: MachineRow, story: str) -> None:
    """Why it is as it is, and nothing else. Raises Stale."""
    await _written(conn, Q.note, machine, story)


async def dismiss(conn: Connection, machine: MachineRow, dismissal: Dismissal, story: str) -> None:
    """Note what a person wants of it, and who: the loop that rents does the rest. Raises Stale."""
    await _written(conn, Q.dismiss, machine, dismissal.value, story)
    await notify(conn, "scheduling", "")
    await notify(conn, "queue", "")


async def leaving_work(conn: Connection) -> dict[AllocationId, str]:
    """Attempts on machines that a person lets go, which nobody has asked to leave, each with why."""
    return {AllocationId(row["allocation_id"]): row["story"] for row in await conn.fetch(Q.leaving_work)}


async def send(conn: Connection, machine: MachineRow) -> MachineRow:
    """Note that the provider is asked for it now, be it once more; the row then. Raises Stale."""
    state = machine.state
    state = after(state, MachineEvent.SEND) if state is MachineState.PLANNED else state
    await _written(conn, Q.send, machine, state.value)
    return await get(conn, machine.machine_id)


async def note_end_sent(conn: Connection, machine: MachineRow) -> MachineRow:
    """Note that the provider is asked to end it now, be it once more; the row then. Raises Stale."""
    await _written(conn, Q.end_sent, machine)
    return await get(conn, machine.machine_id)


async def happen(
    conn: Connection, machine: MachineRow, event: MachineEvent, story: str = "", provider_id: str = "", zone: str = ""
) -> None:
    """A transition; ``story``: in the place of what stood there. Raises Stale, Impossible."""
    state = after(machine.state, event)
    never_joined = event is MachineEvent.LACKS
    await _written(conn, Q.change, machine, state.value, story, provider_id, zone, never_joined)
    news = news_of(machine.state, event)
    if news is not None:
        its = story or machine.story, provider_id or machine.provider_id, zone or machine.zone
        await _tell(conn, news, replace(machine, state=state, story=its[0], provider_id=its[1], zone=its[2]))
    await notify(conn, "scheduling", "")


async def noticed(conn: Connection, machine_id: str, notice: str) -> None:
    """Its cloud says something new of it; nothing of an agent whose machine was not rented."""
    if await is_known(conn, machine_id, still_there=True):
        await _tell(conn, MachineNews.NOTICE, replace(await get(conn, machine_id), story=notice))


async def join(conn: Connection, token_hash: bytes, agent_id: str, pool: str) -> MachineRow | None:
    """Spend the token of a machine; its row before. None: the token is none of a machine's.

    Raises Forbidden: of another machine or pool; TryAgain: the provider's answer is not stored yet.
    """
    row = await conn.fetchrow(Q.of_token, token_hash)
    if row is None:
        return None
    if (row["machine_id"], row["pool"]) != (agent_id, pool):
        raise Forbidden(
            f"that token is for the machine {row['machine_id']} in the pool {row['pool']} alone: its agent joins with "
            "the id and the pool of its user data"
        )
    state = MachineState(row["state"])
    if state in (MachineState.PLANNED, MachineState.ASKED):
        raise TryAgain("the provider's answer for this machine is not stored yet: try again in a moment")
    machine = await get(conn, agent_id)
    await happen(conn, machine, MachineEvent.JOIN)
    await offer_rests.end(conn, machine.pool, machine.offers, set(RestCause) - {RestCause.LACKS})
    return machine


async def is_starting(conn: Connection, token_hash: bytes) -> bool:
    """Whether this is the token of a machine that has not joined yet, and may."""
    return bool(await conn.fetchval(Q.is_starting, token_hash))


async def get(conn: Connection, machine_id: str) -> MachineRow:
    """Raises NotFound."""
    row = await existing(conn, f"machine {machine_id!r}", f"{Q.columns} where machine_id = $1", machine_id)
    return _row(row)


async def all_of(conn: Connection, *, ended: bool = False, pool: str | None = None) -> list[MachineRow]:
    """The machines that are not gone, the oldest first; ``ended``: the newest of those that are, too."""
    which = "where ($2 or ended_at is null) and ($1::text is null or pool = $1)"
    query = f"{Q.columns} {which} order by ended_at is null desc, planned_at desc, machine_id limit $3"
    rows = [_row(row) for row in await conn.fetch(query, pool, ended, MAX_LISTED if ended else None)]
    return sorted(rows, key=lambda row: (row.planned_at, row.machine_id))


async def any_open(conn: Connection) -> bool:
    """Whether there is a machine that is not gone."""
    return bool(await conn.fetchval(Q.any_open))


async def standings(conn: Connection) -> dict[str, MachineStanding]:
    """Of those that are not gone, by machine."""
    return {row["machine_id"]: row_as(MachineStanding, row) for row in await conn.fetch(Q.standings)}


async def of_pools(conn: Connection) -> dict[str, RentedPool]:
    """What the scheduler has to know of machines, by pool; one without any is not there."""
    its_standings = await standings(conn)
    by_pool: dict[str, list[RentedMachine]] = defaultdict(list)
    for row in await all_of(conn):
        if row.machine_id in its_standings:
            by_pool[row.pool].append(rented(row, its_standings[row.machine_id]))
    its_rests, facts = await offer_rests.all_of(conn), await offer_facts.all_of(conn)
    returning: dict[str, dict[AllocationId, str]] = defaultdict(dict)
    for each in await conn.fetch(Q.returning) if any(its.notice for its in its_standings.values()) else ():
        returning[each["pool"]][AllocationId(each["allocation_id"])] = each["notice"] if each["stays"] else ""
    return {
        pool: RentedPool(
            tuple(by_pool.get(pool, ())),
            tuple(its_rests.get(pool, ())),
            frozenset(returning[pool]),
            {name: notice for name, notice in returning[pool].items() if notice},
            facts.get(pool, {}),
        )
        for pool in {*by_pool, *its_rests, *facts}
    }


def rented(machine: MachineRow, standing: MachineStanding) -> RentedMachine:
    """A machine that is not gone, as the scheduler takes it."""
    # It is about to be ended: until then nothing is rented in its place.
    is_replaced = standing.lacks and standing.idle
    joined = MachineStage.HERE if standing.greeted and not is_replaced else MachineStage.COMING
    is_dismissed = machine.dismissal is not Dismissal.NONE
    stages: Mapping[MachineState, MachineStage] = {
        MachineState.JOINED: MachineStage.LEAVING if standing.notice or is_dismissed else joined,
        MachineState.LEAVING: MachineStage.LEAVING,
        MachineState.ENDING: MachineStage.ENDING,
    }
    # Nothing is to wait for one that ends as soon as it is there.
    stage = stages.get(machine.state, MachineStage.ENDING if is_dismissed else MachineStage.COMING)
    idle_s = standing.idle_s if standing.idle else None
    what = machine.offer, machine.slots, machine.price
    return RentedMachine(AgentId(machine.machine_id), stage, standing.planned_at, idle_s, *what)


async def _tell(conn: Connection, news: MachineNews, machine: MachineRow) -> None:
    shown: JsonObject = {
        "id": machine.machine_id,
        "resource_pool": machine.pool,
        "state": machine.state.value,
        "provider": machine.provider,
        "region": machine.region,
        "zone": machine.zone,
        "provider_id": machine.provider_id,
        "instance_type": machine.instance_type,
        "offer": machine.offer,
        "slots": machine.slots,
        "price": machine.price,
        "hours": machine.hours,
        "cost": machine.cost,
        "why": machine.story,
    }
    await webhook_events.machines_changed(conn, news, {"machine": shown})


def _price_columns(price: OfferPrice | None) -> tuple[float | None, str, datetime | None, str]:
    return (None, "", None, "") if price is None else (price.amount, price.source.value, price.at, price.where)


async def _written(conn: Connection, query: str, machine: MachineRow, *values: object) -> None:
    if await conn.fetchval(query, machine.machine_id, machine.version, *values) is None:
        raise Stale


def _row(row: Mapping[str, object]) -> MachineRow:
    return row_as(MachineRow, row, state=MachineState, dismissal=Dismissal, wanted_by=tuple)
