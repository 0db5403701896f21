"""What reading a configuration costs: clients without the server's packages can check a file too."""

from __future__ import annotations

import subprocess
import sys


def test_experiment_configuration_needs_no_server_package() -> None:
    """Only PyYAML is imported to read an experiment's configuration."""
    servers = {"pydantic", "msgspec", "fastapi", "asyncpg"}
    code = f"import sys, tenax.config.resolve; print(sorted({servers} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_settings_of_an_agent_need_no_experiment() -> None:
    """A machine joins, and a cluster is stopped, without what experiments are made of."""
    code = "import sys, tenax.agent.app; print([name for name in sys.modules if 'experiment' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
