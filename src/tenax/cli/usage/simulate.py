"""``tenax simulate``: what recorded work would have met under other rules, other quotas or other machines."""

from __future__ import annotations

import datetime
import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject, to_json
from tenax.local.supervise.python import refuse_old_python

if TYPE_CHECKING:
    from tenax.config.trace import TraceFile
    from tenax.scheduler.simulation.replay import ReplayOutcome, Scenario
    from tenax.scheduler.simulation.summary import ReplaySummary
    from tenax.scheduler.simulation.trace import Trace

#: Days of history that are replayed where nobody says which.
_DAYS = 30
#: Points of a curve.
_POINTS = 400
#: What a curve is drawn by, with its seconds: the first of which there are a few.
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
#: Names in a table of who waited, where nobody asks for one.
_MAX_NAMES = 20

_COLUMNS = (
    TableColumn("SCENARIO", wraps=True),
    TableColumn("WAITED", right=True),
    TableColumn("MEDIAN", right=True, spare=True),
    TableColumn("95 %", right=True),
    TableColumn("JOB TAKES", right=True),
    TableColumn("SLOTS USED", right=True),
    TableColumn("ASKED TO LEAVE", right=True, spare=True),
    TableColumn("FAIRNESS", right=True),
    TableColumn("NEVER RAN", right=True),
)


