"""``tenax experiment`` download, download-model-def, delete-tb-files: the files of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, pass_access
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of


@click.command(cls=StrictCommand)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option(
    "-o",
    "--output-dir",
    "target",
    default="checkpoints",
    type=click.Path(path_type=Path),
    help="Create a directory for each checkpoint in here, named by its UUID (default: checkpoints).",
)
@click.option(
    "--top-n", "count", default=1, type=click.IntRange(1), metavar="N", help="Download the best N (default: 1)."
)
@click.option("--sort-by", "metric", metavar="METRIC", help="Rank by this validation metric (default: the searcher's).")
@click.option(
    "--smaller-is-better", type=bool, metavar="BOOL", help="Whether smaller values of that metric are better."
)
@click.option("-q", "--quiet", is_flag=True, help="Only print the paths.")
@pass_access
def download(
    access: Access,
    number: int,
    target: Path,
    count: int,
    metric: Optional[str],
    smaller_is_better: Optional[bool],
    quiet: bool,
) -> None:
    """Download the best checkpoints of an experiment."""
    from tenax.errors import NotFound

    if (metric is None) is not (smaller_is_better is None):
        raise click.UsageError("--sort-by and --smaller-is-better must be given together.")
    experiment = experiment_of(access, number)
    if metric is None:
        checkpoints = experiment.checkpoints()
    else:
        checkpoints = experiment.checkpoints_by(metric, smaller_is_better=smaller_is_better is True)
    whole = [checkpoint for checkpoint in checkpoints if checkpoint.state == "COMPLETED"][:count]
    if not whole:
        raise NotFound(f"Experiment {number} has no checkpoint.")
    for checkpoint in whole:
        place = checkpoint.download(target / checkpoint.uuid)
        print(
            place
            if quiet
            else f"Checkpoint {checkpoint.uuid} of trial {checkpoint.trial_id}, step {checkpoint.steps}: {place}"
        )


@click.command("download-model-def", cls=StrictCommand)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option(
    "--output-dir",
    "target",
    default=".",
    type=click.Path(path_type=Path),
    help="Directory to write it to (default: here).",
)
@pass_access
def download_model_def(access: Access, number: int, target: Path) -> None:
    """Download the code that an experiment was created with, as a .tgz file."""
    from tenax.errors import NotFound

    archive = experiment_of(access, number).code()
    if not archive:
        raise NotFound(f"Experiment {number} was created without code.")
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"experiment_{number}_model_def.tgz"
    path.write_bytes(archive)
    print(path)


@click.command("delete-tb-files", cls=StrictCommand)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete_tb_files(access: Access, number: int, yes: bool) -> None:
    """Delete what the trials of an experiment wrote for TensorBoard."""
    if not yes:
        output.confirm(f"Delete the TensorBoard files of experiment {number}?")
    experiment_of(access, number).delete_tensorboard_files()
    output.say(f"The TensorBoard files of experiment {number} are deleted.")


@click.command("schema", cls=StrictCommand)
@pass_access
def schema(access: Access) -> None:
    """Print what a configuration may hold, as JSON Schema: editors complete by it and mark what is wrong.

    For the YAML extension of an editor: write it into a file, and begin a configuration with
    "# yaml-language-server: $schema=PATH".
    """
    from tenax.client.connection.reading import record

    output.document(record(access.session().get("/api/v1/config-schemas/experiment"), "jsonSchema"))
