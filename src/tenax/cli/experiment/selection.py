"""Which experiments a command acts on: those that are named, or all that match a filter; and the action on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Tuple, TypeVar

import click

from tenax.cli.console import exits, output

if TYPE_CHECKING:
    from tenax.cli.console.options import Access
    from tenax.client.connection.session import Session
    from tenax.client.experiments import Experiment, ExperimentQuery

Function = TypeVar("Function", bound=Callable[..., object])

STATES = ("ACTIVE", "QUEUED", "RUNNING", "PAUSED", "COMPLETED", "CANCELED", "ERROR")


class ExperimentNumber(click.ParamType):  # type: ignore[type-arg]
    """An experiment by its number, or by its name if no other has it; gives the number."""

    name = "experiment"

    def convert(self, value: object, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> int:
        from tenax.client.connection.reading import is_number, only

        text = str(value)
        if is_number(text):
            return int(text)
        if not text or ctx is None or ctx.resilient_parsing:
            self.fail("it is empty." if not text else f"{text!r} is not a number.", param, ctx)
        from tenax.cli.console.options import Access
        from tenax.client.experiments import list_experiments

        access = ctx.find_object(Access) or Access()
        matches = [
            experiment
            for experiment in list_experiments(access.session(), name=text, archived=None)
            if experiment.name == text
        ]
        return only(
            text,
            matches,
            lambda experiment: str(experiment.id),
            "experiment",
            ": tenax experiment list --all shows them.",
        ).id


EXPERIMENT = ExperimentNumber()


def experiment_of(access: Access, number: int) -> Experiment:
    """Experiment ``number``. Raises NotFound."""
    from tenax.client.experiments import get_experiment

    return get_experiment(access.session(), number)


def filter_options(function: Function) -> Function:
    """Options that choose experiments: names, labels, states, projects."""
    project = click.option(
        "--project", metavar="PROJECT", help="Only those in this project: its id, key or WORKSPACE/NAME."
    )
    return local_filter_options(project(function))


def local_filter_options(function: Function) -> Function:
    """Options that choose experiments within a project: names, labels, states."""
    options = (
        click.option("--name", default="", metavar="PART", help="Only those with this in their name."),
        click.option(
            "--label",
            "labels",
            multiple=True,
            metavar="LABEL",
            help="Only those with this label; repeat it to require several.",
        ),
        click.option(
            "--state",
            "states",
            multiple=True,
            type=click.Choice(STATES, case_sensitive=False),
            metavar="STATE",
            help=f"Only those in this state: {', '.join(STATES)}.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def chosen(function: Function) -> Function:
    """The arguments of a command for many experiments: numbers, or filters and ``--yes``."""
    with_filters = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")(
        filter_options(function)
    )
    return click.argument("numbers", metavar="[EXPERIMENT...]", type=EXPERIMENT, nargs=-1)(with_filters)


def project_id(session: Session, project: Optional[str]) -> Optional[int]:
    """The number of a project that one argument names. Raises NotFound."""
    if not project:
        return None
    from tenax.client.projects import get_project

    return get_project(session, project).id


def filter_of(
    access: Access, name: str, labels: Tuple[str, ...], states: Tuple[str, ...], project: Optional[str]
) -> Optional[ExperimentQuery]:
    """A filter for the caller's own experiments; None where no option was given."""
    from tenax.client.experiments import ExperimentQuery
    from tenax.client.users import whoami

    if not (name or labels or states or project):
        return None
    session = access.session()
    return ExperimentQuery(
        name=name,
        labels=labels,
        users=(whoami(session).username,),
        states=states,
        project_id=project_id(session, project),
    )


def act_on_chosen(
    access: Access, verb: str, filters: ExperimentQuery, done: str, question: str, yes: bool, **more: int
) -> int:
    """Act on all experiments that match, after asking; the exit code."""
    from tenax.client.experiments import act_on_many, count_experiments

    session = access.session()
    count = count_experiments(session, filters)
    if not count:
        output.say("None of your experiments match.")
        return exits.OK
    if not yes:
        output.confirm(f"{question} {count} experiment{'' if count == 1 else 's'}?")
    code = exits.OK
    for outcome in act_on_many(session, verb, filters, **more):
        if outcome.error:
            output.fail(f"experiment {outcome.id}: {outcome.error}")
            code = exits.FAILED
        else:
            print(f"Experiment {outcome.id} {done}")
    return code
