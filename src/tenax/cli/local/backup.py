"""``tenax backup`` and ``tenax restore``: the cluster of this machine in a directory, and a cluster from one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, Mapping, Optional

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import StrictCommand
from tenax.cli.local.up import directory_option, state_of
from tenax.local.requirements import refuse_without_servers
from tenax.local.supervise.python import refuse_old_python

if TYPE_CHECKING:
    from tenax.local.state_dir import StateDir


@click.command(cls=StrictCommand)
@click.argument("target", type=click.Path())
@directory_option
def backup(target: str, directory: Optional[Path]) -> int:
    """Write the database of the cluster on this machine, and its passwords and tokens, into the new directory TARGET.

    The cluster may be up or down. Checkpoints are not in it: copy their directory as well. It is restored with
    `tenax restore`.
    """
    refuse_old_python()
    refuse_without_servers()
    from tenax.local.backup import back_up

    state = state_of(directory)
    _refuse_database_elsewhere(state)
    place = Path(target).expanduser().absolute()
    with _database_of(state) as server:
        size = back_up(state, server, place)
    output.say(f"{place} has the database ({size / 2**20:.1f} MiB), passwords and tokens: it is for your eyes alone.")
    output.say(f"Checkpoints are not in it: copy {state.checkpoints}, or wherever else experiments save them.")
    return exits.OK


@click.command(cls=StrictCommand)
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@directory_option
def restore(source: Path, directory: Optional[Path]) -> int:
    """Make a cluster from SOURCE, which `tenax backup` wrote, where there is none yet; then start it: tenax up.

    Experiments name where their checkpoints lie, so those have to be put back to where they were.
    """
    refuse_old_python()
    refuse_without_servers()
    from tenax.local.backup import restore as make
    from tenax.local.supervise.control import occupied

    state = state_of(directory)
    state.prepare()
    with occupied(state, "it is being restored by tenax restore"):
        make(state, source.expanduser().absolute(), lambda message: output.say(f"  {message}"))
    flag = f" --dir {state.root}" if directory is not None else ""
    output.say(f"The cluster of {source} is in {state.root}. Start it with: tenax up{flag}")
    return exits.OK


def _refuse_database_elsewhere(state: StateDir) -> None:
    from tenax.errors import UserError
    from tenax.local.pgdata import is_made
    from tenax.local.supervise.cluster import plan
    from tenax.local.supervise.options import load_options

    cluster = plan(state, load_options(state))
    if cluster.misses_its_database or cluster.settings.db.url is not None:
        raise UserError("The database is one of your own (db.url): back it up with its own tools, such as pg_dump.")
    if not is_made(state.postgres):
        raise UserError(f"There is no database in {state.root}: name the directory of a cluster with --dir.")


@contextlib.contextmanager
def _database_of(state: StateDir) -> Iterator[Mapping[str, str]]:
    """The variables under which its database answers; started for that where the cluster is down."""
    from tenax.local.accounts import account_for
    from tenax.local.pgdata import client_environment, password_of, socket_directory
    from tenax.local.postgres import EmbeddedPostgres
    from tenax.local.supervise.control import occupied
    from tenax.local.supervise.glance import glance

    if glance(state).phase == "up":
        yield client_environment(
            password_of(state.postgres), socket_directory(state.postgres, account_for(state.postgres / "data"))
        )
        return
    with occupied(state, "it is being copied by tenax backup"):
        with EmbeddedPostgres(state.postgres, progress=lambda message: output.say(f"  {message}")) as server:
            yield server.environment
