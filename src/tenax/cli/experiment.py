"""``tenax experiment``: create, watch and steer experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional, Tuple

import click

from tenax.cli import exits, output
from tenax.cli.access import Access, json_option, list_options, pass_access
from tenax.cli.lazy import Entry, Group

if TYPE_CHECKING:
    from tenax.client.experiments import Experiment

_STATES = ("ACTIVE", "QUEUED", "RUNNING", "PAUSED", "COMPLETED", "CANCELED", "ERROR")


#: In files of their own.
_ENTRIES = {
    "gc-policy": Entry("tenax.cli.gc_policy:command", "Show or change which checkpoints are kept, and why."),
}


@click.group(cls=Group, entries=_ENTRIES, help="Create, watch and steer experiments.")
def group() -> None:
    pass


@group.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("-f", "--follow", is_flag=True, help="Watch it until it ends; the exit code tells how.")
@click.option(
    "--config",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a value of the configuration: --config searcher.max_trials=4. May be given several times.",
)
@click.option(
    "-i", "--include", "includes", multiple=True, type=click.Path(path_type=Path), help="Send this file, too."
)
@click.option("--paused", is_flag=True, help="Create it without starting it.")
@click.option("--project", "--project_id", "project_id", type=int, metavar="ID", help="Put it into this project.")
@click.option("--dry-run", is_flag=True, help="Only check the configuration.")
@json_option
@pass_access
def create(
    access: Access,
    config: Path,
    directory: Optional[Path],
    follow: bool,
    overrides: Tuple[str, ...],
    includes: Tuple[Path, ...],
    paused: bool,
    project_id: Optional[int],
    dry_run: bool,
    as_json: bool,
) -> int:
    """Create an experiment from the YAML file CONFIG, with the code in DIRECTORY.

    What .detignore in DIRECTORY names is left out. CONFIG may be - for standard input.
    """
    from tenax.cli.overrides import configuration
    from tenax.client.context import read_context
    from tenax.client.experiments import create_experiment

    text = configuration(config, overrides)
    if includes and directory is None:
        raise click.UsageError("--include adds to the code: name its DIRECTORY, too.")
    files = read_context(directory, includes) if directory is not None else []
    experiment, remarks = create_experiment(
        access.session(), text, files, activate=not paused, project_id=project_id, validate_only=dry_run
    )
    for remark in remarks:
        output.warn(remark)
    if dry_run:
        output.say("The configuration is valid; nothing was created.")
        return exits.OK
    if as_json:
        output.document(experiment.raw)
    else:
        print(f"Created experiment {experiment.id}")
    if not follow:
        return exits.OK
    return follow_to_the_end(experiment)


def follow_to_the_end(experiment: Experiment) -> int:
    """Show an experiment until it ends; the exit code."""
    from tenax.cli.follow import Follower

    try:
        ended = Follower(experiment).run()
    except KeyboardInterrupt:
        number = experiment.id
        output.say(
            f"\nDetached: experiment {number} goes on.\n"
            f"  tenax experiment wait {number}   to watch it again\n"
            f"  tenax experiment kill {number}   to end it"
        )
        return exits.INTERRUPTED
    return exits.OK if ended.state == "COMPLETED" else exits.NOT_COMPLETED


@group.command("list")
@click.option("-a", "--all", "everybodys", is_flag=True, help="Those of all users, and archived ones.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    metavar="STATE",
    help=f"Only those in this state: {', '.join(_STATES)}.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many, the newest.")
@json_option
@pass_access
def list_(access: Access, everybodys: bool, states: Tuple[str, ...], limit: Optional[int], as_json: bool) -> None:
    """List experiments, the newest first: yours, or with --all everybody's."""
    from tenax.client.experiments import list_experiments
    from tenax.client.users import whoami

    session = access.session()
    users = [] if everybodys else [whoami(session).username]
    found = list_experiments(
        session,
        users=users,
        states=states,
        archived=None if everybodys else False,
        limit=limit,
    )
    if as_json:
        output.document([experiment.raw for experiment in found])
        return
    from tenax.cli.experiment_view import list_table

    list_table(found)
    if not found:
        output.say("There is none. Create one with: tenax experiment create CONFIG DIRECTORY")


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=int)
@json_option
@pass_access
def describe(access: Access, number: int, as_json: bool) -> None:
    """Show an experiment and its trials."""
    from tenax.client.experiments import get_experiment

    experiment = get_experiment(access.session(), number)
    trials = experiment.trials()
    if as_json:
        output.document({"experiment": experiment.raw, "trials": [trial.raw for trial in trials]})
        return
    from tenax.cli.experiment_view import overview, trial_table

    overview(experiment, trials)
    if trials:
        click.echo()
        trial_table(experiment, trials)


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=int)
@pass_access
def config(access: Access, number: int) -> None:
    """Print the configuration of an experiment, with every default, as YAML."""
    from tenax.cli import yaml12
    from tenax.client.experiments import get_experiment

    experiment = get_experiment(access.session(), number)
    print(yaml12.dump(experiment.config, sort=True), end="")


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=int)
@click.option("-f", "--follow", is_flag=True, help="Go on until the trial has ended.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last so many lines.")
@json_option
@pass_access
def logs(access: Access, number: int, follow: bool, tail: Optional[int], as_json: bool) -> int:
    """Print the output of the first trial of an experiment."""
    from tenax.cli.trial import print_logs
    from tenax.client.experiments import get_experiment

    trials = get_experiment(access.session(), number).trials()
    if not trials:
        from tenax.errors import NotFound

        raise NotFound(f"Experiment {number} has no trial yet: tenax experiment describe {number} says why.")
    return print_logs(trials[0], follow, None, tail, "", as_json)


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=int)
@click.option("--polling-interval", "interval", type=float, default=1.0, help="Seconds between two looks.", hidden=True)
@pass_access
def wait(access: Access, number: int, interval: float) -> int:
    """Watch an experiment until it has ended; the exit code is 0 if it completed, 5 if it did not."""
    from tenax.client.experiments import get_experiment

    return follow_to_the_end(get_experiment(access.session(), number))


