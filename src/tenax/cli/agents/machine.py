"""``tenax machine``: machines that are rented while work waits for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Tuple
from uuid import UUID

import click

from tenax.cli.console import exits, output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.display.plural import counted
from tenax.local.requirements import refuse_without_servers
from tenax.local.supervise.python import refuse_old_python

if TYPE_CHECKING:
    from tenax.client.pools import (
        DeletedPart,
        MachineAtProvider,
        MachineCost,
        MachineFinding,
        MachineInfo,
        MachinePartInfo,
        MachinePlan,
        MachineStepInfo,
        Priced,
        SubmissionPlan,
    )

_COLUMNS: output.Columns[MachineInfo] = (
    (TableColumn("MACHINE"), lambda machine: machine.id),
    (TableColumn("STATE", state=True), lambda machine: machine.state),
    (TableColumn("POOL", cuts=True), lambda machine: machine.pool),
    (TableColumn("TYPE", spare=True), lambda machine: machine.instance_type),
    (TableColumn("SLOTS", right=True), lambda machine: str(machine.slots)),
    (TableColumn("PLACE", spare=True), lambda machine: machine.zone or machine.region),
    (TableColumn("PROVIDER ID", spare=True), lambda machine: machine.provider_id),
    (TableColumn("PLANNED", spare=True), lambda machine: output.moment(machine.planned)),
    (TableColumn("HOURS", right=True, spare=True), lambda machine: _number(machine.hours, 1)),
    (TableColumn("COST", right=True, spare=True), lambda machine: _number(machine.cost, 2)),
    (TableColumn("ENDS", spare=True), lambda machine: output.moment(machine.notice_until)),
    (TableColumn("WHY", wraps=True), lambda machine: machine.story),
)
_STEPS: output.Columns[MachineStepInfo] = (
    (TableColumn("TIME"), lambda step: output.moment(step.said_at)),
    (TableColumn("STEP"), lambda step: step.step),
    (TableColumn("STATE", state=True), lambda step: step.state),
    (TableColumn("WHY", wraps=True), lambda step: step.note),
)
_AUDITED: output.Columns[MachineAtProvider] = (
    (TableColumn("PROVIDER ID"), lambda it: it.provider_id),
    (TableColumn("THERE", state=True), lambda it: it.sighting),
    (TableColumn("PLACE", spare=True), lambda it: it.zone or it.region),
    (TableColumn("TYPE", spare=True), lambda it: it.instance_type),
    (TableColumn("MACHINE", cuts=True), lambda it: it.machine_id),
    (TableColumn("ROW", state=True), lambda it: "none" if it.stray else it.state),
    (TableColumn("WHY", wraps=True), lambda it: it.why),
)
_PARTS: output.Columns[MachinePartInfo] = (
    (TableColumn("PROVIDER ID"), lambda it: it.provider_id),
    (TableColumn("PART"), lambda it: it.kind),
    (TableColumn("PLACE", spare=True), lambda it: it.zone or it.region),
    (TableColumn("WHAT", spare=True), lambda it: it.detail),
    (TableColumn("MACHINE", cuts=True), lambda it: it.machine_id),
    (TableColumn("ROW", state=True), lambda it: it.state or "none"),
    (TableColumn("WHY", wraps=True), lambda it: it.why),
)
#: Machines that stand in one line.
_NAMED_AT_ONCE = 3
_FINDINGS: output.Columns[MachineFinding] = (
    (TableColumn("POOL", cuts=True), lambda it: it.pool),
    (TableColumn("SETTING"), lambda it: it.path or "all"),
    (TableColumn("PROBLEM", wraps=True), lambda it: it.problem),
    (TableColumn("INSTEAD", wraps=True), lambda it: it.instead),
)
_NO_PROVIDER = "No machines are rented for any pool: set provider of a pool in the master's configuration."


@click.group(cls=LazyGroup, help="Show and steer rented machines.")
def group() -> None:
    pass


@group.command("list")
@click.option("-p", "--pool", help="Only those of this resource pool.")
@click.option("--all", "ended", is_flag=True, help="Those that are gone, too.")
@list_options
@pass_access
def list_(access: Access, pool: Optional[str], ended: bool, as_json: bool, as_csv: bool) -> None:
    """List the machines that are rented, and those on their way."""
    from tenax.client.pools import list_machines

    machines = list_machines(access.session(), pool, ended=ended)
    output.records(_COLUMNS, machines, as_json, as_csv)
    if not machines:
        output.say("No machines are rented now. What would be, and why: tenax machine plan.")


@group.command()
@click.argument("machine")
@json_option
@pass_access
def describe(access: Access, machine: str, as_json: bool) -> None:
    """Show a machine: what it was rented for, where it is, and why it is as it is."""
    from tenax.client.pools import get_machine

    it = get_machine(access.session(), machine)
    rows = [
        ("Machine", it.id),
        ("State", it.state),
        ("Why", it.story),
        ("Notice", it.notice),
        ("Ends", output.moment(it.notice_until)),
        ("Pool", it.pool),
        ("Type", f"{it.instance_type} ({counted(it.slots, 'slot')})"),
        ("Place", " ".join(part for part in (it.provider, it.region, it.zone) if part)),
        ("Provider's id", it.provider_id),
        ("Rented for", ", ".join(it.wanted_by)),
        ("Offer", it.offer),
        ("Price per hour", _price(it, 4)),
        ("Paid for", f"{_number(it.hours, 1)} hours" if it.hours is not None else ""),
        ("Cost so far", _number(it.cost, 2)),
        ("Planned", output.moment(it.planned)),
        ("Joined", output.moment(it.joined)),
        ("Ended", output.moment(it.ended)),
    ]
    output.details(rows, it.raw, as_json)


@group.command()
@click.option("--end", "ends", is_flag=True, help="End those that run and have no row, after asking.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--delete-parts", "deletes", is_flag=True, help="Delete disks and spot requests that were left.")
@list_options
@pass_access
def audit(access: Access, ends: bool, yes: bool, deletes: bool, as_json: bool, as_csv: bool) -> None:
    """Ask the providers what carries this cluster's mark, and show it beside the rows of machines.

    What has no row comes first, and what was left of machines. What cannot be asked for is named, and the command fails
    then.
    """
    from tenax.client.pools import audit_machines

    audited = audit_machines(access.session())
    strays, left = [it for it in audited.machines if it.stray], [it for it in audited.parts if it.stray]
    if not as_json:
        output.records(_AUDITED, audited.machines, False, as_csv)
        apart = [it for it in audited.parts if it.stray or it.kind == "OPERATION"]
        # CSV is one table: parts are in JSON.
        if apart and not as_csv:
            output.say("Beside machines:")
            output.records(_PARTS, apart, False, False)
    elif not ends and not deletes:
        output.document(audited.raw)
    ended = _end(access, strays, yes, as_json) if ends else []
    deleted = _delete(access, left, yes, as_json) if deletes else []
    if as_json and (ends or deletes):
        output.document({"machines": [it.raw for it in ended], "parts": [it.raw for it in deleted]})
    if not audited.machines and not audited.parts and not audited.unanswered:
        output.say("No machine carries the mark of this cluster where its pools rent, or have rented.")
    elif not strays and not left:
        output.say("Nothing without a row was found.")
    for reason in audited.unanswered:
        output.warn(f"Nobody knows all that there is: {reason}")
    if audited.unanswered or any(it.failure for it in deleted):
        raise click.exceptions.Exit(exits.FAILED)


def _end(access: Access, strays: List[MachineAtProvider], yes: bool, as_json: bool) -> List[MachineInfo]:
    from tenax.client.pools import end_strays

    if not strays:
        return []
    if not yes:
        output.warn("They are another master's where one works with a copy of this database.")
        output.confirm(f"End {counted(len(strays), 'machine')} without a row, with all that runs there?")
    rows = end_strays(access.session(), strays)
    for it, row in zip(strays, rows) if not as_json else ():
        output.say(f"{it.provider_id} is ended, as machine {row.id}.")
    return rows


def _delete(access: Access, left: List[MachinePartInfo], yes: bool, as_json: bool) -> List[DeletedPart]:
    from tenax.client.pools import delete_machine_parts

    if not left:
        return []
    if not yes:
        output.warn("They are another master's where one works with a copy of this database.")
        output.confirm(f"Delete {counted(len(left), 'part')} of machines that are gone, for good?")
    deleted = delete_machine_parts(access.session(), left)
    for it in deleted if not as_json else ():
        if it.failure:
            output.warn(f"{it.provider_id} is there still: {it.failure}")
        else:
            output.say(f"{it.provider_id} is deleted.")
    return deleted


@group.command()
@click.option("-p", "--pool", help="Only of this resource pool.")
@list_options
@pass_access
def check(access: Access, pool: Optional[str], as_json: bool, as_csv: bool) -> None:
    """Hold what is written under provider against the provider, before anything is rented; nothing is made.

    Types, zones, images, networks, keys, and the rights that are missing, all at once. Fails where there is something.
    """
    from tenax.client.pools import check_machines

    checked = check_machines(access.session(), pool)
    output.records(_FINDINGS, checked.findings, as_json, as_csv)
    if not checked.pools:
        output.say(_NO_PROVIDER)
    elif not checked.findings:
        output.say(f"Nothing is wrong with the provider of {', '.join(checked.pools)}, as far as can be asked.")
    else:
        raise click.exceptions.Exit(exits.FAILED)


@group.command()
@click.option("-p", "--pool", required=True, help="For this resource pool.")
@click.option("--count", type=int, default=1, show_default=True, help="How many.")
@click.option(
    "--offer", default="", help="Of this offer, as tenax machine plan names it; else of the first usable one."
)
@json_option
@pass_access
def launch(access: Access, pool: str, count: int, offer: str, as_json: bool) -> None:
    """Rent machines now, all of them or none, within the limits of their pool.

    Each then lives as any other: it takes work, and is ended once it is idle for long.
    """
    from tenax.client.pools import launch_machines

    launched = launch_machines(access.session(), pool, count, offer)
    if as_json:
        output.document([it.raw for it in launched])
        return
    for it in launched:
        print(f"Machine {it.id} is rented: {it.offer}")
    output.say("How far it is: tenax machine list.")


@group.command()
@click.argument("machines", metavar="MACHINE...", nargs=-1, required=True)
@click.option("--now", is_flag=True, help="End what runs there at once; without this it is asked to save and leave.")
@json_option
@pass_access
def end(access: Access, machines: Tuple[str, ...], now: bool, as_json: bool) -> None:
    """Let machines go: they take nothing new, and are ended at their provider once their work has left.

    All of them, or none where one cannot be ended. Work goes on elsewhere without using up a restart.
    """
    from tenax.client.pools import end_machines

    ended = end_machines(access.session(), machines, now=now)
    if as_json:
        output.document([it.raw for it in ended])
        return
    for it in ended:
        print(f"Machine {it.id} is let go")
    output.say("How far it is: tenax machine list. In its pool others may be rented while work waits.")


@group.command()
@click.argument("machine")
@list_options
@pass_access
def logs(access: Access, machine: str, as_json: bool, as_csv: bool) -> None:
    """Show what a machine has said of its start, step by step, and why one failed."""
    from tenax.client.pools import machine_steps

    steps = machine_steps(access.session(), machine)
    output.records(_STEPS, steps, as_json, as_csv)
    if not steps:
        output.say("The machine has said nothing: it is not up yet, or it does not reach the master.")


@group.command()
@click.option(
    "--by",
    type=click.Choice(["day", "experiment", "pool", "project", "user", "workspace"]),
    default="user",
    show_default=True,
    help="One row for each of these.",
)
@click.option("--since", metavar="TIME", help="From then on (2026-11-21, 2026-11-21T08:00:00Z); else this month.")
@click.option("--until", metavar="TIME", help="Until then; a day is included as a whole.")
@click.option("-p", "--pool", help="Only of this resource pool.")
@list_options
@pass_access
def cost(
    access: Access,
    by: str,
    since: Optional[str],
    until: Optional[str],
    pool: Optional[str],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show what machines cost by their prices, divided among what ran on them. Times are in UTC.

    A machine's cost belongs to what runs there, by its slots; what is left is idle: starting, ending, and free slots.
    By pool and by day whole machines are shown. What has no price is unknown, and told in hours of its own.
    """
    from tenax.client.pools import machine_costs

    costs = machine_costs(access.session(), by, since, until, pool)
    if as_json:
        output.document(costs.raw)
        return
    columns = (
        TableColumn(by.upper(), cuts=True),
        TableColumn("HOURS", right=True),
        TableColumn("COST", right=True),
        TableColumn("HOURS WITHOUT PRICE", right=True, spare=True),
    )
    rows = [_cost_cells("idle" if it.idle else it.name or "\N{EN DASH}", it) for it in costs.costs]
    if rows and not as_csv:
        rows.append(_cost_cells("total", costs.total))
    output.listing(columns, rows, (), False, as_csv)
    if not rows:
        of_pool = f" of pool {pool}" if pool else ""
        period = f"from {output.moment(costs.since)} to {output.moment(costs.until)}"
        output.say(f"No machines{of_pool} were paid for {period}.")


