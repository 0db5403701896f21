"""``tenax usage`` (also ``resources``): what slots were used for."""

from __future__ import annotations

import csv
import datetime
import io
from typing import Iterable, List, Optional, Sequence, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.client.connection import reading
from tenax.jsonvalue import JsonObject

#: What usage can be grouped by: the option's value, and the field of the answer.
_BY = {
    "user": "byUsername",
    "group": "byGroup",
    "workspace": "byWorkspace",
    "project": "byProject",
    "pool": "byResourcePool",
    "agent": "byAgent",
    "type": "byType",
    "size": "bySize",
    "experiment": "byExperiment",
    "label": "byExperimentLabel",
}

_ATTEMPTS: output.Columns[JsonObject] = (
    (TableColumn("ATTEMPT"), lambda attempt: reading.text(attempt, "allocationId")),
    (TableColumn("TYPE", spare=True), lambda attempt: reading.text(attempt, "kind")),
    (TableColumn("USER", cuts=True), lambda attempt: reading.text(attempt, "username")),
    (TableColumn("POOL", spare=True), lambda attempt: reading.text(attempt, "resourcePool")),
    (TableColumn("AGENTS", cuts=True), lambda attempt: ", ".join(reading.texts(attempt, "agents"))),
    (TableColumn("SLOTS", right=True), lambda attempt: str(reading.integer(attempt, "slots"))),
    (TableColumn("STARTED", spare=True), lambda attempt: output.moment(reading.moment(attempt, "startTime"))),
    (TableColumn("ENDED", spare=True), lambda attempt: output.moment(reading.moment(attempt, "endTime"))),
    (TableColumn("TIME", right=True), lambda attempt: output.duration(reading.real(attempt.get("seconds")))),
)


@click.group(cls=LazyGroup, help="Show how slots were used. Times are in UTC.")
def group() -> None:
    pass


@group.command()
@click.argument("start_date", required=False)
@click.argument("end_date", required=False)
@click.option("--monthly", is_flag=True, help="By month instead of by day.")
@click.option("--by", type=click.Choice(sorted(_BY)), help="One row for each of these (default: a single total).")
@list_options
@pass_access
def aggregated(
    access: Access,
    start_date: Optional[str],
    end_date: Optional[str],
    monthly: bool,
    by: Optional[str],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show slot hours by day, from START_DATE to END_DATE (2026-11-21, or 2026-11), both included.

    With --by also those that were waited: from the request until the placement, of what was placed. Projects are
    shown by their numbers. Without dates: the last 30 days. Days without usage are left out. --csv prints all sums,
    in seconds.
    """
    from tenax.client import cluster

    start, end = _dates(start_date, end_date)
    if as_csv:
        _pieces(cluster.aggregated_csv(access.session(), start, end, monthly=monthly))
        return
    entries = cluster.aggregated(access.session(), start, end, monthly=monthly, by=by)
    if as_json:
        output.document(list(entries))
        return
    columns = [output.TableColumn("MONTH" if monthly else "DAY")]
    columns += [output.TableColumn(by.upper())] if by else []
    columns += [output.TableColumn("SLOT HOURS", right=True)]
    columns += [output.TableColumn("WAITED", right=True)] if by else []
    rows = _rows(entries, by)
    output.table(columns, rows)
    if not rows:
        output.say(f"No slots were used from {start} to {end}.")


@group.command("raw")
@click.argument("after", required=False)
@click.argument("before", required=False)
@click.option("--user", "users", multiple=True, metavar="NAME", help="Only this user's; may be given several times.")
@click.option(
    "--pool", "pools", multiple=True, metavar="NAME", help="Only in this resource pool; may be given several times."
)
@list_options
@pass_access
def raw(
    access: Access,
    after: Optional[str],
    before: Optional[str],
    users: Tuple[str, ...],
    pools: Tuple[str, ...],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show every attempt that held slots between AFTER and BEFORE (2026-11-21, 2026-11-21T08:00:00Z).

    Without times: today and yesterday. --csv also shows how long each one waited.
    """
    from tenax.client import cluster

    now = datetime.datetime.now(datetime.timezone.utc)
    begins = after or (now.date() - datetime.timedelta(days=1)).isoformat()
    ends = before or now.isoformat()
    if as_csv:
        _pieces(_only(cluster.attempts_csv(access.session(), begins, ends), users, pools))
        return
    entries = [
        attempt
        for attempt in cluster.attempts(access.session(), begins, ends)
        if (not users or attempt.get("username") in users) and (not pools or attempt.get("resourcePool") in pools)
    ]
    output.listing(*output.cells(_ATTEMPTS, entries), entries, as_json, False)


group.alias("aggregated", "agg")
group.alias("raw", "allocations", "alloc")


def _rows(entries: Iterable[JsonObject], by: Optional[str]) -> List[List[str]]:
    rows: List[List[str]] = []
    for entry in entries:
        day = reading.text(entry, "periodStart")
        total = reading.real(entry.get("seconds")) or 0.0
        if by is None:
            rows += [[day, _hours(total)]] if total else []
            continue
        used = reading.numbers(reading.record(entry, _BY[by]))
        waited = reading.numbers(reading.record(entry, "waited"))
        names = sorted({*used, *waited}, key=lambda name: (-used.get(name, 0.0), name))
        rows += [[day, name or "–", _hours(used.get(name, 0.0)), _hours(waited.get(name, 0.0))] for name in names]
    return rows


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.2f}"


def _dates(start: Optional[str], end: Optional[str]) -> Tuple[str, str]:
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return start or (today - datetime.timedelta(days=29)).isoformat(), end or today.isoformat()


def _only(parts: Iterable[str], users: Sequence[str], pools: Sequence[str]) -> Iterable[str]:
    """The lines of a table of attempts that are of these users and pools; all of them where none are named."""
    if not users and not pools:
        return parts
    text = io.StringIO("".join(parts), newline="")
    rows = csv.DictReader(text)
    kept = io.StringIO(newline="")
    writer = csv.DictWriter(kept, rows.fieldnames or (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        row for row in rows if (not users or row["username"] in users) and (not pools or row["resource_pool"] in pools)
    )
    return (kept.getvalue(),)


def _pieces(parts: Iterable[str]) -> None:
    for part in parts:
        click.echo(part, nl=False)
