"""How a route is declared, once for all of them.

    routes = Routes("experiments")

    @routes.post("/api/v1/experiments/{experiment_id}/pause", "PauseExperiment", allow=Allow.USER)
    async def pause(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty: ...

A declaration is data: `tenax.master.app` puts all of them into the application, the tests walk them, and OpenAPI is
written from them. Rules it keeps:

- every route says who may call it (`allow`); one that does not is refused to everyone, at run time and by a test;
- every route has an operation id that never changes, and a return annotation (or ``response_model``);
- a body is JSON whatever its Content-Type says, and none at all is the empty message;
- parameters are named in snake case here; on the wire either spelling is accepted and camel case is documented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

Handler = TypeVar("Handler", bound=Callable[..., object])


class Allow(str, Enum):
    """Who may call a route; what a caller may do to one thing is decided where the thing is loaded."""

    #: Anyone, without a credential.
    PUBLIC = "public"
    #: Whoever is logged in; a task acts as its owner.
    USER = "user"
    #: A logged-in administrator; not a task of one.
    ADMIN = "admin"
    #: A task, with the token of its allocation.
    TASK = "task"
    #: A task, for its own trial; and a user, for a trial of their own that runs outside of the cluster.
    REPORTER = "reporter"
    #: An agent, with the credential it got when it joined.
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Declared:
    """One route as declared."""

    method: str
    path: str
    operation: str
    allow: Allow
    handler: Callable[..., object]
    tag: str
    options: dict[str, object] = field(default_factory=dict)


#: Who may call a handler. Written by declarations only, at import.
_allowed: dict[object, Allow] = {}


def allowed(handler: object) -> Allow | None:
    """Who may call ``handler``; None for one that was never declared."""
    return _allowed.get(handler)


class Routes:
    """The routes of one noun, in the order in which they are matched."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.declared: list[Declared] = []

    def get(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a GET; ``options`` go to FastAPI (``response_model``, ``response_class``, ``responses``...)."""
        return self._declare("GET", path, operation, allow, options)

    def post(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a POST."""
        return self._declare("POST", path, operation, allow, options)

    def put(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a PUT."""
        return self._declare("PUT", path, operation, allow, options)

    def patch(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a PATCH."""
        return self._declare("PATCH", path, operation, allow, options)

    def delete(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a DELETE."""
        return self._declare("DELETE", path, operation, allow, options)

    def websocket(self, path: str, operation: str, *, allow: Allow) -> Callable[[Handler], Handler]:
        """Declare a websocket; the caller is known before the handler accepts the connection."""
        return self._declare("WEBSOCKET", path, operation, allow, {})

    def _declare(
        self, method: str, path: str, operation: str, allow: Allow, options: dict[str, object]
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            _allowed[handler] = allow
            self.declared.append(Declared(method, path, operation, allow, handler, self.tag, options))
            return handler

        return declare