@group.command()
@click.option("-p", "--pool", help="Only for this resource pool.")
@click.option(
    "--submit",
    metavar="CONFIG",
    type=click.Path(path_type=Path),
    help="What would be rented for the experiment of this YAML file, which is not submitted.",
)
@click.option("--command", is_flag=True, help="With --submit: CONFIG is a command's.")
@click.option("--project", metavar="PROJECT", help="With --submit: in this project (its id, key or WORKSPACE/NAME).")
@click.option("--template", metavar="NAME", help="With --submit: merge CONFIG over this template.")
@json_option
@pass_access
def plan(
    access: Access,
    pool: Optional[str],
    submit: Optional[Path],
    command: bool,
    project: Optional[str],
    template: Optional[str],
    as_json: bool,
) -> None:
    """Show how many machines would be rented and ended now, and why; nothing is done."""
    from tenax.client.pools import machine_plans

    if submit is not None:
        if pool:
            raise click.UsageError("CONFIG says in which pool it runs (resources.resource_pool): leave out --pool.")
        _plan_submission(access, submit, command, project, template, as_json)
        return
    if command or project or template:
        raise click.UsageError("--command, --project and --template say more of a CONFIG: name it with --submit.")
    plans = machine_plans(access.session(), pool)
    if as_json:
        output.document([each.raw for each in plans])
        return
    for each in plans:
        for line in _lines(each):
            click.echo(line)
    if not plans:
        output.say(_NO_PROVIDER)


