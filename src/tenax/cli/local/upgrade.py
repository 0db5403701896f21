"""``tenax upgrade-database``: what an upgrade leaves to be done to the database, when somebody has time for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional, Sequence

import click

from tenax.cli.console import exits, output
from tenax.cli.local.up import directory_option, state_of
from tenax.local.requirements import refuse_without_servers
from tenax.local.supervise.python import refuse_old_python

if TYPE_CHECKING:
    from tenax.local.state_dir import StateDir
    from tenax.master.store.database.migrate import BeforeFirst


@click.command("upgrade-database")
@directory_option
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Settings file of the master (YAML)."
)
@click.option(
    "--old-programs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of the PostgreSQL that made the database, where it is not installed with Tenax any more.",
)
def upgrade_database(directory: Optional[Path], config: Optional[Path], old_programs: Optional[Path]) -> int:
    """Upgrade the database of the cluster on this machine, or the one that db.url names.

    Migrations that wait are applied, also while masters of this release work on it. A database of an older PostgreSQL
    is copied to the newer one, while the cluster is stopped; the old files are kept. It may be broken off at any
    moment, and is then run again.
    """
    refuse_old_python()
    refuse_without_servers()
    from dataclasses import replace

    from tenax.errors import UserError
    from tenax.local.supervise.cluster import backup_command, plan
    from tenax.local.supervise.options import load_options

    state = state_of(directory)
    options = load_options(state)
    if config is not None:
        options = replace(options, config=str(config.absolute()))
    cluster = plan(state, options)
    database = cluster.settings.db
    if cluster.misses_its_database:
        raise UserError(
            f"The cluster in {state.root} works on a database of your own: name it, with --config or "
            "TENAX_MASTER_DB__URL. Nothing was changed."
        )
    if database.url is not None:
        dsn = database.url.get_secret_value()
        _migrate(dsn, _backup(database.backup_command, dsn))
    else:
        _upgrade_embedded(state, old_programs, backup_command(cluster))
    return exits.OK


def _backup(command: Optional[Sequence[str]], dsn: str) -> Optional[BeforeFirst]:
    """What is done before anything is changed, if somebody has said what."""
    from tenax.master.store.database.backup_command import run_backup

    async def run(first: str) -> None:
        assert command
        _say(f"making a backup before {first} is applied")
        await run_backup(command, dsn, first)

    return run if command else None


def _upgrade_embedded(state: StateDir, old_programs: Optional[Path], command: Optional[Sequence[str]]) -> None:
    from tenax.errors import UserError
    from tenax.local.binaries import CURRENT_MAJOR, below
    from tenax.local.major_upgrade import MajorUpgrade
    from tenax.local.pgdata import address_of, is_made, older_major
    from tenax.local.postgres import EmbeddedPostgres
    from tenax.local.supervise.control import occupied
    from tenax.local.supervise.glance import glance

    if not is_made(state.postgres):
        raise UserError(f"There is no database in {state.root}: name the directory of a cluster with --dir.")
    major = older_major(state.postgres)
    phase = glance(state).phase
    if phase in ("starting", "up", "stopping"):
        if major is not None:
            raise UserError(
                f"The database is one of PostgreSQL {major}, and is made one of {CURRENT_MAJOR} while the cluster is "
                "stopped: tenax down, then this again. Nothing was changed."
            )
        # Where it is just starting or stopping, connecting says so.
        dsn = address_of(state.postgres)
        _migrate(dsn, _backup(command, dsn))
        return
    with occupied(state, "its database is being upgraded by tenax upgrade-database"):
        programs = below(old_programs) if old_programs is not None else []
        kept = MajorUpgrade(state.postgres, programs, say=_say).run()
        if kept is not None:
            output.say(
                f"The database is one of PostgreSQL {CURRENT_MAJOR} now. The old files are kept; when all is well:"
            )
            output.say(f"  rm -r {kept}")
        with EmbeddedPostgres(state.postgres, progress=_say) as server:
            _migrate(server.dsn, _backup(command, server.dsn))


def _migrate(dsn: str, before: Optional[BeforeFirst]) -> None:
    import asyncio

    from tenax.errors import TryAgain
    from tenax.master.store.database.post_migrations import upgrade

    try:
        done = asyncio.run(upgrade(dsn, _say, before=before))
    except TryAgain as error:
        raise TryAgain(
            f"The database does not answer: {error.__cause__ or error}. Run this again: what is done stays done."
        ) from error
    output.say(f"Applied: {', '.join(done)}" if done else "No migration waits: the database is up to date.")


def _say(message: str) -> None:
    output.say(f"  {message}")
