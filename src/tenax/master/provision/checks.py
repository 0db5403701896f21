"""What of a pool's provider is not as its settings say: what its provider answers, and what lies on this machine.

Rules: it is looked at, and nothing is changed; a provider that does not answer is a finding as well. Whoever starts
goes on whatever it is.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from tenax.config.provider.gcp import AnyProviderSettings
from tenax.master.provision.port import Provider, ProviderAway, ProviderFinding, shown


async def checked(settings: AnyProviderSettings, provider: Provider) -> Sequence[ProviderFinding]:
    """All of it, what lies here first."""
    here = await asyncio.to_thread(_key_file, *settings.key_file)
    try:
        return [*here, *await provider.check(settings)]
    except ProviderAway as away:
        return [
            *here,
            ProviderFinding("", f"the provider does not answer: {shown(str(away))}", "mend what the reason names"),
        ]


def _key_file(variable: str, usual: str) -> list[ProviderFinding]:
    """A key that others on this machine can read is theirs, too."""
    try:
        path = Path(os.environ.get(variable) or usual).expanduser()
        mode = path.stat().st_mode
    except (OSError, RuntimeError):
        # There is none, or nobody's home to look in, or the library says so.
        return []
    if not stat.S_ISREG(mode) or not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return []
    return [ProviderFinding(variable, f"others on the master's machine may read or write {path}", f"chmod 600 {path}")]
