"""A whole cluster for a benchmark, started as its user starts it, in a directory that is gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tenax.client import Client

TENAX = Path(sys.executable).with_name("tenax")


class ClusterFailed(Exception):
    """``tenax up`` did not succeed; says what it said."""


@contextlib.contextmanager
def cluster(*, slots: int = 2, options: Sequence[str] = ()) -> Iterator[Path]:
    """Start a cluster with the process runtime; its directory. While it is up, `Client()` here means this cluster.

    ``options``: more of ``tenax up``. Raises ClusterFailed.
    """
    # Not below a directory that only root may enter: as root the database runs under another account.
    root = Path(tempfile.mkdtemp(prefix="tenax-bench-"))
    root.chmod(0o755)
    directory = root / "cluster"
    replaced = {name: value for name, value in os.environ.items() if name.startswith(("DET_", "TENAX_DIR", "XDG_"))}
    for name in replaced:
        del os.environ[name]
    os.environ.update(TENAX_DIR=str(directory), XDG_CONFIG_HOME=str(root / "config"))
    try:
        _tenax("up", "--port", "0", "--slots", str(slots), "--runtime", "process", *options)
        yield directory
    finally:
        with contextlib.suppress(ClusterFailed):
            _tenax("down", "--kill-tasks")
        for name in ("TENAX_DIR", "XDG_CONFIG_HOME"):
            del os.environ[name]
        os.environ.update(replaced)
        shutil.rmtree(root, ignore_errors=True)


def client() -> Client:
    """The cluster's SDK, as its first administrator."""
    return Client()


def _tenax(*arguments: str) -> None:
    done = subprocess.run([str(TENAX), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterFailed(f"tenax {' '.join(arguments)} ended with {done.returncode}: {done.stdout}{done.stderr}")
