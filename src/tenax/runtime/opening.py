"""A runtime, from its line in `tenax.host.runtimes`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import cast

from tenax.config.agent import AgentSettings
from tenax.host.runtimes import RuntimeKind
from tenax.runtime.port import Runtime


async def open_kind(kind: RuntimeKind, settings: AgentSettings) -> Runtime:
    """The runtime of that kind on this machine. Raises RuntimeAway where there is none."""
    opener = cast("Callable[[AgentSettings], Awaitable[Runtime]]", import_module(kind.module).open_runtime)
    return await opener(settings)