@group.command("list-trials")
@click.argument("number", metavar="EXPERIMENT", type=int)
@json_option
@pass_access
def list_trials(access: Access, number: int, as_json: bool) -> None:
    """List the trials of an experiment."""
    from tenax.client.experiments import get_experiment

    experiment = get_experiment(access.session(), number)
    trials = experiment.trials()
    if as_json:
        output.document([trial.raw for trial in trials])
        return
    from tenax.cli.experiment_view import trial_table

    trial_table(experiment, trials)


@group.command("list-checkpoints")
@click.argument("number", metavar="EXPERIMENT", type=int)
@click.option("--best", type=click.IntRange(1), metavar="N", help="Only the so many best.")
@list_options
@pass_access
def list_checkpoints(access: Access, number: int, best: Optional[int], as_json: bool, as_csv: bool) -> None:
    """List the checkpoints of an experiment, the best first."""
    from tenax.cli.checkpoint import show_list
    from tenax.client.experiments import get_experiment

    experiment = get_experiment(access.session(), number)
    show_list(experiment.checkpoints(best), experiment.metric, as_json, as_csv)


def _verb(name: str, done: str, help_: str) -> None:
    @group.command(name, help=help_)
    @click.argument("numbers", metavar="EXPERIMENT...", type=int, nargs=-1, required=True)
    @pass_access
    def run(access: Access, numbers: Tuple[int, ...]) -> int:
        return _each(access, numbers, name, done)


def _each(access: Access, numbers: Tuple[int, ...], verb: str, done: str) -> int:
    """Do it to each, also after one has refused; the exit code of the last refusal."""
    from tenax.client.experiments import get_experiment
    from tenax.errors import UserError

    code = exits.OK
    for number in numbers:
        try:
            experiment = get_experiment(access.session(), number)
            if verb == "delete":
                experiment.delete()
            else:
                experiment.do(verb)
        except UserError as error:
            told = str(error)
            output.fail(told if f"experiment {number}" in told else f"experiment {number}: {told}")
            code = exits.code_of(error)
        else:
            print(f"Experiment {number} {done}")
    return code


_verb("pause", "is asked to pause", "Pause: every trial saves and leaves its slots.")
_verb("activate", "is active", "Let a paused experiment go on.")
_verb("cancel", "is asked to end", "End an experiment: every trial saves first.")
_verb("kill", "is ended", "End an experiment at once.")
_verb("archive", "is archived", "Hide an experiment that has ended from lists.")
_verb("unarchive", "is no longer archived", "Show an archived experiment in lists again.")


@group.command()
@click.argument("numbers", metavar="EXPERIMENT...", type=int, nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_access
def delete(access: Access, numbers: Tuple[int, ...], yes: bool) -> int:
    """Delete experiments with their metrics, logs and checkpoints."""
    if not yes:
        listed = ", ".join(str(number) for number in numbers)
        click.confirm(f"Delete experiment {listed} with its metrics, logs and checkpoints?", abort=True, err=True)
    return _each(access, numbers, "delete", "is being deleted")


group.alias("list", "ls")
group.alias("list-trials", "lt")
group.alias("list-checkpoints", "lc")
group.alias("activate", "unpause")
