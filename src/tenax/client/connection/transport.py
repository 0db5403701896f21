"""What carries the SDK's requests: httpx2, or what stands in for it where a task's Python has no packages.

Imported when the first request is made: either takes longer to load than most commands take.
"""

from __future__ import annotations

try:
    import httpx2 as httpx2
except ModuleNotFoundError:
    from tenax.client.connection import plain_http as httpx2  # type: ignore[no-redef]

__all__ = ["httpx2"]
