"""``tenax experiment``: create, watch and steer experiments. ``tenax preview-search``: what a search would do."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Tuple

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import LazyCommand, LazyGroup
from tenax.cli.console.options import Access, archived_option, json_option, list_options, pass_access
from tenax.cli.console.overrides import FILE, configuration, overrides_option, parsed
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of, filter_options

if TYPE_CHECKING:
    from tenax.client.experiments import Check, Experiment

#: What a list may be ordered by, as it is spelled here.
_WIRE_ORDERS = {"started": "start_time", "ended": "end_time", "trials": "num_trials", "metric": "searcher_metric_val",
                "checkpoints": "checkpoint_count", "size": "checkpoint_size", "pool": "resource_pool",
                "parent": "forked_from", "project": "project_id"}  # fmt: skip
_RISING = ("name", "description", "state", "user", "pool", "parent", "project")
_ORDERS = ("id", "name", "description", "state", "user", "progress", *_WIRE_ORDERS)

#: In files of their own.
_ENTRIES = {
    "pause": LazyCommand(
        "tenax.cli.experiment.verbs:pause", "Pause experiments: every trial saves a checkpoint and frees its slots."
    ),
    "activate": LazyCommand("tenax.cli.experiment.verbs:activate", "Resume paused experiments.", ("unpause",)),
    "cancel": LazyCommand(
        "tenax.cli.experiment.verbs:cancel", "End experiments after every trial has saved a checkpoint."
    ),
    "kill": LazyCommand("tenax.cli.experiment.verbs:kill", "End experiments at once, without saving."),
    "archive": LazyCommand("tenax.cli.experiment.verbs:archive", "Hide experiments that have ended from lists."),
    "unarchive": LazyCommand("tenax.cli.experiment.verbs:unarchive", "Show archived experiments in lists again."),
    "delete": LazyCommand("tenax.cli.experiment.verbs:delete", "Delete experiments and everything they saved."),
    "continue": LazyCommand(
        "tenax.cli.experiment.continue_and_fork:continue_", "Continue an experiment that has ended."
    ),
    "fork": LazyCommand("tenax.cli.experiment.continue_and_fork:fork", "Create an experiment from another one."),
    "set": LazyCommand("tenax.cli.experiment.edit:set_", "Edit an experiment: name, notes, priority, slots."),
    "label": LazyCommand("tenax.cli.experiment.edit:label", "Add and remove labels."),
    "move": LazyCommand("tenax.cli.experiment.edit:move", "Move it to another project."),
    "gc-policy": LazyCommand(
        "tenax.cli.experiment.gc_policy:command", "Show or change which checkpoints are kept, and why."
    ),
    "download": LazyCommand("tenax.cli.experiment.files:download", "Download the best checkpoints."),
    "download-model-def": LazyCommand(
        "tenax.cli.experiment.files:download_model_def", "Download the code it was created with."
    ),
    "plot": LazyCommand("tenax.cli.experiment.curves:plot", "Draw learning curves, here or into a .png or .svg file."),
    "schema": LazyCommand(
        "tenax.cli.experiment.files:schema", "Print the schema of configurations, for editors that complete them."
    ),
    "list-trials": LazyCommand("tenax.cli.trial:list_", "List its trials.", ("lt",)),
    "list-checkpoints": LazyCommand("tenax.cli.checkpoint:list_", "List its checkpoints, the best first.", ("lc",)),
    "delete-tb-files": LazyCommand("tenax.cli.experiment.files:delete_tb_files", "Delete its TensorBoard files."),
}


@click.group(cls=LazyGroup, entries=_ENTRIES, help="Create, watch and steer experiments.")
def group() -> None:
    pass


@group.command()
@click.argument("config", type=FILE)
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("-f", "--follow", is_flag=True, help="Watch it until it ends; the exit code says how it ended.")
@overrides_option("searcher.max_trials=4")
@click.option(
    "-i", "--include", "includes", multiple=True, type=click.Path(path_type=Path), help="Send this file as well."
)
@click.option("--paused", is_flag=True, help="Create it without starting it.")
@click.option(
    "--project",
    "--project_id",
    metavar="PROJECT",
    help="Put it into this project: its id, key or WORKSPACE/NAME.",
)
@click.option("--template", metavar="NAME", help="Merge the configuration over this template.")
@click.option("--dry-run", is_flag=True, help="Only check it, and say whether it would start now.")
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
    project: Optional[str],
    template: Optional[str],
    dry_run: bool,
    as_json: bool,
) -> int:
    """Create an experiment from the YAML file CONFIG, with the code in DIRECTORY.

    Files that .detignore in DIRECTORY names are left out. CONFIG may be - for standard input.
    """
    from tenax.cli.experiment.selection import project_id
    from tenax.client.context import read_context
    from tenax.client.experiments import check_experiment, create_experiment
    from tenax.errors import InvalidInput

    text = configuration(config, overrides)
    if not text.strip():
        raise InvalidInput(f"{config} is empty: it should hold the configuration of the experiment, as YAML.")
    if includes and directory is None:
        raise click.UsageError("--include adds files to the code: name its DIRECTORY as well.")
    files = read_context(directory, includes) if directory is not None else []
    session = access.session()
    project_number = project_id(session, project)
    if dry_run:
        report_check(check_experiment(session, text, files, project_id=project_number, template=template))
        return exits.OK
    experiment, remarks = create_experiment(
        session, text, files, activate=not paused, project_id=project_number, template=template
    )
    return report(experiment, remarks, f"Created experiment {experiment.id}", as_json, follow)


def report_check(check: Check) -> None:
    """Say what the master remarks of what was only checked, and what would become of it."""
    for remark in check.remarks:
        output.warn(remark)
    output.say("The configuration is valid; nothing was created.")
    if check.forecast is not None:
        output.say(check.forecast.words)


def report(
    experiment: Experiment,
    remarks: List[str],
    done: str,
    as_json: bool,
    follow: bool,
    after: Optional[datetime.datetime] = None,
) -> int:
    """Say what the master remarks and what is done, and show the experiment to its end if asked; the exit code.

    ``after``: output that is older than this is not shown.
    """
    for remark in remarks:
        output.warn(remark)
    if as_json:
        output.document(experiment.raw)
    else:
        print(done)
    return follow_to_the_end(experiment, after) if follow else exits.OK


def follow_to_the_end(experiment: Experiment, after: Optional[datetime.datetime] = None) -> int:
    """Show an experiment until it ends; the exit code."""
    from tenax.cli.console.follow import Follower

    try:
        ended = Follower(experiment, after=after).run()
    except KeyboardInterrupt:
        number = experiment.id
        output.say(
            f"\nDetached: experiment {number} keeps running.\n"
            f"  tenax experiment wait {number}   to watch it again\n"
            f"  tenax experiment kill {number}   to end it"
        )
        return exits.INTERRUPTED
    return exits.OK if ended.state == "COMPLETED" else exits.NOT_COMPLETED


@group.command("list")
@click.option("-a", "--all", "everybodys", is_flag=True, help="Include other users' experiments and archived ones.")
@click.option("--user", "users", multiple=True, metavar="NAME", help="Those of this user; may be given several times.")
@filter_options
@archived_option
@click.option("--sort-by", type=click.Choice(_ORDERS), default="id", metavar="ORDER", help=f"{', '.join(_ORDERS)}.")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="List at most N, the first in that order.")
@list_options
@pass_access
def list_(
    access: Access,
    everybodys: bool,
    users: Tuple[str, ...],
    name: str,
    labels: Tuple[str, ...],
    states: Tuple[str, ...],
    project: Optional[str],
    archived: Optional[bool],
    sort_by: str,
    reverse: bool,
    limit: Optional[int],
    as_json: bool,
    as_csv: bool,
) -> None:
    """List experiments, the newest first: yours, or with --all everybody's."""
    from tenax.cli.experiment.selection import project_id
    from tenax.cli.experiment.view import rank, show_list
    from tenax.client.experiments import ExperimentQuery, count_experiments, list_experiments
    from tenax.client.users import whoami

    session = access.session()
    # The master has one direction for all; the best are the smallest of some and the largest of others.
    best_first = sort_by == "metric" and not reverse
    in_project = project_id(session, project)
    experiments = list_experiments(
        session,
        users=users or ([] if everybodys else [whoami(session).username]),
        states=states,
        archived=archived if archived is not None or everybodys else False,
        limit=None if best_first else limit,
        name=name,
        labels=labels,
        project_id=in_project,
        sort=_WIRE_ORDERS.get(sort_by, sort_by),
        # The newest and the largest come first, names and states from A to Z.
        descending=(sort_by not in _RISING) is not reverse,
    )
    if best_first:
        experiments = sorted(experiments, key=rank)[:limit]
    show_list(experiments, as_json, as_csv)
    if not experiments:
        # One has none of them: whoever has is somebody else.
        like_these = ExperimentQuery(
            name=name, labels=labels, states=states, archived=archived or False, project_id=in_project
        )
        hidden = 0 if everybodys or users else count_experiments(session, like_these)
        others = f" Other users have {hidden}: tenax experiment list --all shows them." if hidden else ""
        output.say(f"You have no such experiments.{others} To create one: tenax experiment create CONFIG DIRECTORY")


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@json_option
@pass_access
def describe(access: Access, number: int, as_json: bool) -> None:
    """Show an experiment and its trials."""
    experiment = experiment_of(access, number)
    trials = experiment.trials()
    if as_json:
        output.document({"experiment": experiment.raw, "trials": [trial.raw for trial in trials]})
        return
    from tenax.cli.experiment.view import overview, trial_table

    overview(experiment, trials)
    if trials:
        click.echo()
        trial_table(experiment, trials)


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@pass_access
def config(access: Access, number: int) -> None:
    """Print the configuration of an experiment, with every default, as YAML."""
    from tenax.cli.console import yaml12

    experiment = experiment_of(access, number)
    print(yaml12.dump(experiment.config, sort=True), end="")


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option("-f", "--follow", is_flag=True, help="Follow the output until the trial has ended.")
@click.option("--tail", type=click.IntRange(1), metavar="N", help="Only the last N lines.")
@json_option
@pass_access
def logs(access: Access, number: int, follow: bool, tail: Optional[int], as_json: bool) -> int:
    """Print the output of the first trial of an experiment."""
    from tenax.cli.trial import print_logs

    trials = experiment_of(access, number).trials()
    if not trials:
        from tenax.errors import NotFound

        raise NotFound(f"Experiment {number} has no trial yet: tenax experiment describe {number} says why.")
    return print_logs(trials[0], follow, None, tail, "", as_json)


@group.command()
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option("--polling-interval", "interval", type=float, default=1.0, help="Seconds between two polls.", hidden=True)
@pass_access
def wait(access: Access, number: int, interval: float) -> int:
    """Watch an experiment until it has ended; the exit code is 0 if it completed, 5 if it did not."""
    return follow_to_the_end(experiment_of(access, number))


group.alias("list", "ls")


@click.command("preview-search")
@click.argument("config", type=FILE)
@click.option("--config", "overrides", metavar="KEY=VALUE", multiple=True, help="Set a value of the configuration.")
@click.option("--seed", type=int, metavar="N", help="Seed of the search (default: that of the configuration).")
@json_option
@pass_access
def preview_search(
    access: Access, config: Path, overrides: Tuple[str, ...], seed: Optional[int], as_json: bool
) -> None:
    """Show how many trials the search in the YAML file CONFIG would make, and how long each would train."""
    from tenax.client.connection.reading import integer, record, records, text

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
