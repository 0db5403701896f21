"""The queue as values, and changes of it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, made, part
from tenax.client.connection.session import Session, at
from tenax.errors import NotFound
from tenax.jsonvalue import Json, JsonObject


@dataclass(frozen=True)
class Job(Answer):
    """A line of the queue: an experiment, a command..."""

    id: str = part(reading.text, "jobId")
    name: str = part(reading.text, "name")
    #: ``experiment``, ``command``, ``notebook``...
    kind: str = made(lambda value: reading.text(value, "type").replace("TYPE_", "", 1).lower())
    #: Number of the experiment, or id of the task.
    entity_id: str = part(reading.text, "entityId")
    username: str = part(reading.text, "username")
    pool: str = part(reading.text, "resourcePool")
    #: 1 (most urgent) to 99.
    priority: int = part(reading.integer, "priority")
    weight: float = made(lambda value: reading.measure(value, "weight") or 0.0)
    #: ``QUEUED``, ``SCHEDULED``, ``SCHEDULED_BACKFILLED``.
    state: str = part(reading.state, "summary", "state")
    #: How many jobs come to their turn before it; -1 in a pool whose jobs share its slots by weight.
    ahead: int = part(reading.integer, "summary", "jobsAhead")
    requested_slots: int = part(reading.integer, "requestedSlots")
    allocated_slots: int = part(reading.integer, "allocatedSlots")
    #: Whether it can save and leave.
    preemptible: bool = part(reading.flag, "isPreemptible")
    submitted: Optional[datetime.datetime] = part(reading.moment, "submissionTime")
    #: Why the first of its requests waits.
    reason: str = part(reading.text, "reason")
    #: What has to happen before it starts: ``wait`` (nothing: its turn comes), ``change`` (as it is asked for, it never
    #: starts), ``ask`` (somebody has to act); empty where it does not wait.
    wait_class: str = made(lambda value: reading.text(value, "waitClass").lower())
    #: Other pools where what waits would start at once.
    room_in: Tuple[str, ...] = made(lambda value: tuple(reading.texts(value, "roomIn")))


def queue_trace(session: Session, after: str, before: str, pool: Optional[str] = None) -> JsonObject:
    """What a simulation replays, as the document of a trace file: what held slots between two times (RFC 3339, or days)
    and has ended, of a pool or of all, with the rules, machines and groups of now. Raises NotFound, InvalidInput."""
    query = {"timestampAfter": after, "timestampBefore": before, "resourcePool": pool}
    answer = session.get("/api/v1/job-queues/trace", query)
    return {
        "pools": _snake(answer, "pools"),
        "agents": _snake(answer, "agents"),
        "groups": {
            reading.text(group, "name"): list(reading.texts(group, "usernames"))
            for group in reading.records(answer, "groups")
        },
        "attempts": _snake(answer, "attempts"),
    }


#: Of the master's fields: as a trace file has them.
_OF_A_TRACE = {"resourcePool": "pool", "taskId": "task", "username": "user", "workspaceName": "workspace"}


def _snake(answer: JsonObject, name: str) -> List[Json]:
    names: Dict[str, str] = {}

    def spelled(key: str) -> str:
        if key not in names:
            names[key] = _OF_A_TRACE.get(key) or "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
        return names[key]

    records = reading.records(answer, name)
    return [{spelled(key): value for key, value in record.items() if value is not None} for record in records]


def list_jobs(session: Session, pool: Optional[str] = None, states: Sequence[str] = ()) -> List[Job]:
    """The queue of a pool, or of all pools one after the other, in the order of turns. Raises NotFound."""
    pools = [pool] if pool is not None else _pool_names(session)
    requested = [f"STATE_{state.upper()}" for state in states]
    jobs: List[Job] = []
    for name in pools:
        answer = session.get("/api/v1/job-queues", {"resourcePool": name, "states": requested or None})
        jobs += [Job.read(value) for value in reading.records(answer, "jobs")]
    return jobs


def find_job(session: Session, named: str) -> Job:
    """The job of that id, or of the experiment or task of that number, id or unique beginning. Raises NotFound."""
    jobs = list_jobs(session)
    exact = [job for job in jobs if named in (job.id, job.entity_id)]
    near = exact or [job for job in jobs if job.id.startswith(named) or job.name == named]
    if len(near) == 1:
        return near[0]
    if near:
        raise NotFound(
            f"{named!r} matches {len(near)} jobs of the queue: give the whole id, as `tenax queue list` shows it."
        )
    raise NotFound(f"The queue has no job {named!r}: `tenax queue list` shows the queue.")


@dataclass(frozen=True)
class JobRemedy(Answer):
    """One change after which what waits would start."""

    #: ``slots``, ``priority``, ``weight``, ``max_slots``, ``time_limit`` or ``pool``.
    kind: str = made(lambda value: reading.text(value, "kind").lower())
    #: To this: a number, or the name of a pool.
    value: str = part(reading.text, "value")
    #: So many running trials or tasks would be asked to leave first; 0: it would start at once.
    leaving: int = part(reading.integer, "leaving")


@dataclass(frozen=True)
class JobExplanation(Answer):
    """Why a job waits, and what would help."""

    job_id: str = part(reading.text, "jobId")
    name: str = part(reading.text, "name")
    pool: str = part(reading.text, "resourcePool")
    #: Slots that the first of its requests that waits asks for; none: nothing of it waits.
    waiting_slots: Optional[int] = made(lambda value: _slots(value))
    reason: str = part(reading.text, "reason")
    #: As that of a `Job`.
    wait_class: str = made(lambda value: reading.text(value, "waitClass").lower())
    #: Names of the jobs that come to their turn before it, with their owners; the first of ``ahead_total``.
    ahead: Tuple[str, ...] = made(lambda value: tuple(_called(job) for job in reading.records(value, "ahead")))
    ahead_total: int = part(reading.integer, "aheadTotal")
    #: Those that hold most of the slots, with how many; the first of ``holding``.
    holders: Tuple[str, ...] = made(lambda value: tuple(_called(job) for job in reading.records(value, "holders")))
    holding: int = part(reading.integer, "holding")
    remedies: Tuple[JobRemedy, ...] = made(
        lambda value: tuple(JobRemedy.read(remedy) for remedy in reading.records(value, "remedies"))
    )
    #: When it starts, at the latest, by the time limits of what runs; None: they do not say it.
    starts_by: Optional[datetime.datetime] = part(reading.moment, "startsBy")
    #: When it is likely to start, by how long runs take; None: nobody can say.
    likely_start: Optional[datetime.datetime] = part(reading.moment, "likelyStart")
    #: ``likely``: by the progress of what runs, and by runs of the same jobs; ``guess``: by what is usual in the pool.
    sureness: str = made(lambda value: reading.text(value, "sureness").lower())


def _slots(value: JsonObject) -> Optional[int]:
    return None if value.get("waitingSlots") is None else reading.integer(value, "waitingSlots")


def _called(job: JsonObject) -> str:
    kind = reading.text(job, "type").replace("TYPE_", "", 1).lower()
    called = f"{kind} {reading.text(job, 'entityId')} ({reading.text(job, 'name')}) of {reading.text(job, 'username')}"
    slots = reading.integer(job, "slots")
    return f"{called}, {slots} {'slot' if slots == 1 else 'slots'}" if slots else called


def explain_job(session: Session, job_id: str) -> JobExplanation:
    """Why the job waits and what would help, found by the scheduler by trying. Raises NotFound, NotNow."""
    return JobExplanation.read(session.get(at("/api/v1/job-queues/{}/explanation", job_id)))


def update_job(
    session: Session,
    job_id: str,
    *,
    priority: Optional[int] = None,
    weight: Optional[float] = None,
    pool: Optional[str] = None,
    ahead_of: Optional[str] = None,
    behind_of: Optional[str] = None,
) -> None:
    """Change a job's place in the queue; what is None stays. Raises the errors of `tenax.errors`."""
    update_jobs(session, [change(job_id, priority, weight, pool, ahead_of, behind_of)])


def change(
    job_id: str,
    priority: Optional[int] = None,
    weight: Optional[float] = None,
    pool: Optional[str] = None,
    ahead_of: Optional[str] = None,
    behind_of: Optional[str] = None,
) -> JsonObject:
    """One change, for `update_jobs`."""
    fields: Dict[str, Json] = {
        "jobId": job_id,
        "priority": priority,
        "weight": weight,
        "resourcePool": pool,
        "aheadOf": ahead_of,
        "behindOf": behind_of,
    }
    return reading.without_nulls(fields)


def update_jobs(session: Session, changes: Sequence[JsonObject]) -> None:
    """Make all these changes, in this order, or none."""
    session.post("/api/v1/job-queues", {"updates": list(changes)})


def queue_stats(session: Session) -> List[JsonObject]:
    """Per pool: how many jobs wait and run, and how long attempts waited, by day."""
    return reading.records(session.get("/api/v1/job-queues/stats"), "results")


def _pool_names(session: Session) -> List[str]:
    answer = session.get("/api/v1/resource-pools")
    return [reading.text(value, "name") for value in reading.records(answer, "resourcePools")]
