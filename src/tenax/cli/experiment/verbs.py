"""``tenax experiment`` pause, activate, cancel, kill, archive, unarchive, delete: of one, of several, or by filters."""

from __future__ import annotations

from typing import Optional, Tuple

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, pass_access
from tenax.cli.experiment.selection import act_on_chosen, chosen, filter_of


def _verb(name: str, done: str, help_: str) -> click.Command:
    @click.command(
        name,
        cls=StrictCommand,
        help=f"{help_}\n\nName experiments, or choose among yours with filters; you are asked to confirm then.",
    )
    @chosen
    @pass_access
    def run(
        access: Access,
        numbers: Tuple[int, ...],
        name: str,
        labels: Tuple[str, ...],
        states: Tuple[str, ...],
        project: Optional[str],
        yes: bool,
    ) -> int:
        filters = filter_of(access, name, labels, states, project)
        if bool(numbers) is (filters is not None):
            raise click.UsageError("Name experiments, or choose them with --name, --label, --state or --project.")
        if filters is not None:
            question = f"{verb.capitalize()} {_ALL.get(verb, '')}".strip()
            return act_on_chosen(access, verb, filters, done, question, yes)
        if verb == "delete" and not yes:
            listed = ", ".join(str(number) for number in numbers)
            output.confirm(f"Delete experiment {listed} with its metrics, logs and checkpoints?")
        return _each(access, numbers, verb, done)

    verb = name
    return run


#: Added to the question of a verb that destroys something.
_ALL = {"delete": "with metrics, logs and checkpoints:"}
#: They succeed on what has ended, too, and do nothing there.
_ENDING = ("cancel", "kill")


def _each(access: Access, numbers: Tuple[int, ...], verb: str, done: str) -> int:
    """Act on each, and go on after an error; the exit code of the last error."""
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
            message = str(error)
            output.fail(message if f"experiment {number}" in message else f"experiment {number}: {message}")
            code = exits.code_of(error)
        else:
            over = verb in _ENDING and experiment.has_ended
            print(f"Experiment {number} {f'had ended: {experiment.state}' if over else done}")
    return code


pause = _verb("pause", "is pausing", "Pause experiments: every trial saves a checkpoint and frees its slots.")
activate = _verb("activate", "is active", "Resume paused experiments.")
cancel = _verb(
    "cancel", "will end once its trials have saved", "End experiments after every trial has saved a checkpoint."
)
kill = _verb("kill", "is being ended", "End experiments at once, without saving.")
archive = _verb("archive", "is archived", "Hide experiments that have ended from lists.")
unarchive = _verb("unarchive", "is no longer archived", "Show archived experiments in lists again.")
delete = _verb("delete", "is being deleted", "Delete experiments with their metrics, logs and checkpoints.")
