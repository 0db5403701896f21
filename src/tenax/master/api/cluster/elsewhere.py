"""What a master process without the role ``api`` answers to everything but questions about itself."""

from __future__ import annotations

from tenax.errors import NotFound
from tenax.master.access.authorization import Allow
from tenax.master.api.http.routing import Routes

routes = Routes("Elsewhere")


async def elsewhere() -> None:
    """Raises NotFound."""
    raise NotFound(
        "not found: this process of the master serves no API, as its roles are without `api`: ask a master that has "
        "that role; here are /health, /metrics and /info"
    )


for _method in (routes.get, routes.post, routes.put, routes.patch, routes.delete):
    _method("/{path:path}", f"Elsewhere{_method.__name__.capitalize()}", allow=Allow.PUBLIC)(elsewhere)