@click.command()
@click.option(
    "--with",
    "changes",
    multiple=True,
    metavar="CHANGES",
    help="A scenario: policy=NAME, preemption=on, reservation=on, fitting=worst, uneven_gangs=off, agents=+2x8 (also "
    "-1x8, or 16x8 in all), quotas=FILE or quotas=none; several with commas between them. May be given several times.",
)
@click.option("--after", metavar="TIME", help=f"Work of this time and later (2026-11-21; default: {_DAYS} days ago).")
@click.option("--before", metavar="TIME", help="Work before this time (default: now).")
@click.option("--pool", metavar="NAME", help="Only this resource pool (default: all).")
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Replay this file (JSON that --save wrote, or CSV; - is standard input), and ask no master.",
)
@click.option(
    "--agents", "machines", metavar="NxSLOTS", help="The machines of all scenarios: 16x8 (default: those of now)."
)
@click.option(
    "--restart-cost",
    type=click.FloatRange(0, 365 * 86400),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How much of its work is done anew by what was asked to leave.",
)
@click.option(
    "--by",
    type=click.Choice(["user", "workspace", "pool", "slots", "none"]),
    help="Also show how long each of these waited (default: user).",
)
@click.option("--curves", is_flag=True, help="Draw the slots that waited over time.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the trace to this file, and stop.")
@list_options
@pass_access
def simulate(
    access: Access,
    changes: Tuple[str, ...],
    after: Optional[str],
    before: Optional[str],
    pool: Optional[str],
    trace_file: Optional[Path],
    machines: Optional[str],
    restart_cost: float,
    by: Optional[str],
    curves: bool,
    save: Optional[Path],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Replay the work of a cluster under other rules, other quotas or other machines, and compare.

    The scheduler itself plans, in virtual time. Work takes as long as it did; machines, groups and rules are those of
    now. The first line is what happened, the second the same work under the rules of now. What still runs or waits is
    not in it: nobody knows how long it takes. Waits are those of attempts; fairness is 1 where waiting made the work of
    each user longer by the same part. Of what never ran nothing else is counted.

    \b
    Examples:
      tenax simulate --with reservation=on --with policy=fair_share
      tenax simulate --pool default --with agents=+2x8 --with quotas=quotas.yaml
      tenax simulate --trace jobs.csv --agents 16x8 --with preemption=on
    """
    refuse_old_python()
    if trace_file is not None and (after or before):
        raise click.UsageError("--after and --before choose from the master's history: leave them out with --trace.")
    if not math.isfinite(restart_cost):
        raise click.UsageError("--restart-cost is a number of seconds.")
    if save is not None and changes:
        raise click.UsageError("--save writes what would be replayed, and stops: leave out --with.")
    if save is not None and (save.exists() or str(save) == "-"):
        raise click.UsageError(f"--save writes a new file, and {save} is none: choose another name.")
    file = _read(trace_file) if trace_file is not None else _fetched(access, after, before, pool)
    if save is not None:
        save.write_text(json.dumps(_document_of(file)), encoding="utf-8")
        output.say(f"{len(file.attempts)} attempts are in {save}; to replay them: tenax simulate --trace {save}")
        return
    trace = _trace(file, pool)
    outcomes = _replayed(file, trace, _scenarios(file, trace, changes, machines, restart_cost))
    _show(outcomes, by, curves, as_json, as_csv)


def _read(file: Path) -> TraceFile:
    from tenax.config.trace import parse_trace

    try:
        with click.open_file(str(file), encoding="utf-8") as source:
            return parse_trace(str(source.read()))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None


def _fetched(access: Access, after: Optional[str], before: Optional[str], pool: Optional[str]) -> TraceFile:
    from tenax.client.jobs import queue_trace
    from tenax.client.quotas import get_quotas
    from tenax.config.trace import trace_file

    now = datetime.datetime.now(datetime.timezone.utc)
    begins = after or (now.date() - datetime.timedelta(days=_DAYS)).isoformat()
    document = queue_trace(access.session(), begins, before or now.isoformat(), pool)
    quotas = get_quotas(access.session())
    document["quotas"] = quotas.source if quotas.applied else ""
    return trace_file(document)


def _document_of(file: TraceFile) -> JsonObject:
    return json.loads(json.dumps(asdict(file), default=str))  # type: ignore[no-any-return]


def _trace(file: TraceFile, pool: Optional[str]) -> Trace:
    """Raises InvalidInput where there is nothing to replay."""
    from tenax.config.trace import trace_of

    trace = trace_of(file)
    if pool is not None:
        trace = replace(
            trace,
            rules={name: rules for name, rules in trace.rules.items() if name == pool},
            attempts=tuple(attempt for attempt in trace.attempts if attempt.pool == pool),
        )
    if not trace.attempts:
        where = f" in the pool {pool!r}" if pool else ""
        other = f"choose another with --after, or a file with --trace{_pools_of(file)}"
        raise InvalidInput(f"there is nothing to replay{where}: what has not ended is in no trace; {other}")
    there = {attempt.pool for attempt in trace.attempts}
    return replace(
        trace,
        rules={name: rules for name, rules in trace.rules.items() if name in there},
        agents=tuple(agent for agent in trace.agents if agent.pool in there),
    )


def _pools_of(file: TraceFile) -> str:
    names = sorted({attempt.pool for attempt in file.attempts})
    return f" (pools here: {', '.join(names)})" if names else ""


def _scenarios(
    file: TraceFile, trace: Trace, changes: Sequence[str], machines: Optional[str], restart_s: float
) -> List[Scenario]:
    from tenax.cli.usage import scenarios

    quotas = scenarios.quotas_of(file.quotas, trace) if file.quotas else None
    first = scenarios.base(trace, "rules of now", quotas, restart_s)
    if machines is not None:
        first = replace(first, agents=scenarios.with_machines(first.agents, machines, trace))
    listed = [first, *(scenarios.scenario(text, first, trace) for text in dict.fromkeys(changes))]
    for each in listed:
        scenarios.check_has_machines(each, trace)
        if each.quotas is not None and each.quotas is not quotas:
            names = scenarios.unknown(each.quotas, trace)
            if names:
                output.warn(f"{each.name}: nothing here is of {', '.join(names)}")
    return listed


def _replayed(file: TraceFile, trace: Trace, scenarios: Sequence[Scenario]) -> List[ReplayOutcome]:
    """What happened, where that is known, and each scenario."""
    from tenax.scheduler.simulation.replay import recorded, replay

    outcomes = [recorded(trace)] if all(each.started_at is not None for each in file.attempts) else []
    for number, scenario in enumerate(scenarios, start=1):
        label = f"Replaying {number} of {len(scenarios)}"
        with click.progressbar(
            # The stream of messages shows what moves a terminal's cursor as text.
            length=len(trace.attempts),
            label=label,
            file=sys.__stderr__,
            hidden=not sys.stderr.isatty(),
        ) as bar:
            outcomes.append(replay(trace, scenario, lambda ended, bar=bar: bar.update(ended - bar.pos)))  # type: ignore[misc]
    return outcomes


def _show(outcomes: Sequence[ReplayOutcome], by: Optional[str], curves: bool, as_json: bool, as_csv: bool) -> None:
    from tenax.scheduler.simulation.summary import summary, waits_by

    summaries = [summary(outcome) for outcome in outcomes]
    group = by or "user"
    waits = {outcome.name: waits_by(outcome, group) for outcome in outcomes} if group != "none" else {}
    if as_json:
        output.document(
            [_raw(each, waits.get(each.name), group, outcome) for each, outcome in zip(summaries, outcomes)]
        )
        return
    names = sorted({name for its in waits.values() for name in its}, key=_in_order)
    rows = [[name or "–", *(_cell(waits[each.name].get(name)) for each in summaries)] for name in names]
    columns = [TableColumn(group.upper()), *(TableColumn(each.name, right=True, wraps=True) for each in summaries)]
    if as_csv:
        output.csv(columns, rows) if by not in (None, "none") else output.csv(_COLUMNS, list(map(_row, summaries)))
        return
    output.table(_COLUMNS, list(map(_row, summaries)))
    if by not in (None, "none") or 1 < len(names) <= _MAX_NAMES:
        click.echo()
        output.table(columns, rows)
    if curves:
        click.echo()
        _draw(outcomes)
    _remark(outcomes)


def _row(its: ReplaySummary) -> List[str]:
    return [
        its.name,
        output.duration(its.waited_mean_s),
        output.duration(its.waited_median_s),
        output.duration(its.waited_p95_s),
        output.duration(its.completion_mean_s),
        "" if its.used is None else f"{100 * its.used:.0f} %",
        "" if its.preemptions is None else str(its.preemptions),
        f"{its.fairness:.2f}",
        str(its.unserved) if its.unserved else "",
    ]


def _cell(seconds: Optional[float]) -> str:
    return "" if seconds is None else output.duration(seconds)


def _in_order(name: str) -> Tuple[int, str]:
    """Numbers by their size."""
    return (int(name) if name.isdecimal() else 0, name)


def _raw(its: ReplaySummary, waits: Optional[Dict[str, float]], group: str, outcome: ReplayOutcome) -> JsonObject:
    raw: JsonObject = {
        name: to_json(value) if isinstance(value, float) else value for name, value in asdict(its).items()
    }
    if waits is not None:
        by: Dict[str, Json] = dict(waits)
        raw[f"waited_mean_s_by_{group}"] = by
    raw["never_ran"] = [{"task": attempt.task_id, "reason": reason} for attempt, reason in outcome.unserved]
    return raw


def _draw(outcomes: Sequence[ReplayOutcome]) -> None:
    from tenax.cli.console.plots.curves import Curve, Panel
    from tenax.cli.experiment.curves import show
    from tenax.scheduler.simulation.summary import waiting_slots

    if not any(outcome.served for outcome in outcomes):
        return
    begins = min(each.requested_at for outcome in outcomes for each in outcome.served)
    ends = max(each.ended_at for outcome in outcomes for each in outcome.served)
    moments = [begins + (ends - begins) * number / _POINTS for number in range(_POINTS + 1)]
    unit, length_s = next((each for each in _UNITS if ends - begins >= 3 * each[1]), _UNITS[-1])
    steps = [(moment - begins) / length_s for moment in moments]
    lines = [Curve(each.name, steps, [float(slots) for slots in waiting_slots(each, moments)]) for each in outcomes]
    show([Panel("slots that wait", lines, by=unit, with_last=False)], sys.stdout)


def _remark(outcomes: Sequence[ReplayOutcome]) -> None:
    for outcome in outcomes:
        reasons = dict.fromkeys(reason for _, reason in outcome.unserved if reason)
        if outcome.unserved:
            first = next(iter(reasons), "it found no place")
            output.warn(f"{outcome.name}: {len(outcome.unserved)} never ran, the first as this: {first}")
