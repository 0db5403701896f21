"""``tenax experiment gc-policy``: which checkpoints are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, list_options, pass_access
from tenax.cli.experiment.selection import EXPERIMENT, experiment_of

if TYPE_CHECKING:
    from tenax.client.checkpoints import GcPreview

_COUNT = click.IntRange(min=0)


@click.command("gc-policy", cls=StrictCommand)
@click.argument("number", metavar="EXPERIMENT", type=EXPERIMENT)
@click.option("--save-experiment-best", "best", type=_COUNT, metavar="N", help="Keep the best N of the experiment.")
@click.option("--save-trial-best", "trial_best", type=_COUNT, metavar="N", help="Keep the best N of each trial.")
@click.option("--save-trial-latest", "latest", type=_COUNT, metavar="N", help="Keep the latest N of each trial.")
@click.option("--dry-run", is_flag=True, help="Only show what would be kept and what deleted, and why.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
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

    Without any number, show the policy, what it keeps and why. Checkpoints that a changed policy does not keep are
    deleted at once; numbers that are not given stay as they are.
    """
    experiment = experiment_of(access, number)
    preview = experiment.garbage(experiment_best=best, trial_best=trial_best, trial_latest=latest)
    if dry_run or (best is None and trial_best is None and latest is None):
        _show(preview, as_json, as_csv)
        return
    count = len(preview.going)
    if count and not yes:
        _show(preview, False, False)
        output.confirm(f"Delete {_count(count)} ({output.size(preview.freed)})?")
    experiment.set_checkpoint_policy(preview.policy)
    print(
        f"Experiment {number} keeps {_summary(preview)}; {_count(count)} ({output.size(preview.freed)}) will be deleted"
    )


def _show(preview: GcPreview, as_json: bool, as_csv: bool) -> None:
    columns = [
        output.TableColumn("CHECKPOINT"),
        output.TableColumn("FATE"),
        output.TableColumn("TRIAL", right=True),
        output.TableColumn("STEPS", right=True, spare=True),
        output.TableColumn(preview.metric, right=True),
        output.TableColumn("SIZE", right=True, spare=True),
        output.TableColumn("WHY", wraps=True),
    ]
    rows = [
        [
            checkpoint.uuid,
            "stays" if checkpoint.keep else "goes",
            str(checkpoint.trial_id),
            str(checkpoint.steps),
            output.number(checkpoint.metric),
            output.size(checkpoint.size),
            "; ".join(checkpoint.reasons),
        ]
        for checkpoint in preview.checkpoints
    ]
    for removal in preview.removals:
        why = f"{removal.reason}: {removal.failure}" if removal.failure else removal.reason
        rows.append([removal.uuid, "is being deleted", "", "", "", "", why])
    if as_json:
        output.document(preview.raw)
        return
    output.listing(columns, rows, [], False, as_csv)
    output.say(
        f"The policy keeps {_summary(preview)}. "
        f"It would delete {_count(len(preview.going))} ({output.size(preview.freed)})."
    )


def _summary(preview: GcPreview) -> str:
    policy = preview.policy
    return (
        f"the best {policy.experiment_best} of the experiment, the best {policy.trial_best} and the latest "
        f"{policy.trial_latest} of each trial"
    )


def _count(number: int) -> str:
    return f"{number} checkpoint{'' if number == 1 else 's'}"
