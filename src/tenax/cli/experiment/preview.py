"""``tenax preview-search``: what a search would do, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.options import Access, json_option, pass_access


@click.command("preview-search")
@click.argument("config", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--config", "overrides", metavar="KEY=VALUE", multiple=True, help="Set a value of the configuration.")
@click.option("--seed", type=int, metavar="N", help="Seed of the search (default: that of the configuration).")
@json_option
@pass_access
def preview_search(
    access: Access, config: Path, overrides: Tuple[str, ...], seed: Optional[int], as_json: bool
) -> None:
    """Show how many trials the search in the YAML file CONFIG would make, and how long each would train."""
    from tenax.cli.console.overrides import configuration, parsed
    from tenax.client.reading import integer, record, records, text

    document = parsed(configuration(config, overrides), config)
    answer = access.session().post("/api/v1/preview-hp-search", {"config": document, "seed": seed or 0})
    if as_json:
        output.document(answer)
        return
    rows: List[List[str]] = []
    for line in records(record(answer, "summary"), "trials"):
        unit = record(line, "unit")
        whole = unit.get("maxLength") is True
        length = "the whole length" if whole else f"{integer(unit, 'value')} {text(unit, 'name')}".strip()
        rows.append([str(integer(line, "count")), length])
    output.table([output.TableColumn("TRIALS", right=True), output.TableColumn("TRAIN FOR")], rows)