@group.command()
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The master's configuration file.",
)
@click.option("--cluster-id", type=click.UUID, help="For machines of this cluster alone (tenax master info has it).")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ARN",
    help="The role in the machines' instance profile, if it is not called as that is. May be given several times.",
)
def policy(config: Path, cluster_id: Optional[UUID], roles: Tuple[str, ...]) -> None:
    """Print the IAM policy with the rights that the master needs at AWS for a configuration file. No master is asked.

    It is JSON, to be attached to the role of the master's machine, and allows no action that the settings do not need.
    """
    refuse_old_python()
    refuse_without_servers()
    from tenax.config.master import load_master_settings
    from tenax.config.provider.rights import master_rights

    rights = master_rights(load_master_settings(config).pools, str(cluster_id or ""), roles)
    output.document(rights.policy)
    for role in rights.assumed_roles:
        output.say(f"{role} is taken for the role in the instance profile of that name; else name it with --role.")
    for name in rights.elsewhere:
        output.say(f"The pool {name} does not rent at AWS: this policy says nothing of it.")
    if cluster_id is None:
        output.say("It holds for machines that any Tenax cluster has marked; for those of one alone give --cluster-id.")


def _plan_submission(
    access: Access, submit: Path, command: bool, project: Optional[str], template: Optional[str], as_json: bool
) -> None:
    from tenax.cli.console.overrides import configuration
    from tenax.cli.experiment.selection import project_id
    from tenax.client.pools import plan_submission

    if command and project:
        raise click.UsageError("A command is in no project: leave out --project.")
    session, text = access.session(), configuration(submit)
    planned = plan_submission(
        session, text, command=command, project_id=project_id(session, project), template=template
    )
    for notice in planned.notices:
        output.warn(notice)
    if as_json:
        output.document(planned.raw)
        return
    for line in _submission_lines(planned):
        click.echo(line)
    output.say("Nothing was submitted, and nothing is rented.")


