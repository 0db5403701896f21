"""``tenax queue`` (also ``job``): what waits and runs, in the order of turns, and how that changes."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Dict, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access

if TYPE_CHECKING:
    from tenax.client.connection.session import Session
    from tenax.client.jobs import Job
    from tenax.jsonvalue import JsonObject

_COLUMNS: output.Columns[Job] = (
    (TableColumn("#", right=True), lambda job: "" if job.ahead < 0 else str(job.ahead)),
    (TableColumn("JOB", spare=True), lambda job: job.id),
    (TableColumn("TYPE", spare=True), lambda job: job.kind),
    (TableColumn("ID"), lambda job: job.entity_id),
    (TableColumn("NAME", cuts=True), lambda job: job.name),
    (TableColumn("USER", cuts=True), lambda job: job.username),
    (TableColumn("POOL", spare=True), lambda job: job.pool),
    (TableColumn("PRIORITY", right=True, spare=True), lambda job: "" if job.ahead < 0 else str(job.priority)),
    (TableColumn("WEIGHT", right=True, spare=True), lambda job: f"{job.weight:g}" if job.ahead < 0 else ""),
    (TableColumn("SLOTS", right=True), lambda job: f"{job.allocated_slots}/{job.requested_slots}"),
    (TableColumn("STATE", state=True), lambda job: job.state),
    (TableColumn("SUBMITTED", spare=True), lambda job: output.moment(job.submitted)),
    (TableColumn("TO DO"), lambda job: job.wait_class),
    (TableColumn("REASON", wraps=True), lambda job: job.reason),
)


@click.group(
    cls=LazyGroup,
    help="Show the queue and change it. Name a JOB by its id, the number of its experiment, the id of its task, or a "
    "name that only one job has.",
)
def group() -> None:
    pass


@group.command("list")
@click.option("-p", "--pool", "--resource-pool", help="Only this resource pool (default: all).")
@click.option("-u", "--user", "owner", help="Only jobs of this user.")
@click.option("--state", "states", multiple=True, type=click.Choice(["queued", "scheduled", "scheduled_backfilled"]))
@list_options
@pass_access
def list_(
    access: Access, pool: Optional[str], owner: Optional[str], states: Tuple[str, ...], as_json: bool, as_csv: bool
) -> None:
    """List jobs that are waiting or running, in the order of the queue, and why they wait.

    TO DO says what has to happen before one starts: wait (its turn comes), change (as it is asked for, it never starts
    in that pool), ask (somebody has to act, such as an administrator).
    """
    from tenax.client.jobs import list_jobs

    jobs = [job for job in list_jobs(access.session(), pool, states) if owner in (None, job.username)]
    output.records(_COLUMNS, jobs, as_json, as_csv)
    if not jobs:
        output.say("Nothing is waiting or running.")


#: What is changed, and how: with JOB and the value.
_REMEDIES: Dict[str, str] = {
    "slots": "{value} slots each, if it is made anew (resources.slots_per_trial; resources.slots of a task)",
    "max_slots": "max_slots of {value}: tenax experiment set max-slots {job} {value}",
    "constraint": "no constraint on it of: {value} (resources.constraints, if it is made anew)",
    "time_limit": "a time limit of {value} for each run, in which it has to save: {how}",
    "priority": "priority {value}: tenax queue update {job} --priority {value}",
    "weight": "weight {value}: tenax queue update {job} --weight {value}",
    "pool": "the pool {value}: tenax queue update {job} --pool {value}",
}


#: What the time of a likely start stands on.
_SURENESS = {
    "likely": "by the progress of what runs and by how long runs of the same jobs took",
    "guess": "which is a guess: by time limits, and by how long runs in this pool usually take",
}


@group.command()
@click.argument("job")
@json_option
@pass_access
def explain(access: Access, job: str, as_json: bool) -> None:
    """Say why JOB waits, who is before it, who holds the slots, and what would help.

    What would help is tried by the scheduler on the queue as it is: each alone, the least change of its kind.
    """
    from tenax.client.jobs import explain_job, find_job

    session = access.session()
    target = find_job(session, job)
    explained = explain_job(session, target.id)
    if as_json:
        output.document(explained.raw)
        return
    print(f"{target.kind} {target.entity_id} ({target.name}) of {target.username}, in the pool {explained.pool}")
    print(explained.reason or "Nothing of it waits.")
    if explained.likely_start is not None:
        left = max(0.0, (explained.likely_start - datetime.datetime.now(datetime.timezone.utc)).total_seconds())
        by = _SURENESS.get(explained.sureness, explained.sureness)
        print(f"It is likely to start in {output.duration(left)}, {by}.")
    _enumerate("Ahead of it:", explained.ahead, explained.ahead_total)
    _enumerate("Slots are held by:", explained.holders, explained.holding)
    if explained.waiting_slots is None:
        return
    for leaving in (False, True):
        helps = [remedy for remedy in explained.remedies if bool(remedy.leaving) == leaving]
        after = (
            "It would start, once what runs has saved and left, with:" if leaving else "It would start at once with:"
        )
        how = "resources.time_limit, if it is made anew"
        if target.kind == "experiment":
            how = f"tenax experiment set time-limit {target.entity_id} VALUE"
        words = [
            _REMEDIES[remedy.kind].format(
                job=target.entity_id, value=remedy.value, how=how.replace("VALUE", remedy.value)
            )
            for remedy in helps
        ]
        _enumerate(after, tuple(words), len(words))
    if not explained.remedies:
        print("Nothing that can be changed about it alone would start it now.")


def _enumerate(title: str, named: Tuple[str, ...], total: int) -> None:
    """A title and lines below it; how many more there are."""
    if named:
        print(title)
    for name in named:
        print(f"  {name}")
    if total > len(named):
        print(f"  and {total - len(named)} more")


@group.command()
@click.argument("job")
@click.option("--priority", type=click.IntRange(1, 99), help="1 is the most urgent.")
@click.option("--weight", type=click.FloatRange(0, min_open=True), help="Weight under fair share.")
@click.option(
    "-p",
    "--pool",
    "--resource-pool",
    help="Move it to this resource pool; if it is running, it saves a checkpoint first.",
)
@pass_access
def update(access: Access, job: str, priority: Optional[int], weight: Optional[float], pool: Optional[str]) -> None:
    """Change the priority, weight or resource pool of a job."""
    from tenax.client.jobs import find_job, update_job

    if priority is None and weight is None and pool is None:
        raise click.UsageError("Give at least one change: --priority, --weight or --pool.")
    target = find_job(access.session(), job)
    update_job(access.session(), target.id, priority=priority, weight=weight, pool=pool)
    print(f"Job {target.id} ({target.name}) is changed")


@group.command("update-batch")
@click.argument("operations", metavar="JOB.FIELD=VALUE...", nargs=-1, required=True)
@pass_access
def update_batch(access: Access, operations: Tuple[str, ...]) -> None:
    """Make several changes, all or none of them: JOB.priority=N, JOB.weight=X, JOB.resource-pool=NAME."""
    from tenax.client.jobs import update_jobs

    session = access.session()
    changes = [_operation(session, operation) for operation in operations]
    update_jobs(session, changes)
    print(f"{len(changes)} changes made")


@group.command("move-ahead")
@click.argument("job")
@click.argument("other")
@pass_access
def move_ahead(access: Access, job: str, other: str) -> None:
    """Move JOB just ahead of the job OTHER in the same pool; it takes OTHER's priority."""
    _move(access, job, other, behind=False)


