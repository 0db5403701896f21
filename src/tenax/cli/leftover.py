"""Tasks that run on without their agent, and how they are ended."""

from __future__ import annotations

from pathlib import Path


def end_all(agent_directory: Path) -> int:
    """End every task that the agent of this directory started, and leave nothing of it; how many ran."""
    raise NotImplementedError
