"""What the servers import and a machine that only submits work lacks, and the line that installs it.

Standard library only, and Python 3.9: commands ask before they import what may be missing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
from typing import List, Optional, Tuple
from urllib.parse import unquote, urlsplit

from tenax.errors import UserError

#: Modules of packages of the extra `server`; named when they are not installed.
_NEEDED = ("uvicorn", "fastapi", "pydantic", "msgspec", "asyncpg", "aiohttp", "psutil")


class ServersMissing(UserError):
    """The packages of the servers are not installed here."""


def refuse_without_servers() -> None:
    """Raises ServersMissing, naming what is missing and how to install it."""
    missing = missing_modules()
    if missing:
        raise ServersMissing(
            f"The servers of Tenax are not installed here ({', '.join(missing)} missing): {install_line()}. "
            "To use a cluster that runs elsewhere, set DET_MASTER to its address."
        )


def missing_modules() -> List[str]:
    """Those of the servers' packages that are not there."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def install_line() -> str:
    """What to type to have the servers: Tenax is on no package index, it is installed from a checkout."""
    checkout, editable = _checkout()
    if checkout is None:
        return "pip install '.[server]' in a checkout of Tenax"
    return f"pip install {'-e ' if editable else ''}'{checkout}[server]'"


def server_requirement() -> str:
    """What stands for Tenax with its servers on a line of an installer: a checkout."""
    checkout, _ = _checkout()
    return f"'{checkout or '.'}[server]'"


def _checkout() -> Tuple[Optional[str], bool]:
    """The directory that Tenax was installed from, where it is still there, and whether it is used in place."""
    try:
        record = json.loads(importlib.metadata.distribution("tenax").read_text("direct_url.json") or "{}")
        address = urlsplit(record.get("url", ""))
        editable = bool(record.get("dir_info", {}).get("editable"))
    except (importlib.metadata.PackageNotFoundError, ValueError, AttributeError):
        return None, False
    directory = unquote(address.path)
    if address.scheme != "file" or not os.path.isfile(os.path.join(directory, "pyproject.toml")):
        return None, False
    return directory, editable
