"""``tenax webhook``: tell other services what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional, Tuple

import click

from tenax.cli.console import exits, output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, name_filter, named, pass_access
from tenax.client.connection.reading import number_or_name

if TYPE_CHECKING:
    from tenax.client.webhooks import Delivery, Webhook

_DELIVERY_STATES = ("WAITING", "DELIVERED", "FAILED")
#: As the master has them: a test says so.
MACHINE_EVENTS = (
    *("LAUNCHED", "FAILED", "ENDED", "NOTICE", "ORPHAN", "OFFER_OFF"),
    *("BUDGET_NEARLY", "BUDGET_USED_UP"),
)
_STATES = ("ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR")

_COLUMNS: output.Columns[Webhook] = (
    (TableColumn("ID", right=True), lambda webhook: str(webhook.id)),
    (TableColumn("NAME", cuts=True), lambda webhook: webhook.name),
    (TableColumn("TYPE"), lambda webhook: webhook.kind),
    (TableColumn("HEARS OF", cuts=True), lambda webhook: _scope(webhook)),
    (TableColumn("TRIGGERS", wraps=True), lambda webhook: "; ".join(trigger.words for trigger in webhook.triggers)),
    (TableColumn("URL", wraps=True), lambda webhook: webhook.url),
)
_DELIVERIES: output.Columns[Delivery] = (
    (TableColumn("ID", right=True), lambda delivery: str(delivery.id)),
    (TableColumn("EVENT"), lambda delivery: delivery.event_type),
    (TableColumn("STATE", state=True), lambda delivery: delivery.state),
    (TableColumn("ATTEMPTS", right=True), lambda delivery: str(delivery.attempts)),
    (TableColumn("AT"), lambda delivery: output.moment(delivery.created)),
    (TableColumn("OUTCOME", wraps=True), lambda delivery: delivery.outcome),
)


@click.group(cls=LazyGroup, help="Notify other services of events.")
def group() -> None:
    pass


@group.command("list")
@name_filter
@list_options
@pass_access
def list_(access: Access, part: str, as_json: bool, as_csv: bool) -> None:
    """List the webhooks."""
    from tenax.client.webhooks import list_webhooks

    webhooks = named(part, list_webhooks(access.session()), lambda webhook: webhook.name)
    output.records(_COLUMNS, webhooks, as_json, as_csv)


@group.command()
@click.argument("name")
@json_option
@pass_access
def describe(access: Access, name: str, as_json: bool) -> None:
    """Show a webhook, by its NAME or number."""
    webhook = _webhook(access, name)
    if as_json:
        output.document(webhook.raw)
        return
    rows = [
        ("id", str(webhook.id)),
        ("name", webhook.name),
        ("type", webhook.kind),
        ("mode", webhook.mode),
        ("workspace", str(webhook.workspace_id) if webhook.workspace_id else "all"),
        ("url", webhook.url),
        ("triggers", "\n".join(trigger.words for trigger in webhook.triggers)),
    ]
    output.pairs(rows)


@group.command()
@click.argument("name")
@click.argument("url")
@click.option("--on-state", "states", multiple=True, type=click.Choice(_STATES, case_sensitive=False),
              help="Notify when an experiment enters this state; may be given several times.")  # fmt: skip
@click.option("--on-log", "patterns", multiple=True, metavar="REGEX",
              help="Notify when a line of a task's output matches, once per task.")  # fmt: skip
@click.option("--on-machine", "machine_events", multiple=True, type=click.Choice(MACHINE_EVENTS, case_sensitive=False),
              help="Notify of this event of rented machines; may be given several times.")  # fmt: skip
@click.option(
    "--on-alert", is_flag=True, help="Notify when a script calls core_context.alert(); for experiments that name it."
)
@click.option("--slack", is_flag=True, help="URL is a Slack webhook: send messages in Slack's format.")
@click.option("--workspace", "workspace_id", type=int, metavar="ID", help="Only experiments of this workspace.")
@click.option("--specific", is_flag=True, help="Only experiments that name it under integrations.webhooks.")
@pass_access
def create(
    access: Access,
    name: str,
    url: str,
    states: List[str],
    patterns: List[str],
    machine_events: List[str],
    on_alert: bool,
    slack: bool,
    workspace_id: Optional[int],
    specific: bool,
) -> None:
    """Create the webhook NAME, which sends to URL."""
    from tenax.client.webhooks import Trigger, create_webhook

    triggers = [Trigger("EXPERIMENT_STATE_CHANGE", {"state": state.upper()}) for state in states]
    triggers += [Trigger("TASK_LOG", {"regex": pattern}) for pattern in patterns]
    triggers += [Trigger("MACHINE", {"event": event.upper()}) for event in machine_events]
    triggers += [Trigger("CUSTOM")] if on_alert else []
    if not triggers:
        raise click.UsageError("Say what to notify of: --on-state, --on-log, --on-machine or --on-alert.")
    if machine_events and (specific or on_alert or workspace_id):
        raise click.UsageError(
            "--on-machine is for webhooks of all workspaces: leave out --workspace, --specific and --on-alert."
        )
    webhook = create_webhook(
        access.session(),
        name,
        url,
        triggers,
        kind="SLACK" if slack else "DEFAULT",
        mode="SPECIFIC" if specific or on_alert else "WORKSPACE",
        workspace_id=workspace_id,
    )
    print(f"Created webhook {webhook.name} ({webhook.id})")


@group.command("set-url")
@click.argument("name")
@click.argument("url")
@pass_access
def set_url(access: Access, name: str, url: str) -> None:
    """Send deliveries of the webhook NAME to another URL, including those already waiting."""
    webhook = _webhook(access, name).set_url(url)
    print(f"{webhook.name} now sends to {webhook.url}")


@group.command()
@click.argument("name")
@click.pass_context
def test(context: click.Context, name: str) -> None:
    """Send a test message to the webhook NAME, and show how the receiver answered."""
    access = context.ensure_object(Access)
    taken, outcome = _webhook(access, name).test()
    if not taken:
        output.fail(f"The receiver did not accept it: {outcome}.")
        context.exit(exits.FAILED)
    print(f"The receiver accepted it: {outcome}")


@group.command()
@click.argument("name")
@click.option(
    "-n", "--limit", "most", type=click.IntRange(1), default=50, show_default=True, help="List at most this many."
)
@click.option("--state", "states", multiple=True, type=click.Choice(_DELIVERY_STATES, case_sensitive=False),
              help="Only those in this state; may be given several times.")  # fmt: skip
@list_options
@pass_access
def deliveries(access: Access, name: str, most: int, states: Tuple[str, ...], as_json: bool, as_csv: bool) -> None:
    """Show the deliveries of the webhook NAME, the newest first: sent, waiting and given up."""
    sent = _webhook(access, name).deliveries(most)
    chosen = [delivery for delivery in sent if not states or delivery.state in states]
    output.records(_DELIVERIES, chosen, as_json, as_csv)


@group.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete(access: Access, name: str, yes: bool) -> None:
    """Delete the webhook NAME and its waiting deliveries."""
    webhook = _webhook(access, name)
    if not yes:
        output.confirm(f"Delete the webhook {webhook.name}?")
    webhook.delete()
    print(f"Deleted the webhook {webhook.name}")


@group.command("signing-key")
@pass_access
def signing_key(access: Access) -> None:
    """Print the key with which receivers verify signatures; for administrators."""
    from tenax.client.webhooks import signing_key

    print(signing_key(access.session()))


group.alias("list", "ls")


def _scope(webhook: Webhook) -> str:
    where = f"workspace {webhook.workspace_id}" if webhook.workspace_id else "all workspaces"
    return where if webhook.mode == "WORKSPACE" else f"those that name it, {where}"


def _webhook(access: Access, name: str) -> Webhook:
    from tenax.client.webhooks import get_webhook

    return get_webhook(access.session(), number_or_name(name))
