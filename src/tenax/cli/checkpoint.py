"""``tenax checkpoint``: what trials saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of

if TYPE_CHECKING:
    from tenax.client.checkpoints import Checkpoint


_STATES = ("COMPLETED", "PARTIALLY_DELETED", "DELETED", "ACTIVE", "ERROR")


@click.group(cls=LazyGroup, help="List, download, trim and delete checkpoints.")
def group() -> None:
    pass


@group.command("list")
@click.argument("experiment", type=EXPERIMENT)
@click.option("--best", type=click.IntRange(1), metavar="N", help="Only the best N.")
@click.option("--trial", type=int, metavar="ID", help="Only those of this trial.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    help="Only those in this state; may be given several times.",
)
@click.option("--deleted", is_flag=True, help="Those whose files were deleted, too.")
@list_options
@pass_access
def list_(
    access: Access,
    experiment: int,
    best: Optional[int],
    trial: Optional[int],
    states: Tuple[str, ...],
    deleted: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List the checkpoints of an EXPERIMENT that there are, the best first."""
    details = experiment_of(access, experiment)
    listed = [
        checkpoint
        for checkpoint in details.checkpoints()
        if (trial is None or checkpoint.trial_id == trial)
        and (checkpoint.state in states or (not states and (deleted or checkpoint.state != "DELETED")))
    ]
    show_list(listed[:best], details.metric, as_json, as_csv)


def show_list(checkpoints: Sequence[Checkpoint], metric: str, as_json: bool, as_csv: bool = False) -> None:
    """Print a list of checkpoints."""
    columns: output.Columns[Checkpoint] = (
        (TableColumn("CHECKPOINT"), lambda checkpoint: checkpoint.uuid),
        (TableColumn("STATE", state=True), lambda checkpoint: checkpoint.state),
        (TableColumn("TRIAL", right=True), lambda checkpoint: str(checkpoint.trial_id) if checkpoint.trial_id else ""),
        (TableColumn("STEPS", right=True, spare=True), lambda checkpoint: str(checkpoint.steps)),
        (
            TableColumn("METRIC" if as_csv else metric, right=True),
            lambda checkpoint: output.number(checkpoint.searcher_metric),
        ),
        (TableColumn("SIZE", right=True), lambda checkpoint: output.size(checkpoint.size)),
        (TableColumn("SAVED", spare=True), lambda checkpoint: output.moment(checkpoint.reported)),
    )
    output.records(columns, checkpoints, as_json, as_csv)
    if not checkpoints and not as_json:
        output.say("There are no checkpoints yet.")


@group.command()
@click.argument("uuid")
@json_option
@pass_access
def describe(access: Access, uuid: str, as_json: bool) -> None:
    """Show a checkpoint and its files."""
    from tenax.client.checkpoints import get_checkpoint

    checkpoint = get_checkpoint(access.session(), uuid)
    files = "\n".join(
        f"{path}  {output.size(size)}" for path, size in checkpoint.resources.items() if not path.endswith("/")
    )
    metadata = {name: value for name, value in checkpoint.metadata.items() if name != "steps_completed"}
    rows = [
        ("checkpoint", checkpoint.uuid),
        ("state", output.state(checkpoint.state)),
        ("experiment", str(checkpoint.experiment_id) if checkpoint.experiment_id else ""),
        ("trial", str(checkpoint.trial_id) if checkpoint.trial_id else ""),
        ("steps", str(checkpoint.steps)),
        ("metric", output.number(checkpoint.searcher_metric)),
        ("hyperparameters", output.assignments(checkpoint.hparams)),
        ("metadata", output.assignments(metadata)),
        ("saved", output.moment(checkpoint.reported)),
        ("size", output.size(checkpoint.size)),
        ("path", str(checkpoint.path() or "")),
        ("deletion", checkpoint.going),
        ("files", files),
    ]
    output.details(rows, checkpoint.raw, as_json)


@group.command()
@click.argument("uuid")
@click.option(
    "-o",
    "--output-dir",
    "target",
    type=click.Path(path_type=Path),
    help="A new directory (default: checkpoints/UUID below this one).",
)
@click.option(
    "--mode",
    type=click.Choice(("auto", "direct", "master")),
    default="auto",
    show_default=True,
    help="From its storage with your own credentials (direct), through the master, or whichever works.",
)
@pass_access
def download(access: Access, uuid: str, target: Optional[Path], mode: str) -> None:
    """Download a checkpoint into a new directory."""
    from tenax.client.checkpoints import get_checkpoint

    print(get_checkpoint(access.session(), uuid).download(target, mode=mode))


@group.command()
@click.argument("uuids", metavar="UUID...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete(access: Access, uuids: Tuple[str, ...], yes: bool) -> None:
    """Delete all files of checkpoints; their records stay."""
    from tenax.client.checkpoints import delete_checkpoints

    checkpoints = _checkpoints(access, uuids)
    if not yes:
        size = output.size(sum(checkpoint.size for checkpoint in checkpoints))
        output.confirm(f"Delete the {size} of {_summary(checkpoints)}?")
    delete_checkpoints(access.session(), [checkpoint.uuid for checkpoint in checkpoints])
    for checkpoint in checkpoints:
        # Where the master itself does not reach the files, a task of the owner deletes them.
        gone = checkpoint.reload().state == "DELETED"
        print(f"Checkpoint {checkpoint.uuid} is {'deleted' if gone else 'being deleted'}")


@group.command("rm")
@click.argument("uuids", metavar="UUID...", nargs=-1, required=True)
@click.option(
    "--glob",
    "globs",
    multiple=True,
    metavar="PATTERN",
    help="Delete the files that match: --glob '**/optimizer.pt'. May be given several times.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def remove(access: Access, uuids: Tuple[str, ...], globs: Tuple[str, ...], yes: bool) -> None:
    """Delete some files of checkpoints.

    --glob says which. Without it nothing is deleted; the record of the checkpoint is updated to the files that exist.
    """
    checkpoints = _checkpoints(access, uuids)
    if globs and not yes:
        output.confirm(f"Delete what matches {' or '.join(globs)} from {_summary(checkpoints)}?")
    for checkpoint in checkpoints:
        checkpoint.remove_files(globs)
        now = checkpoint.reload()
        print(f"Checkpoint {now.uuid} is {now.state}, with {output.size(now.size)} left")
    if not globs:
        output.say(
            "No file was deleted: --glob PATTERN says which ones are to go; tenax checkpoint delete takes all of them."
        )


def _checkpoints(access: Access, uuids: Tuple[str, ...]) -> List[Checkpoint]:
    """All of them; one argument may name several, separated by commas."""
    from tenax.client.checkpoints import get_checkpoint

    names = dict.fromkeys(name.strip() for argument in uuids for name in argument.split(",") if name.strip())
    return [get_checkpoint(access.session(), name) for name in names]


def _summary(checkpoints: Sequence[Checkpoint]) -> str:
    return f"checkpoint {checkpoints[0].uuid}" if len(checkpoints) == 1 else f"{len(checkpoints)} checkpoints"


group.alias("list", "ls")
