"""Fixtures that every folder may use."""

from __future__ import annotations

pytest_plugins = ["tests.kits.database", "tests.kits.docker_engine", "tests.kits.api", "tests.kits.telemetry"]
