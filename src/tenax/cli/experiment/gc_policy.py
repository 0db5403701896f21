"""``tenax experiment gc-policy``: which checkpoints are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import Command
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.cli.experiment.choice import EXPERIMENT

if TYPE_CHECKING:
    from tenax.client.checkpoints import Garbage

_COUNT = click.IntRange(min=0)


@click.command("gc-policy", cls=Command)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option("--save-experiment-best", "best", type=_COUNT, metavar="N", help="Keep the best N of the experiment.")
@click.option("--save-trial-best", "trial_best", type=_COUNT, metavar="N", help="Keep the best N of each trial.")
@click.option("--save-trial-latest", "latest", type=_COUNT, metavar="N", help="Keep the latest N of each trial.")
@click.option("--dry-run", is_flag=True, help="Only show what would stay and what would go, and why.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@list_options
@pass_access
def command(
    access: Access,
    number: int,
    best: Optional[int],
    trial_best: Optional[int],
    latest: Optional[int],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show or change which checkpoints of an EXPERIMENT are kept.

    Without a number of checkpoints the policy is shown, with what it keeps and why. What a changed policy does not keep
    is deleted at once; a number that is not given stays as it is.
    """
    from tenax.client.experiments import get_experiment

    experiment = get_experiment(access.session(), number)
    found = experiment.garbage(experiment_best=best, trial_best=trial_best, trial_latest=latest)
    if dry_run or (best is None and trial_best is None and latest is None):
        _show(found, as_json, as_csv)
        return
    count = len(found.going)
    if count and not yes:
        _show(found, False, False)
        click.confirm(f"Delete {_count(count)} ({output.size(found.freed)})?", abort=True, err=True)
    experiment.set_checkpoint_policy(found.policy)
    print(f"Experiment {number} keeps {_words(found)}; {_count(count)} ({output.size(found.freed)}) will be deleted")


def _show(found: Garbage, as_json: bool, as_csv: bool) -> None:
    columns = [
        output.Column("CHECKPOINT"),
        output.Column("FATE"),
        output.Column("TRIAL", right=True),
        output.Column("STEPS", right=True, spare=True),
        output.Column(found.metric, right=True),
        output.Column("SIZE", right=True, spare=True),
        output.Column("WHY", wraps=True),
    ]
    rows = [
        [
            one.uuid,
            "stays" if one.keep else "goes",
            str(one.trial_id),
            str(one.steps),
            output.number(one.metric),
            output.size(one.size),
            "; ".join(one.reasons),
        ]
        for one in found.checkpoints
    ]
    for one in found.removals:
        why = f"{one.reason}: {one.failure}" if one.failure else one.reason
        rows.append([one.uuid, "is being deleted", "", "", "", "", why])
    if as_json:
        output.document(found.raw)
        return
    output.listing(columns, rows, [], False, as_csv)
    output.say(f"Kept are {_words(found)}: {_count(len(found.going))} ({output.size(found.freed)}) would go.")


def _words(found: Garbage) -> str:
    policy = found.policy
    return (
        f"the best {policy.experiment_best} of the experiment, the best {policy.trial_best} and the latest "
        f"{policy.trial_latest} of each trial"
    )


def _count(number: int) -> str:
    return f"{number} checkpoint{'' if number == 1 else 's'}"
