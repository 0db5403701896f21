"""Resource pools as values, and which workspaces they are kept for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, made, part
from tenax.client.connection.session import Session, at
from tenax.jsonvalue import JsonObject

_BINDINGS = "/api/v1/resource-pools/{}/workspace-bindings"


@dataclass(frozen=True)
class Pool(Answer):
    """A named set of agents."""

    name: str = part(reading.text, "name")
    description: str = part(reading.text, "description")
    agents: int = part(reading.integer, "numAgents")
    slots: int = part(reading.integer, "slotsAvailable")
    slots_used: int = part(reading.integer, "slotsUsed")
    #: ``cpu``, ``cuda``, ``rocm``; empty where they differ, or there is none.
    slot_kind: str = made(lambda value: _slot_kind(value))
    accelerator: str = part(reading.text, "accelerator")
    queued_jobs: int = part(reading.integer, "stats", "queuedCount")
    scheduled_jobs: int = part(reading.integer, "stats", "scheduledCount")
    default_compute: bool = part(reading.flag, "defaultComputePool")
    default_aux: bool = part(reading.flag, "defaultAuxPool")
    #: ``priority``, ``fair_share``, ``least_attained``.
    scheduler: str = made(lambda value: reading.text(value, "policy") or _policy(value))
    preemption: bool = part(reading.flag, "details", "priorityScheduler", "preemption")
    default_priority: int = part(reading.integer, "details", "priorityScheduler", "defaultPriority")
    #: It is kept for some workspaces.
    bound: bool = part(reading.flag, "bound")


def list_pools(session: Session) -> List[Pool]:
    """All pools, by name."""
    return [Pool.read(value) for value in reading.records(session.get("/api/v1/resource-pools"), "resourcePools")]


def bound_workspaces(session: Session, pool: str) -> List[int]:
    """Numbers of the workspaces that a pool is kept for; none: it is for all. Raises NotFound."""
    numbers = session.get(at(_BINDINGS, pool)).get("workspaceIds")
    return [int(number) for number in numbers if isinstance(number, (int, str))] if isinstance(numbers, list) else []


def bind_pool(session: Session, pool: str, workspaces: Sequence[str]) -> None:
    """Keep a pool for these workspaces (by name), beside those that it is kept for already."""
    session.post(at(_BINDINGS, pool), {"workspaceNames": list(workspaces)})


def unbind_pool(session: Session, pool: str, workspaces: Sequence[str]) -> None:
    """Keep a pool for these workspaces no longer."""
    session.call("DELETE", at(_BINDINGS, pool), body={"workspaceNames": list(workspaces)})


def rebind_pool(session: Session, pool: str, workspaces: Sequence[str]) -> None:
    """Keep a pool for these workspaces and no others; none: it is for all again."""
    session.call("PUT", at(_BINDINGS, pool), body={"workspaceNames": list(workspaces)})


def _policy(value: JsonObject) -> str:
    """Of an older master."""
    return reading.text(value, "schedulerType").replace("SCHEDULER_TYPE_", "", 1).lower()


def _slot_kind(pool: JsonObject) -> str:
    kind = reading.text(pool, "slotType").replace("TYPE_", "", 1).lower()
    return "" if kind == "unspecified" else kind
