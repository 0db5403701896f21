"""``tenax pool`` (also ``resource-pool``, ``rp``): the resource pools, and the workspaces that they are kept for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, list_options, name_filter, named, pass_access

if TYPE_CHECKING:
    from tenax.client.connection.session import Session
    from tenax.client.pools import Pool

_COLUMNS: output.Columns[Pool] = (
    (TableColumn("POOL"), lambda pool: pool.name),
    (TableColumn("AGENTS", right=True), lambda pool: str(pool.agents)),
    (TableColumn("SLOTS", right=True), lambda pool: str(pool.slots)),
    (TableColumn("USED", right=True), lambda pool: str(pool.slots_used)),
    (TableColumn("TYPE", spare=True), lambda pool: pool.accelerator or pool.slot_kind),
    (TableColumn("WAITING", right=True), lambda pool: str(pool.queued_jobs)),
    (TableColumn("RUNNING", right=True), lambda pool: str(pool.scheduled_jobs)),
    (TableColumn("SCHEDULER", spare=True), lambda pool: pool.scheduler),
    (TableColumn("PREEMPTION", spare=True), lambda pool: "yes" if pool.preemption else "no"),
    (TableColumn("DEFAULT FOR", spare=True), lambda pool: ", ".join(_roles(pool))),
    (TableColumn("BOUND", spare=True), lambda pool: "yes" if pool.bound else ""),
    (TableColumn("DESCRIPTION", wraps=True), lambda pool: pool.description),
)


@click.group(cls=LazyGroup, help="List resource pools, and bind them to workspaces.")
def group() -> None:
    pass


@group.command("list")
@name_filter
@click.option("--waiting", is_flag=True, help="Only those with waiting jobs.")
@list_options
@pass_access
def list_(access: Access, part: str, waiting: bool, as_json: bool, as_csv: bool) -> None:
    """List the resource pools: their slots, how many are used, and what waits."""
    from tenax.client.pools import list_pools

    listed = named(part, list_pools(access.session()), lambda pool: pool.name)
    pools = [pool for pool in listed if pool.queued_jobs or not waiting]
    output.records(_COLUMNS, pools, as_json, as_csv)


@click.group("bindings", cls=LazyGroup, help="Bind a pool to workspaces; a pool that is bound to none is open to all.")
def bindings() -> None:
    pass


@bindings.command("list-workspaces")
@click.argument("pool")
@name_filter
@list_options
@pass_access
def list_workspaces(access: Access, pool: str, part: str, as_json: bool, as_csv: bool) -> None:
    """List the workspaces that POOL is bound to."""
    from tenax.client.pools import bound_workspaces

    session = access.session()
    numbers = bound_workspaces(session, pool)
    names = _workspace_names(session) if numbers else {}
    rows = named(part, ([str(number), names.get(number, "")] for number in numbers), lambda row: row[1])
    columns = [output.TableColumn("ID", right=True), output.TableColumn("WORKSPACE")]
    output.listing(columns, rows, [{"id": int(row[0]), "name": row[1]} for row in rows], as_json, as_csv)
    if not numbers:
        output.say(f"The pool {pool} is open to all workspaces.")


@bindings.command()
@click.argument("pool")
@click.argument("workspaces", nargs=-1, required=True)
@pass_access
def add(access: Access, pool: str, workspaces: Tuple[str, ...]) -> None:
    """Bind POOL to these workspaces, in addition to those it is bound to already."""
    from tenax.client.pools import bind_pool

    bind_pool(access.session(), pool, workspaces)
    print(f"The pool {pool} is bound to {', '.join(workspaces)}")


@bindings.command()
@click.argument("pool")
@click.argument("workspaces", nargs=-1, required=True)
@pass_access
def remove(access: Access, pool: str, workspaces: Tuple[str, ...]) -> None:
    """Unbind POOL from these workspaces."""
    from tenax.client.pools import unbind_pool

    unbind_pool(access.session(), pool, workspaces)
    print(f"The pool {pool} is no longer bound to {', '.join(workspaces)}")


@bindings.command()
@click.argument("pool")
@click.argument("workspaces", nargs=-1)
@pass_access
def replace(access: Access, pool: str, workspaces: Tuple[str, ...]) -> None:
    """Bind POOL to exactly these workspaces; without any, it is open to all again."""
    from tenax.client.pools import rebind_pool

    rebind_pool(access.session(), pool, workspaces)
    print(
        f"The pool {pool} is bound to {', '.join(workspaces)}"
        if workspaces
        else f"The pool {pool} is open to all workspaces"
    )


group.add_command(bindings)
group.alias("list", "ls")
bindings.alias("list-workspaces", "list", "ls")


def _roles(pool: Pool) -> List[str]:
    return [role for role, holds in (("slots", pool.default_compute), ("no slots", pool.default_aux)) if holds]


def _workspace_names(session: Session) -> Dict[int, str]:
    from tenax.client.connection import reading

    answer = session.get("/api/v1/workspaces")
    return {
        reading.integer(workspace, "id"): reading.text(workspace, "name")
        for workspace in reading.records(answer, "workspaces")
    }