@group.command("move-behind")
@click.argument("job")
@click.argument("other")
@pass_access
def move_behind(access: Access, job: str, other: str) -> None:
    """Move JOB just behind the job OTHER in the same pool; it takes OTHER's priority."""
    _move(access, job, other, behind=True)


@group.command()
@click.option("-p", "--pool", "--resource-pool", help="Only this resource pool (default: all).")
@list_options
@pass_access
def stats(access: Access, pool: Optional[str], as_json: bool, as_csv: bool) -> None:
    """Show how many jobs are waiting and running in each pool, and how long attempts waited recently."""
    from tenax.client.connection import reading
    from tenax.client.jobs import queue_stats

    pools = [entry for entry in queue_stats(access.session()) if pool in (None, entry.get("resourcePool"))]
    rows = []
    for entry in pools:
        counts = reading.record(entry, "stats")
        days = reading.records(entry, "aggregates")
        last = days[-1] if days else {}
        waited = reading.real(last.get("seconds"))
        waiting, running = (str(reading.integer(counts, name)) for name in ("queuedCount", "scheduledCount"))
        day = reading.text(last, "periodStart")
        rows.append([reading.text(entry, "resourcePool"), waiting, running, day, output.duration(waited)])
    columns = [
        output.TableColumn("POOL", spare=True),
        output.TableColumn("WAITING", right=True),
        output.TableColumn("RUNNING", right=True),
        output.TableColumn("LAST DAY"),
        output.TableColumn("WAITED THEN", right=True),
    ]
    output.listing(columns, rows, pools, as_json, as_csv)


group.alias("list", "ls")
group.alias("update", "u")


def _move(access: Access, job: str, other: str, *, behind: bool) -> None:
    from tenax.client.jobs import find_job, update_job

    session = access.session()
    moved, anchor = find_job(session, job), find_job(session, other)
    if behind:
        update_job(session, moved.id, behind_of=anchor.id)
    else:
        update_job(session, moved.id, ahead_of=anchor.id)
    print(f"Job {moved.id} ({moved.name}) is {'behind' if behind else 'ahead of'} {anchor.id} ({anchor.name})")


def _operation(session: Session, text: str) -> JsonObject:
    from tenax.client.jobs import change, find_job

    assigned, equals, value = text.partition("=")
    job, dot, name = assigned.rpartition(".")
    kinds: Dict[str, str] = {"priority": "priority", "weight": "weight", "resource-pool": "pool", "pool": "pool"}
    field = kinds.get(name.replace("_", "-"))
    if not (equals and dot and field and value):
        raise click.UsageError(
            f"{text!r} is not a change: write JOB.priority=N, JOB.weight=X or JOB.resource-pool=NAME."
        )
    job_id = find_job(session, job).id
    try:
        if field == "priority":
            return change(job_id, priority=int(value))
        return change(job_id, weight=float(value)) if field == "weight" else change(job_id, pool=value)
    except ValueError:
        raise click.UsageError(f"{value!r} in {text!r} is not a number.") from None