def _submission_lines(plan: SubmissionPlan) -> List[str]:
    lines = [f"Pool {plan.pool}, if it was submitted now"]
    for each in plan.requests:
        what = "starts at once, on what is there" if each.starts else each.reason or "waits"
        lines.append(f"  {each.name} ({counted(each.slots, 'slot')}) {what}")
    more = [it for it in plan.offers if it.more]
    for it in more:
        price = _price(it) or "no price"
        lines.append(f"  {counted(it.more, 'machine')} more of {it.offer} ({counted(it.slots, 'slot')}): {price}")
    if more:
        total = "unknown" if plan.cost_per_hour is None else f"{plan.cost_per_hour:g}"
        lines.append(f"  all of them per hour: {total}")
    else:
        lines.append("  no machine more would be rented for it")
    lines += [f"  {it.reason}" for it in plan.offers if it.reason and not it.launch]
    return lines


def _number(value: Optional[float], digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _price(it: Priced, digits: Optional[int] = None) -> str:
    """With from where it is; empty: nobody knows."""
    if it.price is None:
        return ""
    amount = f"{it.price:g} per hour" if digits is None else _number(it.price, digits)
    return f"{amount}, {it.price_origin}" if it.price_origin else amount


def _cost_cells(name: str, it: MachineCost) -> List[str]:
    unpriced = _number(it.unpriced_hours, 1) if it.unpriced_hours else ""
    return [name, _number(it.hours, 1), "unknown" if it.cost is None else _number(it.cost, 2), unpriced]


def _lines(plan: MachinePlan) -> List[str]:
    what = f"{plan.offer}, {counted(plan.slots_per_machine, 'slot')} each"
    if len(plan.offers) > 1:
        what = f"of {counted(len(plan.offers), 'offer')}"
    lines = [
        f"Pool {plan.pool}: {plan.machines} of at most {plan.max_instances} machines ({what})",
        f"  to rent now: {plan.launch}",
    ]
    if plan.advises:
        lines.append("  scaling is advise: none of it is done by itself; tenax machine launch and end do it")
    for it in plan.budgets:
        whose = f"pool {it.pool}" if it.pool else "all pools"
        lines.append(
            f"  budget of {whose}: {it.spent:.2f} of {it.per_month:g} this month" + f"; {it.warning}" * bool(it.warning)
        )
    lines += [f"  offer {it.offer} ({counted(it.slots, 'slot')}): {_price(it) or 'no price'}" for it in plan.offers]
    if len(plan.offers) > 1:
        lines += [
            f"  {it.launch} x {it.offer} ({counted(it.slots, 'slot')}): {it.reason}" for it in plan.offers if it.launch
        ]
    lines += [f"  {each.reason}" for each in plan.offers if each.reason and not each.launch]
    lines += [f"  to end: {step.machine_id}, {step.reason}" for step in plan.end]
    lines += [f"  takes nothing new: {step.machine_id}, {step.reason}" for step in plan.drain]
    for trouble in plan.troubles:
        more = len(trouble.machine_ids) - _NAMED_AT_ONCE
        named = f"{', '.join(trouble.machine_ids[:_NAMED_AT_ONCE])}{f' and {more} more' if more > 0 else ''}"
        lines.append(f"  {named}: {trouble.reason}")
    lines += [f"  {each.allocation_id} ({counted(each.slots, 'slot')}) {each.reason}" for each in plan.waiting]
    return lines
