"""``tenax submit`` and ``tenax search``: a trial, or a search, of a plain script, without a file of settings.

The configuration that they make is shown before anything is sent: on standard error; with --dry-run, which sends
nothing, on standard output. --save keeps it for ``tenax experiment create``.
"""

from __future__ import annotations

import difflib
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Mapping, Optional, Tuple, TypeVar

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, json_option, pass_access
from tenax.cli.console.overrides import laid_over, overrides_option
from tenax.cli.experiment.from_script.command_line import ScriptCall, divided, script_call
from tenax.cli.experiment.from_script.configuration import (
    GOALS,
    ScriptMetrics,
    SearcherChoice,
    SearchLimits,
    entrypoint,
    searcher_for,
    single_trial,
)
from tenax.cli.experiment.from_script.spaces import constant_of, space_of
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject

Function = TypeVar("Function", bound=Callable[..., object])
_SCRIPT = click.Path(exists=True, dir_okay=False, path_type=Path)
_METAVAR = "SCRIPT [FLAG [VALUE]]... [-- ARGUMENT...]"
#: How alike a flag of the script and an option of ours are where one was meant for the other.
_ALIKE = 0.8


class ScriptCommand(StrictCommand):
    """A command whose words behind the name of a script are the script's, but for those that are options of ours."""

    def parse_args(self, ctx: click.Context, args: List[str]) -> List[str]:
        line = divided(args, self._options(ctx))
        try:
            rest = super().parse_args(ctx, list(line.ours))
        except click.NoSuchOption as error:
            hint = "a flag of the script stands behind the script's name."
            raise click.UsageError(f"No such option {error.option_name!r} here: {hint}", ctx) from None
        ctx.params["flags"] = line.flags
        ctx.params["arguments"] = line.rest
        above = ctx.parent.command.params if ctx.parent is not None else []
        ctx.params["options"] = (*self._options(ctx), *(name for option in above for name in option.opts))
        return rest

    def _options(self, ctx: click.Context) -> Mapping[str, bool]:
        """The names of our options, and whether each takes a value."""
        return {
            name: not (option.is_flag or option.count)
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }


@dataclass(frozen=True)
class ScriptOptions:
    """What both verbs are given."""

    script: Path
    flags: Tuple[str, ...]
    arguments: Tuple[str, ...]
    #: The names of our options, and of those that stand before the verb.
    options: Tuple[str, ...]
    hparams: Tuple[str, ...]
    metric: Optional[str]
    goal: Optional[str]
    slots: Optional[int]
    name: Optional[str]
    directory: Optional[Path]
    includes: Tuple[Path, ...]
    overrides: Tuple[str, ...]
    project: Optional[str]
    template: Optional[str]
    file: Optional[Path]
    dry_run: bool
    follow: bool
    as_json: bool


