"""Which master is meant, and how its address is written. Standard library only.

The order: what was named (``--master``), ``DET_MASTER``, the cluster of this machine's state directory, and at last
``http://127.0.0.1:8080``.
"""

from __future__ import annotations

import os
from typing import Optional
from urllib.parse import urlsplit, urlunsplit

from tenax.errors import InvalidInput
from tenax.local.state_dir import StateDir, default_root, read_json, text_of

VARIABLE = "DET_MASTER"
FALLBACK = "http://127.0.0.1:8080"
_DEFAULT_PORT = 8080
_PORTS = {"http": 80, "https": 443}


def master_url(named: Optional[str] = None) -> str:
    """The canonical address of the master that is meant. Raises InvalidInput for what is no address."""
    given = named or os.environ.get(VARIABLE) or local_url(StateDir(default_root())) or FALLBACK
    return canonical(given)


def local_url(state: StateDir) -> str:
    """Where the cluster of that directory answers, or answered last; empty when there was none."""
    return text_of(read_json(state.supervisor), "url")


def local_cluster_at(url: str) -> Optional[StateDir]:
    """The state directory of the cluster that answers at this canonical address, if it is ours."""
    state = StateDir(default_root())
    here = local_url(state)
    return state if here and canonical(here) == url else None


def canonical(address: str) -> str:
    """``host`` as ``http://host:8080``, ``https://host`` as ``https://host:443``; a path prefix is kept."""
    text = address.strip()
    has_scheme = "://" in text
    parts = urlsplit(text if has_scheme else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in _PORTS or not parts.hostname or port == -1:
        raise InvalidInput(
            f"{address!r} is not the address of a master: write it like http://host:8080 (--master, or {VARIABLE})."
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    number = port or (_PORTS[parts.scheme] if has_scheme else _DEFAULT_PORT)
    return urlunsplit((parts.scheme, f"{host}:{number}", parts.path.rstrip("/"), "", ""))
