"""What the servers load when they start, each a process for every machine, and again after every fault."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("server", ["agent", "master"])
def test_servers_do_not_load_what_they_never_use(tmp_path: Path, server: str) -> None:
    """Here both have loaded all they need before they say why they cannot start."""
    nowhere = tmp_path / "nowhere" / server
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", f"tenax.{server}", "--dir", str(nowhere)]
        + (["--existing-parent"] if server == "agent" else ["--existing-dir"]),
        env={name: value for name, value in os.environ.items() if not name.startswith("TENAX_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 2, done.stderr[-2000:]
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {"structlog.tracebacks", "uvloop", "pydantic"} <= loaded
    assert not loaded & {"rich.pretty", "pygments"}
