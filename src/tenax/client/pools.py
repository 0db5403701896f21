"""Resource pools as values, and which workspaces they are kept for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Sequence

from tenax.client import reading
from tenax.client.connection.session import Session, at
from tenax.jsonvalue import JsonObject

_BINDINGS = "/api/v1/resource-pools/{}/workspace-bindings"


@dataclass(frozen=True)
class Pool:
    """A named set of agents."""

    name: str
    description: str
    agents: int
    slots: int
    slots_used: int
    #: ``cpu``, ``cuda``, ``rocm``; empty where they differ, or there is none.
    slot_kind: str
    accelerator: str
    queued_jobs: int
    scheduled_jobs: int
    default_compute: bool
    default_aux: bool
    preemption: bool
    default_priority: int
    #: It is kept for some workspaces.
    bound: bool
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)

    @staticmethod
    def read(value: JsonObject) -> Pool:
        """From an answer of the master."""
        stats = reading.record(value, "stats")
        scheduler = reading.record(reading.record(value, "details"), "priorityScheduler")
        kind = reading.text(value, "slotType").replace("TYPE_", "", 1).lower()
        return Pool(
            name=reading.text(value, "name"),
            description=reading.text(value, "description"),
            agents=reading.integer(value, "numAgents"),
            slots=reading.integer(value, "slotsAvailable"),
            slots_used=reading.integer(value, "slotsUsed"),
            slot_kind="" if kind == "unspecified" else kind,
            accelerator=reading.text(value, "accelerator"),
            queued_jobs=reading.integer(stats, "queuedCount"),
            scheduled_jobs=reading.integer(stats, "scheduledCount"),
            default_compute=reading.flag(value, "defaultComputePool"),
            default_aux=reading.flag(value, "defaultAuxPool"),
            preemption=reading.flag(scheduler, "preemption"),
            default_priority=reading.integer(scheduler, "defaultPriority"),
            bound=reading.flag(value, "bound"),
            raw=value,
        )


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
