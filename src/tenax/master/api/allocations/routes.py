"""What the members of an attempt ask and report: preemption, rendezvous, gathering, readiness.

Rules it keeps: a task speaks for its own attempt only; every request may be repeated. Who waits is woken by the
database, and reads the row again after every wake-up and at least every half minute; a wait ends after a time that can
be set, with an error that names who is missing. A master that shuts down answers 503 at once, so that the client asks
again, or asks another master.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import Query, Response

from tenax.errors import Forbidden, InvalidInput, NotNow, TryAgain
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow
from tenax.master.allocations import events as allocation_events
from tenax.master.api.http.callers import MasterDep, TaskDep
from tenax.master.api.http.paging import JSON
from tenax.master.api.http.requests import MAX_NAME
from tenax.master.api.http.routing import Routes
from tenax.master.api.tasks.messages import (
    AcceleratorDataRequest,
    AllGatherRequest,
    AllGatherResponse,
    GetAllocationResponse,
    NotifyContainerRunningRequest,
    PreemptionResponse,
    ProxyAddressRequest,
    RendezvousInfo,
    RendezvousResponse,
    ResumePointRequest,
    ResumePointResponse,
)
from tenax.master.api.tasks.routes import allocation_message
from tenax.master.context import Master
from tenax.master.ingest import states
from tenax.master.store.allocations import barriers
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.allocations.barriers import BarrierMember
from tenax.master.store.allocations.rows import LeaveRequest
from tenax.master.store.checkpoints import rows as checkpoints
from tenax.master.store.database.wakeups import Subscription
from tenax.master.store.tasks import lists as task_lists
from tenax.master.store.users.sessions import TaskOf
from tenax.wire.message import Empty

routes = Routes("Allocations")

#: The longest that one long poll is held, whatever it asks for.
MAX_POLL_S = 300.0
#: A task whose agent is not heard is answered after so long, if somebody asks whether it lives.
_ASKS_AGAIN_S = 2.0
_MAX_PEERS = 10_000
_MAX_ADDRESS = 255
_PREFIX = "/api/v1/allocations/{allocation_id}"


@routes.get(f"{_PREFIX}/signals/preemption", "AllocationPreemptionSignal", allow=Allow.TASK)
async def preemption_signal(
    master: MasterDep,
    task: TaskDep,
    allocation_id: str,
    timeout_seconds: Annotated[float, Query(allow_inf_nan=False)] = 0,
) -> PreemptionResponse:
    """Whether to save and leave; held up to ``timeoutSeconds`` while the answer is no."""
    _check_own(task, allocation_id)

    asked_at = time.monotonic()

    async def poll() -> bool | None:
        async with master.db.connection() as conn:
            signal = await barriers.signal(conn, allocation_id)
        if signal.leave and not signal.ended:
            return True
        # An attempt that has ended needs no answer: it is held like any other no, or its client would ask in a loop.
        anew = signal.unheard and not signal.ended and time.monotonic() - asked_at >= _ASKS_AGAIN_S
        return False if anew else None

    async with master.db.transaction() as conn:
        await barriers.listens(conn, allocation_id)
    seconds = min(max(0.0, timeout_seconds), MAX_POLL_S)
    return PreemptionResponse(preempt=await wait_until(master, "allocation", allocation_id, seconds, poll) is True)


@routes.post(f"{_PREFIX}/signals/ack_preemption", "AckAllocationPreemptionSignal", allow=Allow.TASK)
async def ack_preemption(master: MasterDep, task: TaskDep, allocation_id: str) -> Empty:
    """The task will leave because it was asked to: its exit then means that it wants to go on later."""
    _check_own(task, allocation_id)
    async with master.db.transaction() as conn:
        await states.preemption_acknowledged(conn, task)
    return Empty()


@routes.post(f"{_PREFIX}/signals/pending_preemption", "AllocationPendingPreemptionSignal", allow=Allow.TASK)
async def pending_preemption(master: MasterDep, task: TaskDep, allocation_id: str) -> Empty:
    """The place where it runs is about to take its resources: ask it to leave."""
    _check_own(task, allocation_id)
    usual = float(master.settings.preemption_timeout)
    async with master.db.transaction() as conn:
        request = LeaveRequest(allocation_id, "the machine asked for its resources back")
        await allocations.ask_to_leave(conn, [request], usual)
    return Empty()


@routes.get(f"{_PREFIX}/resources/{{resources_id}}/rendezvous", "AllocationRendezvousInfo", allow=Allow.TASK)
async def rendezvous(
    master: MasterDep,
    task: TaskDep,
    allocation_id: str,
    resources_id: str,
    timeout_seconds: Annotated[float | None, Query(allow_inf_nan=False)] = None,
) -> RendezvousResponse:
    """The addresses of all members once all have asked and run."""
    _check_own(task, allocation_id)
    async with master.db.transaction() as conn:
        await barriers.arrive(conn, allocation_id, resources_id)

    async def poll() -> list[BarrierMember] | None:
        async with master.db.connection() as conn:
            members = await barriers.members(conn, allocation_id)
        _check_still_possible(members)
        return members if all(_is_there(member, len(members)) for member in members) else None

    seconds = master.settings.rendezvous_timeout if timeout_seconds is None else timeout_seconds
    met = await wait_until(master, "allocation", allocation_id, seconds, poll)
    if met is None:
        raise NotNow(await _who_is_missing(master, allocation_id, seconds))
    rank = next(member.rank for member in met if member.container_id == resources_id)
    addresses = [member.address or "127.0.0.1" for member in met]
    info = RendezvousInfo(addresses=addresses, rank=rank, slots=[member.slots for member in met])
    return RendezvousResponse(rendezvous_info=info)


@routes.post(f"{_PREFIX}/resume_point", "AllocationResumePoint", allow=Allow.TASK)
async def resume_point(
    master: MasterDep, task: TaskDep, allocation_id: str, body: ResumePointRequest
) -> ResumePointResponse:
    """Where the trial goes on from, when what it was told of has no files any more."""
    _check_own(task, allocation_id)
    if task.trial_id is None:
        raise InvalidInput("only trials go on from checkpoints")
    async with master.db.transaction() as conn:
        if body.missing:
            await states.checkpoint_missing(conn, task, body.missing)
        latest = await checkpoints.latest(conn, task.trial_id)
        in_doubt = latest is not None and await checkpoints.is_in_doubt(conn, latest.uuid)
    return ResumePointResponse(
        checkpoint=None if latest is None else latest.uuid,
        steps_completed=0 if latest is None else latest.steps_completed,
        in_doubt=in_doubt,
    )


@routes.post(f"{_PREFIX}/all_gather", "AllocationAllGather", allow=Allow.TASK, response_model=AllGatherResponse)
async def all_gather(master: MasterDep, task: TaskDep, allocation_id: str, body: AllGatherRequest) -> Response:
    """What all members brought, once all have."""
    _check_own(task, allocation_id)
    if not 0 < body.num_peers <= _MAX_PEERS or not 0 < len(body.request_uuid) <= MAX_NAME:
        raise InvalidInput(
            f"requestUuid, of at most {MAX_NAME} characters, and numPeers, from 1 to {_MAX_PEERS}, are needed: say who "
            "you are and how many gather"
        )
    async with master.db.transaction() as conn:
        await barriers.bring(conn, allocation_id, body.request_uuid, body.num_peers, body.data)

    async def poll() -> list[str] | None:
        async with master.db.connection() as conn:
            _check_still_possible(await barriers.members(conn, allocation_id))
            return await barriers.gathered(conn, allocation_id, body.request_uuid)

    seconds = master.settings.rendezvous_timeout
    gathered = await wait_until(master, "allocation", allocation_id, seconds, poll)
    if gathered is None:
        async with master.db.transaction() as conn:
            there = await barriers.leave(conn, allocation_id, body.request_uuid)
            members = await barriers.members(conn, allocation_id)
        if there < body.num_peers:
            raise NotNow(_who_did_not_gather(members, there, body.num_peers, seconds))
        gathered = await poll() or []
    return Response(f'{{"data":[{",".join(gathered)}]}}'.encode(), media_type=JSON)


@routes.get(_PREFIX, "GetAllocation", allow=Allow.USER)
async def get_allocation(master: MasterDep, allocation_id: str) -> GetAllocationResponse:
    """One attempt."""
    async with master.db.connection() as conn:
        view = await task_lists.allocation(conn, allocation_id)
    return GetAllocationResponse(allocation=allocation_message(view))


@routes.post(
    f"{_PREFIX}/notify_container_running",
    "NotifyContainerRunning",
    allow=Allow.TASK,
    response_model=AllGatherResponse,
)
async def container_running(
    master: MasterDep, task: TaskDep, allocation_id: str, body: NotifyContainerRunningRequest
) -> Response:
    """A member says that it runs, and what it is; answers what all of them said, once all have."""
    gathering = AllGatherRequest(request_uuid=body.request_uuid, num_peers=body.num_peers, data=body.data)
    return await all_gather(master, task, allocation_id, gathering)


@routes.post(f"{_PREFIX}/ready", "AllocationReady", allow=Allow.TASK)
async def ready(master: MasterDep, task: TaskDep, allocation_id: str) -> Empty:
    """The task says that its service can be used."""
    _check_own(task, allocation_id)
    async with master.db.transaction() as conn:
        await allocations.set_ready(conn, allocation_id)
    return Empty()


@routes.post(f"{_PREFIX}/waiting", "AllocationWaiting", allow=Allow.TASK)
async def waiting(master: MasterDep, task: TaskDep, allocation_id: str) -> Empty:
    """The task runs, and its service waits for something before it can be used."""
    _check_own(task, allocation_id)
    async with master.db.transaction() as conn:
        await allocations.set_waiting(conn, allocation_id)
    return Empty()


@routes.post(f"{_PREFIX}/proxy_address", "PostAllocationProxyAddress", allow=Allow.TASK)
async def proxy_address(master: MasterDep, task: TaskDep, allocation_id: str, body: ProxyAddressRequest) -> Empty:
    """Where the task can be reached, as it reports itself."""
    _check_own(task, allocation_id)
    if not body.proxy_address or len(body.proxy_address) > _MAX_ADDRESS or not body.proxy_address.isprintable():
        raise InvalidInput(f"proxyAddress must be a host name or an address of at most {_MAX_ADDRESS} characters")
    async with master.db.transaction() as conn:
        await allocations.set_proxy_address(conn, allocation_id, body.proxy_address)
    return Empty()


@routes.post(f"{_PREFIX}/resources/{{resources_id}}/daemon", "MarkAllocationResourcesDaemon", allow=Allow.TASK)
async def daemon(master: MasterDep, task: TaskDep, allocation_id: str, resources_id: str) -> Empty:
    """This member only helps the others: it ends when they have."""
    _check_own(task, allocation_id)
    async with master.db.transaction() as conn:
        await allocation_events.mark_daemon(conn, allocation_id, resources_id)
    return Empty()


@routes.post(f"{_PREFIX}/acceleratorData", "PostAllocationAcceleratorData", allow=Allow.TASK)
async def accelerator_data(master: MasterDep, task: TaskDep, allocation_id: str, body: AcceleratorDataRequest) -> Empty:
    """The devices that a member found."""
    _check_own(task, allocation_id)
    reported = body.accelerator_data
    document: JsonObject = {
        "accelerator_type": reported.accelerator_type,
        "accelerator_uuids": list(reported.accelerator_uuids),
        "node_name": reported.node_name,
    }
    async with master.db.transaction() as conn:
        await barriers.put_accelerators(conn, allocation_id, reported.container_id, document)
    return Empty()


def _check_own(task: TaskOf, allocation_id: str) -> None:
    if task.allocation_id != allocation_id:
        raise Forbidden(f"this token is that of {task.allocation_id}, and speaks for no other attempt")


def _is_there(member: BarrierMember, of: int) -> bool:
    # The only member runs, or it could not ask; several need each other's addresses.
    return member.arrived and (
        of == 1 or (member.address != "" and (member.state == "RUNNING" or _ended_after_it_met(member)))
    )


def _ended_after_it_met(member: BarrierMember) -> bool:
    # A short script ends well before another member has heard that all had come.
    return member.arrived and member.state == "TERMINATED" and not member.exit_reason


def _check_still_possible(members: list[BarrierMember]) -> None:
    for member in members:
        if member.state == "TERMINATED" and not _ended_after_it_met(member):
            why = f": {member.exit_reason}" if member.exit_reason else ""
            raise NotNow(f"the members cannot meet: rank {member.rank} on agent {member.agent_id} has ended{why}")
    if not members or members[0].allocation_state in ("TERMINATED", "TERMINATING"):
        raise NotNow("the members cannot meet: the attempt is ending")


async def _who_is_missing(master: Master, allocation_id: str, seconds: float) -> str:
    async with master.db.connection() as conn:
        members = await barriers.members(conn, allocation_id)
    missing = [member for member in members if not _is_there(member, len(members))]
    named = ", ".join(
        f"rank {member.rank} on agent {member.agent_id} ({member.state.lower()}"
        + (", has asked)" if member.arrived else ", has not asked)")
        for member in missing
    )
    return (
        f"{len(missing)} of {len(members)} members did not come within {seconds:g} s: {named}. "
        "Look at their agents; the time is the master's setting rendezvous_timeout, or DET_RENDEZVOUS_TIMEOUT in "
        "environment_variables"
    )


def _who_did_not_gather(members: list[BarrierMember], there: int, of: int, seconds: float) -> str:
    # Who gathers is known by no name; who does not run has not come.
    absent = ", ".join(
        f"rank {member.rank} on agent {member.agent_id} ({member.state.lower()})"
        for member in members
        if member.state != "RUNNING"
    )
    names = f": not running {absent}" if absent else ""
    return f"only {there} of {of} members came to gather within {seconds:g} s{names}"


T = TypeVar("T")


async def wait_until(
    master: Master, kind: str, name: str, seconds: float, poll: Callable[[], Awaitable[T | None]]
) -> T | None:
    """What ``poll`` gives as soon as that is not None; None after ``seconds``. Raises TryAgain when the master ends."""
    deadline = time.monotonic() + seconds
    with master.listener.subscribe(kind, name) as subscription:
        # The first wait returns at once: what happened before we listened is seen by the first look.
        while True:
            result = await poll()
            left = deadline - time.monotonic()
            if result is not None or left <= 0:
                return result
            await _wait(master, subscription, left)


async def _wait(master: Master, subscription: Subscription, seconds: float) -> None:
    woken = asyncio.ensure_future(subscription.wait(seconds))
    ending = asyncio.ensure_future(master.shutdown.wait())
    try:
        await asyncio.wait((woken, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        woken.cancel()
        ending.cancel()
    if master.shutdown.is_set():
        raise TryAgain("the master is shutting down: ask again in a moment")
