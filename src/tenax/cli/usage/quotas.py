"""``tenax quota``: who may have how much, and whose turn it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.errors import InvalidInput

if TYPE_CHECKING:
    from tenax.client.quotas import QuotaRow

_COLUMNS: output.Columns[QuotaRow] = (
    (TableColumn("OF"), lambda line: line.name),
    (TableColumn("TURN", right=True), lambda line: "" if line.turn is None else str(line.turn)),
    (TableColumn("WEIGHT", right=True), lambda line: "" if line.kind == "group" else f"{line.weight:g}"),
    (TableColumn("SHARE", right=True), lambda line: _percent(line.share)),
    (TableColumn("USED LATELY", right=True), lambda line: _percent(line.used_share)),
    (TableColumn("SLOTS", right=True), lambda line: _of(line, line.held_slots, line.max_slots)),
    (TableColumn("SLOT HOURS THIS MONTH", right=True), lambda line: _of(line, line.used_slot_hours, line.slot_hours)),
    (TableColumn("PRIORITY FROM", right=True), lambda line: "" if line.priority is None else str(line.priority)),
)


@click.group(cls=LazyGroup, help="Show and apply quotas: who may have how much, and whose turn it is.")
def group() -> None:
    pass


@group.command()
@click.option("--source", is_flag=True, help="Print the file as it was applied.")
@click.option(
    "--of",
    "kinds",
    multiple=True,
    type=click.Choice(["workspace", "user", "group", "association", "everyone"]),
    help="Only these; association: of a user in a workspace; everyone: of each who is not named. Several are allowed.",
)
@list_options
@pass_access
def show(access: Access, source: bool, kinds: Tuple[str, ...], as_json: bool, as_csv: bool) -> None:
    """Show what everybody may have, has now and has used, and whose turn it is at the same priority."""
    from tenax.client.quotas import get_quotas

    quotas = get_quotas(access.session())
    lines = [line for line in quotas.lines if not kinds or line.kind in kinds]
    if source:
        click.echo(quotas.source, nl=not quotas.source.endswith("\n"))
    elif as_json:
        output.document({**quotas.raw, "lines": [line.raw for line in lines]})
    elif quotas.applied or as_csv:
        output.records(_COLUMNS, lines, as_json, as_csv)
        if not as_csv:
            span = _span(quotas.half_life_hours or 0)
            if quotas.not_there:
                names = ", ".join(quotas.not_there)
                output.say(
                    f"No quota is of what was renamed or deleted since then: {names}. Mend the file and apply it."
                )
            output.say(f"What was used counts half after {span}. Applied by {quotas.applied_by or 'nobody'}.")
    else:
        output.say("There are no quotas: nobody is limited. To apply some: tenax quota apply FILE.")


@group.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say who would gain and who would lose, and change nothing.")
@pass_access
def apply(access: Access, file: Path, dry_run: bool) -> None:
    """Apply a quota FILE (YAML; - is standard input) in the place of what held before.

    What runs goes on; limits bind what would start.
    """
    from tenax.client.quotas import apply_quotas

    source = _text(file)
    changes = apply_quotas(access.session(), source, dry_run=dry_run)
    for change in changes:
        click.echo(change)
    if not changes:
        output.say("Nothing changes for anybody.")
    elif dry_run:
        output.say("Nothing was changed: leave out --dry-run to apply it.")


@group.command()
@pass_access
def remove(access: Access) -> None:
    """Remove all quotas: nobody is limited, and who has used little comes no sooner."""
    from tenax.client.quotas import remove_quotas

    remove_quotas(access.session())


def _text(file: Path) -> str:
    try:
        with click.open_file(str(file), encoding="utf-8") as source:
            return str(source.read())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None


def _percent(part: Optional[float]) -> str:
    return "" if part is None else f"{100 * part:.0f} %"


def _of(line: QuotaRow, used: float, limit: Optional[float]) -> str:
    if line.kind == "everyone":
        return "" if limit is None else f"{_number(limit)} each"
    shown = f"{used:.0f}" if used >= 100 else f"{used:.3g}"
    return shown if limit is None else f"{shown} of {_number(limit)}"


def _number(limit: float) -> str:
    return str(int(limit)) if limit == int(limit) else f"{limit:g}"


def _span(hours: float) -> str:
    count, unit = (hours / 24, "day") if hours % 24 == 0 else (hours, "hour")
    return f"{count:g} {unit}" if count == 1 else f"{count:g} {unit}s"
