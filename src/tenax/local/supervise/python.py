"""Which Pythons the servers run under, and the way out for whoever has an older one. Standard library only."""

from __future__ import annotations

import sys
from typing import Tuple

from tenax.errors import UserError
from tenax.local.requirements import server_requirement

OLDEST = (3, 11)


class PythonTooOld(UserError):
    """The servers need a newer Python."""


def refuse_old_python(version: Tuple[int, int, int] = sys.version_info[:3]) -> None:
    """Raises PythonTooOld, with a line that brings a newer one."""
    if version[:2] < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise PythonTooOld(
            f"The servers of Tenax need Python {oldest} or newer, and {sys.executable} is Python "
            f"{'.'.join(map(str, version))}. This line brings one, for you alone: pip install uv && uv venv "
            f"--python 3.12 tenax-env && uv pip install --python tenax-env {server_requirement()}. Then: "
            "tenax-env/bin/tenax up. Tasks run under Python 3.9 and newer, and this one can use a cluster "
            "elsewhere (DET_MASTER)."
        )
