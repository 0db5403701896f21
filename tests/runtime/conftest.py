"""Fixtures of the runtime tests."""

from __future__ import annotations

from tests.kits.docker_engine import docker_host, docker_image

__all__ = ["docker_host", "docker_image"]
