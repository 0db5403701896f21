"""What a master process without the role ``api`` answers to everything that is not about itself.

To try again: an agent, a task or a client that was led here by mistake goes on with another master, or later.
"""

from __future__ import annotations

from tenax.errors import TryAgain
from tenax.master.access.authorization import Allow
from tenax.master.api.http.routing import Routes

routes = Routes("Elsewhere")


async def elsewhere() -> None:
    """Raises ServesNoApi."""
    raise ServesNoApi


class ServesNoApi(TryAgain):
    """This process of the master serves no API, as its roles are without `api`: ask a master that has that role."""


for _method in (routes.get, routes.post, routes.put, routes.patch, routes.delete):
    _method("/{path:path}", f"Elsewhere{_method.__name__.capitalize()}", allow=Allow.PUBLIC)(elsewhere)
routes.websocket("/{path:path}", "ElsewhereWebsocket", allow=Allow.PUBLIC)(elsewhere)