def _script_options(function: Function) -> Function:
    """The options that both verbs have, in the order of their help."""
    decorators = [
        click.argument("script", type=_SCRIPT, metavar=_METAVAR),
        click.option("--metric", metavar="NAME", help="The validation metric that says how good a trial is."),
        click.option(
            "--goal", type=click.Choice(GOALS), help="Which way it is better (default: as its name suggests)."
        ),
        click.option(
            "--slots",
            type=click.IntRange(0),
            metavar="N",
            help="Slots of each trial (default: 1); several run the script as N ranks of torch.distributed.",
        ),
        click.option("--name", metavar="NAME", help="Name of the experiment (default: the script's)."),
        click.option(
            "--directory",
            type=click.Path(path_type=Path),
            help="The code to send (default: the script's directory); what .detignore in it names is left out.",
        ),
        click.option(
            "-i",
            "--include",
            "includes",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Send this file as well.",
        ),
        click.option(
            "--hparam",
            "hparams",
            multiple=True,
            metavar="NAME=VALUE",
            help="A flag of the script that is called like an option here; may be given several times.",
        ),
        overrides_option("max_restarts=0"),
        click.option("--project", metavar="PROJECT", help="Put it into this project: its id, key or WORKSPACE/NAME."),
        click.option("--template", metavar="NAME", help="Merge the configuration over this template."),
        click.option(
            "--save",
            "file",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write the configuration into this new file, for tenax experiment create.",
        ),
        click.option("--dry-run", is_flag=True, help="Only print the configuration, and check it."),
        click.option("-f", "--follow", is_flag=True, help="Watch it until it ends; the exit code says how it ended."),
        json_option,
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


@click.command(cls=ScriptCommand)
@_script_options
@pass_access
def submit(access: Access, /, **given: object) -> int:
    """Run a Python script as a trial of the cluster, with its own flags: tenax submit train.py --lr 0.1

    Each flag is a hyperparameter (--batch-size is batch_size, --model.depth is depth of model), and reaches the script
    in the form that it has here: --lr 0.1, --lr=0.1 or lr=0.1. Numbers, true and false are such; everything else is
    text, and so is what is in double quotes. A flag may stand alone. What stands after -- is passed on untouched.

    The script's directory is sent along. The configuration is shown, and kept with --save.
    """
    options = ScriptOptions(**given)  # type: ignore[arg-type]  # click has made them what they are declared to be
    call = script_call(options.flags, options.arguments, options.hparams, constant_of)
    return _run(access, options, call, single_trial(_metrics(options)))


@click.command(cls=ScriptCommand)
@_script_options
@click.option("--trials", type=click.IntRange(1), metavar="N", help="How many trials (without: each combination).")
@click.option(
    "--time", type=click.IntRange(1), metavar="T", help="Stop the worse trials early; the best go on to this time."
)
@click.option(
    "--time-metric",
    metavar="NAME",
    help="The validation metric that --time counts (default: epochs or such, if the script's text reports it).",
)
@pass_access
def search(
    access: Access, /, trials: Optional[int], time: Optional[int], time_metric: Optional[str], **given: object
) -> int:
    """Search hyperparameters of a Python script: tenax search train.py --lr 1e-4..1e-1:log --time 16 --trials 20

    \b
        1e-4..1e-1:log      a number between them, each power of ten as likely
        0.0..0.5            a number between them
        16..128             a whole number from 16 to 128
        32,64,128           one of these
        true,false:switch   the flag alone, or no flag
        0.1                 this value; "a,b" in double quotes is text

    Flags reach the script as with tenax submit, with the values of each trial. With --time the search is adaptive_asha,
    without it random, and of values that can be counted all combinations where --trials is not given.
    """
    options = ScriptOptions(**given)  # type: ignore[arg-type]  # click has made them what they are declared to be
    call = script_call(options.flags, options.arguments, options.hparams, space_of)
    return _run(
        access, options, call, searcher_for(call, _metrics(options), SearchLimits(trials, time, time_metric or ""))
    )


def _metrics(options: ScriptOptions) -> ScriptMetrics:
    """What ranks the trials, as far as options and script say. Raises InvalidInput for what is no script."""
    from tenax.cli.experiment.from_script.reported import validation_metrics

    script = options.script
    if script.suffix != ".py":
        raise InvalidInput(
            f"{script} is no Python script (.py): tenax experiment create takes any entrypoint, tenax command run runs "
            "any program once."
        )
    names = validation_metrics(_source(script))
    if options.metric and names and options.metric not in names:
        output.warn(f"the text of {script.name} reports {', '.join(names)}, and no {options.metric}.")
    return ScriptMetrics(script.name, names, options.metric or "", options.goal or "")


def _source(script: Path) -> str:
    return script.read_text(encoding="utf-8", errors="replace")


def _run(access: Access, options: ScriptOptions, call: ScriptCall, choice: SearcherChoice) -> int:
    """Show the configuration, keep it if asked, and submit it; the exit code."""
    from tenax.cli.console import yaml12
    from tenax.cli.experiment.commands import report, report_check
    from tenax.cli.experiment.selection import project_id
    from tenax.client.context import read_context
    from tenax.client.experiments import check_experiment, create_experiment

    directory, script = _place(options)
    files = read_context(directory, options.includes)
    _check_is_sent(directory, script, files)
    text = yaml12.dump(_configuration(options, script, call, choice), inline=True)
    _warn_of_likely_ours(options, call)
    for remark in choice.remarks:
        output.say(remark)
    _check_can_be_kept(options)
    if not options.dry_run:
        output.say(f"\n{text}")
    elif not options.as_json:
        print(text, end="")
    session = access.session()
    project, template = project_id(session, options.project), options.template
    if options.dry_run:
        check = check_experiment(session, text, files, project_id=project, template=template)
        _keep(options, directory, text)
        if options.as_json:
            output.document(yaml12.load(text))
        report_check(check)
        return exits.OK
    experiment, remarks = create_experiment(session, text, files, project_id=project, template=template)
    _keep(options, directory, text)
    return report(experiment, remarks, f"Created experiment {experiment.id}", options.as_json, options.follow)


def _configuration(options: ScriptOptions, script: str, call: ScriptCall, choice: SearcherChoice) -> JsonObject:
    slots = 1 if options.slots is None else options.slots
    document: JsonObject = {
        "name": options.name or Path(script).stem,
        "entrypoint": list(entrypoint(script, call, slots)),
        "hyperparameters": call.hyperparameters(),
        "searcher": choice.searcher,
        "resources": {"slots_per_trial": slots},
    }
    if not call.spaces:
        del document["hyperparameters"]
    return laid_over(document, options.overrides)


def _place(options: ScriptOptions) -> Tuple[Path, str]:
    """The directory to send, and the script below it. Raises InvalidInput."""
    script = options.script
    directory = options.directory or script.parent
    here = os.path.realpath(directory)
    if options.directory is None and here in (os.path.realpath(Path.home()), os.path.abspath(os.sep)):
        raise InvalidInput(
            f"{script.name} lies in {here}, and everything there would be sent along: move it into a directory of its "
            f"own, or say that this is meant: --directory {shlex.quote(here)}."
        )
    if not directory.is_dir():
        raise InvalidInput(f"{directory} is no directory: --directory names the one that holds the code.")
    below = os.path.relpath(os.path.join(os.path.realpath(script.parent), script.name), here)
    if below.split(os.sep)[0] == os.pardir:
        raise InvalidInput(f"{script} is not in {directory}: --directory names a directory that holds the script.")
    return directory, below.replace(os.sep, "/")


def _check_is_sent(directory: Path, script: str, files: List[JsonObject]) -> None:
    from tenax.client.context import IGNORE_FILE

    if script not in {str(file.get("path")) for file in files}:
        raise InvalidInput(f"{script} is not sent: take it out of {directory / IGNORE_FILE}.")


def _warn_of_likely_ours(options: ScriptOptions, call: ScriptCall) -> None:
    """Of flags that the script's text does not have, and that are called like options of ours, or nearly so."""
    source = _source(options.script)
    for flag in call.flags:
        near = difflib.get_close_matches(flag, options.options, n=1, cutoff=_ALIKE)
        if near and flag not in source and flag.lstrip("-").replace("-", "_") not in source:
            output.warn(f"{flag} goes to the script, whose text does not have it: was tenax's {near[0]} meant?")


def _check_can_be_kept(options: ScriptOptions) -> None:
    if options.file is not None and os.path.lexists(options.file):
        raise InvalidInput(f"{options.file} is there already: name another file for --save, or remove it.")


def _keep(options: ScriptOptions, directory: Path, text: str) -> None:
    """Write the configuration, if asked, with the command that takes it."""
    if options.file is None:
        return
    line = ["tenax", "experiment", "create", str(options.file), str(directory)]
    for include in options.includes:
        line += ["--include", str(include)]
    if options.template:
        line += ["--template", options.template]
    with options.file.open("x", encoding="utf-8") as file:
        file.write(f"# {shlex.join(line)}\n{text}")
    output.say(f"The configuration is in {options.file}.")
