"""``tenax checkpoint``: what trials saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional, Sequence

import click

from tenax.cli import output
from tenax.cli.access import Access, json_option, pass_access
from tenax.cli.lazy import Group

if TYPE_CHECKING:
    from tenax.client.checkpoints import Checkpoint


@click.group(cls=Group, help="List and download checkpoints.")
def group() -> None:
    pass


@group.command("list")
@click.argument("experiment", type=int)
@click.option("--best", type=click.IntRange(1), metavar="N", help="Only the so many best.")
@json_option
@pass_access
def list_(access: Access, experiment: int, best: Optional[int], as_json: bool) -> None:
    """List the checkpoints of an EXPERIMENT, the best first."""
    from tenax.client.experiments import get_experiment

    found = get_experiment(access.session(), experiment)
    show_list(found.checkpoints(best), found.metric, as_json)


def show_list(checkpoints: Sequence[Checkpoint], metric: str, as_json: bool) -> None:
    """Print a list of checkpoints."""
    if as_json:
        output.document([checkpoint.raw for checkpoint in checkpoints])
        return
    columns = [
        output.Column("CHECKPOINT"),
        output.Column("STATE", state=True),
        output.Column("TRIAL", right=True),
        output.Column("STEPS", right=True),
        output.Column(metric, right=True),
        output.Column("SIZE", right=True),
        output.Column("SAVED"),
    ]
    rows = [
        [
            one.uuid,
            one.state,
            str(one.trial_id) if one.trial_id else "",
            str(one.steps),
            output.number(one.searcher_metric),
            output.size(one.size),
            output.moment(one.reported),
        ]
        for one in checkpoints
    ]
    output.table(columns, rows)
    if not rows:
        output.say("There is none yet.")


@group.command()
@click.argument("uuid")
@json_option
@pass_access
def describe(access: Access, uuid: str, as_json: bool) -> None:
    """Show a checkpoint and its files."""
    from tenax.client.checkpoints import get_checkpoint

    one = get_checkpoint(access.session(), uuid)
    if as_json:
        output.document(one.raw)
        return
    files = "\n".join(f"{path}  {output.size(size)}" for path, size in one.resources.items() if not path.endswith("/"))
    metadata = {name: value for name, value in one.metadata.items() if name != "steps_completed"}
    rows = [
        ("checkpoint", one.uuid),
        ("state", output.state(one.state)),
        ("experiment", str(one.experiment_id) if one.experiment_id else ""),
        ("trial", str(one.trial_id) if one.trial_id else ""),
        ("steps", str(one.steps)),
        ("metric", output.number(one.searcher_metric)),
        ("hyperparameters", output.assignments(one.hparams)),
        ("metadata", output.assignments(metadata)),
        ("saved", output.moment(one.reported)),
        ("size", output.size(one.size)),
        ("path", str(one.path() or "")),
        ("files", files),
    ]
    output.pairs([row for row in rows if row[1]])


@group.command()
@click.argument("uuid")
@click.option(
    "-o",
    "--output-dir",
    "target",
    type=click.Path(path_type=Path),
    help="A new directory (default: checkpoints/UUID below this one).",
)
@pass_access
def download(access: Access, uuid: str, target: Optional[Path]) -> None:
    """Fetch the files of a checkpoint into a new directory."""
    from tenax.client.checkpoints import get_checkpoint

    print(get_checkpoint(access.session(), uuid).download(target))


@group.command()
@click.argument("uuid")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_access
def delete(access: Access, uuid: str, yes: bool) -> None:
    """Delete the files of a checkpoint."""
    from tenax.client.checkpoints import get_checkpoint

    one = get_checkpoint(access.session(), uuid)
    if not yes:
        click.confirm(f"Delete the {output.size(one.size)} of checkpoint {uuid}?", abort=True, err=True)
    one.delete()
    print(f"Checkpoint {uuid} is being deleted")


group.alias("list", "ls")
