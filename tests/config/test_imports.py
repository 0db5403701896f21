"""What reading a configuration costs: clients without the server's packages can check a file too."""

from __future__ import annotations

import subprocess
import sys


def test_experiment_configuration_needs_no_server_package() -> None:
    """Only PyYAML is imported to read an experiment's configuration."""
    code = "import sys, tenax.config; print(sorted({'pydantic', 'msgspec', 'fastapi', 'asyncpg'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
