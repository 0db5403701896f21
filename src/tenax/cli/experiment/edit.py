"""``tenax experiment`` set, label, move: edits of an experiment that exists."""

from __future__ import annotations

from typing import Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import LazyCommand, LazyGroup, StrictCommand
from tenax.cli.console.options import Access, pass_access
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of

_NUMBER = click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
_ENTRIES = {
    "gc-policy": LazyCommand("tenax.cli.experiment.gc_policy:command", "Which checkpoints are kept."),
}


@click.group("set", cls=LazyGroup, entries=_ENTRIES, help="Edit an experiment: name, notes, priority, slots.")
def set_() -> None:
    pass


@set_.command()
@_NUMBER
@click.argument("name")
@pass_access
def name(access: Access, number: int, name: str) -> None:
    """Rename an experiment."""
    print(f"Experiment {number} is now called {experiment_of(access, number).edit(name=name).name!r}")


@set_.command()
@_NUMBER
@click.argument("text")
@pass_access
def description(access: Access, number: int, text: str) -> None:
    """Set the description of an experiment."""
    experiment_of(access, number).edit(description=text)
    print(f"Experiment {number} has a new description")


@set_.command()
@_NUMBER
@click.argument("text")
@pass_access
def notes(access: Access, number: int, text: str) -> None:
    """Replace the notes on an experiment; - reads them from standard input."""
    import sys

    experiment_of(access, number).edit(notes=sys.stdin.read() if text == "-" else text)
    print(f"Experiment {number} has new notes")


@set_.command("max-slots")
@_NUMBER
@click.argument("slots", metavar="N|none")
@pass_access
def max_slots(access: Access, number: int, slots: str) -> None:
    """Let an experiment hold at most N slots at a time; `none` removes the limit."""
    if slots.lower() == "none":
        experiment_of(access, number).edit(unlimited=True)
        print(f"Experiment {number} may hold any number of slots")
        return
    if not slots.isdecimal():
        raise click.UsageError(f"{slots!r} is not a number of slots: give 0 or more, or none.")
    experiment_of(access, number).edit(max_slots=int(slots))
    print(f"Experiment {number} may hold at most {int(slots)} slots")


@set_.command("time-limit")
@_NUMBER
@click.argument("limit", metavar="TIME|none")
@pass_access
def time_limit(access: Access, number: int, limit: str) -> None:
    """Let each run of an experiment hold its slots for at most TIME (90m, 4h, 1d12h); `none` removes the limit.

    Before that is over a run saves and leaves, and goes on when its turn comes. A shorter one than before counts for
    runs that go on already, too; a longer one from the next run on.
    """
    from tenax.config.durations import parse_duration

    if limit.lower() == "none":
        experiment_of(access, number).edit(without_time_limit=True)
        print(f"The runs of experiment {number} take as long as they do")
        return
    try:
        seconds = float(limit) if limit.isdecimal() else parse_duration(limit)
    except ValueError as error:
        raise click.UsageError(f"{error}; or none.") from None
    experiment_of(access, number).edit(time_limit=seconds)
    print(f"Each run of experiment {number} takes at most {limit}")


@set_.command()
@_NUMBER
@click.argument("weight", type=click.FloatRange(min=0, min_open=True))
@pass_access
def weight(access: Access, number: int, weight: float) -> None:
    """Set the weight of an experiment under fair share: twice the weight, twice the slots."""
    experiment_of(access, number).edit(weight=weight)
    print(f"Experiment {number} has weight {weight:g}")


@set_.command()
@_NUMBER
@click.argument("priority", type=click.IntRange(1, 99))
@pass_access
def priority(access: Access, number: int, priority: int) -> None:
    """Set the priority of an experiment: 1 is the most urgent, 99 the least."""
    experiment_of(access, number).edit(priority=priority)
    print(f"Experiment {number} has priority {priority}")


@set_.command("log-retention")
@_NUMBER
@click.option("--days", type=click.IntRange(-1, 32767), metavar="N", help="Days after the end of each trial.")
@click.option("--forever", is_flag=True, help="Keep it forever.")
@pass_access
def log_retention(access: Access, number: int, days: Optional[int], forever: bool) -> None:
    """Set how long the logs of an experiment's trials are kept."""
    if (days is None) is not forever:
        raise click.UsageError("Give --days N or --forever.")
    experiment_of(access, number).set_log_retention(-1 if days is None else days)
    period = "forever" if days is None or days < 0 else f"{days} days after the end of each trial"
    print(f"The logs of experiment {number} are kept {period}")


@click.group("label", cls=LazyGroup, help="Add labels to an experiment, and remove them.")
def label() -> None:
    pass


@label.command()
@_NUMBER
@click.argument("labels", metavar="LABEL...", nargs=-1, required=True)
@pass_access
def add(access: Access, number: int, labels: Tuple[str, ...]) -> None:
    """Add labels to an experiment."""
    experiment = experiment_of(access, number)
    for added in labels:
        now = experiment.add_label(added)
    _print_labels(number, now)


@label.command()
@_NUMBER
@click.argument("labels", metavar="LABEL...", nargs=-1, required=True)
@pass_access
def remove(access: Access, number: int, labels: Tuple[str, ...]) -> None:
    """Remove labels from an experiment."""
    experiment = experiment_of(access, number)
    for removed in labels:
        now = experiment.remove_label(removed)
    _print_labels(number, now)


def _print_labels(number: int, labels: Tuple[str, ...]) -> None:
    print(f"Experiment {number} has {', '.join(labels) if labels else 'no labels'}")


@click.command(cls=StrictCommand)
@_NUMBER
@click.argument("which", metavar="[WORKSPACE]")
@click.argument("project", metavar="PROJECT", required=False)
@pass_access
def move(access: Access, number: int, which: str, project: Optional[str]) -> None:
    """Move an experiment to another project: WORKSPACE PROJECT, or a project's id or key."""
    from tenax.client.projects import get_project

    session = access.session()
    goal = get_project(session, project, which) if project else get_project(session, which)
    experiment_of(access, number).move(goal.id)
    print(f"Experiment {number} is in the project {goal.name!r} of the workspace {goal.workspace!r}")
    if goal.archived:
        output.warn("that project is archived")
