"""``tenax experiment`` continue and fork: an experiment goes on after its end, or another one is made from it."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Tuple

import click

from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, json_option, pass_access
from tenax.cli.console.overrides import FILE, document_of, laid_over, overrides_option
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of

if TYPE_CHECKING:
    from tenax.client.experiments import Experiment

_OVERRIDES = overrides_option("max_restarts=4")
_FOLLOW = click.option("-f", "--follow", is_flag=True, help="Watch it until it ends; the exit code says how it ended.")


@click.command("continue", cls=StrictCommand)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option(
    "--config-file",
    type=FILE,
    metavar="FILE",
    help="YAML file that is merged over its configuration.",
)
@_OVERRIDES
@_FOLLOW
@json_option
@pass_access
def continue_(
    access: Access, number: int, config_file: Optional[Path], overrides: Tuple[str, ...], follow: bool, as_json: bool
) -> int:
    """Continue an experiment that has ended, from the checkpoints of its trials.

    An experiment of one trial continues even if it completed; in a search, the trials continue that did not complete.
    A search that stops trials early cannot be continued: fork it.
    """
    from tenax.cli.console import yaml12
    from tenax.cli.experiment.commands import report

    document = document_of(config_file, overrides)
    ended = experiment_of(access, number)
    after = _end_of_output(ended) if follow else None
    experiment, remarks = ended.continued(yaml12.dump(document) if document else "")
    return report(experiment, remarks, f"Experiment {number} continues", as_json, follow, after)


def _end_of_output(experiment: Experiment) -> Optional[datetime.datetime]:
    """Just after the last line that the only trial of an experiment wrote: what follows is new."""
    if experiment.trial_count != 1:
        return None
    for trial in experiment.trials()[:1]:
        for line in trial.logs(tail=1):
            return line.time + datetime.timedelta(microseconds=1) if line.time is not None else None
    return None


@click.command("fork", cls=StrictCommand)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.argument("directory", required=False, type=click.Path(exists=True, path_type=Path))
@_OVERRIDES
@click.option("--paused", is_flag=True, help="Create it without starting it.")
@click.option("--project", metavar="PROJECT", help="Put it into this project: its id, key or WORKSPACE/NAME.")
@_FOLLOW
@json_option
@pass_access
def fork(
    access: Access,
    number: int,
    directory: Optional[Path],
    overrides: Tuple[str, ...],
    paused: bool,
    project: Optional[str],
    follow: bool,
    as_json: bool,
) -> int:
    """Create an experiment from another one, with its configuration and its code, or the code in DIRECTORY."""
    from tenax.cli.console import yaml12
    from tenax.cli.experiment.commands import report
    from tenax.cli.experiment.selection import project_id
    from tenax.client.context import read_context
    from tenax.client.experiments import create_experiment, get_experiment

    session = access.session()
    parent = get_experiment(session, number)
    config = yaml12.dump(laid_over(parent.config, overrides))
    files = read_context(directory, ()) if directory is not None else []
    experiment, remarks = create_experiment(
        session, config, files, activate=not paused, project_id=project_id(session, project), parent_id=number
    )
    done = f"Created experiment {experiment.id} from experiment {number}"
    return report(experiment, remarks, done, as_json, follow)
