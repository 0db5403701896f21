"""Writes the files of ``tenax master monitoring``."""

from __future__ import annotations

import json
import os
from typing import List, Sequence

from tenax.cli.console import yaml12
from tenax.cli.master import prometheus
from tenax.cli.master.dashboard import dashboard
from tenax.cli.master.prometheus import ALERTS, TOKEN
from tenax.errors import InvalidInput

__all__ = ["CONFIGURATION", "TOKEN", "write"]

CONFIGURATION, DASHBOARD = "prometheus.yml", "grafana-dashboard.json"


def write(directory: str, masters: Sequence[str], certificate: str, alertmanager: str, *, force: bool) -> List[str]:
    """Write all of them; returns their paths. Raises InvalidInput where one is there and says something else."""
    texts = {
        CONFIGURATION: yaml12.dump(prometheus.configuration(masters, certificate, alertmanager)),
        ALERTS: yaml12.dump(prometheus.alerts()),
        DASHBOARD: json.dumps(dashboard(), indent=2) + "\n",
    }
    paths = {os.path.join(directory, name): text for name, text in texts.items()}
    for path, text in paths.items():
        if not force and os.path.lexists(path) and _read(path) != text:
            raise InvalidInput(f"{path} is there and differs: name another directory, or replace it with --force")
    try:
        os.makedirs(directory, exist_ok=True)
        for path, text in paths.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise InvalidInput(f"cannot write into {directory}: {error.strerror}") from None
    return list(paths)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
