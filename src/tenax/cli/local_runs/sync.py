"""``tenax sync``: send to a cluster what runs by hand left here."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Tuple

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.console.options import Access, pass_access
from tenax.errors import NotNow, UserError

if TYPE_CHECKING:
    from tenax.client.connection.session import Session
    from tenax.core.local_runs.files import LocalRun


@click.command(cls=StrictCommand)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--anew", is_flag=True, help="Also those that another cluster has: this one gets all of them.")
@pass_access
def sync(access: Access, names: Tuple[str, ...], anew: bool) -> int:
    """Send local runs to the cluster: all that it does not have yet, or these.

    Each becomes a trial of an unmanaged experiment, with its metrics, output, checkpoints and end. Files of checkpoints
    stay here; the cluster knows where they lie. It may be interrupted and repeated: nothing is stored twice.
    """
    from tenax.core.local_runs.files import find_run, local_runs
    from tenax.core.local_runs.sending import cluster_of, is_sent, is_sent_elsewhere

    runs = [find_run(name) for name in names]
    if not names:
        left = [run for run in local_runs() if _has_any(run)]
        # Which cluster has what matters only with --anew: without it, nothing to send is said without a master.
        here = cluster_of(access.session()) if anew and left else ""
        runs = [run for run in left if not is_sent(run) or (anew and is_sent_elsewhere(run, here))]
    if not runs:
        where = "this cluster" if anew else "a cluster"
        output.say(f"There is nothing to send: every local run is at {where} (tenax local list).")
        return exits.OK
    session = access.session()
    failed: List[str] = []
    for run in sorted(runs, key=lambda run: run.name):
        try:
            print(_send(run, session, anew, by_name=bool(names)))
        except UserError as error:
            # The next one may be taken.
            failed.append(run.name)
            output.warn(f"{run.name}: {error}")
    return exits.FAILED if failed else exits.OK


def _send(run: LocalRun, session: Session, anew: bool, by_name: bool) -> str:
    """Send one; a line about it. Raises UserError."""
    from tenax.core.local_runs.files import sending
    from tenax.core.local_runs.reading import RunStory
    from tenax.core.local_runs.sending import is_sent, send_whole

    with sending(run) as alone:
        if not alone:
            raise NotNow("it is being sent by another process, which goes on with it")
        if anew:
            run.write_sent({})
        before = is_sent(run)
        sender = send_whole(run, session, output.say)
    where = f"trial {sender.trial} of experiment {sender.experiment}"
    count = len(RunStory(run).kept)
    if count:
        where += f"; the files of {count} checkpoint{'s' if count > 1 else ''} stay here"
    if run.is_alive():
        return f"{run.name}: {where}; it is still running"
    return f"{run.name}: {where}{' (it was there already)' if before and by_name else ''}"


def _has_any(run: LocalRun) -> bool:
    return bool(run.card or run.streams())
